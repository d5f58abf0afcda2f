/* SPDX-License-Identifier: Apache-2.0 */
/* Two ends that meet over a socket: runs one after the other, and all that others may do meanwhile. */
/* waits: for peers that do not come */
#include "core/group/secret.h"
#include "core/program.h"
#include "tests/unit/meetings.h"

static int begin(void **state)
{
    (void)state;
    test_cancel = 0;
    return 0;
}

static void need_library(void)
{
    char why[256];

    if (!secret_supported(why, sizeof(why)))
        return;
    print_message("%s\n", why);
    skip();
}

static void test_many_runs(void **state)
{
    struct server s;
    char error[MEET_ERROR_BYTES];

    (void)state;
    need_library();
    server_start(&s, (struct meet_listen){.runs = 20});
    unsigned before = count_sockets(s.pid);
    for (int i = 0; i < 20; i++) {
        struct channel *c = NULL;
        /* No second try: one that comes right after the last run is let in, not told that it is busy. */
        assert_int_equal(knock(&s, 0, &c, error), 0);
        echo(c);
        if (i == 19)
            assert_int_equal(count_sockets(s.pid), before + 1);
        leave_politely(c);
    }
    assert_int_equal(server_end(&s), 0);
    const char *log = server_log(&s);
    for (int i = 0; i < 20; i++, log++) {
        log = strstr(log, " is done\n");
        assert_non_null(log);
    }
}

/* Names and addresses of both ends, each as the other sees them; the same token at both. */
static int tell_who(struct channel *c, void *arg)
{
    struct {
        char peer[160];
        uint8_t token[CHANNEL_TOKEN_BYTES];
    } facts;

    (void)arg;
    snprintf(facts.peer, sizeof(facts.peer), "%s", channel_peer(c));
    channel_token(c, "data", 3, facts.token);
    return channel_send(c, 1, &facts, sizeof(facts));
}

static uint16_t found_port;
static void keep_port(void *arg, const char *address, uint16_t port)
{
    (void)arg;
    assert_string_equal(address, "localhost");
    found_port = port;
    if (test_fork() == 0) { /* the client */
        struct server s = {.port = port};
        char host[64], expect[128], error[MEET_ERROR_BYTES];
        uint8_t token[CHANNEL_TOKEN_BYTES];
        struct {
            char peer[160];
            uint8_t token[CHANNEL_TOKEN_BYTES];
        } facts;
        struct channel *c = NULL;
        uint16_t type;
        size_t len;
        gethostname(host, sizeof(host));
        int bad = knock(&s, 0, &c, error) ||
                  channel_recv(c, &type, &facts, sizeof(facts), &len, 10 * SECOND_NS);
        snprintf(expect, sizeof(expect), "127.0.0.1 (127.0.0.1 port %u)", port);
        bad = bad || strcmp(channel_peer(c), expect);
        snprintf(expect, sizeof(expect), "%.60s (127.0.0.1 port ", host);
        bad = bad || strncmp(facts.peer, expect, strlen(expect));
        bad =
            bad || channel_token(c, "data", 3, token) || memcmp(token, facts.token, sizeof(token));
        _exit(bad ? 1 : 0);
    }
}

static void test_who_is_who(void **state)
{
    struct meet_listen l = {.secret = &test_secret,
                            .protocol = TEST_PROTOCOL,
                            .runs = 1,
                            .idle_ns = 10 * SECOND_NS,
                            .ready = keep_port};
    char error[MEET_ERROR_BYTES];
    int status = -1;

    (void)state;
    need_library();
    assert_int_equal(meet_serve(&l, tell_who, NULL, error, sizeof(error)), 0);
    assert_true(wait(&status) > 0);
    assert_int_equal(status, 0);
}

static bool has_ipv6(void)
{
    struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int fd = socket(AF_INET6, SOCK_STREAM, 0);
    bool has = fd >= 0 && !bind(fd, (struct sockaddr *)&a, sizeof(a));

    close(fd);
    return has;
}

