/* SPDX-License-Identifier: Apache-2.0 */
/* Channels: frames arrive whole, in order and unchanged; a peer that dies, hangs or lies is named. */
/* waits: for peers that are silent */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/clock.h"
#include "core/group/channel.h"
#include "tests/unit/handshakes.h"

#define SECOND_NS 1000000000ull

enum { ECHO = 1, QUIT, DIE, HANG, CRASH, FLOOD };

static uint8_t text[CHANNEL_FRAME_MAX + 1], back[CHANNEL_FRAME_MAX + 1];

static void need_library(void)
{
    char why[256];

    if (!secret_supported(why, sizeof(why)))
        return;
    print_message("%s\n", why);
    skip();
}

static unsigned open_fds(void)
{
    DIR *dir = opendir("/proc/self/fd");
    unsigned n = 0;

    assert_non_null(dir);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

/* The child of these tests: does as the frame's type says. */
static int be_told(struct channel *c, void *arg)
{
    static uint8_t data[CHANNEL_FRAME_MAX];
    uint16_t type;
    size_t len;
    int err = 0;

    (void)arg;
    while (!err) {
        err = channel_recv(c, &type, data, sizeof(data), &len, 60 * SECOND_NS);
        if (!err && type == ECHO)
            err = channel_send(c, type, data, len);
        if (!err && type == QUIT)
            return 0;
        if (!err && type == DIE)
            _exit(23);
        if (!err && type == HANG)
            for (;;)
                pause();
        if (!err && type == CRASH)
            raise(SIGKILL);
        for (int i = 0; !err && type == FLOOD && i < 5; i++)
            err = channel_send(c, type, &i, sizeof(i));
    }
    return err;
}

static struct channel *start(channel_child_fn *fn, void *arg)
{
    struct channel *c = NULL;

    assert_int_equal(channel_fork(&c, fn, arg), 0);
    return c;
}

static int get(struct channel *c, uint64_t wait_ns)
{
    uint16_t type;
    size_t len;

    return channel_recv(c, &type, back, sizeof(back), &len, wait_ns);
}

static pid_t child_of(struct channel *c)
{
    return ((struct fd_channel *)c)->child;
}

static void test_every_size(void **state)
{
    struct channel *c = start(be_told, NULL);
    uint16_t type = 0;
    size_t len = 0;

    (void)state;
    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = (uint8_t)(i * 7 + (i >> 8));
    for (size_t n = 0; n <= CHANNEL_FRAME_MAX; n = n < 40 ? n + 1 : n * 2 - n % 3) {
        assert_int_equal(channel_send(c, ECHO, text, n), 0);
        assert_int_equal(channel_recv(c, &type, back, sizeof(back), &len, 10 * SECOND_NS), 0);
        assert_int_equal(type, ECHO);
        assert_int_equal(len, n);
        assert_memory_equal(text, back, n);
    }
    assert_int_equal(channel_send(c, ECHO, text, CHANNEL_FRAME_MAX), 0);
    assert_int_equal(get(c, 10 * SECOND_NS), 0);
    channel_close(c);
}

static void test_too_long(void **state)
{
    struct channel *c = start(be_told, NULL);
    uint16_t type;
    size_t len;

    (void)state;
    assert_int_equal(channel_send(c, ECHO, text, CHANNEL_FRAME_MAX + 1), -EMSGSIZE);
    assert_string_equal(channel_error(c), "a frame of 65537 bytes is too long: 65536 at most");
    assert_int_equal(channel_send(c, ECHO, text, 100), 0);
    assert_int_equal(channel_send(c, ECHO, text, 3), 0);
    assert_int_equal(channel_recv(c, &type, back, 99, &len, 10 * SECOND_NS), -EMSGSIZE);
    assert_non_null(strstr(channel_error(c), "a frame of 100 bytes came from 'the other process"));
    assert_int_equal(channel_recv(c, &type, back, 99, &len, 10 * SECOND_NS), 0);
    assert_int_equal(len, 3);
    channel_close(c);
}

static void test_deadlines(void **state)
{
    struct channel *c = start(be_told, NULL);
    uint64_t begin_ns = clock_now_ns();

    (void)state;
    assert_int_equal(get(c, 0), -EAGAIN);
    assert_int_equal(get(c, SECOND_NS / 4), -ETIMEDOUT);
    assert_true(clock_now_ns() - begin_ns >= SECOND_NS / 4);
    assert_true(clock_now_ns() - begin_ns < 20 * SECOND_NS);
    assert_non_null(strstr(channel_error(c), "sent nothing for 0.25 s"));
    assert_non_null(strstr(channel_error(c), channel_peer(c)));
    assert_int_equal(channel_send(c, ECHO, "x", 1), 0); /* it is not the end */
    assert_int_equal(get(c, 10 * SECOND_NS), 0);
    channel_close(c);
}

/* The peer takes nothing more: the socket fills. */
static void test_a_peer_that_takes_nothing(void **state)
{
    struct channel *c = start(be_told, NULL);
    const struct channel_ops *ops = channel_base(c)->ops;
    int err = channel_send(c, HANG, NULL, 0);

    (void)state;
    for (int i = 0; i < 1000 && !err; i++)
        err = ops->send(c, ECHO, text, CHANNEL_FRAME_MAX, SECOND_NS / 4);
    assert_int_equal(err, -ETIMEDOUT);
    assert_non_null(strstr(channel_error(c), "took nothing for 0.25 s"));
    uint64_t begin_ns = clock_now_ns();
    assert_int_equal(channel_send(c, QUIT, NULL, 0), -ETIMEDOUT); /* after half a frame: at once */
    assert_true(clock_now_ns() - begin_ns < CHANNEL_WAIT_NS);
    assert_int_equal(channel_alive(c), 0);
    channel_close(c);
}

static void test_dead_peers_are_named(void **state)
{
    static const struct {
        int order;
        const char *says;
    } deaths[] = {{DIE, "ended with exit status 23"},
                  {CRASH, "was killed by signal 9 (Killed)"},
                  {QUIT, "ended with exit status 0"}};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct channel *c = start(be_told, NULL);
        char expect[256];
        snprintf(expect, sizeof(expect), "'the other process (pid %d)' %s", child_of(c),
                 deaths[i].says);
        assert_int_equal(channel_alive(c), 0);
        assert_int_equal(channel_send(c, (uint16_t)deaths[i].order, NULL, 0), 0);
        assert_int_equal(get(c, 20 * SECOND_NS), -ECONNRESET);
        assert_string_equal(channel_error(c), expect);
        assert_int_equal(channel_alive(c), -ECONNRESET);
        assert_int_equal(get(c, 0), -ECONNRESET);
        int err = 0;
        for (int more = 0; more < 5 && !err; more++)
            err = channel_send(c, ECHO, text, 10); /* no SIGPIPE */
        assert_int_equal(err, -ECONNRESET);
        channel_close(c);
    }
}

