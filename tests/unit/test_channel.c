/* SPDX-License-Identifier: Apache-2.0 */
/* Channels: frames arrive whole, in order and unchanged; a peer that dies, hangs or lies is named. */
/* waits: for peers that are silent */
#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

#include "core/clock.h"
#include "core/group/channel.h"
#include "tests/unit/handshakes.h"
#include "tests/unit/unit.h"

#define SECOND_NS 1000000000ull

enum { ECHO = 1, QUIT, DIE, HANG, CRASH, FLOOD, LEAVE };

static int held[2]; /* a pipe, which a grandchild waits for */

static uint8_t text[CHANNEL_FRAME_MAX + 1], back[CHANNEL_FRAME_MAX + 1];

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
        if (!err && type == LEAVE)
            _exit(fork() ? 7 : close(held[1]) || read(held[0], data, 1) != 0);
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
    return c->child;
}

/* Frames of every size up to the limit come whole; a longer one, or one with no room for it, is refused and does no harm. */
TEST(test_every_size)
{
    struct channel *c = start(be_told, NULL);
    uint16_t type = 0;
    size_t len = 0;

    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = (uint8_t)(i * 7 + (i >> 8));
    for (size_t n = 0; n <= CHANNEL_FRAME_MAX; n = n < 5 ? n + 1 : n == 5 ? 4096 : n * 2) {
        assert_int_equal(channel_send(c, ECHO, text, n), 0);
        assert_int_equal(channel_recv(c, &type, back, sizeof(back), &len, 60 * SECOND_NS), 0);
        assert_int_equal(type, ECHO);
        assert_int_equal(len, n);
        assert_memory_equal(text, back, n);
    }
    assert_int_equal(CHANNEL_FRAME_MAX, 65536);
    assert_int_equal(channel_send(c, ECHO, text, CHANNEL_FRAME_MAX + 1), -EMSGSIZE);
    assert_int_equal(channel_send(c, ECHO, text, 100), 0);
    assert_int_equal(channel_send(c, ECHO, text, 3), 0);
    assert_int_equal(channel_recv(c, &type, back, 99, &len, 60 * SECOND_NS), -EMSGSIZE);
    assert_int_equal(channel_recv(c, &type, back, 99, &len, 60 * SECOND_NS), 0);
    assert_int_equal(len, 3);
    channel_close(c);
}

/* Who waits for a peer that says nothing, or takes nothing, is told after the time it gave; after half a frame nothing can follow. */
TEST(test_a_peer_that_takes_nothing)
{
    struct channel *c = start(be_told, NULL);
    const struct channel_ops *ops = c->ops;
    uint64_t begin_ns = clock_now_ns();
    int err;

    assert_int_equal(get(c, 0), -EAGAIN);
    assert_int_equal(get(c, SECOND_NS / 4), -ETIMEDOUT);
    assert_true(clock_now_ns() - begin_ns >= SECOND_NS / 4);
    assert_non_null(strstr(channel_error(c), "0.25 s"));
    assert_int_equal(channel_send(c, ECHO, "x", 1), 0); /* it is not the end */
    assert_int_equal(get(c, 60 * SECOND_NS), 0);
    err = channel_send(c, HANG, NULL, 0);
    for (int i = 0; i < 1000 && !err; i++)
        err = ops->send(c, ECHO, text, CHANNEL_FRAME_MAX, SECOND_NS / 4);
    assert_int_equal(err, -ETIMEDOUT);
    assert_int_equal(channel_send(c, QUIT, NULL, 0), -ETIMEDOUT);
    assert_int_equal(channel_alive(c), 0);
    channel_close(c);
}

