/* SPDX-License-Identifier: Apache-2.0 */
/* The wire over TCP: strangers get nothing and disturb nothing; addresses, ports, options and what is told of the path. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "core/group/channel.h"
#include "core/wire/tcp/tcp.h"
#include "tests/unit/unit.h"
#include "wire_fixture.h"

#define STRANGERS 200

static struct wire_party *party; /* join() knows its wire alone */

static int remember(struct wire_party *p)
{
    party = p;
    return 0;
}

static int strangers[STRANGERS];

/* Some say nothing, some what rank 1 would say but for the token, some half of it, some go at once. */
static int send_strangers(const struct wire *f)
{
    const struct tcp_rail *rail = &tcp_of(f)->rails[0];
    struct tcp_hello hello = {.token = "let me in, I am rank 1"};

    bytes_put32(hello.from, 1);
    for (unsigned i = 0; i < STRANGERS; i++) {
        int fd = strangers[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0 || connect(fd, (const struct sockaddr *)&rail->address, rail->address_bytes))
            return -errno;
        if (i % 4 == 1)
            (void)!write(fd, &hello, sizeof(hello));
        else if (i % 4 == 2)
            (void)!write(fd, &hello, sizeof(hello) / 2);
        else if (i % 4 == 3)
            shutdown(fd, SHUT_WR);
    }
    return 0;
}

/* Strangers are there before anybody else is. */
static int join_among_strangers(struct wire *f, const void *const *addresses, const size_t *lens)
{
    int err = party->rank ? 0 : send_strangers(f);

    err = err ? err : wire_barrier(party);
    return err ? err : wire_tcp.join(f, addresses, lens);
}

static int look_at_strangers(struct wire_party *p)
{
    int err = wire_all_to_all(p);

    for (unsigned i = 0; i < STRANGERS && !p->rank && !err; i++) {
        char byte;
        ssize_t n = recv(strangers[i], &byte, 1, 0); /* they were shown out */
        if (n > 0)
            err = wire_fault(p, -EPROTO, "stranger %u was given an answer", i);
        close(strangers[i]);
    }
    return err;
}

TEST(strangers_get_nothing)
{
    struct wire_traffic t = {
        .messages = 20, .depth = 4, .most = 65536, .seed = 11, .wait_ns = 100000000};
    struct wire_ops ops = wire_tcp;
    struct wire_fixture x = {.ops = &ops,
                             .size = 2,
                             .options = wire_options(2),
                             .prepare = remember,
                             .run = look_at_strangers,
                             .arg = &t};

    ops.join = join_among_strangers;
    assert_string_equal(wire_fixture_fault(&x), "");
}

