/* SPDX-License-Identifier: Apache-2.0 */
/* What the process at an end of a launch reports of itself and of other ranks: facts, by notices alone; and messages. */
#include "harness/hosts/end.h"
#include "tests/unit/unit.h"

/* An end whose process writes this to standard error; ended. */
static struct end say(const char *text)
{
    struct end e = {.name = "node", .silent = true};

    argv_add_all(&e.command, (const char *[]){"sh", "-c", "printf %s \"$0\" >&2", text, NULL});
    assert_int_equal(end_start(&e), 0);
    ends_wait(&e, 1, 120000000000ull);
    assert_true(end_is_over(&e));
    return e;
}

#define GONE(speaker, rank) "plumb-rank " speaker " plumb-notice gone " rank " vm|a sentence\n"

/* Rank 0's first word counts, whenever it comes: MPICH ends all ranks for the sake of one. Sentences name nobody,
 * nor does a rank itself, one without a number, or half a notice. */
TEST(test_who_is_lost)
{
    static const struct {
        const char *text;
        enum notice_kind kind;
        unsigned rank, speaker;
    } cases[] = {
        {"Killed\n" GONE("2", "0") "Terminated\n" GONE(
             "1", "0") "mpirun has exited due to process rank 0 with PID 0 on\n",
         NOTICE_GONE, 0, 2},
        {"plumb-rank 2 plumb-notice silent 0 vm|it does not answer\nYou can avoid this\n",
         NOTICE_SILENT, 0, 2},
        {GONE("0", "1") GONE("2", "0") GONE("0", "2"), NOTICE_GONE, 1, 0},
        {GONE("2", "0") GONE("0", "1") GONE("0", "2"), NOTICE_GONE, 1, 0},
        {GONE("2", "0"), NOTICE_GONE, 0, 2},
        {"", NOTICE_NONE, 0, 0},
        {"plumb-rank 2 rank 2 (vm): rank 0 (vm) is gone: it was killed\n", NOTICE_NONE, 0, 0},
        {GONE("2", "2"), NOTICE_NONE, 0, 0},
        {"plumb-notice gone 2 vm|nobody says it\n", NOTICE_NONE, 0, 0},
        {"plumb-rank 1 plumb-notice gone vm|whom?\n", NOTICE_NONE, 0, 0},
        {"plumb-rank 1 plumb-notice gone 0", NOTICE_NONE, 0, 0},
        {"plumb-rank 1 plumb-notice gone 0 vm", NOTICE_NONE, 0, 0},
        {"plumb-rank 1 plumb-notice going 0 vm|what?\n", NOTICE_NONE, 0, 0},
        {"a " GONE("1", "0"), NOTICE_NONE, 0, 0},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct end e = say(cases[i].text);

        ends_stop(&e, 1, 0);
        if (e.cause.lost.kind != cases[i].kind || e.cause.lost.rank != cases[i].rank ||
            e.cause.speaker != cases[i].speaker)
            fail_msg("'%s': kind %d, rank %u, of %u", cases[i].text, (int)e.cause.lost.kind,
                     e.cause.lost.rank, e.cause.speaker);
        assert_string_equal(e.cause.lost.host, cases[i].kind == NOTICE_NONE ? "" : "vm");
    }
}

