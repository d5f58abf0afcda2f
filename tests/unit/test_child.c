/* SPDX-License-Identifier: Apache-2.0 */
/* Child processes: output, status, deadlines, and that nothing is left behind. */
/* waits: for deadlines */
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "core/clock.h"
#include "harness/child.h"
#include "tests/unit/unit.h"

#define SECOND_NS 1000000000ull

static int run_shell(const char *script, uint64_t timeout_ns, const volatile int *cancel,
                     struct child_result *r)
{
    const char *argv[] = {"/bin/sh", "-c", script, NULL};

    return child_run(
        &(struct child_spec){
            .argv = argv, .timeout_ns = timeout_ns, .samples = true, .cancel = cancel},
        r);
}

TEST(test_output_and_status)
{
    const char *argv[] = {"/nonexistent/program", NULL};
    struct child_result r;

    assert_int_equal(run_shell("echo rows; echo chatter >&2; echo 1,2 > /dev/fd/3; exit 7",
                               60 * SECOND_NS, NULL, &r),
                     0);
    assert_string_equal(r.out.text, "rows\n");
    assert_string_equal(r.err.text, "chatter\n");
    assert_string_equal(r.samples.text, "1,2\n");
    assert_int_equal(r.status, 7);
    assert_int_equal(r.signal, 0);
    assert_false(r.timed_out || r.cancelled || r.flooded);
    child_result_release(&r);
    /* More than a pipe holds, on all three at once: no deadlock, nothing lost. */
    assert_int_equal(run_shell("head -c 300000 /dev/zero & head -c 300000 /dev/zero >&2 & head "
                               "-c 300000 /dev/zero >/dev/fd/3; wait; kill -SEGV $$",
                               60 * SECOND_NS, NULL, &r),
                     0);
    assert_int_equal(r.out.size, 300000);
    assert_int_equal(r.err.size, 300000);
    assert_int_equal(r.samples.size, 300000);
    assert_int_equal(r.signal, SIGSEGV);
    assert_int_equal(r.status, 128 + SIGSEGV);
    child_result_release(&r);
    assert_int_equal(child_run(&(struct child_spec){.argv = argv, .timeout_ns = SECOND_NS}, &r), 0);
    assert_int_equal(r.status, 127);
    child_result_release(&r);
}

/* Its time is over, or somebody cancels. One that does not listen is killed; one that closed its output is not waited for for ever. */
TEST(test_stubborn)
{
    static const char *const scripts[] = {
        "sleep 300", "trap '' TERM; exec >&- 2>&- 3>&-; while :; do sleep 0.1; done", "sleep 300"};
    struct child_result r;

    for (int i = 0; i < 3; i++) {
        volatile int cancel = i == 2;
        assert_int_equal(
            run_shell(scripts[i], cancel ? 200 * SECOND_NS : SECOND_NS / 5, &cancel, &r), 0);
        assert_int_equal(r.timed_out, i < 2);
        assert_int_equal(r.cancelled, i == 2);
        assert_true(i != 1 || r.signal == SIGKILL);
        child_result_release(&r);
    }
}

/* A grandchild that holds the pipes does not hold us, and is gone with its group. */
TEST(test_grandchild)
{
    struct child_result r;
    char *end;

    assert_int_equal(run_shell("sleep 300 & echo $!", 200 * SECOND_NS, NULL, &r), 0);
    pid_t grandchild = (pid_t)strtol(r.out.text, &end, 10);
    assert_true(grandchild > 1);
    assert_true(is_gone(grandchild));
    assert_false(r.timed_out);
    child_result_release(&r);
}

/* Our own death, even by kill -9, takes the child with it. */
TEST(test_dies_with_us)
{
    int ends[2];
    char text[32] = "", *end;

    assert_int_equal(pipe(ends), 0);
    pid_t middle = fork();
    if (middle == 0) {
        char script[64];
        struct child_result r;
        snprintf(script, sizeof(script), "echo $$ >&%d; sleep 50", ends[1]);
        run_shell(script, 60 * SECOND_NS, NULL, &r);
        _exit(0);
    }
    assert_true(read(ends[0], text, sizeof(text) - 1) > 0);
    pid_t child = (pid_t)strtol(text, &end, 10);
    kill(middle, SIGKILL);
    waitpid(middle, NULL, 0);
    assert_true(is_gone(child));
    close(ends[0]);
    close(ends[1]);
}

static int ticks;

static void tick(void *arg)
{
    (void)arg;
    ticks++;
}

TEST(test_ticks)
{
    const char *argv[] = {"/bin/sleep", "1", NULL};
    struct child_result r;

    ticks = 0;
    assert_int_equal(
        child_run(&(struct child_spec){.argv = argv, .timeout_ns = 60 * SECOND_NS, .tick = tick},
                  &r),
        0);
    assert_true(ticks >= 2);
    child_result_release(&r);
}

/* ---- Servers ---- */

