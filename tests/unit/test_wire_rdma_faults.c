/* SPDX-License-Identifier: Apache-2.0 */
/* Wires over RDMA: how much may be posted, ranks that wait, disagree or die; what is refused. */
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "rdma_scene.h"
#include "tests/unit/unit.h"

static int no_rnr(struct side *s)
{
    struct wire_fact facts[WIRE_FACTS_MAX];
    size_t n = s->f->ops->facts(s->f, facts);

    for (size_t i = 0; i < n; i++)
        if (!strcmp(facts[i].metric, "rnr naks"))
            SURE(facts[i].value == 0);
    return 0;
}

/* Rank 0 posts all it may while rank 1 sleeps, then rank 1 receives; then the other way. Twice around each ring, and no sender finds
 * a receiver not ready. */
static int to_the_brim(struct side *s)
{
    struct wire_link *l = &s->f->links[0];
    uint64_t total = 0;

    for (unsigned round = 0; round < 6; round++) {
        bool sends = s->rank == round % 2;
        uint8_t *at = s->at + !sends * s->bytes / 2;
        total = (sends ? l->out.through : l->in.through) + WIRE_POSTS * 64;
        if (!sends != (round > 2))
            usleep(100000);
        for (unsigned i = 0; i < WIRE_POSTS; i++)
            MUST(sends ? wire_send(l, at + i * 64, 64) : wire_receive(l, at + i * 64, 64));
        SURE((sends ? wire_send(l, at, 64) : wire_receive(l, at, 64)) == -EAGAIN);
        if (until(s, sends ? &l->out.through : &l->in.through, total))
            return -1;
    }
    return no_rnr(s);
}

TEST(test_no_more_than_the_posts)
{
    need_port();
    struct scene scene = scene_of(to_the_brim, 1 << 16);
    play(2, &scene);
}

/* Nothing is reported through before the receiver has asked for it, whatever else completes meanwhile: a probe does. */
static int patience(struct side *s)
{
    struct wire_link *l = &s->f->links[0];

    if (s->rank) {
        usleep(1200000);
        MUST(wire_receive(l, s->at, 1000));
        return until(s, &l->in.through, 1000);
    }
    uint64_t start_ns = clock_now_ns();
    MUST(wire_send(l, s->at, 1000));
    SURE(wire_progress(s->f->workers, WIRE_BOTH, 0) == 0 && !l->out.through &&
         l->out.posted == 1000);
    if (until(s, &l->out.through, 1000))
        return -1;
    SURE(clock_now_ns() - start_ns > 1000000000);
    return 0;
}

TEST(test_a_message_waits_for_its_receiver)
{
    need_port();
    struct scene scene = scene_of(patience, 4096);
    play(2, &scene);
}

/* Who waits long sleeps. */
static int sleepy(struct side *s)
{
    struct rusage before, after;

    getrusage(RUSAGE_SELF, &before);
    uint64_t start_ns = clock_now_ns();
    MUST(wire_progress(s->f->workers, WIRE_BOTH, 700000000));
    uint64_t wall_ns = clock_now_ns() - start_ns;
    getrusage(RUSAGE_SELF, &after);
    long us = (after.ru_utime.tv_sec - before.ru_utime.tv_sec) * 1000000 +
              (after.ru_utime.tv_usec - before.ru_utime.tv_usec) +
              (after.ru_stime.tv_sec - before.ru_stime.tv_sec) * 1000000 +
              (after.ru_stime.tv_usec - before.ru_stime.tv_usec);
    SURE(wall_ns >= 700000000 && us < 250000);
    return 0;
}

TEST(test_a_long_wait_sleeps)
{
    need_port();
    struct scene scene = scene_of(sleepy, 4096);
    play(2, &scene);
}

/* Lengths that differ are an error for good; so is memory that was not announced. */
static int disagree(struct side *s)
{
    struct wire_link *l = &s->f->links[0];
    static uint8_t other[64];
    int err = 0;

    if (s->rank) {
        MUST(wire_receive(l, s->at, 100));
        wire_progress(s->f->workers, WIRE_BOTH, 300000000);
        for (int i = 0; i < 100; i++)
            SURE(s->at[i] == 0xee);
        SURE(wire_receive(l, other, 64) == -EINVAL && strstr(s->f->error, "rank 0"));
        return 0;
    }
    err = wire_send(l, s->at, 101);
    for (int i = 0; i < 600 && err >= 0; i++)
        err = wire_progress(s->f->workers, WIRE_BOTH, 100000000);
    SURE(err == -EPROTO && strstr(s->f->error, "rank 1") && strstr(s->f->error, "101"));
    SURE(wire_send(l, s->at, 100) == -EPROTO);
    return 0;
}

