/* SPDX-License-Identifier: Apache-2.0 */
/* Worlds of processes that meet over sockets: who is let in, who is not, and who is told. */
/* waits: for ranks that do not come */
#include <poll.h>
#include <sys/mman.h>

#include "tests/unit/unit.h"
#include "tests/unit/worlds.h"

struct joiner {
    unsigned rank, size;
    const struct meet_secret *secret;
    unsigned behind; /* it starts when so many of those before it have reported, or are gone */
    uint64_t after_ns, wait_ns;
    bool leaves; /* at once when it is let in */
    pid_t pid;
    int fd;
    struct report report;
};

static const struct meet_secret other_secret = {.bytes = "what somebody else knows"};

/* Rank 0 and those that come to it; stderr of rank 0. */
struct meeting {
    struct joiner joiners[RANKS];
    unsigned n;
    struct world *world;
    int err;
    char error[MEET_ERROR_BYTES], log[8192];
    uint16_t port;
    void (*ready)(void *arg, const char *address, uint16_t port); /* NULL: start_all() */
};

static void hold_until_the_end(struct world *w)
{
    uint16_t type;
    size_t n;

    while (!channel_recv(world_channel(w, 0), &type, NULL, 0, &n, 60 * SECOND_NS))
        channel_send(world_channel(w, 0), type, NULL, 0);
    world_close(w);
}

static void close_files_but(int kept)
{
    for (int fd = 3; fd < 256; fd++)
        if (fd != kept)
            close(fd);
}

/* Says its rank and goes: what one does that is killed while it waits for the others. */
static void come_and_leave(const struct joiner *j, uint16_t port)
{
    struct meet_connect to = {.host = "127.0.0.1",
                              .port = port,
                              .secret = j->secret,
                              .protocol = TEST_PROTOCOL,
                              .wait_ns = j->wait_ns};
    struct world_hello h = {.rank = j->rank, .size = j->size};
    char error[MEET_ERROR_BYTES];
    struct channel *c;
    uint8_t left[8];

    world_self(&h.member);
    if (meet_connect(&to, &c, error, sizeof(error)) ||
        channel_send(c, WORLD_HELLO, &h, sizeof(h)) ||
        world_expect(c, WORLD_ACCEPTED, left, sizeof(left), 9 * SECOND_NS, NULL, error,
                     sizeof(error)))
        _exit(1);
    _exit(0);
}

static void be_a_joiner(struct joiner *j, uint16_t port, int fd)
{
    struct world_meeting m = {.address = "127.0.0.1",
                              .port = port,
                              .rank = j->rank,
                              .size = j->size,
                              .secret = j->secret,
                              .protocol = TEST_PROTOCOL,
                              .wait_ns = j->wait_ns,
                              .cancel = &test_cancel};
    struct world *w = NULL;
    struct report *r = &j->report;

    close_files_but(fd);
    signal(SIGTERM, on_term);
    signal(SIGALRM, on_term);
    usleep((useconds_t)(j->after_ns / 1000));
    if (j->leaves)
        come_and_leave(j, port);
    r->err = world_join(&w, &m, r->error, sizeof(r->error));
    if (!r->err)
        report_world(r, w);
    if (write(fd, r, sizeof(*r)) != sizeof(*r))
        _exit(1);
    if (!r->err)
        hold_until_the_end(w);
    _exit(0);
}

/* In joiner i, which has the ends of the pipes by which those before it report. */
static void let_others_end(const struct meeting *m, unsigned i)
{
    struct pollfd reports[RANKS];

    for (unsigned k = 0; k < i; k++)
        reports[k] = (struct pollfd){.fd = m->joiners[k].fd, .events = POLLIN};
    for (int ms = 0; ms < 60000 && poll(reports, i, 0) < (int)m->joiners[i].behind; ms++)
        usleep(1000);
}

static void start_joiner(struct meeting *m, unsigned i, uint16_t port)
{
    struct joiner *j = &m->joiners[i];
    int fds[2];

    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    j->pid = test_fork();
    if (j->pid == 0) {
        let_others_end(m, i);
        be_a_joiner(j, port, fds[1]);
    }
    close(fds[1]);
    j->fd = fds[0];
}

static void start_all(void *arg, const char *address, uint16_t port)
{
    struct meeting *m = arg;

    (void)address;
    m->port = port;
    for (unsigned i = 0; i < m->n; i++)
        start_joiner(m, i, port);
}

static void add(struct meeting *m, struct joiner j)
{
    if (!j.secret)
        j.secret = &test_secret;
    if (!j.wait_ns)
        j.wait_ns = 30 * SECOND_NS;
    m->joiners[m->n++] = j;
}