/* Only a notice sets a flag; the first and the last line are without it, those of people. */
TEST(test_flags_and_lines)
{
    static const struct {
        const char *text;
        bool listening, taken, said;
        const char *loss, *first, *last;
    } cases[] = {
        {"plumb-net: listening on port 1\nthe port is taken\nplumb-lost x\n", false, false, true,
         "", "plumb-net: listening on port 1", "plumb-lost x"},
        {"plumb-notice listening zzz\n", true, false, false, "", "zzz", "zzz"},
        {"plumb-rank 0 plumb-notice port-taken zzz\r\n", false, true, true, "", "rank 0: zzz",
         "rank 0: zzz"},
        {"plumb-notice listening yyy\nplumb-rank 0 plumb-notice lost zzz\n", true, false, true,
         "rank 0: zzz", "yyy", "rank 0: zzz"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct end e = say(cases[i].text);

        assert_int_equal(e.listening, cases[i].listening);
        assert_int_equal(e.taken, cases[i].taken);
        assert_int_equal(e.said_ns > 0, cases[i].said);
        assert_string_equal(e.loss, cases[i].loss);
        assert_string_equal(e.first, cases[i].first);
        assert_string_equal(e.last, cases[i].last);
        ends_stop(&e, 1, 0);
    }
}

/* Messages are whole lines, however they come; the first other line is kept. */
TEST(test_messages)
{
    struct end e = {.name = "node", .silent = true, .talks = true};
    const char *rows = "a,b\n1,\"x\"\n";
    json_t *m;
    char text[16];

    argv_add_all(&e.command,
                 (const char *[]){"sh", "-c",
                                  "echo Welcome; echo '{\"a\": 1}'; printf '{\"a\": '; sleep 0.1; "
                                  "echo '\"2\\u001b\"}'; echo bye; printf '{\"a\": 3}'",
                                  NULL});
    assert_int_equal(end_start(&e), 0);
    ends_wait(&e, 1, 120000000000ull);
    assert_string_equal(e.stray, "Welcome");
    m = end_answer(&e);
    assert_int_equal(json_integer_value(json_object_get(m, "a")), 1);
    json_decref(m);
    m = end_answer(&e);
    assert_string_equal(message_line(m, "a", text, sizeof(text)), "2?");
    assert_string_equal(message_line(m, "b", text, sizeof(text)), "");
    json_decref(m);
    assert_null(end_answer(&e)); /* the last is no whole line */
    ends_stop(&e, 1, 0);

    e = (struct end){.name = "node", .talks = true};
    argv_add(&e.command, "cat");
    assert_int_equal(end_start(&e), 0);
    m = json_object();
    json_object_set_new(m, "rows", message_text(rows));
    json_object_set_new(m, "odd", message_text("\xff!"));
    assert_int_equal(message_send(e.p.in, m), 0);
    end_hang_up(&e);
    ends_wait(&e, 1, 120000000000ull);
    m = end_answer(&e);
    assert_string_equal(json_string_value(json_object_get(m, "rows")), rows);
    assert_string_equal(json_string_value(json_object_get(m, "odd")), "?!");
    json_decref(m);
    ends_stop(&e, 1, 0);
}

/* What is written is what is read. */
TEST(test_written)
{
    static const enum notice_kind kinds[] = {NOTICE_LISTENING, NOTICE_PORT_TAKEN, NOTICE_LOST,
                                             NOTICE_GONE, NOTICE_SILENT};
    char line[200];
    int kept = dup(STDERR_FILENO), ends[2];

    setenv(NOTICE_LAUNCHED, "1", 1);
    assert_int_equal(pipe(ends), 0);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        struct notice n = {.kind = kinds[i], .rank = 7, .host = "no name"}, back;
        bool ranked = kinds[i] == NOTICE_GONE || kinds[i] == NOTICE_SILENT;

        dup2(ends[1], STDERR_FILENO);
        notice_send(&n, "%s %d", "zzz", 5);
        dup2(kept, STDERR_FILENO);
        ssize_t got = read(ends[0], line, sizeof(line) - 1);
        assert_true(got > 0);
        line[got] = 0;
        assert_string_equal(notice_read(line, &back), "zzz 5\n");
        assert_int_equal(back.kind, kinds[i]);
        assert_int_equal(back.rank, ranked ? 7 : 0);
        assert_string_equal(back.host, ranked ? "no name" : "");
    }
    close(kept);
    close(ends[0]);
    close(ends[1]);
    unsetenv(NOTICE_LAUNCHED);
}
