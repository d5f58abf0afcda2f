/* SPDX-License-Identifier: Apache-2.0 */
/* Signs of life by IPv6, what is said at once, and between whom the network is dead. */
/* waits: for signs of life that do not come */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/session_fixture.h"

#define WAIT_NS 60000000000u

static int six_address(struct channel *c, struct sockaddr_storage *own,
                       struct sockaddr_storage *peer)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};

    (void)c;
    memset(own, 0, sizeof(*own));
    memcpy(own, &six, sizeof(six));
    *peer = *own;
    return 0;
}

/* As if the two ends had met by IPv6. */
static void make_six(struct channel *c)
{
    static struct channel_ops ops;

    ops = *channel_base(c)->ops;
    ops.address = six_address;
    channel_base(c)->ops = &ops;
}

static bool have_six(void)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int fd = socket(AF_INET6, SOCK_STREAM, 0);
    bool have = fd >= 0 && !bind(fd, (struct sockaddr *)&six, sizeof(six));

    if (fd >= 0)
        close(fd);
    return have;
}

/* Follows by the port that it is told, and stays until it is told to go. */
static int follower(struct world *w, void *arg)
{
    struct channel *c = world_channel(w, 0);
    struct heartbeat *p = NULL;
    uint16_t type, port;
    size_t len;

    if (*(bool *)arg)
        make_six(c);
    if (channel_recv(c, &type, &port, sizeof(port), &len, WAIT_NS))
        return 1;
    int err = heartbeat_follow(&p, w, port);
    heartbeat_at(p, 5);
    channel_send(c, 1, &err, sizeof(err));
    channel_recv(c, &type, &port, sizeof(port), &len, WAIT_NS);
    heartbeat_close(p);
    return 0;
}

static pid_t children[4];

static void bear(struct world **w, unsigned size, bool six)
{
    static bool by_six;
    char error[256] = "";

    by_six = six;
    if (world_fork(w, size, follower, &by_six, error, sizeof(error)))
        fail_msg("%s", error);
    for (unsigned i = 1; i < size; i++) {
        children[i] = channel_child(world_channel(*w, i));
        assert_true(children[i] > 0);
        if (six)
            make_six(world_channel(*w, i));
    }
}

/* Until all of them are heard. */
static void lead(struct heartbeat **p, struct world *w)
{
    uint16_t port = 0, type;
    size_t len;
    int got;

    assert_int_equal(heartbeat_lead(p, w, &port), 0);
    for (unsigned i = 1; i < world_size(w); i++) {
        struct channel *c = world_channel(w, i);
        assert_int_equal(channel_send(c, 1, &port, sizeof(port)), 0);
        assert_int_equal(channel_recv(c, &type, &got, sizeof(got), &len, WAIT_NS), 0);
        assert_int_equal(got, 0);
    }
    for (unsigned rank = 1; rank < world_size(w); rank++)
        for (int i = 0; i < 6000 && !heartbeat_hears(*p, rank); i++)
            usleep(10000);
    for (unsigned rank = 1; rank < world_size(w); rank++)
        assert_true(heartbeat_hears(*p, rank));
}

static void kill_rank(unsigned rank, struct heartbeat *p)
{
    char text[256];
    unsigned ranks[] = {rank}, lost = 0;
    int err = 0;

    kill(children[rank], SIGKILL);
    for (int i = 0; i < 6000 && !err; i++, usleep(10000))
        err = heartbeat_lost(p, ranks, 1, &lost, text, sizeof(text));
    assert_int_equal(err, -ECONNRESET);
    assert_int_equal(lost, rank);
}

static void test_six(void **state)
{
    struct world *w;
    struct heartbeat *p;

    (void)state;
    if (!have_six()) {
        print_message("there is no ::1 on this machine\n");
        skip();
    }
    bear(&w, 3, true);
    lead(&p, w);
    kill_rank(2, p);
    heartbeat_close(p);
    world_close(w);
}

/* What the function writes to stderr. */
static void hear_stderr(void (*act)(struct heartbeat *p), struct heartbeat *p, char *text,
                        size_t len)
{
    FILE *file = tmpfile();
    int before = dup(STDERR_FILENO);

    assert_non_null(file);
    fflush(stderr);
    dup2(fileno(file), STDERR_FILENO);
    act(p);
    dup2(before, STDERR_FILENO);
    close(before);
    rewind(file);
    text[fread(text, 1, len - 1, file)] = 0;
    fclose(file);
}

