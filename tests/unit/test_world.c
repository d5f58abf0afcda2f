/* SPDX-License-Identifier: Apache-2.0 */
/* Worlds of forked processes: who is there, who has died, and that nobody is left behind. */
#include "tests/unit/unit.h"
#include "tests/unit/worlds.h"

enum { REPORT = 1, END_WITH_3, BE_STUBBORN };

static int be_forked(struct world *w, void *arg)
{
    struct report r = {.err = *(int *)arg};
    uint16_t type = 0;
    size_t n;
    int err = 0;

    while (!err) {
        err = channel_recv(world_channel(w, 0), &type, NULL, 0, &n, 60 * SECOND_NS);
        if (!err && type == REPORT) {
            report_world(&r, w);
            err = channel_send(world_channel(w, 0), REPORT, &r, sizeof(r));
        }
        if (!err && type == END_WITH_3)
            return 3;
        for (; !err && type == BE_STUBBORN;)
            pause();
    }
    return 0;
}

static struct world *fork_world(unsigned size)
{
    static int known_to_all = 4711;
    char error[MEET_ERROR_BYTES] = "";
    struct world *w = NULL;

    int err = world_fork(&w, size, be_forked, &known_to_all, error, sizeof(error));
    if (err)
        print_message("%s\n", error);
    assert_int_equal(err, 0);
    return w;
}

static void tell(struct world *w, unsigned rank, uint16_t what)
{
    assert_int_equal(channel_send(world_channel(w, rank), what, NULL, 0), 0);
}

static void hear_report(struct world *w, unsigned rank, struct report *r)
{
    uint16_t type = 0;
    size_t n = 0;
    struct channel *c = world_channel(w, rank);

    assert_int_equal(channel_recv(c, &type, r, sizeof(*r), &n, 30 * SECOND_NS), 0);
    assert_int_equal(n, sizeof(*r));
}

static void check_forked(struct world *w, unsigned rank, const struct report *own, unsigned sockets)
{
    struct report r;

    hear_report(w, rank, &r);
    assert_int_equal(r.err, 4711);
    assert_int_equal(r.rank, rank);
    assert_int_equal(r.size, world_size(w));
    assert_int_equal(r.nodes, 1);
    assert_int_equal(r.sockets, sockets + 1); /* its own channel, and none of the others' */
    assert_memory_equal(r.key, own->key, sizeof(r.key));
    assert_memory_equal(r.members, own->members, sizeof(r.members));
}

TEST(test_fork_sizes)
{
    static const unsigned sizes[] = {1, 2, 20};
    unsigned sockets = count_sockets(getpid());

    for (size_t k = 0; k < sizeof(sizes) / sizeof(*sizes); k++) {
        struct world *w = fork_world(sizes[k]), *other = fork_world(1);
        struct report own = {0};
        report_world(&own, w);
        assert_int_equal(own.rank, 0);
        assert_int_equal(own.size, sizes[k]);
        assert_string_equal(world_group(w), "local");
        assert_null(world_channel(w, 0));
        assert_null(world_channel(w, sizes[k]));
        assert_memory_not_equal(own.key, world_key(other), WORLD_KEY_BYTES);
        world_close(other);
        for (unsigned i = 1; i < sizes[k]; i++)
            tell(w, i, REPORT);
        for (unsigned i = 1; i < sizes[k]; i++) {
            const struct world_member *m = world_member(w, i);
            check_forked(w, i, &own, sockets);
            assert_int_equal(getpgid(m->pid), getpgrp());
            assert_int_equal(m->machine_rank, i);
            assert_int_equal(m->local, i);
            assert_int_equal(m->machine_ranks, sizes[k]);
            assert_int_equal(m->address.ss_family, AF_INET);
        }
        world_close(w);
        assert_int_equal(count_sockets(getpid()), sockets);
    }
}

