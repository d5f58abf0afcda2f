/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that are lost while a library is waited for: the helper that is abandoned, the heartbeats, and the session over both. */
/* waits: for signs of life that do not come */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/program.h"
#include "core/session/member.h"
#include "tests/unit/session_fixture.h"

#define TURN_NS 50000000u /* of a wait; in a longer one this process stood still */

/* What the helper does and the looks know of each other. */
struct task {
    int n, looks;
    atomic_bool looked, begun, lost, late, touched;
};

/* However busy the machine is. */
static void until(atomic_bool *is)
{
    for (int i = 0; i < 30000 && !atomic_load(is); i++)
        usleep(1000);
}

/* It does not end before it has been looked at. */
static int twice(void *arg)
{
    struct task *t = arg;

    until(&t->looked);
    return t->n * 2;
}

static int sleep_on(void *arg)
{
    atomic_store(&((struct task *)arg)->begun, true);
    while (pause())
        ;
    return 0;
}

static int no_loss(void *arg)
{
    atomic_store(&((struct task *)arg)->looked, true);
    return 0;
}

/* At the third look, or the first after that which finds it at work. */
static int lost_at_third(void *arg)
{
    struct task *t = arg;

    if (++t->looks < 3 || !atomic_load(&t->begun))
        return 0;
    atomic_store(&t->lost, true);
    return -ETIMEDOUT;
}

static void test_helper(void **state)
{
    struct task first = {.n = 21}, second = {.n = 34};
    struct helper *h;

    (void)state;
    assert_int_equal(helper_open(&h), 0);
    assert_int_equal(helper_do(h, twice, &first, no_loss, &first), 42);
    assert_true(first.looked);
    assert_false(helper_abandoned(h));
    assert_int_equal(helper_do(h, twice, &second, no_loss, &second), 68);
    assert_true(second.looked);
    helper_close(h);
    helper_hold(NULL);
    helper_let(NULL);
    helper_close(NULL);
    assert_false(helper_abandoned(NULL));
}

static struct helper *the_helper;

/* It may look after things when it is called back; when it was left it may not. */
static int hold_late(void *arg)
{
    struct task *t = arg;

    helper_hold(the_helper);
    helper_let(the_helper);
    atomic_store(&t->begun, true);
    until(&t->lost);
    atomic_store(&t->late, true);
    helper_hold(the_helper);
    atomic_store(&t->touched, true);
    helper_let(the_helper);
    return 0;
}

static void library_handler(void)
{
    raise(SIGSEGV);
}

/* A child that abandons its helper ends with its own status and what it has printed, without the library's handlers. */
static void test_left(void **state)
{
    char said[32] = "";
    int status = 0, fds[2];

    (void)state;
    assert_int_equal(pipe(fds), 0);
    pid_t child = fork();
    if (!child) {
        static struct task t;
        dup2(fds[1], STDOUT_FILENO);
        atexit(library_handler);
        if (helper_open(&the_helper) ||
            helper_do(the_helper, hold_late, &t, lost_at_third, &t) != -ETIMEDOUT ||
            !helper_abandoned(the_helper))
            _exit(1);
        until(&t.late);
        usleep(400000); /* it would touch it at once */
        helper_close(the_helper);
        printf("%s", t.touched ? "touched" : "row");
        exit(4);
    }
    close(fds[1]);
    waitpid(child, &status, 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 4);
    assert_true(read(fds[0], said, sizeof(said) - 1) > 0);
    assert_string_equal(said, "row");
    close(fds[0]);
    struct helper *h;
    child = fork(); /* for good, and the process ends all the same */
    if (!child) {
        static struct task t;
        helper_open(&h);
        helper_do(h, sleep_on, &t, lost_at_third, &t);
        exit(7);
    }
    waitpid(child, &status, 0);
    assert_int_equal(WEXITSTATUS(status), 7);
}

static void go_on(struct fixture *f)
{
    for (unsigned n = 4; n > 0; n--)
        need(f, !whole(f, n), "a point that is right");
    strcpy(f->point.backend, "fake");
    need(f, !whole(f, 4), "a backend of ours between");
    strcpy(f->point.backend, "fake-deaf");
    need(f, !whole(f, 4), "and again");
    need(f, !session_broken(f->s), "it is whole");
    stop(f);
}

/* A clock that stands still while this process does, for calls that do not return meanwhile. */
static void *tick(void *arg)
{
    atomic_uint_fast64_t *ran_ns = arg;
    uint64_t last_ns = clock_now_ns();

    for (;;) {
        usleep(10000);
        uint64_t now_ns = clock_now_ns(), turn_ns = now_ns - last_ns;
        atomic_fetch_add(ran_ns, turn_ns < TURN_NS ? turn_ns : TURN_NS);
        last_ns = now_ns;
    }
    return NULL;
}

static bool is_stopped(pid_t pid)
{
    char path[64], text[256];

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = 0;
    const char *name_ends = strrchr(text, ')');
    return name_ends && name_ends[1] && name_ends[2] == 'T';
}

#define STOOD_US    3500000     /* with the silence of the rank, longer than the library may take */
#define TOO_LONG_NS 4300000000u /* the ranks would end for it */
#define AGAIN       77

/* Once that rank has stopped, this process stands still for a while, too. */
static pid_t stand_still_after(pid_t rank)
{
    pid_t self = getpid(), holder = fork();

    if (holder)
        return holder;
    for (int i = 0; i < 12000 && !is_stopped(rank); i++)
        usleep(10000);
    usleep(500000);
    uint64_t begin_ns = clock_now_ns();
    kill(self, SIGSTOP);
    usleep(STOOD_US);
    kill(self, SIGCONT);
    _exit(clock_now_ns() - begin_ns > TOO_LONG_NS ? AGAIN : 0);
}