static void test_loopback_alone(void **state)
{
    struct server s;
    struct channel *c = NULL;
    char error[MEET_ERROR_BYTES];
    struct meet_connect m = {.secret = &test_secret, .protocol = TEST_PROTOCOL};

    (void)state;
    need_library();
    server_start(&s, (struct meet_listen){0});
    m.port = s.port;
    m.host = "127.0.0.2"; /* not what it listens on, though the machine's own */
    assert_int_equal(meet_connect(&m, &c, error, sizeof(error)), -ECONNREFUSED);
    m.host = "localhost";
    assert_int_equal(meet_connect(&m, &c, error, sizeof(error)), 0);
    leave_politely(c);
    m.host = "::1";
    if (has_ipv6()) {
        assert_int_equal(meet_connect(&m, &c, error, sizeof(error)), 0);
        assert_memory_equal(channel_peer(c), "::1 (::1 port ", 14);
        leave_politely(c);
    }
    assert_int_equal(server_stop(&s), -EINTR);
    close(s.log);
    server_start(&s, (struct meet_listen){.address = "0.0.0.0"});
    m.port = s.port;
    m.host = "127.0.0.2";
    assert_int_equal(meet_connect(&m, &c, error, sizeof(error)), 0);
    leave_politely(c);
    assert_int_equal(server_stop(&s), -EINTR);
    close(s.log);
}

/* Who does not know the secret, or is another version, is told why, and so is the server's user. */
static void test_turned_away(void **state)
{
    struct meet_secret other = {"something else"};
    struct server s;
    struct channel *c = NULL;
    char error[MEET_ERROR_BYTES];

    (void)state;
    need_library();
    server_start(&s, (struct meet_listen){0});
    struct meet_connect m = {
        .host = "127.0.0.1", .port = s.port, .secret = &other, .protocol = TEST_PROTOCOL};
    assert_int_equal(meet_connect(&m, &c, error, sizeof(error)), -EACCES);
    assert_non_null(strstr(error, "has another secret: give both ends the same one"));
    m.secret = &test_secret;
    m.protocol = TEST_PROTOCOL + 1;
    assert_int_equal(meet_connect(&m, &c, error, sizeof(error)), -EPROTO);
    assert_non_null(strstr(error, "(protocol 0000004d), this end is plumbline"));
    m.protocol = TEST_PROTOCOL;
    assert_int_equal(meet_connect(&m, &c, error, sizeof(error)), 0);
    leave_politely(c);
    assert_int_equal(server_stop(&s), -EINTR);
    const char *log = server_log(&s);
    assert_non_null(strstr(log, "was turned away: it does not know this session's secret"));
    assert_non_null(strstr(log, "(protocol 0000004e), this end is plumbline"));
}