TEST(test_lengths_that_differ)
{
    need_port();
    struct scene scene = scene_of(disagree, 4096);
    play(2, &scene);
}

enum { LONG = 20 << 20 };

/* Rank 1 dies in the middle of a message that rank 0 sends it, and of one that it sends to rank 2. These two learn its name, and
 * count no message that is not whole. */
static int killed(struct side *s)
{
    struct wire_link *l = &s->f->links[s->rank ? 1 : 0]; /* of 0 and 2: to rank 1 */
    uint64_t start_ns = clock_now_ns();
    int err = 0;

    if (s->rank == 1) {
        MUST(wire_receive(&s->f->links[0], s->at, LONG));
        MUST(wire_send(&s->f->links[1], s->at, LONG));
        usleep(20000);
        raise(SIGKILL);
    }
    MUST(s->rank ? wire_receive(l, s->at, LONG) : wire_send(l, s->at, LONG));
    while (err >= 0 && clock_now_ns() - start_ns < 60000000000u)
        err = wire_progress(s->f->workers, WIRE_BOTH, 100000000);
    SURE(err == -ECONNRESET && strstr(s->f->error, "rank 1"));
    SURE((s->rank ? l->in.through : l->out.through) < LONG && !l->in.messages && !l->out.messages);
    return 0;
}

TEST(test_a_peer_that_is_killed_in_a_message)
{
    need_port();
    struct scene scene = scene_of(killed, LONG);
    scene.dies = true;
    play(3, &scene);
}

/* ---- refusals, and what is left */

static int alone(struct world *w, void *arg)
{
    (void)w;
    (void)arg;
    return 0;
}

static int open_alone(const struct wire_options *options, struct wire **f, char error[512])
{
    struct world *w;

    *f = NULL;
    assert_int_equal(world_fork(&w, 1, alone, NULL, error, 512), 0);
    int err = wire_open(f, &wire_rdma, w, options, error, 512);
    if (err)
        world_close(w);
    return err;
}

TEST(test_refusals)
{
    static const struct {
        const char *device, *what;
        int32_t gid;
        uint32_t mtu;
        int err;
    } cases[] = {{"nothing0", "'nothing0'", -1, 0, -ENODEV},
                 {"", "GID 200", 200, 0, -EINVAL},
                 {"", "1000", -1, 1000, -EINVAL}};

    need_port();
    for (size_t i = 0; i < 3; i++) {
        struct wire_options options = scene_of(NULL, 4096).options;
        char error[512] = "";
        struct wire *f;
        options.device = cases[i].device;
        options.rdma.gid_index = cases[i].gid;
        options.rdma.mtu = cases[i].mtu;
        assert_int_equal(open_alone(&options, &f, error), cases[i].err);
        assert_non_null(strstr(error, cases[i].what));
    }
}

/* iWARP, where the lab has it ($PLUMB_TEST_IWARP), has no write with immediate data. */
TEST(test_iwarp_is_refused)
{
    struct wire_options options = scene_of(NULL, 4096).options;
    char error[512] = "";
    struct wire *f;

    if (!getenv("PLUMB_TEST_IWARP"))
        skip();
    assert_int_equal(open_alone(&options, &f, error), -EOPNOTSUPP);
}

/* A limit that was lowered stays low, and root is above it: be nobody. */
static int starve(void)
{
    struct rlimit low = {1u << 20, 1u << 20};
    struct wire_options options = scene_of(NULL, 4096).options;
    struct wire *f;
    char error[512] = "";
    static uint8_t much[16 << 20];

    if (setrlimit(RLIMIT_MEMLOCK, &low) || setgid(65534) || setuid(65534))
        return 99;
    int err = open_alone(&options, &f, error);
    if (err == -EACCES || err == -ENODEV)
        return 77; /* devices are not for everyone here */
    err = err ? err : wire_memory(f, much, sizeof(much));
    return err == -ENOMEM && f && strstr(f->error, "ulimit -l") ? 0 : 1;
}

TEST(test_memlock)
{
    int status;

    need_port();
    fflush(NULL);
    pid_t pid = fork();
    if (!pid)
        _exit(starve());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        skip();
    assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
}
