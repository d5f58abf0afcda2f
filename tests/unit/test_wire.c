/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between the ranks of a world, over each wire that needs no device: what arrives is what was sent, in its order, counted to the byte;
 * who is gone is named; what cannot be is refused with its reason. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/clock.h"
#include "core/rng.h"
#include "wire_fixture.h"

#define RANKS_MAX 32
#define MiB       ((size_t)1 << 20)

static const struct wire_ops *wires[WIRES_MAX];
static unsigned n_wires;

static void run(struct wire_fixture *x, struct wire_outcome *outcomes)
{
    wire_fixture_run(x, outcomes);
    assert_string_equal(wire_first_fault(outcomes, x->size), "");
}

static struct wire_fixture pair_of(const struct wire_ops *ops, int (*fn)(struct wire_party *))
{
    return (struct wire_fixture){.ops = ops, .size = 2, .options = wire_options(2), .run = fn};
}

static void all_sizes_between_all(void **state)
{
    static const unsigned sizes[] = {2, 3, 8}, depths[] = {1, 5, WIRE_POSTS};
    struct wire_outcome outcomes[RANKS_MAX];

    (void)state;
    for (unsigned i = 0; i < n_wires; i++)
        for (unsigned s = 0; s < 3; s++)
            for (unsigned d = 0; d < 3; d++) {
                struct wire_traffic t = {.messages = sizes[s] == 8 ? 20 : 60,
                                         .depth = depths[d],
                                         .most = 3 * MiB,
                                         .seed = 1 + d,
                                         .wait_ns = d ? 100000000 : 0};
                struct wire_fixture x = {.ops = wires[i],
                                         .size = sizes[s],
                                         .options = wire_options(sizes[s]),
                                         .run = wire_all_to_all,
                                         .arg = &t};
                run(&x, outcomes);
            }
}

#define CUT 16 /* bytes; and three of them in one message */

/* From rank 1 to rank 0: so many sends are as long as so many receives. */
static int in_other_parts(struct wire_party *p, unsigned sends, unsigned receives)
{
    struct wire_link *l = wire_link_to(p, !p->rank);
    uint64_t before = p->rank ? l->out.through : l->in.through;
    char data[3 * CUT];
    int err = 0;

    for (unsigned i = 0; i < sizeof(data); i++)
        data[i] = (char)(p->rank ? 'A' + i + sends : 0);
    for (unsigned i = 0; i < sends && p->rank && !err; i++)
        err = wire_send(l, data + i * sizeof(data) / sends, sizeof(data) / sends);
    for (unsigned i = 0; i < receives && !p->rank && !err; i++)
        err = wire_receive(l, data + i * sizeof(data) / receives, sizeof(data) / receives);
    err = err ? err
              : wire_until(p, l, p->rank ? before + sizeof(data) : 0,
                           p->rank ? 0 : before + sizeof(data));
    for (unsigned i = 0; i < sizeof(data) && !p->rank && !err; i++)
        if (data[i] != (char)('A' + i + sends))
            err = wire_fault(p, -EBADMSG, "%u sends, %u receives: byte %u is '%c'", sends, receives,
                             i, data[i]);
    int met = wire_barrier(p);
    return err ? err : met;
}

static int cut_unlike(struct wire_party *p)
{
    int err = in_other_parts(p, 3, 1), then = in_other_parts(p, 1, 3);

    return err ? err : then;
}

/* Short messages have a way of their own beside the ring of shared memory. */
static void ends_need_not_cut_bytes_alike(void **state)
{
    struct wire_outcome outcomes[2];

    (void)state;
    for (unsigned i = 0; i < n_wires; i++) {
        struct wire_fixture x = pair_of(wires[i], cut_unlike);
        if (wires[i]->streams)
            run(&x, outcomes);
    }
}

static void many_small_ones(void **state)
{
    struct wire_outcome outcomes[RANKS_MAX];

    (void)state;
    for (unsigned i = 0; i < n_wires; i++) {
        struct wire_traffic t = {
            .messages = 20000, .depth = WIRE_POSTS, .most = 40, .seed = 3, .wait_ns = 1000000};
        struct wire_fixture x = pair_of(wires[i], wire_all_to_all);
        x.arg = &t;
        run(&x, outcomes);
    }
}

static void many_ranks_on_few_cpus(void **state)
{
    struct wire_outcome outcomes[RANKS_MAX];

    (void)state;
    for (unsigned i = 0; i < n_wires; i++) {
        struct wire_traffic t = {
            .messages = 8, .depth = 4, .most = 65536, .seed = 5, .wait_ns = 1000000000};
        struct wire_fixture x = {.ops = wires[i],
                                 .size = RANKS_MAX,
                                 .options = wire_options(RANKS_MAX),
                                 .run = wire_all_to_all,
                                 .arg = &t};
        x.options.crowded = true;
        run(&x, outcomes);
    }
}