static void test_busy(void **state)
{
    struct server s;
    struct channel *first, *second = NULL;
    char error[MEET_ERROR_BYTES], host[64], expect[128];

    (void)state;
    need_library();
    server_start(&s, (struct meet_listen){0});
    first = enter(&s);
    echo(first);
    assert_int_equal(knock(&s, 0, &second, error), -EBUSY);
    gethostname(host, sizeof(host));
    snprintf(expect, sizeof(expect), "is busy with '%.60s'", host);
    assert_non_null(strstr(error, expect));
    /* One that waits gets in when the first has gone. */
    pid_t waits = test_fork();
    if (waits == 0)
        _exit(knock(&s, 30 * SECOND_NS, &second, error) ? 1 : 0);
    usleep(1500000);
    echo(first);
    leave_politely(first);
    int status;
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

#define STRANGERS 10000
#define AT_ONCE   200

static void test_ten_thousand_strangers(void **state)
{
    static int fds[AT_ONCE];
    struct server s;
    struct channel *good, *next = NULL;
    char error[MEET_ERROR_BYTES];
    unsigned most = 0;

    (void)state;
    need_library();
    server_start(&s, (struct meet_listen){0});
    good = enter(&s);
    echo(good);
    unsigned before = count_sockets(s.pid);
    long kib = 0;
    for (int i = 0; i < STRANGERS; i++) {
        int *fd = &fds[i % AT_ONCE];
        if (i >= AT_ONCE)
            close(*fd);
        *fd = stranger(s.port);
        annoy(*fd, i);
        if (i % 100 == 99) {
            unsigned now = count_sockets(s.pid);
            most = now > most ? now : most;
            echo(good);
        }
        if (i == 999)
            kib = resident_kib(s.pid); /* all pages that it needs for strangers */
        if (i == STRANGERS / 2)        /* somebody with the secret is heard in all that noise */
            assert_int_equal(knock(&s, 0, &next, error), -EBUSY);
    }
    assert_true(most > before + 8); /* they were let in at all */
    assert_true(most <= before + DOOR_PLACES + 1);
    assert_true(kib > 0);
    if (resident_is_ours())
        assert_true(resident_kib(s.pid) <= kib + 256);
    leave_politely(good);
    good = enter(&s);
    echo(good);
    leave_politely(good);
    for (int i = 0; i < AT_ONCE; i++)
        close(fds[i]);
    assert_int_equal(server_stop(&s), -EINTR);
    const char *log = server_log(&s);
    assert_non_null(strstr(log, "more were turned away"));
    assert_true(strlen(log) < 30000); /* some lines a second */
}

/* One that says nothing, or a byte now and then, is thrown out; the place is free again. */
static void test_a_place_has_a_deadline(void **state)
{
    struct server s;
    char byte;

    (void)state;
    need_library();
    server_start(&s, (struct meet_listen){0});
    unsigned before = count_sockets(s.pid);
    int silent = stranger(s.port), slow = stranger(s.port);
    uint64_t begin_ns = clock_now_ns();
    while (clock_now_ns() - begin_ns < 120 * SECOND_NS && recv(slow, &byte, 1, MSG_DONTWAIT) < 0 &&
           errno == EAGAIN) {
        if (send(slow, "P", 1, MSG_NOSIGNAL) < 0)
            break;
        usleep(400000);
    }
    assert_true(clock_now_ns() - begin_ns < 60 * SECOND_NS);
    assert_true(recv(silent, &byte, 1, 0) <= 0);
    assert_int_equal(count_sockets(s.pid), before);
    close(silent);
    close(slow);
    assert_int_equal(server_stop(&s), -EINTR);
    close(s.log);
}

/* All that an honest client said, said again. */
static void test_said_again(void **state)
{
    struct shake_self self = {
        .secret = &test_secret, .protocol = TEST_PROTOCOL, .version = PLUMB_VERSION, .name = "x"};
    uint8_t said[SHAKE_HELLO_BYTES + SHAKE_PROOF_BYTES],
        answer[SHAKE_HELLO_BYTES + SHAKE_ANSWER_BYTES];
    struct shake shake;
    struct server s;

    (void)state;
    need_library();
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
    assert_non_null(strstr(server_log(&s), "does not know this session's secret"));
}

static void test_idle(void **state)
{
    struct server s;
    struct channel *c = NULL;
    char error[MEET_ERROR_BYTES];

    (void)state;
    need_library();
    for (int i = 0; !c && i < 20; i++) { /* on a busy machine this process may be late itself */
        server_start(&s, (struct meet_listen){.idle_ns = SECOND_NS});
        if (knock(&s, 0, &c, error))
            assert_int_equal(server_end(&s), -ETIMEDOUT);
    }
    assert_non_null(c);
    usleep(1300000); /* a run that is on is not idle */
    echo(c);
    int fd = stranger(s.port); /* a stranger is nobody */
    leave_politely(c);
    assert_int_equal(server_end(&s), -ETIMEDOUT);
    assert_non_null(strstr(server_log(&s), "error: nobody came for 1 s"));
    close(fd);
}

static void test_port_in_use(void **state)
{
    struct server s;
    struct meet_listen l = {.secret = &test_secret, .protocol = TEST_PROTOCOL};
    char error[MEET_ERROR_BYTES], expect[128];

    (void)state;
    need_library();
    server_start(&s, (struct meet_listen){0});
    l.port = s.port;
    assert_int_equal(meet_serve(&l, be_told, NULL, error, sizeof(error)), -EADDRINUSE);
    snprintf(expect, sizeof(expect), "cannot listen on 'localhost' port %u: the port is taken",
             s.port);
    assert_memory_equal(error, expect, strlen(expect));
    l.address = "192.0.2.1"; /* documentation's */
    assert_int_equal(meet_serve(&l, be_told, NULL, error, sizeof(error)), -EADDRNOTAVAIL);
    l.address = "no such name.";
    assert_int_equal(meet_serve(&l, be_told, NULL, error, sizeof(error)), -ENOENT);
    assert_int_equal(server_stop(&s), -EINTR);
    close(s.log);
}

/* The run dies: its peer hears of it at once, the next one is served. */
static void test_a_run_that_crashes(void **state)
{
    struct server s;
    struct channel *c;
    uint8_t data[8];
    uint16_t type;
    size_t len;

    (void)state;
    need_library();
    server_start(&s, (struct meet_listen){.runs = 2});
    c = enter(&s);
    assert_int_equal(channel_send(c, CRASH, NULL, 0), 0);
    assert_int_equal(channel_recv(c, &type, data, sizeof(data), &len, 60 * SECOND_NS), -ECONNRESET);
    assert_non_null(strstr(channel_error(c), "127.0.0.1 (127.0.0.1 port"));
    channel_close(c);
    c = enter(&s);
    echo(c);
    leave_politely(c);
    assert_int_equal(server_end(&s), 0);
    assert_non_null(strstr(server_log(&s), "was killed by signal 9 (Killed)"));
}

/* A run that hangs when its peer has long gone is ended. */
static void test_a_run_that_hangs(void **state)
{
    static struct serve s;
    int fds[2];

    (void)state;
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

/* A run has its own connection and nothing else of the server's. */
static void test_what_a_run_inherits(void **state)
{
    struct server s;
    struct {
        unsigned sockets;
        pid_t pid;
    } facts;
    int fds[10];

    (void)state;
    need_library();
    server_start(&s, (struct meet_listen){0});
    for (int i = 0; i < 10; i++)
        fds[i] = stranger(s.port);
    struct channel *c = enter(&s);
    ask(c, COUNT_SOCKETS, &facts, sizeof(facts));
    /* What this program had open before is not the server's to close. */
    assert_int_equal(facts.sockets, count_sockets(getpid()) - 10);
    leave_politely(c);
    for (int i = 0; i < 10; i++)
        close(fds[i]);
    assert_int_equal(server_stop(&s), -EINTR);
    close(s.log);
}

/* The server ends by a signal, or is killed: its run ends, too. */
static void test_no_orphan(void **state)
{
    (void)state;
    need_library();
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
        usleep(100000);
        if (killed) {
            kill(s.pid, SIGKILL);
            assert_int_equal(waitpid(s.pid, NULL, 0), s.pid);
        } else {
            assert_int_equal(server_stop(&s), -EINTR);
        }
        assert_true(is_gone(facts.pid)); /* though it hangs */
        channel_close(c);
        close(s.log);
    }
}

static uint16_t free_port(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(a);
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&a, len), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
    close(fd);
    return ntohs(a.sin_port);
}