/* A grandchild that holds the socket must not hide the death. It ends when the test lets go of this pipe. */
static int leave_a_grandchild(struct channel *c, void *arg)
{
    const int *held = arg;
    char byte;

    (void)c;
    close(held[1]);
    if (fork() == 0)
        _exit(read(held[0], &byte, 1) != 0);
    _exit(7);
}

static void test_death_behind_a_grandchild(void **state)
{
    int held[2];

    (void)state;
    assert_int_equal(pipe(held), 0);
    struct channel *c = start(leave_a_grandchild, held);
    assert_int_equal(get(c, 60 * SECOND_NS), -ECONNRESET);
    assert_non_null(strstr(channel_error(c), "ended with exit status 7"));
    channel_close(c);
    close(held[0]);
    close(held[1]);
}

/* What it sent before it died is not lost. */
static void test_last_words(void **state)
{
    struct channel *c = start(be_told, NULL);

    (void)state;
    assert_int_equal(channel_send(c, FLOOD, NULL, 0), 0);
    assert_int_equal(channel_send(c, QUIT, NULL, 0), 0);
    while (!channel_alive(c))
        usleep(1000);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(get(c, SECOND_NS), 0);
        assert_int_equal(back[0], i);
    }
    assert_int_equal(get(c, SECOND_NS), -ECONNRESET);
    channel_close(c);
}

