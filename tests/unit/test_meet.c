/* SPDX-License-Identifier: Apache-2.0 */
/* Two ends that meet over a socket: runs one after the other, and all that others may do meanwhile. */
/* waits: for peers that do not come */
#include "core/group/secret.h"
#include "core/program.h"
#include "tests/unit/meetings.h"
#include "tests/unit/unit.h"

static int begin(void **state)
{
    (void)state;
    test_cancel = 0;
    return 0;
}

static int connect_to(const char *host, const struct server *s)
{
    struct meet_connect m = {
        .host = host, .port = s->port, .secret = &test_secret, .protocol = TEST_PROTOCOL};
    char error[MEET_ERROR_BYTES];
    struct channel *c = NULL;
    int err = meet_connect(&m, &c, error, sizeof(error));

    if (!err)
        leave_politely(c);
    return err;
}

TEST_WITH(test_loopback_alone, begin, NULL)
{
    struct server s;

    for (int all = 0; all < 2; all++) {
        server_start(&s, (struct meet_listen){.address = all ? "0.0.0.0" : NULL});
        assert_int_equal(connect_to("127.0.0.2", &s), all ? 0 : -ECONNREFUSED);
        assert_int_equal(connect_to("localhost", &s), 0);
        assert_int_equal(connect_to("no such name.", &s), -ENOENT);
        assert_int_equal(server_stop(&s), -EINTR);
        close(s.log);
    }
}

/* While one is served another is told with whom; one that waits gets in when the first has gone. */
TEST_WITH(test_busy, begin, NULL)
{
    struct server s;
    struct channel *first, *second = NULL;
    char error[MEET_ERROR_BYTES], host[64];
    int status;

    server_start(&s, (struct meet_listen){0});
    first = enter(&s);
    echo(first);
    assert_int_equal(knock(&s, 0, &second, error), -EBUSY);
    gethostname(host, sizeof(host));
    assert_non_null(strstr(error, host));
    pid_t waits = test_fork();
    if (waits == 0)
        _exit(knock(&s, 60 * SECOND_NS, &second, error) ? 1 : 0);
    usleep(300000);
    assert_int_equal(waitpid(waits, &status, WNOHANG), 0);
    leave_politely(first);
    assert_int_equal(waitpid(waits, &status, 0), waits);
    assert_int_equal(status, 0);
    assert_int_equal(server_stop(&s), -EINTR);
    close(s.log);
}

/* What a stranger does with its connection, by turns. */
static void annoy(int fd, int how)
{
    static const char garbage[1000] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    struct shake_self self = {
        .secret = &test_secret, .protocol = TEST_PROTOCOL, .version = "0", .name = "x"};
    struct shake shake;
    ssize_t n = 0;

    shake_begin(&shake, false, &self);
    if (how % 4 == 1)
        n = send(fd, garbage, sizeof(garbage), MSG_NOSIGNAL);
    if (how % 4 == 2)
        n = send(fd, shake.out, (size_t)(how / 4) % shake.n_out, MSG_NOSIGNAL);
    if (how % 4 == 3) {
        n += send(fd, shake.out, shake.n_out, MSG_NOSIGNAL);
        n += send(fd, garbage, sizeof(garbage), MSG_NOSIGNAL);
    }
    (void)n; /* it may have been thrown out already */
}

/* However many strangers come, the run goes on, places are few, who has the secret is heard, and the log stays short. */
TEST_WITH(test_many_strangers, begin, NULL)
{
    enum { STRANGERS = 1500, AT_ONCE = 200 };
    static int fds[AT_ONCE];
    struct server s;
    struct channel *good, *next = NULL;
    struct {
        unsigned sockets;
        pid_t pid;
    } facts;
    char error[MEET_ERROR_BYTES];
    unsigned most = 0;

    server_start(&s, (struct meet_listen){0});
    good = enter(&s);
    echo(good);
    unsigned before = count_sockets(s.pid);
    for (int i = 0; i < STRANGERS; i++) {
        int *fd = &fds[i % AT_ONCE];
        if (i >= AT_ONCE)
            close(*fd);
        *fd = stranger(s.port);
        annoy(*fd, i);
        if (i % 50 == 49) {
            unsigned now = count_sockets(s.pid);
            most = now > most ? now : most;
            echo(good);
        }
        if (i == STRANGERS / 2)
            assert_int_equal(knock(&s, 0, &next, error), -EBUSY);
    }
    assert_true(most > before + 8); /* they were let in at all */
    assert_true(most <= before + DOOR_PLACES + 1);
    leave_politely(good);
    good = enter(&s); /* the next run */
    ask(good, COUNT_SOCKETS, &facts,
        sizeof(facts)); /* its own connection, and none of the server's */
    assert_int_equal(facts.sockets, count_sockets(getpid()) - AT_ONCE);
    leave_politely(good);
    for (int i = 0; i < AT_ONCE; i++)
        close(fds[i]);
    assert_int_equal(server_stop(&s), -EINTR);
    assert_true(strlen(server_log(&s)) < 30000);
}