TEST(test_sizes_that_are_none)
{
    char error[MEET_ERROR_BYTES] = "";
    struct world *w = NULL;

    assert_int_equal(world_fork(&w, 0, be_forked, NULL, error, sizeof(error)), -EINVAL);
    assert_int_equal(world_fork(&w, WORLD_RANKS_MAX + 1, be_forked, NULL, error, sizeof(error)),
                     -EINVAL);
    assert_null(w);
    world_close(NULL);
}

/* One that is killed, and one that ends; the others live on. */
TEST(test_dead_child_is_named)
{
    char error[MEET_ERROR_BYTES] = "", name[100];
    struct report r;
    uint16_t type;
    size_t n;

    for (int killed = 0; killed < 2; killed++) {
        struct world *w = fork_world(5);
        unsigned rank = 99;
        assert_int_equal(world_alive(w, &rank, error, sizeof(error)), 0);
        assert_true(world_member(w, 3)->pid > 1); /* or more than it is killed */
        if (killed)
            kill(world_member(w, 3)->pid, SIGKILL);
        else
            tell(w, 3, END_WITH_3);
        assert_int_equal(missed(w, &rank, error), -ECONNRESET);
        assert_int_equal(rank, 3);
        assert_non_null(strstr(error, killed ? "signal 9" : "status 3"));
        assert_non_null(strstr(error, world_name(w, 3, name, sizeof(name))));
        assert_memory_equal(name, "rank 3 (", 8);
        struct channel *c = world_channel(w, 3);
        assert_int_equal(channel_recv(c, &type, NULL, 0, &n, 60 * SECOND_NS), -ECONNRESET);
        assert_non_null(strstr(channel_error(c), name));
        tell(w, 4, REPORT);
        hear_report(w, 4, &r);
        world_close(w);
    }
}

/* Those that do not end by themselves are killed, all in the time of one: one after the other would take them a second each. */
TEST(test_close_ends_the_stubborn)
{
    enum { STUBBORN = 121 };
    struct world *w = fork_world(STUBBORN);
    pid_t pids[STUBBORN];

    for (unsigned i = 1; i < STUBBORN; i++) {
        pids[i] = world_member(w, i)->pid;
        tell(w, i, BE_STUBBORN);
    }
    usleep(200000);
    uint64_t begin_ns = clock_now_ns();
    world_close(w);
    assert_true(clock_now_ns() - begin_ns < 90 * SECOND_NS);
    for (unsigned i = 1; i < STUBBORN; i++)
        assert_int_equal(kill(pids[i], 0), -1);
}

/* A process with a world of its own tells who they are, then stands still. */
TEST(test_no_orphans)
{
    pid_t pids[5];
    int fds[2];

    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    pid_t leader = test_fork();
    if (leader == 0) {
        struct world *w = fork_world(5);
        for (unsigned i = 0; i < 5; i++)
            pids[i] = world_member(w, i)->pid;
        tell(w, 4, BE_STUBBORN);
        while (write(fds[1], pids, sizeof(pids)) == sizeof(pids))
            pause();
        _exit(1);
    }
    close(fds[1]);
    assert_int_equal(read(fds[0], pids, sizeof(pids)), sizeof(pids));
    assert_int_equal(pids[0], leader);
    kill(leader, SIGKILL);
    waitpid(leader, NULL, 0);
    for (unsigned i = 1; i < 5; i++)
        assert_true(is_gone(pids[i]));
    close(fds[0]);
}

static struct world *invent(unsigned size)
{
    char error[MEET_ERROR_BYTES];
    struct world *w = NULL;

    assert_int_equal(world_new(&w, "sock", 0, size, error, sizeof(error)), 0);
    return w;
}