static bool is_gone(pid_t pid)
{
    for (int i = 0; i < 12000; i++) {
        char path[64], letter = 'Z';
        snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
        FILE *f = fopen(path, "r");
        if (f && fscanf(f, "%*d %*s %c", &letter) != 1)
            letter = 'Z';
        if (f)
            fclose(f);
        if (letter == 'Z' || letter == 'X')
            return true;
        usleep(10000);
    }
    return false;
}

/* One that hangs, and one that is stopped, end with their channel; so do signals not: those are for the parent. */
static void test_close_ends_the_child(void **state)
{
    (void)state;
    for (int stopped = 0; stopped < 2; stopped++) {
        struct channel *c = start(be_told, NULL);
        pid_t pid = child_of(c);
        assert_int_equal(channel_send(c, ECHO, "x", 1), 0);
        assert_int_equal(get(c, 10 * SECOND_NS), 0);
        kill(pid, SIGTERM);
        kill(pid, SIGINT);
        assert_int_equal(channel_send(c, ECHO, "x", 1), 0);
        assert_int_equal(get(c, 10 * SECOND_NS), 0);
        if (stopped)
            kill(pid, SIGSTOP);
        else
            assert_int_equal(channel_send(c, HANG, NULL, 0), 0);
        assert_int_equal(get(c, SECOND_NS / 10), -ETIMEDOUT);
        channel_close(c);
        assert_int_equal(kill(pid, 0), -1); /* waited for, too */
    }
}

/* Whatever kills the parent: no orphan. */
static void test_no_orphan(void **state)
{
    int fds[2];
    pid_t grandchild = 0;

    (void)state;
    assert_int_equal(pipe(fds), 0);
    pid_t parent = fork();
    if (parent == 0) {
        struct channel *c = NULL;
        if (channel_fork(&c, be_told, NULL) || channel_send(c, HANG, NULL, 0))
            _exit(1);
        grandchild = child_of(c);
        if (write(fds[1], &grandchild, sizeof(grandchild)) < 0)
            _exit(1);
        for (;;)
            pause();
    }
    assert_int_equal(read(fds[0], &grandchild, sizeof(grandchild)), sizeof(grandchild));
    usleep(100000); /* it is hanging now */
    kill(parent, SIGKILL);
    assert_int_equal(waitpid(parent, NULL, 0), parent);
    assert_true(is_gone(grandchild));
    close(fds[0]);
    close(fds[1]);
}