/* Whatever the transport, a rank's own device is the one of its rank on the machine. */
static int own_device_opens(struct wire *f)
{
    static const char *const dealt[] = {"a", "b2", "a"};
    unsigned rank = world_rank(f->world);

    if (strcmp(f->options.device, dealt[rank]) != 0)
        return wire_fail(f, -EINVAL, "rank %u got '%s'", rank, f->options.device);
    *(char *)(uintptr_t)f->options.device = 0; /* it has none */
    return wire_shm.open(f);
}

static void devices_are_dealt_to_ranks(void **state)
{
    struct wire_outcome outcomes[3];
    struct wire_ops ops = wire_shm;
    struct wire_fixture x = {.ops = &ops, .size = 3, .options = wire_options(3)};

    (void)state;
    ops.open = own_device_opens;
    x.options.device = "a+b2";
    run(&x, outcomes);
}

/* Rank 0 posts as many receives as may be, and sends; rank 1 answers when it has been told to. */
static int post_too_many(struct wire_party *p)
{
    struct wire_link *l = wire_link_to(p, !p->rank);
    static char in[WIRE_POSTS][100], out[100];
    int err = 0;

    for (unsigned i = 0; i < WIRE_POSTS && !err; i++)
        err = wire_receive(l, in[i], 100);
    for (unsigned i = 0; i < WIRE_POSTS && !err; i++)
        err = wire_send(l, out, 100);
    if (err || wire_receive(l, in[0], 100) != -EAGAIN || wire_send(l, out, 100) != -EAGAIN)
        return wire_fault(p, -EINVAL, "posted: %d", err);
    if (l->in.posted != 100 * WIRE_POSTS || l->out.posted != 100 * WIRE_POSTS)
        return wire_fault(p, -EINVAL, "a refused post is counted");
    err = wire_until(p, l, 100 * WIRE_POSTS, 100 * WIRE_POSTS);
    if (!err && (wire_send(l, out, 0) != -EINVAL || wire_receive(l, in[0], 3 * MiB + 1) != -EINVAL))
        return wire_fault(p, -EINVAL, "a message out of bounds was taken");
    return err;
}

static void a_post_too_many_is_told(void **state)
{
    struct wire_outcome outcomes[2];

    (void)state;
    for (unsigned i = 0; i < n_wires; i++) {
        struct wire_fixture x = pair_of(wires[i], post_too_many);
        run(&x, outcomes);
    }
}

static int send_in_steps(struct wire_party *p, struct wire_link *l, char *data)
{
    int err = wire_send(l, data, MiB);

    err = err ? err : wire_until(p, l, MiB, 0);
    err = err ? err : wire_barrier(p);
    err = err ? err : wire_send(l, data + MiB, MiB);
    return err ? err : wire_until(p, l, 2 * MiB, 0);
}

/* What is received so far is in its place, and the rest is not there. */
static int receive_in_steps(struct wire_party *p, struct wire_link *l, char *data)
{
    unsigned between = 0;
    int err = wire_receive(l, data, MiB);

    err = err ? err : wire_receive(l, data + MiB, MiB);
    while (!err && l->in.through < MiB) {
        err = wire_progress(p->wire->workers, WIRE_BOTH, 100000000);
        err = err < 0 ? wire_fault(p, err, "%s", p->wire->error) : 0;
        between += l->in.through > 0 && l->in.through < MiB;
    }
    if (!err && (!between || l->in.through != MiB || l->in.messages != 1 ||
                 pattern_check(data, MiB, 7) != PATTERN_RIGHT || data[MiB] || data[2 * MiB - 1]))
        err = wire_fault(p, -ERANGE, "%llu bytes, %llu messages, %u times between",
                         (unsigned long long)l->in.through, (unsigned long long)l->in.messages,
                         between);
    err = err ? err : wire_barrier(p);
    err = err ? err : wire_until(p, l, 0, 2 * MiB);
    if (!err && (pattern_check(data + MiB, MiB, 8) != PATTERN_RIGHT || l->in.messages != 2))
        err = wire_fault(p, -EBADMSG, "the second message is wrong");
    return err;
}

static int in_steps(struct wire_party *p)
{
    struct wire_link *l = wire_link_to(p, !p->rank);
    char *data = calloc(2, MiB);

    if (p->rank) {
        pattern_fill(data, MiB, 7);
        pattern_fill(data + MiB, MiB, 8);
    }
    int err = p->rank ? send_in_steps(p, l, data) : receive_in_steps(p, l, data);
    free(data);
    return err;
}