/* What ends a peer is told, also where its child still holds the socket. */
TEST(test_dead_peers_are_named)
{
    static const struct {
        uint16_t order;
        const char *says;
    } deaths[] = {{DIE, "status 23"}, {CRASH, "signal 9"}, {QUIT, "status 0"}, {LEAVE, "status 7"}};

    assert_int_equal(pipe(held), 0);
    for (size_t i = 0; i < 4; i++) {
        struct channel *c = start(be_told, NULL);
        char pid[32];
        int err = 0;
        snprintf(pid, sizeof(pid), "(pid %d)", child_of(c));
        assert_int_equal(channel_alive(c), 0);
        assert_int_equal(channel_send(c, deaths[i].order, NULL, 0), 0);
        assert_int_equal(get(c, 60 * SECOND_NS), -ECONNRESET);
        assert_non_null(strstr(channel_error(c), pid));
        assert_non_null(strstr(channel_error(c), deaths[i].says));
        assert_int_equal(channel_alive(c), -ECONNRESET);
        assert_int_equal(get(c, 0), -ECONNRESET);
        for (int more = 0; more < 5 && !err && deaths[i].order != LEAVE; more++)
            err = channel_send(c, ECHO, text, 10); /* no SIGPIPE */
        assert_int_equal(err, deaths[i].order == LEAVE ? 0 : -ECONNRESET);
        channel_close(c);
    }
    close(held[0]);
    close(held[1]);
}

/* What it sent before it died is not lost. */
TEST(test_last_words)
{
    struct channel *c = start(be_told, NULL);

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

/* One that hangs, and one that is stopped, end with their channel, and leave nothing; by signals they do not: those are for the parent. */
TEST(test_close_ends_the_child)
{
    int before = dup(0), after;

    close(before);
    for (int stopped = 0; stopped < 2; stopped++) {
        struct channel *c = start(be_told, NULL);
        pid_t pid = child_of(c);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(channel_send(c, ECHO, "x", 1), 0);
            assert_int_equal(get(c, 60 * SECOND_NS), 0);
            kill(pid, SIGTERM);
            kill(pid, SIGINT);
        }
        if (stopped)
            kill(pid, SIGSTOP);
        else
            assert_int_equal(channel_send(c, HANG, NULL, 0), 0);
        assert_int_equal(get(c, SECOND_NS / 10), -ETIMEDOUT);
        channel_close(c);
        assert_int_equal(kill(pid, 0), -1); /* waited for, too */
    }
    after = dup(0);
    assert_int_equal(after, before);
    close(after);
    channel_close(NULL);
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

    channel_expect(c, SILENT_NS);
    assert_int_equal(get(c, SECOND_NS), -ETIMEDOUT);
    return c;
}

/* Nothing but what was sent comes, and then nothing, and it is there. */
static bool hears_itself_alone(struct channel *c)
{
    int err = 0;

    for (int i = 0; !err && i < 1000; i++) { /* while the other thread sends its own */
        err = channel_send(c, ECHO, &i, sizeof(i));
        err = err ? err : get(c, 60 * SECOND_NS);
        if (!err)
            assert_memory_equal(&i, back, sizeof(i));
        usleep(i % 100 ? 0 : 50000);
    }
    err = err ? err : get(c, SILENT_NS + SILENT_NS / 4);
    return err == -ETIMEDOUT && !channel_alive(c);
}

TEST(test_signs_of_life_are_not_handed_on)
{
    bool good = false;

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

/* A stopped one is missed, but not by who did not look himself; one that never gave a sign, of an older build, is not. */
TEST(test_a_stopped_peer_is_missed)
{
    struct channel *c = start_alive(be_alive), *mute = start_alive(be_told);

    assert_int_equal(kill(child_of(c), SIGSTOP), 0);
    assert_int_equal(get(c, SECOND_NS), -ETIMEDOUT); /* what was on its way has come */
    usleep(SILENT_NS / 1000 + 200000);
    assert_int_equal(channel_alive(c), 0);
    assert_int_equal(get(c, 60 * SECOND_NS), -EHOSTUNREACH);
    assert_int_equal(channel_alive(c), -EHOSTUNREACH);
    assert_int_equal(get(mute, SECOND_NS / 10), -ETIMEDOUT);
    assert_int_equal(channel_alive(mute), 0);
    kill(child_of(c), SIGKILL);
    channel_close(c);
    channel_close(mute);
}

/* The network goes away between two ends. 77: there is no network of its own. */
static int be_cut_off(void)
{
    int fds[2];

    if ((unshare(CLONE_NEWNET) && unshare(CLONE_NEWUSER | CLONE_NEWNET)) || !loopback(true))
        return 77;
    tcp_pair(fds);
    struct channel *c = channel_new(fds[0], NULL);
    return fd_channel_tcp_options(fds[0]) || !loopback(false) ||
           get(c, 60 * SECOND_NS) != -EHOSTUNREACH;
}

TEST(test_cut_off)
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0)
        _exit(be_cut_off());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        skip(); /* it needs root, or user namespaces */
    assert_int_equal(WEXITSTATUS(status), 0);
}