static void test_nobody_listens(void **state)
{
    struct server s = {.port = free_port()}, late;
    char error[MEET_ERROR_BYTES];
    struct channel *c = NULL;

    (void)state;
    need_library();
    assert_int_equal(knock(&s, 0, &c, error), -ECONNREFUSED);
    assert_non_null(strstr(error, "nobody listens on '127.0.0.1' (127.0.0.1 port "));
    uint64_t begin_ns = clock_now_ns();
    assert_int_equal(knock(&s, SECOND_NS / 2, &c, error), -ECONNREFUSED);
    assert_true(clock_now_ns() - begin_ns >= SECOND_NS / 4);
    /* One that starts first waits for the other. */
    pid_t first = test_fork();
    if (first == 0)
        _exit(knock(&s, 30 * SECOND_NS, &c, error) ? 1 : 0);
    usleep(300000);
    server_start(&late, (struct meet_listen){.port = s.port, .runs = 1});
    int status;
    assert_int_equal(waitpid(first, &status, 0), first);
    assert_int_equal(status, 0);
    assert_int_equal(server_end(&late), 0);
    close(late.log);
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

static void test_no_plumbline(void **state)
{
    static const struct {
        const char *says;
        bool closes;
        int err;
        const char *error;
    } others[] = {
        {"SSH-2.0-OpenSSH_9.2p1\r\n", false, -EPROTO, "does not speak as plumbline does"},
        {"", true, -ECONNRESET, "ended the connection without a word"},
        {"PLMB\1\1\0", true, -EPROTO, "ended the connection in the middle of the handshake"},
        {"", false, -ETIMEDOUT, "accepts connections but does not answer"},
    };

    (void)state;
    need_library();
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        struct server s = {0};
        char error[MEET_ERROR_BYTES];
        struct channel *c = NULL;
        pid_t pid = listen_as(others[i].says, others[i].closes, &s.port);
        assert_int_equal(knock(&s, 0, &c, error), others[i].err);
        if (!strstr(error, others[i].error))
            fail_msg("'%s' instead of '%s'", error, others[i].error);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
}

static void test_a_host_that_is_not(void **state)
{
    struct meet_connect m = {
        .host = "no such name.", .port = 1, .secret = &test_secret, .protocol = 1};
    char error[MEET_ERROR_BYTES];
    struct channel *c = NULL;

    (void)state;
    need_library();
    assert_int_equal(meet_connect(&m, &c, error, sizeof(error)), -ENOENT);
    assert_memory_equal(error, "cannot find the host 'no such name.'", 36);
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

static void test_secrets(void **state)
{
    struct meet_secret a, b;
    char error[MEET_ERROR_BYTES], text[66], other[66], line[1101];

    (void)state;
    need_library();
    assert_int_equal(load("sixteen letters!\nmore\n", 0600, &a, error), 0);
    assert_int_equal(load("sixteen letters!", 0400, &b, error), 0);
    assert_memory_equal(&a, &b, sizeof(a));
    assert_int_equal(load("sixteen letters!\r\n", 0600, &b, error), 0);
    assert_memory_equal(&a, &b, sizeof(a));
    assert_int_equal(load("sixteen letters?", 0600, &b, error), 0);
    assert_memory_not_equal(&a, &b, sizeof(a));
    assert_int_equal(load("fifteen letters\nmore", 0600, &a, error), -EINVAL);
    assert_non_null(strstr(error, "too short for a secret: 16 characters at least"));
    assert_int_equal(load("", 0600, &a, error), -EINVAL);
    memset(line, 'x', sizeof(line) - 1);
    line[sizeof(line) - 1] = 0;
    assert_int_equal(load(line, 0600, &a, error), -EMSGSIZE);
    for (mode_t bit = 1; bit < 0100; bit <<= 1) {
        assert_int_equal(load("sixteen letters!", 0600 | bit, &a, error), -EACCES);
        assert_non_null(strstr(error, "is open to others: chmod 600 '/tmp/plumb-secret-"));
    }
    assert_int_equal(meet_secret_load("/no/such/file", &a, error, sizeof(error)), -ENOENT);
    assert_int_equal(meet_secret_make(text, sizeof(text)), 0);
    assert_int_equal(strspn(text, "0123456789abcdef"), 64);
    assert_string_equal(text + 64, "\n");
    assert_int_equal(meet_secret_make(other, sizeof(other)), 0);
    assert_string_not_equal(text, other);
    assert_int_equal(meet_secret_make(text, 65), -EMSGSIZE);
    assert_int_equal(load(other, 0600, &a, error), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_many_runs, begin),
        cmocka_unit_test_setup(test_who_is_who, begin),
        cmocka_unit_test_setup(test_loopback_alone, begin),
        cmocka_unit_test_setup(test_turned_away, begin),
        cmocka_unit_test_setup(test_busy, begin),
        cmocka_unit_test_setup(test_ten_thousand_strangers, begin),
        cmocka_unit_test_setup(test_a_place_has_a_deadline, begin),
        cmocka_unit_test_setup(test_said_again, begin),
        cmocka_unit_test_setup(test_idle, begin),
        cmocka_unit_test_setup(test_port_in_use, begin),
        cmocka_unit_test_setup(test_a_run_that_crashes, begin),
        cmocka_unit_test_setup(test_a_run_that_hangs, begin),
        cmocka_unit_test_setup(test_what_a_run_inherits, begin),
        cmocka_unit_test_setup(test_no_orphan, begin),
        cmocka_unit_test_setup(test_nobody_listens, begin),
        cmocka_unit_test_setup(test_no_plumbline, begin),
        cmocka_unit_test_setup(test_a_host_that_is_not, begin),
        cmocka_unit_test_setup(test_secrets, begin),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