/* The meeting, until it is over or the world stands. */
static void hold(struct meeting *m, unsigned size, uint64_t wait_ns)
{
    struct world_meeting w = {.size = size,
                              .address = "127.0.0.1",
                              .secret = &test_secret,
                              .protocol = TEST_PROTOCOL,
                              .wait_ns = wait_ns,
                              .cancel = &test_cancel,
                              .ready = m->ready ? m->ready : start_all,
                              .arg = m};
    int log = memfd_create("log", MFD_CLOEXEC), old = dup(STDERR_FILENO);

    test_cancel = 0;
    dup2(log, STDERR_FILENO);
    m->err = world_gather(&m->world, &w, m->error, sizeof(m->error));
    dup2(old, STDERR_FILENO);
    ssize_t n = pread(log, m->log, sizeof(m->log) - 1, 0);
    m->log[n > 0 ? n : 0] = 0;
    close(log);
    close(old);
}

static const struct report *reported(struct joiner *j)
{
    char *at = (char *)&j->report;
    size_t n = 0;
    ssize_t got;

    while (n < sizeof(j->report) && (got = read(j->fd, at + n, sizeof(j->report) - n)) > 0)
        n += (size_t)got;
    assert_int_equal(n, sizeof(j->report));
    close(j->fd);
    j->fd = -1;
    return &j->report;
}

static void part(struct meeting *m)
{
    world_close(m->world);
    for (unsigned i = 0; i < m->n; i++)
        assert_int_equal(waitpid(m->joiners[i].pid, NULL, 0), m->joiners[i].pid);
}

/* All that are there know the same, and are reached. */
static void check_world(struct meeting *m, unsigned size)
{
    struct report own = {0};
    uint16_t type;
    size_t n;

    if (m->err)
        print_message("%s\n", m->error);
    assert_int_equal(m->err, 0);
    report_world(&own, m->world);
    assert_int_equal(own.size, size);
    assert_int_equal(own.rank, 0);
    assert_int_equal(own.nodes, 1);
    for (unsigned i = 1; i < size; i++) {
        struct channel *c = world_channel(m->world, i);
        assert_int_equal(channel_send(c, 7, NULL, 0), 0);
        assert_int_equal(channel_recv(c, &type, NULL, 0, &n, 10 * SECOND_NS), 0);
    }
    for (unsigned i = 0; i < m->n; i++) {
        struct joiner *j = &m->joiners[i];
        if (j->leaves || j->secret != &test_secret)
            continue;
        const struct report *r = reported(j);
        if (r->err)
            continue;
        assert_int_equal(r->rank, j->rank);
        assert_int_equal(r->nodes, 1);
        assert_int_equal(r->members[j->rank].pid, j->pid);
        assert_memory_equal(r->members, own.members, sizeof(r->members));
        assert_memory_equal(r->key, own.key, sizeof(r->key));
    }
}

TEST(test_gather_out_of_order)
{
    uint8_t key[WORLD_KEY_BYTES];

    for (int turn = 0; turn < 2; turn++) {
        struct meeting m = {0};
        add(&m, (struct joiner){.rank = 3, .size = 4});
        add(&m, (struct joiner){.rank = 1, .size = 4, .after_ns = SECOND_NS / 2});
        add(&m, (struct joiner){.rank = 2, .size = 4, .after_ns = SECOND_NS / 4});
        hold(&m, 4, 60 * SECOND_NS);
        check_world(&m, 4);
        assert_memory_not_equal(world_key(m.world), test_secret.bytes, WORLD_KEY_BYTES);
        if (turn)
            assert_memory_not_equal(world_key(m.world), key, WORLD_KEY_BYTES);
        memcpy(key, world_key(m.world), sizeof(key));
        for (unsigned i = 0; i < 4; i++) {
            assert_int_equal(world_member(m.world, i)->address.ss_family, AF_INET);
            assert_int_equal(world_member(m.world, i)->machine_ranks, 4);
        }
        part(&m);
    }
}

/* Whichever of the two came first stays, and the other one is told of it. */
TEST(test_same_rank_twice)
{
    struct meeting m = {0};
    char said[64];

    add(&m, (struct joiner){.rank = 1, .size = 3});
    add(&m, (struct joiner){.rank = 1, .size = 3, .after_ns = SECOND_NS / 4});
    add(&m, (struct joiner){.rank = 2, .size = 3, .behind = 1});
    hold(&m, 3, 60 * SECOND_NS);
    check_world(&m, 3);
    const pid_t in = world_member(m.world, 1)->pid;
    const struct joiner *out = &m.joiners[in == m.joiners[0].pid];
    assert_int_equal(in, m.joiners[out == &m.joiners[0]].pid);
    assert_int_equal(out->report.err, -EEXIST);
    snprintf(said, sizeof(said), "process %d of ", (int)in);
    assert_non_null(strstr(out->report.error, said));
    assert_non_null(strstr(m.log, said));
    part(&m);
}