#define GOOD(unheard_ms, segments)                                                                 \
    {                                                                                              \
        unheard_ms, segments, false, false, true                                                   \
    }
#define OWED(unheard_ms, segments)                                                                 \
    {                                                                                              \
        unheard_ms, segments, true, false, false                                                   \
    }

#define MUTE(unheard_ms, segments)                                                                 \
    {                                                                                              \
        unheard_ms, segments, false, false, false                                                  \
    }

/* Looks at a connection, half a second apart, as the kernel would count it. */
TEST(test_dead_direction)
{
    static const struct {
        struct link_counts looks[5];
        enum link_sign sign;
    } cases[] = {
        /* its machine acknowledges each sign of life: its process was stopped */
        {{GOOD(400, 10), GOOD(900, 12), GOOD(2000, 14), GOOD(4000, 18), GOOD(5200, 20)},
         LINK_ACKNOWLEDGES},
        /* it sends again what this end has: that its answers are lost, and not what it says */
        {{GOOD(400, 10), OWED(900, 11), OWED(2000, 11), OWED(4000, 12), OWED(5200, 13)},
         LINK_ONE_WAY},
        {{GOOD(400, 10), OWED(900, 12), OWED(2000, 12), OWED(4000, 12), OWED(5200, 12)}, LINK_DEAD},
        /* what came before it fell silent is no sign */
        {{GOOD(100, 10), GOOD(600, 15), GOOD(900, 20), OWED(4000, 20), OWED(5200, 20)}, LINK_DEAD},
        /* this process stood still meanwhile, or its machine did */
        {{GOOD(400, 10),
          GOOD(900, 12),
          {4000, 30, true, true, false},
          OWED(4500, 30),
          OWED(5200, 30)},
         LINK_DEAD},
        /* stopped, acknowledged by its machine for a while, and then that is gone, too */
        {{GOOD(400, 10), GOOD(1500, 14), GOOD(2500, 18), OWED(4000, 18), OWED(5200, 18)},
         LINK_DEAD},
        /* this end cannot send: nothing is owed, and nothing acknowledged */
        {{GOOD(400, 10), MUTE(1500, 10), MUTE(2500, 10), MUTE(4000, 10), MUTE(5200, 10)},
         LINK_UNKNOWN},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        enum link_sign sign = LINK_UNKNOWN;
        uint32_t segments = 0;
        for (size_t k = 0; k < 5; k++)
            sign = link_sign(&cases[i].looks[k], &segments);
        if (sign != cases[i].sign)
            fail_msg("case %zu: %d", i, sign);
    }
}

/* Looks at a connection: what the kernel says, how long after the look before, and what of it counts
 * as silence. */
TEST(test_silence)
{
    static const struct {
        struct {
            uint32_t unheard_ms, gap_ms, silent_ms;
        } looks[5];
    } cases[] = {
        /* the peer gives its signs */
        {{{400, 4000000, 0}, {100, 500, 100}, {200, 500, 200}, {300, 500, 300}, {400, 500, 400}}},
        /* the peer is silent */
        {{{400, 4000000, 0},
          {100, 500, 100},
          {600, 500, 600},
          {1100, 500, 1100},
          {5600, 999, 5600}}},
        /* both stood still: the peer's next sign comes later than this end looks */
        {{{400, 4000000, 0},
          {100, 500, 100},
          {7100, 7000, 100},
          {7600, 500, 600},
          {200, 500, 200}}},
        /* the same, and the peer's last sign came after the last look */
        {{{400, 4000000, 0}, {400, 500, 400}, {6900, 7000, 0}, {7400, 500, 500}, {50, 500, 50}}},
        /* it was silent before, and is silent after */
        {{{400, 4000000, 0},
          {3000, 500, 2600},
          {10000, 7000, 2600},
          {10500, 500, 3100},
          {12500, 2000, 3100}}},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        uint32_t away_ms = 0;
        for (size_t k = 0; k < 5; k++) {
            struct link_counts now = {.unheard_ms = cases[i].looks[k].unheard_ms,
                                      .late = cases[i].looks[k].gap_ms > 1000};
            uint32_t silent_ms = link_silent_ms(&now, cases[i].looks[k].gap_ms, &away_ms);
            if (silent_ms != cases[i].looks[k].silent_ms)
                fail_msg("case %zu, look %zu: %u", i, k, silent_ms);
        }
    }
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

TEST(test_over_tcp)
{
    struct sockaddr_storage own, peer;
    struct channel *ends[2];
    struct channel_link links[2];
    int fds[2];

    make_links(links);
    tcp_pair(fds);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(fd_channel_tcp_options(fds[i]), 0);
        ends[i] = channel_new(fds[i], &links[i]);
    }
    for (int i = 0; i < 6; i++) {
        assert_int_equal(channel_send(ends[i % 2], 5, "data", 4), 0);
        assert_int_equal(get(ends[1 - i % 2], 60 * SECOND_NS), 0);
        assert_memory_equal(back, "data", 4);
    }
    assert_int_equal(channel_address(ends[0], &own, &peer), 0);
    assert_int_equal(((struct sockaddr_in *)&peer)->sin_addr.s_addr, htonl(INADDR_LOOPBACK));
    assert_int_equal(((struct sockaddr_in *)&peer)->sin_port, 0);
    channel_close(ends[1]);
    assert_int_equal(get(ends[0], 60 * SECOND_NS), -ECONNRESET);
    assert_int_equal(channel_alive(ends[0]), -ECONNRESET);
    channel_close(ends[0]);
}

