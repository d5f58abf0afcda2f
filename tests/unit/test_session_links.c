/* SPDX-License-Identifier: Apache-2.0 */
/* What is said at once, and between whom the network is dead. */
/* waits: for signs of life that do not come */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/session_fixture.h"

/* What the function writes to stderr. */
static void hear_stderr(void (*act)(struct fixture *f), struct fixture *f, char *text, size_t len)
{
    FILE *file = tmpfile();
    int before = dup(STDERR_FILENO);

    fflush(stderr);
    dup2(fileno(file), STDERR_FILENO);
    act(f);
    dup2(before, STDERR_FILENO);
    close(before);
    rewind(file);
    text[fread(text, 1, len - 1, file)] = 0;
    fclose(file);
}

static void kill_rank(struct fixture *f, unsigned rank)
{
    kill(channel_child(world_channel(f->w, rank)), SIGKILL);
    usleep(1500000);
}

static void kill_two(struct fixture *f)
{
    kill_rank(f, 2);
    kill_rank(f, 1);
}

/* The launcher may be about to kill rank 0 as well; and it kills the others for the first one's sake. */
static void said_at_once(struct fixture *f)
{
    char said[512], name[WORLD_NAME_MAX + 32], wanted[512];

    usleep(700000); /* from its next turn on the thread looks */
    hear_stderr(kill_two, f, said, sizeof(said));
    snprintf(wanted, sizeof(wanted), "%s is gone: it was killed, or has ended\n",
             world_name(f->w, 2, name, sizeof(name)));
    need(f, !strcmp(said, wanted), said);
    session_close(f->s);
}

static void test_said_at_once(void **state)
{
    (void)state;
    in_child(3, false, said_at_once);
}

static void let_go(struct fixture *f)
{
    session_close(f->s);
    world_close(f->w);
}

/* Those that end because they may are not said to be lost. */
static void said_nothing(struct fixture *f)
{
    char said[512];

    usleep(700000);
    hear_stderr(let_go, f, said, sizeof(said));
    if (*said)
        fail_msg("%s", said);
}

static void test_said_nothing(void **state)
{
    (void)state;
    in_child(3, false, said_nothing);
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

/* All have come to the operation, and it does not end. */
static void be_stuck(struct fixture *f, const char *why)
{
    fake->fault = FAKE_STILL;
    fake->fault_rank = 2;
    fake->fault_run = 1;
    need(f, !begin(f, 4), "open");
    need(f, run(f, 3) != 0, "a run that does not end");
    need(f, strstr(session_error(f->s), "each rank has come to it and is alive") != NULL, "alive");
    const char *at = strstr(session_error(f->s), "on the network");
    need(f, at && !strcmp(at + strlen("on the network"), why), "and why");
    need(f, session_broken(f->s), "nothing goes by the channels any more");
    session_close(f->s);
}

static void on_one_host(struct fixture *f) /* nothing to try */
{
    be_stuck(f, "");
}

static void on_many_hosts(struct fixture *f)
{
    make_hosts(f->w);
    be_stuck(f, ": TCP connections can be made between all of their hosts");
}

/* Two of one host, of which one is asked; the other one is cut off. */
static void on_a_shared_host(struct fixture *f)
{
    make_hosts(f->w);
    f->w->members[3].node = 1;
    cut_off(f->w, 3);
    be_stuck(f, ": TCP connections can be made between all of their hosts");
}

static void with_one_cut_off(struct fixture *f)
{
    make_hosts(f->w);
    cut_off(f->w, 2);
    f->w->members[3].node = 1;
    be_stuck(f, ": no TCP connection can be made between rank 1 (host1) and rank 2 (host2)");
}

static void test_stuck_on_one_host(void **state)
{
    (void)state;
    in_child(4, false, on_one_host);
}

static void test_stuck_on_many_hosts(void **state)
{
    (void)state;
    in_child(4, false, on_many_hosts);
}

static void test_stuck_on_a_shared_host(void **state)
{
    (void)state;
    in_child(4, false, on_a_shared_host);
}

static void test_stuck_with_one_cut_off(void **state)
{
    (void)state;
    in_child(4, false, with_one_cut_off);
}

/* With a name, or a pattern of them: these tests alone. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_said_at_once),
        cmocka_unit_test(test_said_nothing),
        cmocka_unit_test(test_stuck_on_one_host),
        cmocka_unit_test(test_stuck_on_many_hosts),
        cmocka_unit_test(test_stuck_on_a_shared_host),
        cmocka_unit_test(test_stuck_with_one_cut_off),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