/* One that says nothing, or a byte now and then, is thrown out; the place is free again. */
TEST_WITH(test_a_place_has_a_deadline, begin, NULL)
{
    struct server s;
    char byte;

    server_start(&s, (struct meet_listen){0});
    unsigned before = count_sockets(s.pid);
    int silent = stranger(s.port), slow = stranger(s.port);
    for (int i = 0; i < 300; i++) {
        if ((recv(slow, &byte, 1, MSG_DONTWAIT) < 0 && errno != EAGAIN) ||
            send(slow, "P", 1, MSG_NOSIGNAL) < 0)
            break;
        usleep(400000);
    }
    assert_true(recv(slow, &byte, 1, 0) <= 0);
    assert_true(recv(silent, &byte, 1, 0) <= 0);
    assert_int_equal(count_sockets(s.pid), before);
    close(silent);
    close(slow);
    assert_int_equal(server_stop(&s), -EINTR);
    close(s.log);
}

/* All that an honest client said, said again. */
TEST_WITH(test_said_again, begin, NULL)
{
    struct shake_self self = {
        .secret = &test_secret, .protocol = TEST_PROTOCOL, .version = PLUMB_VERSION, .name = "x"};
    uint8_t said[SHAKE_HELLO_BYTES + SHAKE_PROOF_BYTES],
        answer[SHAKE_HELLO_BYTES + SHAKE_ANSWER_BYTES];
    struct shake shake;
    struct server s;

    server_start(&s, (struct meet_listen){0});
    shake_begin(&shake, false, &self);
    memcpy(said, shake.out, SHAKE_HELLO_BYTES);
    int fd = stranger(s.port);
    assert_int_equal(send(fd, said, SHAKE_HELLO_BYTES, 0), SHAKE_HELLO_BYTES);
    assert_int_equal(recv(fd, answer, SHAKE_HELLO_BYTES, MSG_WAITALL), SHAKE_HELLO_BYTES);
    shake_feed(&shake, answer, 8);
    shake_feed(&shake, answer + 8, SHAKE_HELLO_BYTES - 8);
    memcpy(said + SHAKE_HELLO_BYTES, shake.out, SHAKE_PROOF_BYTES);
    assert_int_equal(send(fd, shake.out, SHAKE_PROOF_BYTES, 0), SHAKE_PROOF_BYTES);
    assert_int_equal(recv(fd, answer, SHAKE_ANSWER_BYTES, MSG_WAITALL), SHAKE_ANSWER_BYTES);
    assert_int_equal(answer[11], 1); /* welcome */
    close(fd);
    fd = stranger(s.port);
    assert_int_equal(send(fd, said, sizeof(said), 0), sizeof(said));
    assert_int_equal(recv(fd, answer, sizeof(answer), MSG_WAITALL), sizeof(answer));
    assert_int_equal(answer[SHAKE_HELLO_BYTES + 11], 3); /* refused */
    close(fd);
    assert_int_equal(server_stop(&s), -EINTR);
    assert_non_null(strstr(server_log(&s), "secret"));
}

/* The run dies: its peer hears of it, the next one is served. */
TEST_WITH(test_a_run_that_crashes, begin, NULL)
{
    struct server s;
    struct channel *c;
    uint8_t data[8];
    uint16_t type;
    size_t len;

    server_start(&s, (struct meet_listen){.runs = 2});
    c = enter(&s);
    assert_int_equal(channel_send(c, CRASH, NULL, 0), 0);
    assert_int_equal(channel_recv(c, &type, data, sizeof(data), &len, 60 * SECOND_NS), -ECONNRESET);
    assert_non_null(strstr(channel_error(c), "127.0.0.1"));
    channel_close(c);
    c = enter(&s);
    leave_politely(c);
    assert_int_equal(server_end(&s), 0);
    assert_non_null(strstr(server_log(&s), "signal 9"));
}

