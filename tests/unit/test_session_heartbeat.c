/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that are lost while a library is waited for: the helper that is abandoned, and the session over it. */
/* tier: long */
/* waits: for signs of life that do not come */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "core/program.h"
#include "core/session/member.h"
#include "tests/unit/session_fixture.h"
#include "tests/unit/unit.h"

/* What the helper does and the looks know of each other. */
struct task {
    int looks;
    atomic_bool begun, lost, late, touched;
};

/* However busy the machine is. */
static void until(atomic_bool *is)
{
    for (int i = 0; i < 30000 && !atomic_load(is); i++)
        usleep(1000);
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
TEST(test_left)
{
    char said[32] = "";
    int status = 0, fds[2];

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
    int status;

    f->point.op = COLLECTIVE_BROADCAST; /* rank 0 is in the barrier that rank 2 does not come to */
    fake->fault = FAKE_STOPPED;
    fake->fault_rank = 2;
    fake->fault_run = 1;
    pid_t holder = stand_still_after(world_member(f->w, 2)->pid);
    need(f, holder > 0, "somebody who stops this process");
    need(f, !begin(f, 4), "open");
    int err = run(f, 3);
    need(f, waitpid(holder, &status, 0) == holder, "it stood still");
    if (status)
        exit(WEXITSTATUS(status));
    need(f, err != 0, "a run with a rank that hangs");
    need(f, strstr(session_error(f->s), "rank 2 (") != NULL, "it is named");
    need(f, !strstr(session_error(f->s), "rank 1"), "it alone");
    need(f, session_broken(f->s), "nothing goes by the channels any more");
    session_finish(f->s);
    need(f, begin(f, 2) != 0, "nor does another point");
    session_close(f->s);
}

TEST(test_session_stopped)
{
    int status = AGAIN;
    for (int i = 0; status == AGAIN && i < 10; i++)
        status = status_in_child(4, stopped);
    assert_int_equal(status, 0);
}

/* The first that is killed; the launcher kills the others for its sake; then those that end because they may. It is about to kill
 * rank 0 as well: the first that is lost is said at once, in one line, and nobody else. */
static void said_at_once(struct fixture *f)
{
    char said[512], name[WORLD_NAME_MAX + 32];
    struct stat file = {0};

    world_name(f->w, 2, name, sizeof(name));
    int fd = memfd_create("said", MFD_CLOEXEC), before = dup(STDERR_FILENO);
    dup2(fd, STDERR_FILENO);
    kill(channel_child(world_channel(f->w, 2)), SIGKILL);
    for (int i = 0; i < 6000 && !file.st_size; i++, fstat(fd, &file))
        usleep(10000);
    kill(channel_child(world_channel(f->w, 1)), SIGKILL);
    usleep(1500000); /* it would say so in this time */
    session_close(f->s);
    world_close(f->w);
    dup2(before, STDERR_FILENO);
    ssize_t n = pread(fd, said, sizeof(said) - 1, 0);
    said[n > 0 ? n : 0] = 0;
    if (strncmp(said, name, strlen(name)) || strchr(said, '\n') != said + strlen(said) - 1)
        exit(1);
}

TEST(test_said_at_once)
{
    in_child(3, said_at_once);
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

/* All have come to the operation, and it does not end: it is said between whom no connection can be made. */
static void be_stuck(struct fixture *f, const char *between)
{
    fake->fault = FAKE_STILL;
    fake->fault_rank = 2;
    fake->fault_run = 1;
    need(f, !begin(f, 4), "open");
    need(f, run(f, 3) != 0, "a run that does not end");
    const char *at = strstr(session_error(f->s), "network");
    need(f, at && !!strstr(at, "rank ") == !!between, "why");
    need(f, !between || strstr(at, between), "between whom");
    need(f, session_broken(f->s), "nothing goes by the channels any more");
    session_close(f->s);
}

/* Two of one host, of which one is asked; the other one is cut off. */
static void on_a_shared_host(struct fixture *f)
{
    make_hosts(f->w);
    f->w->members[3].node = 1;
    cut_off(f->w, 3);
    be_stuck(f, NULL);
}

static void with_one_cut_off(struct fixture *f)
{
    make_hosts(f->w);
    cut_off(f->w, 2);
    f->w->members[3].node = 1;
    be_stuck(f, "rank 1 (host1) and rank 2 (host2)");
}

TEST(test_stuck)
{
    in_child(4, on_a_shared_host);
    in_child(4, with_one_cut_off);
}
