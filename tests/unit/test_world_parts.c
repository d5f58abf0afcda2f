/* SPDX-License-Identifier: Apache-2.0 */
/* What worlds are told and say: numbers of nodes and of ranks on machines, members on their way, words for those that are missing. */
#include "tests/unit/worlds.h"

static struct world *invent(unsigned size)
{
    char error[MEET_ERROR_BYTES];
    struct world *w = NULL;

    assert_int_equal(world_new(&w, "sock", 0, size, error, sizeof(error)), 0);
    return w;
}

static void test_words_for_the_missing(void **state)
{
    static const struct {
        const char *come, *text;
    } cases[] = {
        {"0..3", "ranks 1 and 2 of 4"},
        {"01.3", "rank 2 of 4"},
        {"0...", "ranks 1-3 of 4"},
        {"0.2.45...9", "ranks 1, 3 and 6-8 of 10"},
        {"0..345..89", "ranks 1, 2, 6 and 7 of 10"},
        {"0...4567.9", "ranks 1-3 and 8 of 10"},
    };
    struct channel *somebody = (struct channel *)&cases;
    char text[256];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct world *w = invent((unsigned)strlen(cases[i].come));
        for (unsigned k = 1; k < w->size; k++)
            w->channels[k] = cases[i].come[k] == '.' ? NULL : somebody;
        gather_missing(w, text, sizeof(text));
        assert_string_equal(text, cases[i].text);
        world_free(w);
    }
    struct world *many = invent(1000);
    for (unsigned k = 2; k < 1000; k += 2)
        many->channels[k] = somebody;
    gather_missing(many, text, sizeof(text));
    assert_non_null(strstr(text, " and others of 1000"));
    assert_true(strlen(text) < sizeof(text) - 1);
    world_free(many);
}

static void test_nodes_and_machine_ranks(void **state)
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

    (void)state;
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

static void test_member_survives_the_way(void **state)
{
    struct world_member m = {.host = "node3",
                             .machine = "0123-4567",
                             .network = 0x8877665544332211,
                             .pid = 77,
                             .node = 1,
                             .local = 2,
                             .machine_rank = 3,
                             .machine_ranks = 4},
                        got;
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_scope_id = 9};
    uint8_t bytes[WORLD_MEMBER_BYTES];

    (void)state;
    six.sin6_addr = (struct in6_addr)IN6ADDR_LOOPBACK_INIT;
    memcpy(&m.address, &six, sizeof(six));
    world_member_put(bytes, &m);
    memset(&got, 0xee, sizeof(got));
    world_member_get(bytes, &got);
    assert_memory_equal(&m, &got, sizeof(m));
    memset(bytes, '\n', sizeof(bytes)); /* names have an end and can be shown */
    world_member_get(bytes, &got);
    assert_int_equal(strlen(got.host), WORLD_NAME_MAX - 1);
    assert_int_equal(got.host[0], '?');
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

static void test_what_cannot_be(void **state)
{
    const struct world_member good = {.node = 2, .machine_ranks = 1};

    (void)state;
    assert_int_equal(tell_wrong(&good, 3, 3), 0);
    assert_int_equal(tell_wrong(&good, 3, 4), -EPROTO);
    assert_int_equal(tell_wrong(&good, 4, 3), -EPROTO);
    assert_int_equal(tell_wrong(&(struct world_member){.node = 3, .machine_ranks = 1}, 3, 3),
                     -EPROTO);
    assert_int_equal(
        tell_wrong(&(struct world_member){.machine_rank = 1, .machine_ranks = 1}, 3, 3), -EPROTO);
    assert_int_equal(tell_wrong(&(struct world_member){.machine_ranks = 4}, 3, 3), -EPROTO);
    assert_int_equal(tell_wrong(&(struct world_member){.local = 3, .machine_ranks = 1}, 3, 3),
                     -EPROTO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words_for_the_missing),
        cmocka_unit_test(test_nodes_and_machine_ranks),
        cmocka_unit_test(test_member_survives_the_way),
        cmocka_unit_test(test_what_cannot_be),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