TEST(test_nodes_and_machine_ranks)
{
    static const struct {
        const char *host, *machine;
        uint64_t network;
        unsigned node, local, machine_rank, machine_ranks;
    } cases[] = {
        {"a", "m1", 1, 0, 0, 0, 4}, {"b", "m2", 2, 1, 0, 0, 1}, {"a", "m1", 1, 0, 1, 1, 4},
        {"c", "m1", 1, 2, 0, 2, 4}, /* another host name, of a container */
        {"a", "m1", 3, 3, 0, 3, 4}, /* another network */
        {"x", "", 0, 4, 0, 0, 1},   {"x", "", 0, 5, 0, 0, 1}, /* alike, but not known to be one */
    };
    const unsigned n = sizeof(cases) / sizeof(*cases);
    struct world *w = invent(n);

    for (unsigned i = 0; i < n; i++) {
        snprintf(w->members[i].host, WORLD_NAME_MAX, "%s", cases[i].host);
        snprintf(w->members[i].machine, WORLD_NAME_MAX, "%s", cases[i].machine);
        w->members[i].network = cases[i].network;
    }
    world_number(w);
    assert_int_equal(world_nodes(w), 6);
    for (unsigned i = 0; i < n; i++) {
        assert_int_equal(w->members[i].node, cases[i].node);
        assert_int_equal(w->members[i].local, cases[i].local);
        assert_int_equal(w->members[i].machine_rank, cases[i].machine_rank);
        assert_int_equal(w->members[i].machine_ranks, cases[i].machine_ranks);
    }
    world_free(w);
}

TEST(test_members_are_cleaned)
{
    struct world_member m = {.address.ss_family = AF_UNIX}, six = {.host = "node3"}, got;
    struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_scope_id = 9};

    memset(m.host, '\n', sizeof(m.host)); /* names have an end and can be shown */
    world_member_clean(&m);
    assert_int_equal(strlen(m.host), WORLD_NAME_MAX - 1);
    assert_int_equal(m.host[0], '?');
    assert_int_equal(m.address.ss_family, AF_UNSPEC);
    address.sin6_addr = (struct in6_addr)IN6ADDR_LOOPBACK_INIT;
    memcpy(&six.address, &address, sizeof(address));
    got = six;
    ((struct sockaddr_in6 *)&got.address)->sin6_port = 7;
    world_member_clean(&got);
    assert_memory_equal(&six, &got, sizeof(six));
}

/* A rank 0 that tells of what cannot be is not believed: others count by it. */
static int be_told_wrong(struct channel *c, void *arg)
{
    struct world *w = invent(3);
    char error[MEET_ERROR_BYTES];

    (void)arg;
    return -world_hear(w, c, 20 * SECOND_NS, NULL, error, sizeof(error));
}

static int tell_wrong(const struct world_member *last, unsigned nodes, unsigned size)
{
    char error[MEET_ERROR_BYTES];
    struct world *w = invent(size);
    struct channel *c = NULL;
    int status = 0;

    assert_int_equal(channel_fork(&c, be_told_wrong, NULL), 0);
    pid_t child = channel_child(c);
    world_number(w);
    w->members[size - 1] = *last;
    w->nodes = nodes;
    w->channels[1] = c;
    world_tell(w, 1, error, sizeof(error)); /* the other may have ended by now */
    assert_int_equal(waitpid(child, &status, 0), child);
    channel_close(c);
    world_free(w);
    return -WEXITSTATUS(status);
}

TEST(test_what_cannot_be)
{
    static const struct {
        struct world_member last;
        unsigned nodes, size;
        int err;
    } cases[] = {{{.node = 2, .machine_ranks = 1}, 3, 3, 0},
                 {{.node = 2, .machine_ranks = 1}, 3, 4, -EPROTO},
                 {{.node = 2, .machine_ranks = 1}, 4, 3, -EPROTO},
                 {{.node = 3, .machine_ranks = 1}, 3, 3, -EPROTO},
                 {{.machine_rank = 1, .machine_ranks = 1}, 3, 3, -EPROTO},
                 {{.machine_ranks = 4}, 3, 3, -EPROTO},
                 {{.local = 3, .machine_ranks = 1}, 3, 3, -EPROTO}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        assert_int_equal(tell_wrong(&cases[i].last, cases[i].nodes, cases[i].size), cases[i].err);
}
