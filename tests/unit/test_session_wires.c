/* SPDX-License-Identifier: Apache-2.0 */
/* What nodes answer of the links that a library's bytes took. */
#include <sys/mman.h>

#include "core/session/session_state.h"
#include "tests/unit/session_fixture.h"
#include "tests/unit/unit.h"
#include "tests/unit/wires.h"

/* What rank 1 says instead of what it found. */
static struct collective_proof *answer;
static bool *answers;
static const struct channel_ops *honest;

static int send_answer(struct channel *c, uint16_t type, const void *data, size_t len,
                       uint64_t wait_ns)
{
    struct {
        struct talk_head head;
        struct collective_proof proof;
    } reply;

    if (type != (COLLECTIVE_ASK_PROVE | TALK_REPLY) || len != sizeof(reply) || !*answers)
        return honest->send(c, type, data, len, wait_ns);
    memcpy(&reply, data, len);
    reply.proof = *answer;
    return honest->send(c, type, &reply, len, wait_ns);
}

static int serve(struct world *w, void *arg)
{
    static struct channel_ops ops;
    struct channel *c = world_channel(w, 0);

    honest = c->ops;
    ops = *honest;
    ops.send = send_answer;
    c->ops = &ops;
    return session_serve(w, arg);
}

/* Two ranks on two nodes, as far as rank 0 knows. */
static void start_two(struct fixture *f)
{
    answer = mmap(NULL, sizeof(*answer) + sizeof(*answers), PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(answer, MAP_FAILED);
    answers = (bool *)(answer + 1);
    fork_ranks(f, 2, serve, fake_find);
    f->w->members[1].node = 1;
    strcpy(f->w->members[1].host, "node2");
    f->w->nodes = 2;
    open_session(f, fake_find);
    strcpy(f->point.backend, "fake-library");
}

static void stop_two(struct fixture *f)
{
    stop(f);
    munmap(answer, sizeof(*answer) + sizeof(*answers));
}

static const struct session_node *node(const struct fixture *f, unsigned i)
{
    const struct session_node *nodes = NULL;

    assert_int_equal(session_nodes(f->s, &nodes), 2);
    return &nodes[i];
}

/* What a node must have moved is what was run since the mark, and the operation that was checked. */
TEST(test_answers)
{
    struct fixture f;

    start_two(&f);
    OK(whole(&f, 2));
    assert_non_null(strstr(node(&f, 0)->wire.why, "131 kB"));
    *answers = true;
    *answer = (struct collective_proof){.wire = wire("eth0", 25)};
    memset(answer->wire.rails[0].text, 'x', sizeof(answer->wire.rails[0].text));
    OK(whole(&f, 2));
    assert_int_equal(node(&f, 0)->wire.n, 0);
    assert_int_equal(node(&f, 1)->wire.n, 1);
    assert_string_equal(node(&f, 1)->wire.rails[0].name, "eth0");
    assert_true(node(&f, 1)->wire.rails[0].line_gbps == 25);
    assert_int_equal(strlen(node(&f, 1)->wire.rails[0].text),
                     sizeof(answer->wire.rails[0].text) - 1);
    *answers = false;
    f.point.count = 64; /* less than what the ranks tell each other */
    OK(whole(&f, 2));
    for (unsigned i = 0; i < 2; i++)
        assert_non_null(strstr(node(&f, i)->wire.why, "256 bytes"));
    strcpy(f.point.backend, "fake"); /* which tells itself what it takes */
    OK(whole(&f, 2));
    assert_string_equal(node(&f, 0)->wire.why, "");
    stop_two(&f);
}

/* RDMA takes two of a kind. */
TEST(test_fallen)
{
    static const struct {
        enum collective_fallen kind[3];
        bool wrong[3];
    } all[] = {
        {{FALLEN_INFINIBAND, FALLEN_NOT, FALLEN_NOT}, {false, false, false}},
        {{FALLEN_INFINIBAND, FALLEN_ETHERNET, FALLEN_NOT}, {false, false, false}},
        {{FALLEN_INFINIBAND, FALLEN_NOT, FALLEN_INFINIBAND}, {true, false, true}},
        {{FALLEN_ETHERNET, FALLEN_INFINIBAND, FALLEN_ETHERNET}, {true, false, true}},
    };

    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        struct session *s = calloc(1, sizeof(*s));
        struct session_node nodes[3] = {0};
        assert_non_null(s);
        s->nodes = nodes;
        s->n_nodes = 3;
        for (unsigned k = 0; k < 3; k++) {
            nodes[k].wire.fallen = all[i].kind[k];
            nodes[k].proof.verdict = PATH_UNKNOWN;
        }
        session_judge_fallen(s);
        for (unsigned k = 0; k < 3; k++)
            assert_int_equal(nodes[k].proof.verdict == PATH_ELSEWHERE, all[i].wrong[k]);
        free(s);
    }
}

static void refused(struct fixture *f)
{
    assert_int_equal(whole(f, 2), -EPROTO);
    assert_said(f, "rank 1 (node2)");
    *answer = (struct collective_proof){.wire = wire("eth0", 25)};
}

TEST(test_damaged)
{
    struct fixture f;

    start_two(&f);
    *answers = true;
    *answer = (struct collective_proof){.wire = wire("eth0", 25)};
    struct nic_rail *r = answer->wire.rails;
#define DAMAGED(change)                                                                            \
    change;                                                                                        \
    refused(&f)
    DAMAGED(answer->wire.n = NIC_RAILS_MAX + 1);
    DAMAGED(answer->wire.n = UINT32_MAX);
    DAMAGED(memset(&answer->proof.verdict, 0xff, sizeof(answer->proof.verdict)));
    DAMAGED(answer->proof.verdict = PATH_UNKNOWN + 1);
    DAMAGED(answer->wire.fallen = FALLEN_KINDS);
    DAMAGED(r->line_gbps = NAN);
    DAMAGED(r->line_gbps = -1);
    DAMAGED(r->line_gbps = INFINITY);
    DAMAGED(r->mtu_bytes = UINT32_MAX - 20);
    DAMAGED(r->segment_bytes = UINT32_MAX);
    DAMAGED(r->pcie.gt_s = NAN);
    DAMAGED(r->pcie.width = 1 << 30);
    DAMAGED(r->pcie.payload_bytes = UINT32_MAX);
    OK(whole(&f, 2));
    stop_two(&f);
}

/* And what no leader asks. */
TEST(test_bad_claims)
{
    static const double cannot_be[] = {NAN, INFINITY};
    struct talk_head head;
    struct fixture f;
    uint16_t type;
    size_t len;
    char in[sizeof(head) + sizeof(struct collective_proof)];

    start_two(&f);
    OK(begin(&f, 2));
    for (int i = 0; i < 4; i++) {
        struct collective_claims claims = {0};
        *(i < 2 ? &claims.least_out_bytes : &claims.least_in_bytes) = cannot_be[i % 2];
        struct channel *c = world_channel(f.w, 1);
        assert_int_equal(channel_send(c, COLLECTIVE_ASK_PROVE, &claims, sizeof(claims)), 0);
        assert_int_equal(channel_recv(c, &type, in, sizeof(in), &len, 20000000000u), 0);
        memcpy(&head, in, sizeof(head));
        assert_int_equal(head.err, -EPROTO);
    }
    stop_two(&f);
}