static void test_nothing_is_left(void **state)
{
    unsigned before = open_fds();

    (void)state;
    for (int i = 0; i < 20; i++)
        channel_close(start(be_told, NULL));
    assert_int_equal(open_fds(), before);
    channel_close(NULL);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

/* A channel's token is known to both ends, and no other one is like it. */
static int tell_tokens(struct channel *c, void *arg)
{
    uint8_t tokens[3][CHANNEL_TOKEN_BYTES];

    (void)arg;
    channel_token(c, "data", 1, tokens[0]);
    channel_token(c, "data", 2, tokens[1]);
    channel_token(c, "ping", 1, tokens[2]);
    return channel_send(c, ECHO, tokens, sizeof(tokens));
}

static void test_tokens(void **state)
{
    struct channel *c = start(tell_tokens, NULL), *other = start(tell_tokens, NULL);
    uint8_t own[CHANNEL_TOKEN_BYTES];

    (void)state;
    assert_int_equal(get(c, 10 * SECOND_NS), 0);
    for (int i = 0; i < 3; i++) {
        channel_token(c, i < 2 ? "data" : "ping", i == 1 ? 2 : 1, own);
        assert_memory_equal(own, back + i * CHANNEL_TOKEN_BYTES, CHANNEL_TOKEN_BYTES);
        for (int j = 0; j < i; j++)
            assert_memory_not_equal(own, back + j * CHANNEL_TOKEN_BYTES, CHANNEL_TOKEN_BYTES);
    }
    channel_token(other, "ping", 1, own);
    assert_memory_not_equal(own, back + 2 * CHANNEL_TOKEN_BYTES, CHANNEL_TOKEN_BYTES);
    channel_close(c);
    channel_close(other);
}

static void test_local_address(void **state)
{
    struct channel *c = start(be_told, NULL);
    struct sockaddr_storage own, peer;

    (void)state;
    assert_int_equal(channel_address(c, &own, &peer), 0);
    assert_int_equal(own.ss_family, AF_INET);
    assert_int_equal(((struct sockaddr_in *)&own)->sin_addr.s_addr, htonl(INADDR_LOOPBACK));
    assert_memory_equal(&own, &peer, sizeof(own));
    channel_close(c);
}

/* Two ends of a TCP connection in this process. */
static void tcp_pair(int fds[2])
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(a);
    int listener = socket(AF_INET, SOCK_STREAM, 0);

    assert_int_equal(bind(listener, (struct sockaddr *)&a, len), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&a, &len), 0);
    fds[0] = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(fds[0], (struct sockaddr *)&a, len), 0);
    fds[1] = accept(listener, NULL, NULL);
    assert_true(fds[1] >= 0);
    close(listener);
}

/* Takes this process into a network of its own, in which its loopback is up or down. */
static bool own_network(void)
{
    return !unshare(CLONE_NEWNET) || !unshare(CLONE_NEWUSER | CLONE_NEWNET);
}

static bool loopback(bool up)
{
    struct ifreq r = {.ifr_name = "lo", .ifr_flags = (short)(up ? IFF_UP : 0)};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    bool done = fd >= 0 && !ioctl(fd, SIOCSIFFLAGS, &r);

    close(fd);
    return done;
}

/* Gives signs of life, and does as it is told. */
static int be_alive(struct channel *c, void *arg)
{
    struct beat *b = NULL;
    int err = beat_start(&b, &c, 1, 0);

    err = err ? err : be_told(c, arg);
    beat_end(b);
    return err;
}

#define SILENT_NS (2 * SECOND_NS)

/* With as much patience, of a peer that has been heard. */
static struct channel *start_alive(channel_child_fn *fn)
{
    struct channel *c = start(fn, NULL);

    channel_base(c)->ops->expect(c, SILENT_NS);
    assert_int_equal(get(c, SECOND_NS), -ETIMEDOUT);
    return c;
}

/* Nothing but what was sent comes, and then nothing, and it is there. */
static bool hears_itself_alone(struct channel *c)
{
    int err = 0;

    for (int i = 0; !err && i < 2000; i++) { /* while the other thread sends its own */
        err = channel_send(c, ECHO, &i, sizeof(i));
        err = err ? err : get(c, 60 * SECOND_NS);
        if (!err)
            assert_memory_equal(&i, back, sizeof(i));
        usleep(i % 100 ? 0 : 20000);
    }
    err = err ? err : get(c, 2 * SILENT_NS);
    return err == -ETIMEDOUT && !channel_alive(c);
}

static void test_signs_of_life_are_not_handed_on(void **state)
{
    bool good = false;

    (void)state;
    for (int i = 0; !good && i < 5; i++) { /* a busy machine may keep a process from any sign */
        struct channel *c = start_alive(be_alive);
        struct beat *own = NULL;
        assert_int_equal(beat_start(&own, &c, 1, SILENT_NS), 0);
        good = hears_itself_alone(c);
        beat_end(own);
        channel_close(c);
    }
    assert_true(good);
}