static void bytes_get_through_bit_by_bit(void **state)
{
    struct wire_outcome outcomes[2];

    (void)state;
    for (unsigned i = 0; i < n_wires; i++) {
        struct wire_fixture x = pair_of(wires[i], in_steps);
        x.options.tcp.buffer_bytes = x.options.ring_bytes = 65536;
        if (wires[i]->streams)
            run(&x, outcomes);
    }
}

enum how { KILLED, CLOSED, KILLED_WAITED_FOR_BY_SENDER, HOWS };

/* Rank 1 goes; the others wait for it, or send to it. */
static int lose_a_peer(struct wire_party *p)
{
    enum how how = *(enum how *)p->arg;
    static char data[3 * MiB];
    uint64_t start_ns = clock_now_ns();
    int err = wire_barrier(p), rc = 0;

    if (err || (p->rank == 1 && how == CLOSED))
        return err; /* the fixture closes its wire */
    if (p->rank == 1)
        raise(SIGKILL);
    struct wire_link *l = wire_link_to(p, 1);
    if (how != KILLED_WAITED_FOR_BY_SENDER)
        wire_receive(l, data, sizeof(data));
    else
        for (unsigned i = 0; i < 10; i++)
            wire_send(l, data, sizeof(data));
    while (rc >= 0 && clock_now_ns() - start_ns < 5000000000)
        rc = wire_progress(p->wire->workers, WIRE_BOTH, p->rank ? 1000000000 : 0);
    if (rc == -ECONNRESET && strstr(p->wire->error, "rank 1 (") &&
        strstr(p->wire->error, "outstanding"))
        return 0;
    return wire_fault(p, -EINVAL, "progress said %d: %s", rc, p->wire->error);
}

static void who_is_gone_is_named(void **state)
{
    struct wire_outcome outcomes[3];

    (void)state;
    for (unsigned i = 0; i < n_wires; i++)
        for (enum how how = KILLED; how < HOWS; how++) {
            struct wire_fixture x = {.ops = wires[i],
                                     .size = 3,
                                     .options = wire_options(3),
                                     .run = lose_a_peer,
                                     .arg = &how};
            wire_fixture_run(&x, outcomes);
            assert_string_equal(outcomes[0].text, "");
            assert_int_equal(outcomes[0].rc, 0);
            assert_string_equal(outcomes[2].text, "");
            assert_int_equal(outcomes[1].rc, how == CLOSED ? 0 : -ECONNRESET);
        }
}

/* What was sent before the sender went arrives all the same. */
static int send_and_go(struct wire_party *p)
{
    struct wire_link *l = wire_link_to(p, !p->rank);
    static char data[16384];
    struct timespec pause = {.tv_nsec = 200000000};

    if (p->rank) {
        pattern_fill(data, sizeof(data), 9);
        wire_send(l, data, sizeof(data));
        return wire_until(p, l, sizeof(data), 0);
    }
    nanosleep(&pause, NULL);
    wire_receive(l, data, sizeof(data));
    int err = wire_until(p, l, 0, sizeof(data));
    if (!err && pattern_check(data, sizeof(data), 9) != PATTERN_RIGHT)
        err = wire_fault(p, -EBADMSG, "it is not what was sent");
    return err;
}

static void what_was_sent_outlives_its_sender(void **state)
{
    struct wire_outcome outcomes[2];

    (void)state;
    for (unsigned i = 0; i < n_wires; i++) {
        struct wire_fixture x = pair_of(wires[i], send_and_go);
        run(&x, outcomes);
    }
}

static int rank_of_itself(struct wire_party *p)
{
    if (wire_link(p->wire, p->rank, NULL) != -EINVAL || wire_link(p->wire, 2, NULL) != -EINVAL)
        return wire_fault(p, -EINVAL, "a link to itself, or to nobody");
    return wire_link(p->wire, !p->rank, NULL) == 0 ? 0 : wire_fault(p, -EINVAL, "a second link");
}

static void links_lead_to_other_ranks(void **state)
{
    struct wire_outcome outcomes[2];

    (void)state;
    for (unsigned i = 0; i < n_wires; i++) {
        struct wire_fixture x = pair_of(wires[i], rank_of_itself);
        run(&x, outcomes);
        x.options.message_most = 0;
        assert_int_equal(wire_fixture_run(&x, outcomes), -EINVAL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_are_dealt_to_ranks),
        cmocka_unit_test(all_sizes_between_all),
        cmocka_unit_test(ends_need_not_cut_bytes_alike),
        cmocka_unit_test(many_small_ones),
        cmocka_unit_test(many_ranks_on_few_cpus),
        cmocka_unit_test(a_post_too_many_is_told),
        cmocka_unit_test(bytes_get_through_bit_by_bit),
        cmocka_unit_test(who_is_gone_is_named),
        cmocka_unit_test(what_was_sent_outlives_its_sender),
        cmocka_unit_test(links_lead_to_other_ranks),
    };

    n_wires = wire_fixture_wires(wires);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