static void kill_two(struct heartbeat *p)
{
    kill_rank(2, p);
    kill_rank(1, p);
}

static void part_and_kill(struct heartbeat *p)
{
    heartbeat_part(p);
    kill_rank(1, p);
}

/* The launcher may be about to kill rank 0 as well; and it kills the others for the first one's sake. */
static void test_said_at_once(void **state)
{
    char said[512], name[WORLD_NAME_MAX + 32], wanted[512];
    struct world *w;
    struct heartbeat *p;

    (void)state;
    bear(&w, 3, false);
    lead(&p, w);
    hear_stderr(kill_two, p, said, sizeof(said));
    snprintf(wanted, sizeof(wanted), "%s is gone: it was killed, or has ended\n",
             world_name(w, 2, name, sizeof(name)));
    assert_string_equal(said, wanted);
    heartbeat_close(p);
    world_close(w);

    bear(&w, 2, false);
    lead(&p, w);
    hear_stderr(part_and_kill, p, said, sizeof(said));
    assert_string_equal(said, "");
    heartbeat_close(p);
    world_close(w);
}

/* To a group of hosts no TCP connection can be made: at once, and no packet leaves this machine. */
static void cut_off(struct world *w, unsigned rank)
{
    struct sockaddr_in nowhere = {.sin_family = AF_INET, .sin_addr.s_addr = inet_addr("224.0.0.1")};

    memcpy(&w->members[rank].address, &nowhere, sizeof(nowhere));
    w->members[rank].network ^= 1;
}

/* One rank a host; 1 and 3 reach each other by loopback. */
static void make_hosts(struct world *w)
{
    for (unsigned i = 0; i < w->size; i++) {
        w->members[i].node = i;
        snprintf(w->members[i].host, sizeof(w->members[i].host), "host%u", i);
    }
    w->nodes = w->size;
}

static void between(struct heartbeat *p, char *text, size_t len)
{
    static const unsigned ranks[] = {1, 2, 3};

    heartbeat_at(p, 5);
    for (int i = 0; i < 2000 && !heartbeat_between(p, ranks, 3, text, len); i++)
        usleep(10000);
}

static void test_between(void **state)
{
    char text[256] = "";
    struct world *w;
    struct heartbeat *p;

    (void)state;
    assert_true(heartbeat_between(NULL, NULL, 0, text, sizeof(text)));
    bear(&w, 4, false);
    lead(&p, w);
    between(p, text, sizeof(text)); /* of one host: nothing to try */
    assert_string_equal(text, "");
    make_hosts(w);
    between(p, text, sizeof(text));
    assert_string_equal(text, "TCP connections can be made between all of their hosts");
    w->members[3].node = 1; /* two of one host, of which one is asked */
    cut_off(w, 3);
    between(p, text, sizeof(text));
    assert_string_equal(text, "TCP connections can be made between all of their hosts");
    cut_off(w, 2);
    between(p, text, sizeof(text));
    assert_string_equal(text,
                        "no TCP connection can be made between rank 1 (host1) and rank 2 (host2)");
    heartbeat_close(p);
    world_close(w);
}

/* All have come to the operation, and it does not end. */
static void stuck(struct fixture *f)
{
    make_hosts(f->w);
    cut_off(f->w, 2);
    fake->fault = FAKE_STILL;
    fake->fault_rank = 2;
    fake->fault_run = 1;
    need(f, !begin(f, 4), "open");
    need(f, run(f, 3) != 0, "a run that does not end");
    need(f, strstr(session_error(f->s), "each rank has come to it and is alive") != NULL, "alive");
    need(f,
         strstr(session_error(f->s), "no TCP connection can be made between rank 1 (host1) and "
                                     "rank 2 (host2)") != NULL,
         "between whom");
    need(f, session_broken(f->s), "nothing goes by the channels any more");
    session_close(f->s);
}

static void test_session_stuck(void **state)
{
    (void)state;
    in_child(4, false, stuck);
}

/* With a name, or a pattern of them: these tests alone. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_six),
        cmocka_unit_test(test_said_at_once),
        cmocka_unit_test(test_between),
        cmocka_unit_test(test_session_stuck),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