/* All its threads stand still: the kernel keeps its connection. */
static void test_a_stopped_peer_is_missed(void **state)
{
    struct channel *c = start_alive(be_alive);
    uint64_t begin_ns = clock_now_ns();

    (void)state;
    assert_int_equal(kill(child_of(c), SIGSTOP), 0);
    assert_int_equal(get(c, 60 * SECOND_NS), -EHOSTUNREACH);
    assert_true(clock_now_ns() - begin_ns < 30 * SECOND_NS);
    assert_non_null(strstr(channel_error(c), "does not answer: it hangs or was cut off"));
    assert_int_equal(channel_alive(c), -EHOSTUNREACH);
    kill(child_of(c), SIGKILL);
    channel_close(c);
}

static void test_who_did_not_look_does_not_judge(void **state)
{
    struct channel *c = start_alive(be_alive);

    (void)state;
    assert_int_equal(kill(child_of(c), SIGSTOP), 0);
    assert_int_equal(get(c, SECOND_NS), -ETIMEDOUT); /* what was on its way has come */
    usleep(3000000);
    assert_int_equal(channel_alive(c), 0);
    assert_int_equal(get(c, 60 * SECOND_NS), -EHOSTUNREACH);
    kill(child_of(c), SIGKILL);
    channel_close(c);
}

/* Of an older build, or a test's. */
static void test_who_never_gave_a_sign_is_not_missed(void **state)
{
    struct channel *c = start_alive(be_told);

    (void)state;
    assert_int_equal(channel_send(c, HANG, NULL, 0), 0);
    assert_int_equal(get(c, 2 * SILENT_NS), -ETIMEDOUT);
    assert_int_equal(channel_alive(c), 0);
    channel_close(c);
}

enum { CUT_IN_TIME, CUT_NO_NETWORK, CUT_WRONG };

/* The network goes away between two ends. */
static int be_cut_off(void)
{
    uint64_t begin_ns;
    int fds[2];

    if (!own_network() || !loopback(true))
        return CUT_NO_NETWORK;
    tcp_pair(fds);
    struct channel *c = (struct channel *)fd_channel_new(&fd_channel_sock_ops, fds[0], NULL);
    if (fd_channel_tcp_options(fds[0]) || !loopback(false))
        return CUT_WRONG;
    begin_ns = clock_now_ns();
    if (get(c, 30 * SECOND_NS) != -EHOSTUNREACH || clock_now_ns() - begin_ns >= 10 * SECOND_NS ||
        !strstr(channel_error(c), "is cut off, or hangs: its machine acknowledges nothing"))
        return CUT_WRONG;
    return CUT_IN_TIME;
}

static void test_cut_off(void **state)
{
    int status = 0;
    pid_t pid = fork();

    (void)state;
    if (pid == 0)
        _exit(be_cut_off());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == CUT_NO_NETWORK) {
        print_message(
            "no network of its own can be made here: that needs root, or user namespaces\n");
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), CUT_IN_TIME);
}

/* What a handshake leaves to both ends: the client's first. */
static void make_links(struct channel_link links[2])
{
    struct shake client, server;

    talk_good(&client, false);
    talk_good(&server, true);
    talk(&client, &server, NULL, NULL);
    links[0] = client.link;
    links[1] = server.link;
}

static void test_over_tcp(void **state)
{
    struct sockaddr_storage own, peer;
    struct channel *ends[2];
    int fds[2];
    uint8_t tokens[2][CHANNEL_TOKEN_BYTES];
    struct channel_link links[2];

    (void)state;
    need_library();
    make_links(links);
    tcp_pair(fds);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(fd_channel_tcp_options(fds[i]), 0);
        ends[i] = (struct channel *)fd_channel_new(&fd_channel_sock_ops, fds[i], &links[i]);
        channel_token(ends[i], "data", 1, tokens[i]);
    }
    assert_memory_equal(tokens[0], tokens[1], sizeof(tokens[0]));
    for (int i = 0; i < 6; i++) {
        assert_int_equal(channel_send(ends[i % 2], 5, "data", 4), 0);
        assert_int_equal(get(ends[1 - i % 2], 10 * SECOND_NS), 0);
        assert_memory_equal(back, "data", 4);
    }
    assert_int_equal(channel_address(ends[0], &own, &peer), 0);
    assert_int_equal(((struct sockaddr_in *)&peer)->sin_addr.s_addr, htonl(INADDR_LOOPBACK));
    assert_int_equal(((struct sockaddr_in *)&peer)->sin_port, 0);
    channel_close(ends[1]);
    assert_int_equal(get(ends[0], 10 * SECOND_NS), -ECONNRESET);
    assert_int_equal(channel_alive(ends[0]), -ECONNRESET);
    channel_close(ends[0]);
}

