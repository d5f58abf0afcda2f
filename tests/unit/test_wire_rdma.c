/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between ranks over RDMA: what arrives, of any size, and what is told of it. Without a device the tests are skipped. */
#include "core/clock.h"
#include "core/rng.h"
#include "rdma_scene.h"
#include "tests/unit/unit.h"

#define EDGE 64 /* bytes before and behind a message that must stay as they are */
enum { RANKS_MAX = 4 };
#define WAIT_NS 60000000000u

/* ---- many messages of any size, both ways between all ranks at once */

enum { MESSAGES = 150, AREA = 1 << 20, LARGE = 60000 };

static uint64_t message_seed(unsigned from, unsigned to, unsigned number)
{
    return 1 + from * 1000003u + to * 10007u + number;
}

/* Both ends know it. Mostly small, around what goes inline. */
static size_t size_of(unsigned from, unsigned to, unsigned number)
{
    struct rng rng;
    rng_seed(&rng, message_seed(from, to, number));
    uint64_t kind = rng_u64(&rng) % 4, any = rng_u64(&rng);

    return kind == 0 ? 1 + any % 8 : kind == 1 ? 212 + any % 16 : 1 + any % LARGE;
}

struct flow {
    struct wire_link *l;
    struct rng rng;
    unsigned sent, received, checked; /* messages posted, and those compared */
    uint64_t expected_out, expected_in;
    uint64_t ends[WIRE_POSTS]; /* of l->in.through, for those under way */
};

/* A link's area: slots for WIRE_POSTS to come in, as many to go out. */
static uint8_t *slot_of(struct side *s, const struct flow *w, bool out, unsigned number)
{
    size_t slot = LARGE + 2 * EDGE, link = (size_t)(w->l - s->f->links);

    return s->at + (2 * link + out) * WIRE_POSTS * slot + number % WIRE_POSTS * slot + EDGE;
}

static bool edges_are_whole(const uint8_t *at, size_t bytes)
{
    for (size_t i = 1; i <= EDGE; i++)
        if (at[-(ptrdiff_t)i] != 0xee || at[bytes + i - 1] != 0xee)
            return false;
    return true;
}

static int check_arrived(struct side *s, struct flow *w)
{
    unsigned peer = w->l->peer;

    while (w->checked < w->received && w->l->in.through >= w->ends[w->checked % WIRE_POSTS]) {
        size_t bytes = size_of(peer, s->rank, w->checked);
        uint8_t *at = slot_of(s, w, false, w->checked);
        if (pattern_check(at, bytes, message_seed(peer, s->rank, w->checked)) != PATTERN_RIGHT ||
            !edges_are_whole(at, bytes))
            return wire_fault(s->party, -EBADMSG, "message %u of %zu bytes from rank %u is wrong",
                              w->checked, bytes, peer);
        memset(at, 0xee, bytes);
        w->checked++;
    }
    return 0;
}

/* Posts some of what there is; slots of messages that are not compared yet are not used again. */
static int post_some(struct side *s, struct flow *w)
{
    unsigned peer = w->l->peer, n = (unsigned)(rng_u64(&w->rng) % 6), m = n / 2;

    while (n-- && w->received < MESSAGES && w->received - w->checked < WIRE_POSTS) {
        size_t bytes = size_of(peer, s->rank, w->received);
        int err = wire_receive(w->l, slot_of(s, w, false, w->received), bytes);
        if (err == -EAGAIN)
            break;
        MUST(err);
        w->expected_in += bytes;
        w->ends[w->received++ % WIRE_POSTS] = w->expected_in;
    }
    while (m-- && w->sent < MESSAGES && w->sent - w->l->out.messages < WIRE_POSTS) {
        size_t bytes = size_of(s->rank, peer, w->sent);
        uint8_t *at = slot_of(s, w, true, w->sent);
        pattern_fill(at, bytes, message_seed(s->rank, peer, w->sent));
        MUST(wire_send(w->l, at, bytes));
        w->expected_out += bytes;
        w->sent++;
    }
    return 0;
}

static bool is_through(const struct flow *w)
{
    return w->checked == MESSAGES && w->sent == MESSAGES && w->l->out.through == w->expected_out;
}

static int mingle(struct side *s)
{
    struct flow flows[RANKS_MAX] = {0};
    uint64_t end_ns = clock_now_ns() + WAIT_NS;
    unsigned through = 0;

    for (unsigned i = 0; i < s->f->n_links; i++) {
        flows[i].l = &s->f->links[i];
        rng_seed(&flows[i].rng, s->rank * 100u + i);
    }
    while (through < s->f->n_links && clock_now_ns() < end_ns) {
        through = 0;
        for (unsigned i = 0; i < s->f->n_links; i++) {
            if (post_some(s, &flows[i]) || check_arrived(s, &flows[i]))
                return -1;
            through += is_through(&flows[i]);
        }
        MUST(wire_progress(s->f->workers, WIRE_BOTH, through < s->f->n_links ? 2000000 : 0));
    }
    for (unsigned i = 0; i < s->f->n_links; i++) {
        const struct wire_link *l = &s->f->links[i];
        SURE(is_through(&flows[i]) && l->in.through == flows[i].expected_in);
        SURE(l->in.messages == MESSAGES && l->out.messages == MESSAGES);
        SURE(l->out.posted == l->out.through && l->in.posted == l->in.through);
    }
    return 0;
}