/* Another number of ranks, no such rank, rank 0 itself, another secret: each is told so, and the right one gets in. */
TEST(test_numbers_that_are_wrong)
{
    struct meeting m = {0};

    add(&m, (struct joiner){.rank = 1, .size = 4});
    add(&m, (struct joiner){.rank = 2, .size = 2});
    add(&m, (struct joiner){.rank = 0, .size = 2});
    add(&m, (struct joiner){.rank = 1, .size = 2, .secret = &other_secret});
    add(&m, (struct joiner){.rank = 1, .size = 2, .behind = 4});
    hold(&m, 2, 60 * SECOND_NS);
    check_world(&m, 2);
    assert_int_equal(m.joiners[0].report.err, -EINVAL);
    assert_non_null(strstr(m.log, "4 processes"));
    assert_int_equal(m.joiners[1].report.err, -ERANGE);
    assert_non_null(strstr(m.log, "rank 2"));
    assert_int_equal(m.joiners[2].report.err, -EEXIST);
    assert_int_equal(reported(&m.joiners[3])->err, -EACCES);
    assert_int_equal(m.joiners[4].report.err, 0);
    part(&m);
}

TEST(test_missing_are_named)
{
    struct meeting m = {0};

    add(&m, (struct joiner){.rank = 2, .size = 4});
    hold(&m, 4, 2 * SECOND_NS);
    assert_int_equal(m.err, -ETIMEDOUT);
    assert_non_null(strstr(m.error, "1 and 3 of 4"));
    assert_null(m.world);
    assert_int_equal(reported(&m.joiners[0])->err, -ETIMEDOUT);
    assert_non_null(strstr(m.joiners[0].report.error, "1 and 3 of 4"));
    part(&m);
}

TEST(test_one_that_left_may_come_again)
{
    struct meeting m = {0};

    add(&m, (struct joiner){.rank = 1, .size = 3, .leaves = true});
    add(&m, (struct joiner){.rank = 1, .size = 3, .behind = 1, .after_ns = SECOND_NS});
    add(&m, (struct joiner){.rank = 2, .size = 3, .behind = 1, .after_ns = SECOND_NS * 2});
    hold(&m, 3, 60 * SECOND_NS);
    check_world(&m, 3);
    assert_int_equal(world_member(m.world, 1)->pid, m.joiners[1].pid);
    assert_non_null(strstr(m.log, "has left: rank 1 ("));
    part(&m);
}

/* One that knows the secret and is another program, or says nothing of its rank. */
static void be_another_program(uint16_t port)
{
    struct meet_connect to = {.host = "127.0.0.1",
                              .port = port,
                              .secret = &test_secret,
                              .protocol = TEST_PROTOCOL,
                              .wait_ns = SECOND_NS};
    char error[MEET_ERROR_BYTES];
    struct channel *c;

    close_files_but(-1);
    if (!meet_connect(&to, &c, error, sizeof(error)))
        channel_send(c, WORLD_HELLO, "what is this", 12);
    pause();
    _exit(0);
}

static void start_with_another_program(void *arg, const char *address, uint16_t port)
{
    if (test_fork() == 0)
        be_another_program(port);
    start_all(arg, address, port);
}

TEST(test_another_program_is_turned_away)
{
    struct meeting m = {.ready = start_with_another_program};

    add(&m, (struct joiner){.rank = 1, .size = 2, .after_ns = SECOND_NS});
    hold(&m, 2, 60 * SECOND_NS);
    check_world(&m, 2);
    assert_non_null(strstr(m.log, "out of turn"));
    part(&m);
}

TEST(test_cancelled)
{
    struct meeting m;

    signal(SIGALRM, on_term);
    for (unsigned s = 1;; s *= 2) { /* on a busy machine rank 1 may take longer to come */
        m = (struct meeting){0};
        alarm(s);
        add(&m, (struct joiner){.rank = 1, .size = 3});
        hold(&m, 3, 60 * SECOND_NS);
        assert_int_equal(m.err, -EINTR);
        if (s > 16 || !strstr(m.error, "1 and 2 of 3"))
            break;
        part(&m);
    }
    assert_non_null(strstr(m.error, "rank 2 of 3"));
    assert_int_equal(reported(&m.joiners[0])->err, -ECANCELED); /* -EINTR: who was told to stop */
    part(&m);
}