/* A stranger who sits in the connection. Each case is what it makes of three frames. */
enum { HONEST, CHANGED, REPEATED, LEFT_OUT, SWAPPED, SENT_BACK, MADE_UP, RETYPED, CASES };

static int with_a_stranger(int what)
{
    static uint8_t frames[3][FRAME_BYTES_MAX], plain[CHANNEL_FRAME_MAX];
    static const int orders[CASES][3] = {
        [HONEST] = {0, 1, 2},   [CHANGED] = {0, 1, 2}, [REPEATED] = {0, 0, 1},
        [LEFT_OUT] = {0, 2, 2}, [SWAPPED] = {1, 0, 2}, [SENT_BACK] = {0, 1, 2},
        [MADE_UP] = {0, 1, 2},  [RETYPED] = {0, 1, 2},
    };
    struct channel_link links[2];
    struct frame f;
    long sizes[3];
    int err = 0;

    make_links(links);
    for (int i = 0; i < 3; i++)
        sizes[i] = frame_encode(&links[what == SENT_BACK && i].out, 4, "payload", 7, frames[i]);
    if (what == CHANGED)
        frames[1][FRAME_HEADER_BYTES + 3] ^= 0x10;
    if (what == RETYPED)
        frames[1][5] ^= 1;
    if (what == MADE_UP)
        memset(frames[1] + FRAME_HEADER_BYTES, 0, 7 + SECRET_SEAL_BYTES);
    for (int i = 0; i < 3 && !err; i++) {
        int n = orders[what][i];
        assert_null(memmem(frames[n], (size_t)sizes[n], "payload", 7)); /* nobody reads it */
        assert_int_equal(frame_size(true, frames[n], (size_t)sizes[n]), sizes[n]);
        err = frame_take(&links[1].in, frames[n], (size_t)sizes[n], plain, &f);
        assert_true(err || (f.type == 4 && f.len == 7 && !memcmp(f.data, "payload", 7)));
    }
    return err;
}

static void test_strangers_frames(void **state)
{
    (void)state;
    need_library();
    for (int what = 0; what < CASES; what++)
        assert_int_equal(with_a_stranger(what), what == HONEST ? 0 : -EPROTO);
}

/* A stranger who sends a channel's own frames back to it. */
static void test_sent_back(void **state)
{
    uint8_t frame[FRAME_HEADER_BYTES + 4 + SECRET_SEAL_BYTES];
    struct channel_link links[2];
    int fds[2];

    (void)state;
    need_library();
    make_links(links);
    for (int server = 0; server < 2; server++) {
        tcp_pair(fds);
        struct fd_channel *c = fd_channel_new(&fd_channel_sock_ops, fds[0], &links[server]);
        assert_int_equal(channel_send((struct channel *)c, 5, "data", 4), 0);
        assert_int_equal(recv(fds[1], frame, sizeof(frame), MSG_WAITALL), sizeof(frame));
        assert_int_equal(send(fds[1], frame, sizeof(frame), 0), sizeof(frame));
        assert_int_equal(get((struct channel *)c, 10 * SECOND_NS), -EPROTO);
        channel_close((struct channel *)c);
        close(fds[1]);
    }
}