TEST(test_random_messages)
{
    size_t area = 2 * WIRE_POSTS * (LARGE + 2 * EDGE);

    need_port();
    for (unsigned size = 2; size <= 3; size++) {
        struct scene scene = scene_of(mingle, (size - 1) * area);
        play(size, &scene);
        scene.options.crowded = true;
        play(size, &scene);
    }
}

/* ---- messages of one size each way, compared */

static int pass(struct side *s, size_t bytes)
{
    struct wire_link *l = &s->f->links[0];
    uint64_t before = l->in.through;
    uint8_t *in = s->at + EDGE, *out = s->at + s->bytes / 2;

    memset(s->at, 0xee, bytes + 2 * EDGE);
    pattern_fill(out, bytes, bytes + s->rank);
    MUST(wire_receive(l, in, bytes));
    MUST(wire_send(l, out, bytes));
    if (until(s, &l->in.through, before + bytes) || until(s, &l->out.through, l->out.posted))
        return -1;
    SURE(pattern_check(in, bytes, bytes + !s->rank) == PATTERN_RIGHT && edges_are_whole(in, bytes));
    return 0;
}

static int sizes(struct side *s)
{
    static const size_t all[] = {
        1, 8, 219, 220, 221, 4096, 65537, (8 << 20) - 1, 8 << 20, (8 << 20) + 1, 20 << 20};

    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        if (pass(s, all[i]))
            return -1;
    return 0;
}

TEST(test_sizes_inline_long_and_in_pieces)
{
    struct scene scene = scene_of(sizes, 42 << 20);

    need_port();
    play(2, &scene);
    scene.options.rdma.events = 1;
    play(2, &scene);
}

static int tells(struct side *s)
{
    char text[256];
    struct nic_rail rail;
    struct wire_fact facts[WIRE_FACTS_MAX];

    s->f->ops->describe(s->f, text, sizeof(text));
    SURE(strstr(text, "GID 0") && strstr(text, "MTU 512"));
    SURE(!s->f->ops->rail(s->f, &rail) && rail.mtu_bytes == 512 && rail.line_source[0]);
    SURE(rail.protocol == NIC_ROCE_V2 && !strcmp(rail.name, s->f->links[0].device));
    size_t n = s->f->ops->facts(s->f, facts);
    SURE(n <= WIRE_FACTS_MAX);
    for (size_t i = 0; i < n; i++)
        SURE(facts[i].metric[0] && facts[i].value >= 0);
    return 0;
}

TEST(test_what_it_tells)
{
    need_port();
    struct scene scene = scene_of(tells, 4096);
    scene.options.rdma.mtu = 512;
    scene.options.rdma.gid_index = 0;
    play(2, &scene);
}

/* ---- figures, for people */

/* A join in which rank 1 takes no part is called back, and can be ended. */
#define CALLS 5
static unsigned calls;

static int end_it(void *arg)
{
    (void)arg;
    return ++calls < CALLS ? 0 : -ECANCELED;
}

/* The wire's own table, of which a rank joins otherwise. */
static struct wire_ops alone;
static int (*join)(struct wire *f, const void *const *addresses, const size_t *lens);

static int join_alone(struct wire *f, const void *const *addresses, const size_t *lens)
{
    if (world_rank(f->world)) {
        usleep(2500000);
        return 0;
    }
    int err = join(f, addresses, lens);
    if (err != -ECANCELED || calls != CALLS) {
        char error[sizeof(f->error)];
        snprintf(error, sizeof(error), "%s", f->error);
        atomic_store(&f->failed, 0);
        return wire_fail(f, -EINVAL, "join said %d (%s) after %u calls", err, error, calls);
    }
    return 0;
}

static int open_alone(struct wire *f)
{
    int err = wire_rdma.open(f);

    alone = *f->ops;
    join = alone.join;
    alone.join = join_alone;
    f->ops = &alone;
    return err;
}

TEST(test_a_join_that_is_ended)
{
    struct wire_ops opens = wire_rdma;
    struct scene scene = scene_of(NULL, 4096);
    struct wire_fixture x = {.ops = &opens, .size = 2, .options = scene.options};

    need_port();
    opens.open = open_alone;
    x.options.attend = end_it;
    assert_string_equal(wire_fixture_fault(&x), "");
}
