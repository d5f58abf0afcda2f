/* SPDX-License-Identifier: Apache-2.0 */
/* What the leader makes of a peer that is silent, and of one that is long at work and gives signs of life. */
/* waits: for a peer that is silent */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "benches/net/lead.h"
#include "net_pair.h"

#define LONG_NS 11500000000u /* longer than a silent peer is given */

/* Says what process it is, then serves. */
static int serve(struct channel *c, void *arg)
{
    static const struct net_service service = {0};
    pid_t pid = getpid();

    (void)arg;
    channel_send(c, 1, &pid, sizeof(pid));
    return net_serve(c, (void *)(uintptr_t)&service);
}

static pid_t fork_peer(struct channel **c, channel_child_fn *fn)
{
    uint16_t type;
    size_t len;
    pid_t pid = 0;

    fflush(NULL);
    assert_int_equal(channel_fork(c, fn, NULL), 0);
    assert_int_equal(channel_recv(*c, &type, &pid, sizeof(pid), &len, 10000000000u), 0);
    return pid;
}

/* Leads a point of TCP; the time that it took to begin, or fail. */
static int begin(struct net_lead *lead, uint64_t *ns)
{
    struct net_point p = net_pair_point("tcp", 1);
    struct net_local local = {.node = NET_NODE_NEAR, .memory = "host"};
    uint64_t start_ns = clock_now_ns();
    int err = net_lead_begin(lead, &p, &local, &local);

    *ns = clock_now_ns() - start_ns;
    return err;
}

static void a_peer_that_is_stopped_before_a_point_is_missed_in_time(void **state)
{
    struct net_lead *lead = NULL;
    struct channel *c = NULL;
    struct topo *topo = NULL;
    uint64_t ns;

    (void)state;
    assert_int_equal(topo_open(&topo), 0);
    pid_t pid = fork_peer(&c, serve);
    assert_int_equal(net_lead_open(&lead, c, topo, 0), 0);
    assert_int_equal(kill(pid, SIGSTOP), 0);
    int err = begin(lead, &ns);
    kill(pid, SIGKILL);
    if (err != -EHOSTUNREACH || !net_lead_broken(lead) || ns > 10000000000u)
        fail_msg("%d after %.1f s: %s", err, (double)ns / 1e9, net_lead_error(lead));
    net_lead_close(lead);
    topo_close(topo);
}

static int reply(struct channel *c, uint16_t request, int err, const void *body, size_t len)
{
    struct {
        struct talk_head head;
        char body[sizeof(struct net_hello)];
    } out = {.head = {.err = err}};

    memcpy(out.body, body, len);
    return channel_send(c, request | TALK_REPLY, &out, sizeof(out.head) + len);
}

/* A peer whose devices take long to open, and are not there. */
static int be_long(struct channel *c, void *arg)
{
    static const char late[] = "so it says at last";
    struct net_hello hello = {.idle_cores = NAN, .idle_softirq = NAN};
    static char in[CHANNEL_FRAME_MAX];
    struct beat *beat = NULL;
    pid_t pid = getpid();
    uint16_t type = 0;
    size_t len;

    (void)arg;
    channel_send(c, 1, &pid, sizeof(pid));
    if (beat_start(&beat, &c, 1, BEAT_LEADING_NS))
        return 1;
    while (!channel_recv(c, &type, in, sizeof(in), &len, 30000000000u) && type != TALK_BYE) {
        if (type == NET_ASK_OPEN)
            usleep(LONG_NS / 1000);
        if (type == NET_ASK_HELLO)
            reply(c, type, 0, &hello, sizeof(hello));
        else
            reply(c, type, type == NET_ASK_OPEN ? -ENODEV : 0, late, sizeof(late) - 1);
    }
    beat_end(beat);
    return 0;
}

static void a_peer_that_is_alive_is_waited_for(void **state)
{
    struct net_lead *lead = NULL;
    struct channel *c = NULL;
    struct topo *topo = NULL;
    uint64_t ns;

    (void)state;
    assert_int_equal(topo_open(&topo), 0);
    fork_peer(&c, be_long);
    assert_int_equal(net_lead_open(&lead, c, topo, 0), 0);
    int err = begin(lead, &ns);
    if (err != -ENODEV || net_lead_broken(lead) || ns < LONG_NS ||
        !strstr(net_lead_error(lead), "so it says at last"))
        fail_msg("%d after %.1f s: %s", err, (double)ns / 1e9, net_lead_error(lead));
    net_lead_close(lead);
    topo_close(topo);
}

/* Watching the idle machine is long: signs of life come meanwhile, and nothing else does. */
static void a_peer_that_is_at_work_gives_signs_of_life(void **state)
{
    struct net_hello hello = {.machine = "another one", .idle_ns = 2200000000u};
    struct channel *c = NULL;
    static char in[CHANNEL_FRAME_MAX];
    unsigned heard = 0;
    uint16_t type;
    size_t len;
    int err;

    (void)state;
    fork_peer(&c, serve);
    channel_base(c)->ops->expect(c, BEAT_LED_NS);
    assert_int_equal(channel_send(c, NET_ASK_HELLO, &hello, sizeof(hello)), 0);
    do {
        uint64_t quiet_ns = channel_base(c)->ops->quiet_ns(c);
        err = channel_recv(c, &type, in, sizeof(in), &len, 100000000u);
        heard += err == -ETIMEDOUT && channel_base(c)->ops->quiet_ns(c) < quiet_ns;
    } while (err == -ETIMEDOUT);
    assert_int_equal(err, 0);
    assert_int_equal(type, NET_ASK_HELLO | TALK_REPLY);
    assert_int_equal(((struct talk_head *)(void *)in)->err, 0);
    assert_int_equal(len, sizeof(struct talk_head) + sizeof(hello));
    assert_in_range(heard, 1, 10);
    channel_send(c, TALK_BYE, NULL, 0);
    channel_close(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_peer_that_is_stopped_before_a_point_is_missed_in_time),
        cmocka_unit_test(a_peer_that_is_alive_is_waited_for),
        cmocka_unit_test(a_peer_that_is_at_work_gives_signs_of_life),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