/* Every bit of a frame counts. */
static void test_turned_bits(void **state)
{
    static uint8_t frame[FRAME_BYTES_MAX], plain[CHANNEL_FRAME_MAX];
    struct channel_link links[2];
    struct frame f;

    (void)state;
    need_library();
    make_links(links);
    long n = frame_encode(&links[0].out, 4, "payload", 7, frame);
    for (long bit = 0; bit < 8 * n; bit++) {
        struct secret_stream in = links[1].in;
        frame[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(frame_take(&in, frame, (size_t)n, plain, &f), -EPROTO);
        frame[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    assert_int_equal(frame_take(&links[1].in, frame, (size_t)n, plain, &f), 0);
    assert_memory_equal(f.data, "payload", 7);
}

/* No length makes the receiver want more than a frame's largest size. */
static void test_lengths_are_bounded(void **state)
{
    uint8_t header[FRAME_HEADER_BYTES] = {0};

    (void)state;
    for (int bit = 0; bit < 32; bit++) {
        bytes_put32(header, 1u << bit);
        for (int sealed = 0; sealed < 2; sealed++) {
            long more = FRAME_HEADER_BYTES + (sealed ? SECRET_SEAL_BYTES : 0);
            assert_int_equal(frame_size(sealed, header, sizeof(header)),
                             bit <= 16 ? more + (1L << bit) : -EPROTO);
        }
    }
    bytes_put32(header, CHANNEL_FRAME_MAX + 1);
    assert_int_equal(frame_size(true, header, sizeof(header)), -EPROTO);
}

/* The same through a channel: the raw bytes of a stranger, and half a frame that comes late. */
static void test_raw_bytes(void **state)
{
    uint8_t frame[FRAME_BYTES_MAX];
    struct channel *c;
    int fds[2];

    (void)state;
    tcp_pair(fds);
    c = (struct channel *)fd_channel_new(&fd_channel_sock_ops, fds[0], NULL);
    snprintf(channel_base(c)->peer, sizeof(channel_base(c)->peer), "node1");
    long n = frame_encode(NULL, 4, "payload", 7, frame);
    assert_int_equal(write(fds[1], frame, 5), 5);
    assert_int_equal(get(c, SECOND_NS / 20), -ETIMEDOUT);
    assert_int_equal(write(fds[1], frame + 5, (size_t)n - 6), n - 6);
    assert_int_equal(get(c, SECOND_NS / 20), -ETIMEDOUT);
    assert_int_equal(write(fds[1], frame + n - 1, 1), 1);
    assert_int_equal(get(c, 10 * SECOND_NS), 0);
    assert_memory_equal(back, "payload", 7);
    memset(frame, 0xff, FRAME_HEADER_BYTES);
    assert_int_equal(write(fds[1], frame, FRAME_HEADER_BYTES), FRAME_HEADER_BYTES);
    assert_int_equal(get(c, 10 * SECOND_NS), -EPROTO);
    assert_string_equal(channel_error(c),
                        "a frame from 'node1' is damaged, out of turn, or not its own");
    assert_int_equal(get(c, 10 * SECOND_NS), -EPROTO); /* it stays so */
    channel_close(c);
    close(fds[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_size),
        cmocka_unit_test(test_too_long),
        cmocka_unit_test(test_deadlines),
        cmocka_unit_test(test_a_peer_that_takes_nothing),
        cmocka_unit_test(test_dead_peers_are_named),
        cmocka_unit_test(test_death_behind_a_grandchild),
        cmocka_unit_test(test_last_words),
        cmocka_unit_test(test_close_ends_the_child),
        cmocka_unit_test(test_no_orphan),
        cmocka_unit_test(test_nothing_is_left),
        cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_local_address),
        cmocka_unit_test(test_signs_of_life_are_not_handed_on),
        cmocka_unit_test(test_a_stopped_peer_is_missed),
        cmocka_unit_test(test_who_did_not_look_does_not_judge),
        cmocka_unit_test(test_who_never_gave_a_sign_is_not_missed),
        cmocka_unit_test(test_cut_off),
        cmocka_unit_test(test_over_tcp),
        cmocka_unit_test(test_strangers_frames),
        cmocka_unit_test(test_sent_back),
        cmocka_unit_test(test_turned_bits),
        cmocka_unit_test(test_lengths_are_bounded),
        cmocka_unit_test(test_raw_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