/* Rank 1 was told where a stranger listens, who answers with something else. */
static int address_of_a_stranger(struct wire_link *l, void *address, size_t *len)
{
    int err = wire_tcp.address(l, address, len);

    if (!world_rank(l->worker->wire->world)) {
        socklen_t bytes = sizeof(struct sockaddr_storage);
        strangers[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        err = bind(strangers[0], (struct sockaddr *)&any, sizeof(any)) || listen(strangers[0], 8) ||
                      getsockname(strangers[0], (struct sockaddr *)address, &bytes)
                  ? -errno
                  : err;
    }
    return err;
}

static int answer_as_a_stranger(struct wire *f, const void *const *addresses, const size_t *lens)
{
    static const char answer[CHANNEL_TOKEN_BYTES] = "yes, it is me, rank 0";

    if (party->rank)
        return wire_tcp.join(f, addresses, lens);
    int fd = accept(strangers[0], NULL, NULL);
    (void)!write(fd, answer, sizeof(answer));
    tcp_of(f)->wait_ns = 300000000; /* nobody comes */
    return wire_tcp.join(f, addresses, lens);
}

TEST(a_stranger_is_not_taken_for_a_rank)
{
    struct wire_ops ops = wire_tcp;
    struct wire_fixture x = {
        .ops = &ops, .size = 2, .options = wire_options(2), .prepare = remember};
    struct wire_outcome outcomes[2];

    ops.address = address_of_a_stranger;
    ops.join = answer_as_a_stranger;
    wire_fixture_run(&x, outcomes);
    assert_int_equal(outcomes[1].rc, -EPROTO);
    assert_non_null(strstr(outcomes[1].text, "rank 0 ("));
    assert_int_equal(outcomes[0].rc, -ETIMEDOUT);
    assert_non_null(strstr(outcomes[0].text, "rank 1 ("));
    close(strangers[0]);
}

/* What is told of the path, after some traffic. */
static int tell(struct wire_party *p)
{
    struct wire_fact facts[WIRE_FACTS_MAX];
    struct nic_rail rail;
    int err = wire_all_to_all(p);

    if (err)
        return err;
    size_t n = p->wire->ops->facts(p->wire, facts);
    if (n < 3 || strcmp(facts[0].metric, "retransmits") != 0)
        return wire_fault(p, -EINVAL, "%zu facts", n);
    if (p->wire->ops->rail(p->wire, &rail) || strcmp(rail.name, "lo") != 0 ||
        rail.protocol != NIC_TCP || !rail.segment_bytes || !rail.mtu_bytes)
        return wire_fault(p, -EINVAL, "rail '%s' (%u), MTU %u, segment %u: %s", rail.name,
                          rail.protocol, rail.mtu_bytes, rail.segment_bytes, rail.text);
    for (unsigned i = 0; i < p->wire->n_links; i++)
        if (strcmp(p->wire->links[i].device, "lo") != 0)
            return wire_fault(p, -EINVAL, "device '%s'", p->wire->links[i].device);
    return 0;
}

TEST(the_path_is_told_whatever_names_it)
{
    static const char *const devices[] = {NULL, "lo", "127.0.0.7"};

    for (size_t i = 0; i < sizeof(devices) / sizeof(*devices); i++) {
        struct wire_traffic t = {
            .messages = 5, .depth = 2, .most = 65536, .seed = 13, .wait_ns = 100000000};
        struct wire_fixture x = {
            .ops = &wire_tcp, .size = 3, .options = wire_options(3), .run = tell, .arg = &t};
        x.options.device = devices[i];
        assert_string_equal(wire_fixture_fault(&x), "");
    }
}

TEST(what_cannot_be_is_refused)
{
    static const struct {
        const char *device, *congestion, *text;
        int err;
    } cases[] = {{"nosuch0", "", "'nosuch0'", -EINVAL},
                 {"nosuch0+nosuch0", "", "'nosuch0'", -EINVAL}, /* one each */
                 {"10.255.255.77", "", "10.255.255.77", -EINVAL},
                 {"", "nosuch", "'nosuch'", -EOPNOTSUPP}};
    struct wire_outcome outcomes[2];

    for (size_t k = 0; k < sizeof(cases) / sizeof(*cases); k++) {
        struct wire_fixture x = {.ops = &wire_tcp, .size = 2, .options = wire_options(2)};
        x.options.device = cases[k].device;
        strcpy(x.options.tcp.congestion, cases[k].congestion);
        wire_fixture_run(&x, outcomes);
        for (unsigned i = 0; i < 2; i++) {
            assert_int_equal(outcomes[i].rc, cases[k].err);
            assert_non_null(strstr(outcomes[i].text, cases[k].text));
        }
    }
}

/* Each rank of a network listens on a port of its own. */
static int address_with_port(struct wire_link *l, void *address, size_t *len)
{
    struct wire *f = l->worker->wire;
    int err = wire_tcp.address(l, address, len);
    const struct sockaddr_in *a = address;

    if (world_rank(f->world) > l->peer) /* it connects */
        return err;
    if (!err && ntohs(a->sin_port) != f->options.tcp.data_port + world_rank(f->world))
        err = wire_fail(f, -EINVAL, "port %u", ntohs(a->sin_port));
    return err;
}

TEST(ports_count_from_the_first)
{
    struct wire_ops ops = wire_tcp;
    struct wire_fixture x = {.ops = &ops, .size = 4, .options = wire_options(4)};
    struct wire_outcome outcomes[4];
    int err = -EADDRINUSE;

    ops.address = address_with_port;
    x.options.tcp.data_port = 21000 + (unsigned)getpid() % 8000;
    for (int tries = 0; tries < 10 && err == -EADDRINUSE; tries++, x.options.tcp.data_port += 10)
        err = wire_fixture_run(&x, outcomes);
    assert_string_equal(wire_first_fault(outcomes, 4), "");
}