static struct child_server *serve(const char *script)
{
    static const volatile int never = 0;
    const char *argv[] = {"/bin/sh", "-c", script, NULL};
    struct child_server *server = NULL;

    assert_int_equal(
        child_server_start(&(struct child_spec){.argv = argv, .samples = true, .cancel = &never},
                           &server),
        0);
    return server;
}

/* Each answer has what was written for its own line. */
TEST(test_server_answers)
{
    struct child_server *server = serve(
        "while read -r line; do echo begin >&4; echo \"rows $line\"; echo \"chatter $line\" >&2;"
        " head -c 300000 /dev/zero; echo \"$line\" >&3; echo \"end $line\" >&4; done");
    struct child_result r;

    for (int i = 0; i < 5; i++) {
        char line[16], want[32];
        snprintf(line, sizeof(line), "%d", i);
        assert_int_equal(child_server_ask(server, line, 60 * SECOND_NS, &r), 0);
        assert_int_equal(r.status, i);
        assert_false(r.ended || r.timed_out || r.signal);
        snprintf(want, sizeof(want), "rows %d\n", i);
        assert_memory_equal(r.out.text, want, strlen(want));
        assert_int_equal(r.out.size, strlen(want) + 300000);
        snprintf(want, sizeof(want), "chatter %d\n", i);
        assert_string_equal(r.err.text, want);
        snprintf(want, sizeof(want), "%d\n", i);
        assert_string_equal(r.samples.text, want);
        child_result_release(&r);
    }
    child_server_end(server);
}

/* Only what a line takes counts, not the wait for it. */
TEST(test_server_that_is_late)
{
    struct child_server *server = NULL;
    struct child_result r;
    bool late = true;

    for (int i = 0; late && i < 20; i++) { /* a busy machine may take a second for a line */
        server = serve("while read -r s; do echo begin >&4; sleep $s; echo end 0 >&4; done");
        assert_int_equal(child_server_ask(server, "0", 60 * SECOND_NS, &r), 0);
        child_result_release(&r);
        usleep(1200000);
        assert_int_equal(child_server_ask(server, "0", SECOND_NS, &r), 0);
        late = r.timed_out;
        child_result_release(&r);
        if (late)
            child_server_end(server);
    }
    assert_false(late);
    assert_int_equal(child_server_ask(server, "60", SECOND_NS / 5, &r), 0);
    assert_true(r.timed_out && r.ended);
    child_result_release(&r);
    child_server_end(server);
}

/* What is no executable file is passed over, and the path leads there from every folder. */
TEST(test_path)
{
    char top[] = "/tmp/plumb-path-XXXXXX", path[256], here[4096], name[sizeof(here) + 16];
    const char *before = getenv("PATH");
    char *kept = strdup(before ? before : "");

    assert_non_null(mkdtemp(top));
    assert_non_null(getcwd(here, sizeof(here)));
    assert_int_equal(chdir(top), 0);
    assert_int_equal(mkdir("a", 0700) | mkdir("a/tool", 0700) | mkdir("b", 0700), 0);
    int fd = open("b/tool", O_CREAT | O_WRONLY, 0600);
    assert_true(fd >= 0);
    snprintf(path, sizeof(path), "%s/a::b", top);
    setenv("PATH", path, 1);
    assert_null(path_program("tool"));
    assert_int_equal(fchmod(fd, 0700), 0);
    snprintf(name, sizeof(name), "%s/b/tool", top);
    char *found = path_program("tool"), *at = path_program("b/tool");
    assert_string_equal(found, name);
    assert_string_equal(at, name);
    assert_null(path_program("a/tool"));
    assert_null(path_program("b/"));
    free(found);
    free(at);
    setenv("PATH", kept, 1);
    free(kept);
    close(fd);
    assert_int_equal(unlink("b/tool") | rmdir("b") | rmdir("a/tool") | rmdir("a"), 0);
    assert_int_equal(chdir(here) | rmdir(top), 0);
}

/* In a line: it is that line's end. Between two: nobody's, and no line is begun. */
TEST(test_server_that_dies)
{
    static const struct {
        const char *script;
        int status, err; /* of the first line; of the second */
    } cases[] = {{"read -r line; echo begin >&4; echo end 0 >&4; read -r line; echo begin >&4; "
                  "kill -9 $$",
                  0, 0},
                 {"read -r line; echo begin >&4; echo end 3 >&4; exit 0", 3, -ESRCH}};

    for (int i = 0; i < 2; i++) {
        struct child_server *server = serve(cases[i].script);
        struct child_result r;
        assert_int_equal(child_server_ask(server, "one", 60 * SECOND_NS, &r), 0);
        assert_true(i || !r.ended);
        assert_int_equal(r.status, cases[i].status);
        child_result_release(&r);
        assert_int_equal(child_server_ask(server, "two", 60 * SECOND_NS, &r), cases[i].err);
        assert_true(i || (r.ended && r.signal == SIGKILL));
        child_result_release(&r);
        child_server_end(server);
    }
}