/* What rank 0's own time lacks is no sign of life of another. */
static void stopped(struct fixture *f)
{
    static atomic_uint_fast64_t ran_ns;
    pthread_t ticker;

    f->point.op =
        COLLECTIVE_BROADCAST; /* with a barrier between: rank 0 is in the one that rank 2 does not come to */
    fake->fault = FAKE_STOPPED;
    fake->fault_rank = 2;
    fake->fault_run = 1;
    pid_t holder = stand_still_after(world_member(f->w, 2)->pid);
    need(f, holder > 0, "somebody who stops this process");
    need(f, !pthread_create(&ticker, NULL, tick, &ran_ns), "a clock");
    need(f, !begin(f, 4), "open");
    int err = run(f, 3), status;
    need(f, waitpid(holder, &status, 0) == holder, "it stood still");
    if (status)
        exit(WEXITSTATUS(status));
    need(f, err != 0, "a run with a rank that hangs");
    need(f, ran_ns < 9000000000u, "in time");
    need(f, strstr(session_error(f->s), "rank 2 (") != NULL, "it is named");
    need(f, strstr(session_error(f->s), "does not answer") != NULL, "for what it did");
    need(f, !strstr(session_error(f->s), "rank 1"), "it alone");
    need(f, session_broken(f->s), "nothing goes by the channels any more");
    session_finish(f->s);
    need(f, begin(f, 2) != 0, "nor does another point");
    need(f, ran_ns < 10000000000u, "at once");
    session_close(f->s);
}

static void killed(struct fixture *f)
{
    uint64_t begin_ns = clock_now_ns();

    fake->fault = FAKE_KILLED;
    fake->fault_rank = 3;
    fake->fault_run = 1;
    need(f, !begin(f, 4), "open");
    need(f, run(f, 3) != 0, "a run with a rank that dies");
    need(f, clock_now_ns() - begin_ns < 60000000000u, "in time");
    need(f, strstr(session_error(f->s), "rank 3 (") != NULL, "it is named");
    need(f, strstr(session_error(f->s), "killed") != NULL, "for what was done to it");
    session_close(f->s);
}

/* Rank 0's own part is over, the others hang: all of them are named, none alone. */
static void deaf(struct fixture *f)
{
    fake->fault = FAKE_ENDS;
    fake->fault_rank = 1;
    need(f, !begin(f, 3), "open");
    need(f, run(f, 1) == -ETIMEDOUT, "a run after which two ranks hang");
    const char *at = strstr(session_error(f->s), "rank 1 (");
    need(f, at && strstr(at, "rank 2 ("), "they are named");
    need(f, strstr(session_error(f->s), " do not answer, and there are no signs of life") != NULL,
         "it is not known who hangs");
    session_close(f->s);
}

/* Rank 0 asks once, and takes no answer. */
static int ask_once(struct channel *c, uint16_t *type, void *data, size_t size, size_t *len,
                    uint64_t wait_ns)
{
    (void)c, (void)data, (void)size, (void)wait_ns;
    *type = TALK_ECHO;
    *len = 0;
    return 0;
}

static int take_nothing(struct channel *c, uint16_t type, const void *data, size_t len,
                        uint64_t wait_ns)
{
    (void)type, (void)data, (void)len, (void)wait_ns;
    snprintf(channel_base(c)->error, CHANNEL_ERROR_BYTES, "rank 0 has taken nothing");
    return -ETIMEDOUT;
}

/* Nobody else may be able to say it: who led hangs. */
static void test_untaken(void **state)
{
    const struct channel_ops ops = {.send = take_nothing, .recv = ask_once};
    struct channel_base base = {.ops = &ops};
    char said[256] = "", error[256];
    struct world *w;
    FILE *file = tmpfile();
    int before = dup(STDERR_FILENO);

    (void)state;
    assert_non_null(file);
    assert_int_equal(world_new(&w, "mpi", 1, 2, error, sizeof(error)), 0);
    w->channels[0] = (struct channel *)&base;
    dup2(fileno(file), STDERR_FILENO);
    int status = session_serve(w, NULL);
    dup2(before, STDERR_FILENO);
    close(before);
    rewind(file);
    assert_non_null(fgets(said, sizeof(said), file));
    assert_non_null(strstr(said, "rank 0 has taken nothing: this process ends"));
    assert_null(fgets(said, sizeof(said), file)); /* once */
    assert_int_equal(status, EXIT_INCOMPLETE);
    fclose(file);
    world_free(w);
}

static void test_session_goes_on(void **state)
{
    (void)state;
    in_child(4, false, go_on);
}

static void test_session_stopped(void **state)
{
    (void)state;
    int status = AGAIN;
    for (int i = 0; status == AGAIN && i < 10; i++)
        status = status_in_child(4, false, stopped);
    assert_int_equal(status, 0);
}

static void test_session_deaf(void **state)
{
    (void)state;
    in_child(3, true, deaf);
}

static void test_session_killed(void **state)
{
    (void)state;
    in_child(4, false, killed);
}

/* With a name, or a pattern of them: these tests alone. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_helper),          cmocka_unit_test(test_left),
        cmocka_unit_test(test_untaken),         cmocka_unit_test(test_session_goes_on),
        cmocka_unit_test(test_session_stopped), cmocka_unit_test(test_session_killed),
        cmocka_unit_test(test_session_deaf),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