/* A stranger in the connection can read nothing, turn no bit, nor repeat, swap, leave out or send back a frame. */
TEST(test_strangers_frames)
{
    static const int orders[][3] = {{0, 1, 2}, {0, 0, 1}, {0, 2, 2}, {1, 0, 2}, {0, 1, 2}};
    static uint8_t frames[3][FRAME_BYTES_MAX], plain[CHANNEL_FRAME_MAX];
    struct channel_link links[2];
    struct frame f;
    long n = 0;

    for (int what = 0; what < 5; what++) {
        int err = 0;
        make_links(links);
        for (int i = 0; i < 3; i++)
            n = frame_encode(&links[what == 4 && i].out, 4, "payload", 7, frames[i]);
        for (int i = 0; i < 3 && !err; i++) {
            uint8_t *frame = frames[orders[what][i]];
            assert_null(memmem(frame, (size_t)n, "payload", 7));
            assert_int_equal(frame_size(true, frame, (size_t)n), n);
            for (long bit = 0; bit < 8 * n && !what; bit++) {
                struct secret_stream in = links[1].in;
                frame[bit / 8] ^= (uint8_t)(1u << bit % 8);
                assert_int_equal(frame_take(&in, frame, (size_t)n, plain, &f), -EPROTO);
                frame[bit / 8] ^= (uint8_t)(1u << bit % 8);
            }
            err = frame_take(&links[1].in, frame, (size_t)n, plain, &f);
            assert_true(err || (f.type == 4 && f.len == 7 && !memcmp(f.data, "payload", 7)));
        }
        assert_int_equal(err, what ? -EPROTO : 0);
    }
}

/* Half a frame may come late; a stranger's raw bytes end it for good. */
TEST(test_raw_bytes)
{
    uint8_t frame[FRAME_BYTES_MAX];
    int fds[2];

    tcp_pair(fds);
    struct channel *c = channel_new(fds[0], NULL);
    long n = frame_encode(NULL, 4, "payload", 7, frame);
    assert_int_equal(write(fds[1], frame, 5), 5);
    assert_int_equal(get(c, SECOND_NS / 20), -ETIMEDOUT);
    assert_int_equal(write(fds[1], frame + 5, (size_t)n - 6), n - 6);
    assert_int_equal(get(c, SECOND_NS / 20), -ETIMEDOUT);
    assert_int_equal(write(fds[1], frame + n - 1, 1), 1);
    assert_int_equal(get(c, 60 * SECOND_NS), 0);
    assert_memory_equal(back, "payload", 7);
    memset(frame, 0xff, FRAME_HEADER_BYTES);
    assert_int_equal(write(fds[1], frame, FRAME_HEADER_BYTES), FRAME_HEADER_BYTES);
    for (int i = 0; i < 2; i++)
        assert_int_equal(get(c, 60 * SECOND_NS), -EPROTO);
    channel_close(c);
    close(fds[1]);
}
