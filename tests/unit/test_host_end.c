/* SPDX-License-Identifier: Apache-2.0 */
/* What the process at an end of a launch reports of itself and of other ranks: facts, by notices alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "harness/hosts/end.h"

/* An end whose process writes this to standard error; ended. */
static struct end say(const char *text)
{
    struct end e = {.name = "node", .silent = true};

    argv_add_all(&e.command, (const char *[]){"sh", "-c", "printf %s \"$0\" >&2", text, NULL});
    assert_int_equal(end_start(&e), 0);
    ends_wait(&e, 1, 20000000000ull);
    assert_true(end_is_over(&e));
    return e;
}

static void check_cause(const char *text, enum notice_kind kind, unsigned rank, unsigned speaker)
{
    struct end e = say(text);

    ends_stop(&e, 1, 0);
    assert_int_equal(e.cause.lost.kind, kind);
    assert_int_equal(e.cause.lost.rank, rank);
    assert_int_equal(e.cause.speaker, speaker);
    assert_string_equal(e.cause.lost.host, kind == NOTICE_NONE ? "" : "vm");
}

/* Open MPI's mpirun, rank 0 killed; and stopped: its last line is mpirun's advice. */
static void test_leader(void **state)
{
    (void)state;
    check_cause("Killed\n"
                "plumb-rank 2 plumb-notice gone 0 vm|rank 2 (vm): this process ends\n"
                "Terminated\n"
                "plumb-rank 1 plumb-notice gone 0 vm|rank 1 (vm): this process ends\n"
                "mpirun has exited due to process rank 0 with PID 0 on\n",
                NOTICE_GONE, 0, 2);
    check_cause("plumb-rank 2 plumb-notice silent 0 vm|it does not answer\n"
                "You can avoid this message by specifying -quiet on the mpirun command line.\n",
                NOTICE_SILENT, 0, 2);
}

/* MPICH's: rank 1 was killed, and all others for its sake. Rank 0's first word counts, whenever it comes. */
static void test_others_follow(void **state)
{
    static const char first[] = "plumb-rank 0 plumb-notice gone 1 vm|a sentence\n";
    static const char later[] = "plumb-rank 2 plumb-notice gone 0 vm|a sentence\n";
    static const char third[] = "plumb-rank 0 plumb-notice silent 2 vm|a sentence\n";
    char text[512];

    (void)state;
    snprintf(text, sizeof(text), "%s%s%s", first, later, third);
    check_cause(text, NOTICE_GONE, 1, 0);
    snprintf(text, sizeof(text), "%s%s%s", later, first, third);
    check_cause(text, NOTICE_GONE, 1, 0);
    check_cause(later, NOTICE_GONE, 0, 2);
}

/* Sentences name nobody, nor does a rank itself, one without a number, or half a notice. */
static void test_nobody(void **state)
{
    (void)state;
    check_cause("", NOTICE_NONE, 0, 0);
    check_cause("plumb-rank 2 rank 2 (vm): rank 0 (vm) is gone: it was killed, or has ended: this "
                "process ends\n",
                NOTICE_NONE, 0, 0);
    check_cause("plumb-rank 2 plumb-notice gone 2 vm|itself\n", NOTICE_NONE, 0, 0);
    check_cause("plumb-notice gone 2 vm|nobody says it\n", NOTICE_NONE, 0, 0);
    check_cause("plumb-rank 1 plumb-notice gone vm|whom?\n", NOTICE_NONE, 0, 0);
    check_cause("plumb-rank 1 plumb-notice gone 0", NOTICE_NONE, 0, 0);
    check_cause("plumb-rank 1 plumb-notice gone 0 vm", NOTICE_NONE, 0, 0);
    check_cause("plumb-rank 1 plumb-notice going 0 vm|what?\n", NOTICE_NONE, 0, 0);
    check_cause("a plumb-rank 1 plumb-notice gone 0 vm|not in front\n", NOTICE_NONE, 0, 0);
}

static void check_flags(const char *text, bool listening, bool taken, const char *loss)
{
    struct end e = say(text);

    assert_int_equal(e.listening, listening);
    assert_int_equal(e.taken, taken);
    assert_string_equal(e.loss, loss);
    ends_stop(&e, 1, 0);
}

static void test_flags(void **state)
{
    (void)state;
    check_flags("plumb-net: listening on 127.0.0.1 port 1\nthe port is taken\nplumb-lost x\n",
                false, false, "");
    check_flags("plumb-notice listening zzz\n", true, false, "");
    check_flags("plumb-rank 0 plumb-notice port-taken zzz\r\n", false, true, "");
    check_flags("plumb-rank 0 plumb-notice lost zzz\n", false, false, "rank 0: zzz");
}

/* What a person reads has no notice in it, and the first and the last line are those of people. */
static void test_sentences(void **state)
{
    struct end e =
        say("plumb-notice listening on port 1\nplumb-rank 0 plumb-notice lost the last\n");

    (void)state;
    assert_string_equal(e.first, "on port 1");
    assert_string_equal(e.last, "rank 0: the last");
    assert_true(e.said_ns > 0);
    ends_stop(&e, 1, 0);
    e = say("plumb-notice listening on port 1\n");
    assert_int_equal(e.said_ns, 0);
    ends_stop(&e, 1, 0);
}

/* What is written is what is read. */
static void test_written(void **state)
{
    static const enum notice_kind kinds[] = {NOTICE_LISTENING, NOTICE_PORT_TAKEN, NOTICE_LOST,
                                             NOTICE_GONE, NOTICE_SILENT};
    char line[200];

    (void)state;
    setenv(NOTICE_LAUNCHED, "1", 1);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        struct notice n = {.kind = kinds[i], .rank = 7, .host = "no name"}, back;
        bool ranked = kinds[i] == NOTICE_GONE || kinds[i] == NOTICE_SILENT;
        int kept = dup(STDERR_FILENO), ends[2];
        assert_int_equal(pipe(ends), 0);
        dup2(ends[1], STDERR_FILENO);
        notice_send(&n, "%s %d", "zzz", 5);
        dup2(kept, STDERR_FILENO);
        ssize_t got = read(ends[0], line, sizeof(line) - 1);
        assert_true(got > 0);
        line[got] = 0;
        close(kept);
        close(ends[0]);
        close(ends[1]);
        assert_string_equal(notice_read(line, &back), "zzz 5\n");
        assert_int_equal(back.kind, kinds[i]);
        assert_int_equal(back.rank, ranked ? 7 : 0);
        assert_string_equal(back.host, ranked ? "no name" : "");
    }
    unsetenv(NOTICE_LAUNCHED);
}

/* With a name, or a pattern of them: these tests alone. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_leader),    cmocka_unit_test(test_others_follow),
        cmocka_unit_test(test_nobody),    cmocka_unit_test(test_flags),
        cmocka_unit_test(test_sentences), cmocka_unit_test(test_written),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
