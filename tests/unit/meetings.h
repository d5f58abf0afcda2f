/* SPDX-License-Identifier: Apache-2.0 */
/* A server of meet.h in a process of its own, for tests, and what strangers do to one. */
#ifndef PLUMB_TESTS_MEETINGS_H
#define PLUMB_TESTS_MEETINGS_H

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "core/clock.h"
#include "core/group/meet.h"
#include "core/group/secret.h"
#include "tests/unit/unit.h"

#define SECOND_NS     1000000000ull
#define TEST_PROTOCOL 77

enum { ECHO = 1, QUIT, CRASH, HANG, COUNT_SOCKETS, SAY_PID };

static const struct meet_secret test_secret = {.bytes = "what only the two ends know"};
static volatile int test_cancel;

struct server {
    pid_t pid;
    uint16_t port;
    int ready[2]; /* a pipe */
    int log;      /* its stderr, read */
};

/* A process that does not outlive this one, however a test ends. */
static inline pid_t test_fork(void)
{
    pid_t pid = fork();

    if (pid == 0)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    return pid;
}

/* Sockets that a process has open. */
static inline unsigned count_sockets(pid_t pid)
{
    char path[300], target[64];
    struct dirent *e;
    unsigned n = 0;

    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    DIR *dir = opendir(path);
    while (dir && (e = readdir(dir))) {
        snprintf(path, sizeof(path), "/proc/%d/fd/%s", (int)pid, e->d_name);
        ssize_t len = readlink(path, target, sizeof(target));
        n += len > 7 && !memcmp(target, "socket:", 7);
    }
    if (dir)
        closedir(dir);
    return n;
}

/* A run: does as it is told. */
static int be_told(struct channel *c, void *arg)
{
    static uint8_t data[CHANNEL_FRAME_MAX];
    uint16_t type = 0;
    size_t len;
    int err = 0;
    struct {
        unsigned sockets;
        pid_t pid;
    } facts = {0, getpid()};

    (void)arg;
    while (!err && type != QUIT) {
        err = channel_recv(c, &type, data, sizeof(data), &len, 30 * SECOND_NS);
        if (!err && type == ECHO)
            err = channel_send(c, type, data, len);
        if (!err && type == CRASH)
            raise(SIGKILL);
        for (; !err && type == HANG;)
            pause();
        if (!err && (type == COUNT_SOCKETS || type == SAY_PID)) {
            facts.sockets = count_sockets(getpid());
            err = channel_send(c, type, &facts, sizeof(facts));
        }
    }
    return err;
}

static inline void is_ready(void *arg, const char *address, uint16_t port)
{
    struct server *s = arg;

    (void)address;
    if (write(s->ready[1], &port, sizeof(port)) != sizeof(port))
        _exit(99);
}

static inline void on_term(int signal_number)
{
    (void)signal_number;
    test_cancel = 1;
}

/* The process: its exit status is -(what meet_serve() returned). */
static inline void be_the_server(struct server *s, struct meet_listen l, int log)
{
    char error[MEET_ERROR_BYTES] = "";

    signal(SIGTERM, on_term);
    dup2(log, STDERR_FILENO);
    l.secret = &test_secret;
    l.protocol = TEST_PROTOCOL;
    l.cancel = &test_cancel;
    l.ready = is_ready;
    l.arg = s;
    int err = meet_serve(&l, be_told, NULL, error, sizeof(error));
    if (err)
        fprintf(stderr, "error: %s\n", error);
    _exit(-err);
}

static inline void server_start(struct server *s, struct meet_listen l)
{
    int log[2];

    assert_int_equal(pipe2(s->ready, O_CLOEXEC), 0);
    assert_int_equal(pipe2(log, O_CLOEXEC | O_NONBLOCK), 0);
    s->pid = test_fork();
    if (s->pid == 0)
        be_the_server(s, l, log[1]);
    close(log[1]);
    close(s->ready[1]);
    s->log = log[0];
    s->port = 0;
    if (read(s->ready[0], &s->port, sizeof(s->port)) < 0)
        fail();
    close(s->ready[0]);
}

/* Waits for its end. What it returned. */
static inline int server_end(struct server *s)
{
    int status = -1;

    assert_int_equal(waitpid(s->pid, &status, 0), s->pid);
    assert_true(WIFEXITED(status));
    return -WEXITSTATUS(status);
}

/* All that it has said, from its start; after its end. */
static inline const char *server_log(struct server *s)
{
    static char text[65536];
    size_t n = 0;
    ssize_t got;

    while (n < sizeof(text) - 1 && (got = read(s->log, text + n, sizeof(text) - 1 - n)) > 0)
        n += (size_t)got;
    text[n] = 0;
    close(s->log);
    return text;
}

static inline int server_stop(struct server *s)
{
    kill(s->pid, SIGTERM);
    return server_end(s);
}

static inline int knock(const struct server *s, uint64_t wait_ns, struct channel **c, char *error)
{
    struct meet_connect m = {.host = "127.0.0.1",
                             .port = s->port,
                             .secret = &test_secret,
                             .protocol = TEST_PROTOCOL,
                             .wait_ns = wait_ns};

    *error = 0;
    return meet_connect(&m, c, error, MEET_ERROR_BYTES);
}

static inline struct channel *enter(const struct server *s)
{
    char error[MEET_ERROR_BYTES];
    struct channel *c = NULL;

    int err = knock(s, 20 * SECOND_NS, &c, error);
    if (err)
        print_message("%s\n", error);
    assert_int_equal(err, 0);
    return c;
}

static inline void ask(struct channel *c, uint16_t order, void *answer, size_t size)
{
    uint16_t type;
    size_t len;

    assert_int_equal(channel_send(c, order, "question", 8), 0);
    assert_int_equal(channel_recv(c, &type, answer, size, &len, 20 * SECOND_NS), 0);
    assert_int_equal(type, order);
}

static inline void echo(struct channel *c)
{
    char answer[8];

    ask(c, ECHO, answer, sizeof(answer));
    assert_memory_equal(answer, "question", 8);
}

static inline void leave_politely(struct channel *c)
{
    assert_int_equal(channel_send(c, QUIT, NULL, 0), 0);
    channel_close(c);
}

/* A stranger's connection. Ends by a reset, so that no port stays behind. */
static inline int stranger(uint16_t port)
{
    struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct linger at_once = {.l_onoff = 1};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    return fd;
}

#endif