/* A run that hangs when its peer has long gone is ended. */
TEST_WITH(test_a_run_that_hangs, begin, NULL)
{
    static struct serve s;
    int fds[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    s.session.fd = fds[0];
    s.session.child = test_fork();
    if (s.session.child == 0) {
        close(fds[1]);
        for (;;)
            pause();
    }
    pid_t child = s.session.child;
    serve_watch(&s);
    assert_int_equal(s.session.gone_ns, 0);
    close(fds[1]); /* and the child soon its own */
    for (int i = 0; i < 1000 && !s.session.gone_ns; i++, usleep(10000))
        serve_watch(&s);
    assert_true(s.session.gone_ns > 0);
    assert_int_equal(s.session.child, child); /* it has time to end by itself */
    s.session.gone_ns = clock_now_ns() - SERVE_ORPHAN_NS - SECOND_NS;
    serve_watch(&s);
    assert_int_equal(s.session.child, 0);
    assert_int_equal(s.runs, 1);
    assert_int_equal(kill(child, 0), -1);
}

/* The server ends by a signal, or is killed: its run ends, too, though it hangs. */
TEST_WITH(test_no_orphan, begin, NULL)
{
    for (int killed = 0; killed < 2; killed++) {
        struct server s;
        struct {
            unsigned sockets;
            pid_t pid;
        } facts;
        server_start(&s, (struct meet_listen){0});
        struct channel *c = enter(&s);
        ask(c, SAY_PID, &facts, sizeof(facts));
        assert_int_equal(channel_send(c, HANG, NULL, 0), 0);
        kill(s.pid, killed ? SIGKILL : SIGTERM);
        assert_int_equal(waitpid(s.pid, NULL, 0), s.pid);
        assert_true(is_gone(facts.pid));
        channel_close(c);
        close(s.log);
    }
}

/* Something else listens there. */
static int listen_as(const char *says, bool closes, uint16_t *port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(a);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&a, len), 0);
    assert_int_equal(listen(fd, 10), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
    *port = ntohs(a.sin_port);
    pid_t pid = test_fork();
    if (pid == 0)
        for (;;) {
            int one = accept(fd, NULL, NULL);
            if (send(one, says, strlen(says), MSG_NOSIGNAL) < 0)
                _exit(1);
            if (closes)
                close(one);
        }
    close(fd);
    return pid;
}

/* Something else listens there. */
TEST_WITH(test_no_plumbline, begin, NULL)
{
    static const struct {
        const char *says;
        bool closes;
        int err;
    } others[] = {{"SSH-2.0-OpenSSH_9.2p1\r\n", false, -EPROTO},
                  {"", true, -ECONNRESET},
                  {"PLMB\1\1\0", true, -EPROTO},
                  {"", false, -ETIMEDOUT}};

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        struct server s = {0};
        char error[MEET_ERROR_BYTES];
        struct channel *c = NULL;
        pid_t pid = listen_as(others[i].says, others[i].closes, &s.port);
        assert_int_equal(knock(&s, 0, &c, error), others[i].err);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
}

static int load(const char *content, mode_t mode, struct meet_secret *secret, char *error)
{
    char path[] = "/tmp/plumb-secret-XXXXXX";
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, content, strlen(content)), strlen(content));
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
    int err = meet_secret_load(path, secret, error, MEET_ERROR_BYTES);
    unlink(path);
    return err;
}

/* Its first line, of 16 characters at least, in a file that nobody else may read. */
TEST_WITH(test_secrets, begin, NULL)
{
    static const struct {
        const char *content;
        mode_t mode;
        int err;
        bool same;
    } files[] = {
        {"sixteen letters!\nmore\n", 0600, 0, true},     {"sixteen letters!", 0400, 0, true},
        {"sixteen letters!\r\n", 0600, 0, true},         {"sixteen letters?", 0600, 0, false},
        {"fifteen letters\nmore", 0600, -EINVAL, false}, {"", 0600, -EINVAL, false}};
    struct meet_secret a, b;
    char error[MEET_ERROR_BYTES], text[66], other[66], line[1101];

    assert_int_equal(load("sixteen letters!", 0600, &a, error), 0);
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
        assert_int_equal(load(files[i].content, files[i].mode, &b, error), files[i].err);
        if (!files[i].err)
            assert_int_equal(!memcmp(a.bytes, b.bytes, sizeof(a.bytes)), files[i].same);
    }
    memset(line, 'x', sizeof(line) - 1);
    line[sizeof(line) - 1] = 0;
    assert_int_equal(load(line, 0600, &a, error), -EMSGSIZE);
    for (mode_t bit = 1; bit < 0100; bit <<= 1)
        assert_int_equal(load("sixteen letters!", 0600 | bit, &a, error), -EACCES);
    assert_int_equal(meet_secret_load("/no/such/file", &a, error, sizeof(error)), -ENOENT);
    assert_int_equal(meet_secret_make(text, sizeof(text)), 0);
    assert_int_equal(strspn(text, "0123456789abcdef"), 64);
    assert_string_equal(text + 64, "\n");
    assert_int_equal(meet_secret_make(other, sizeof(other)), 0);
    assert_string_not_equal(text, other);
    assert_int_equal(meet_secret_make(text, 65), -EMSGSIZE);
    assert_int_equal(load(other, 0600, &a, error), 0);
}
