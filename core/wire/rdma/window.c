/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of links with a window: by writes, with immediate data or without, by reads, by sends.
 *
 * What is posted goes to the device in chains of prepared work requests, as many as it may have in
 * flight. The last of a chain is signalled, and one of so many; a completion retires those before
 * it, too. Completions are polled in batches; each batch counts once.
 *
 * Messages in turns (wire_window.turns) are for latency. Own completions are asked for now and then
 * only: an answer is proof enough. Who waits for one
 *
 *   write      looks at the last byte of its buffer, which has the message's number
 *   write-imm  waits for the completion of a receive, with the number as immediate data
 *   send       waits for the completion of a receive
 *   read       waits for its own completion: the message is there and back by itself
 *
 * Where buffers of either end are on a GPU, which the CPU neither looks at nor writes to, writes
 * and sends carry the number as immediate data, and complete a receive, all of them.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/wire/rdma/rdma.h"

#define TURN          0x7fu /* of a message's last byte */
#define UNSIGNALLED   32u   /* of messages in turns */
#define WORD_US       50    /* between two looks for words, which nobody times */
#define CREDITS_BYTES 64    /* a line: threads that count do not share one */
/* at memory, which is much quicker to look at than a completion queue */
#define LOOKS 65536u

/* ---- Shapes ---- */

static unsigned least(uint64_t a, uint64_t b)
{
    return (unsigned)(a < b ? a : b);
}

static unsigned multiple(unsigned n, unsigned of)
{
    return (n + of - 1) / of * of;
}

/* One of how many is signalled: every one of large messages, since each is a reading; of small ones
 * a quarter of those in flight at most. */
static unsigned choose_signal(const struct wire_rdma_options *p, const struct rdma_shape *s)
{
    unsigned most = s->window < 4 ? 1 : s->window / 4, every = p->signal_every;

    if (s->pieces > 1)
        return 1;
    if (every)
        return least(every, s->window ? s->window : 1);
    every = least(65536 / (s->bytes ? s->bytes : 1), most);
    return every ? every : 1;
}

/*
 * Sends on iWARP, where a message that comes before its receive was posted ends the connection:
 * nothing is sent again, as InfiniBand and RoCE would. And a send is complete there as soon as it
 * is on its way, so those in flight are no bound.
 *
 * Each end counts the receives that it has ever posted on a queue, where the other end may read it;
 * the sender reads that before half of them are taken, in the same queue as its messages, and never
 * sends more. The receiver, which may have its hands full, does nothing for it but count; a reading
 * completes like a message, so who sleeps for events is woken.
 */
static bool takes_credits(const struct rdma_queue *q)
{
    return rdma_wire_of(q)->options.rdma.verb == RDMA_SEND && q->rail->protocol == NIC_IWARP &&
           !q->link->window.turns;
}

/* With credits as many as may be waited for before more is posted, even while an eighth of them is
 * not posted again. */
static unsigned choose_receives(const struct rdma_queue *q, unsigned cqes)
{
    const struct rdma_shape *s = &q->shape;
    const struct wire *w = rdma_wire_of(q);
    unsigned posted = s->window / 8 > s->signal_every ? s->window / 8 : s->signal_every;

    if (!rdma_takes_receives(w))
        return 4;
    unsigned n = least(4 * s->window < 16 ? 16 : 4 * s->window, 512);
    unsigned some = takes_credits(q) ? 2 * posted : 2;
    n = n < some ? some : n;
    n = n > cqes && cqes >= some ? cqes : n;
    return w->options.rdma.verb == RDMA_SEND ? multiple(n, s->pieces) : n;
}

static int choose_inline(struct rdma_queue *q)
{
    struct wire *w = rdma_wire_of(q);
    struct rdma_shape *s = &q->shape;
    void *out = q->link->window.out;
    const struct rdma_region *from = out ? rdma_region_of(q, out, s->bytes) : NULL;
    int32_t asked = w->options.rdma.inline_bytes;
    unsigned most = asked < 0 ? RDMA_INLINE_BYTES : (unsigned)asked;

    if (rdma_reads(w) || s->bytes > most)
        return 0;
    if (from && from->device)
        return asked > 0 ? rdma_no_inline(w, from->device) : 0;
    s->inline_bytes = (unsigned)s->bytes;
    return 0;
}

static int choose_shape(struct rdma_queue *q)
{
    struct wire *w = rdma_wire_of(q);
    const struct rdma_rail *rail = q->rail;
    struct rdma_shape *s = &q->shape;
    uint64_t bytes = q->link->window.message_bytes, largest = 1u << 30;
    unsigned queues = q->link->window.turns ? 1 : w->options.links_most;

    largest = least(largest, rail->port_attr.max_msg_sz);
    if (!bytes || !largest || (bytes + largest - 1) / largest > 4096)
        return rdma_fail(w, -EINVAL, "messages of %llu bytes cannot be sent",
                         (unsigned long long)bytes);
    s->bytes = bytes;
    s->pieces = (unsigned)((bytes + largest - 1) / largest);
    s->piece_bytes = s->pieces > 1 ? largest : bytes;
    unsigned sharers = (queues + w->n_rails - 1) / w->n_rails;
    uint64_t under_way = RDMA_IN_FLIGHT / sharers / s->piece_bytes;
    s->window = least(w->options.rdma.depth, under_way < 2 ? 2 : under_way);
    s->signal_every = choose_signal(&w->options.rdma, s);
    s->window -= s->window % s->signal_every;
    s->slots = multiple(s->window, s->pieces > 1 ? s->pieces : s->signal_every);
    s->receives = choose_receives(q, (unsigned)rail->attr.max_cqe / queues);
    if (s->window + s->pieces + 8 > (unsigned)rail->attr.max_qp_wr ||
        s->receives > (unsigned)rail->attr.max_qp_wr)
        return rdma_fail(w, -EINVAL, "depth %u is more than the device's queues hold (%u)",
                         w->options.rdma.depth, (unsigned)rail->attr.max_qp_wr);
    return choose_inline(q);
}

int rdma_window_link(struct wire_link *l)
{
    struct rdma_queue *q = l->state;
    struct rdma_shape *s = &q->shape;
    int err = choose_shape(q);

    q->reads = rdma_reads(l->worker->wire);
    q->turns = l->window.turns;

    if (err)
        return err;
    if (l->window.turns) {
        s->window = s->pieces > 1 ? 2 * s->pieces : 2 * UNSIGNALLED;
        s->signal_every = UNSIGNALLED;
        s->slots = s->pieces;
        s->receives = (s->receives > 16 ? 16 : s->receives) * s->pieces;
    }
    l->ahead = (s->pieces > 1 ? s->window / s->pieces + 1 : s->window) * s->bytes;
    q->initiates = q->reads ? l->window.in : l->window.out;
    return 0;
}

/* ---- Work requests, prepared once in a circle: posting n of them is cutting a chain of n out of
 * it for a moment. ---- */

/* Words take as many receives as a whole message, so that pieces stay in step. */
static unsigned parts_of_word(const struct rdma_queue *q)
{
    return rdma_wire_of(q)->options.rdma.verb == RDMA_SEND ? q->shape.pieces : 1;
}

/* Receives: a piece each of a sent message; a write with immediate data, and a word, bring no data
 * to them. */
static void prepare_receive(struct rdma_queue *q, unsigned i, const struct rdma_region *in)
{
    const struct rdma_shape *s = &q->shape;
    unsigned piece = i % s->pieces;
    bool lands = in && rdma_wire_of(q)->options.rdma.verb == RDMA_SEND;

    if (lands)
        q->sges[i] =
            (struct ibv_sge){.addr = (uintptr_t)q->link->window.in + s->piece_bytes * piece,
                             .length = (uint32_t)rdma_piece_bytes(s, piece),
                             .lkey = in->mr->lkey};
    q->recv[i] = (struct ibv_recv_wr){.wr_id = rdma_wr_id(q, RDMA_RECEIVE),
                                      .next = &q->recv[(i + 1) % s->receives],
                                      .sg_list = lands ? &q->sges[i] : &q->nothing,
                                      .num_sge = lands ? 1 : q->n_nothing};
}

static enum ibv_wr_opcode opcode_of(enum rdma_verb verb, bool with_imm)
{
    switch (verb) {
    case RDMA_READ:
        return IBV_WR_RDMA_READ;
    case RDMA_SEND:
        return with_imm ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND;
    default:
        return with_imm ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
    }
}

static void prepare_send(struct rdma_queue *q, unsigned i, uint32_t key)
{
    const struct wire *w = rdma_wire_of(q);
    const struct rdma_shape *s = &q->shape;
    const struct wire_link *l = q->link;
    struct ibv_sge *sge = &q->sges[s->receives + i];
    bool read = rdma_reads(w);
    bool imm = w->options.rdma.verb == RDMA_WRITE_IMM || l->turns_beside;
    unsigned piece = i % s->pieces;
    uint64_t offset = s->piece_bytes * piece;

    *sge = (struct ibv_sge){.addr = (uintptr_t)(read ? l->window.in : l->window.out) + offset,
                            .length = (uint32_t)rdma_piece_bytes(s, piece),
                            .lkey = key};
    q->send[i] = (struct ibv_send_wr){
        .wr_id = rdma_wr_id(q, RDMA_MESSAGE),
        .next = l->window.turns && i + 1 == s->slots ? NULL : &q->send[(i + 1) % s->slots],
        .sg_list = sge,
        .num_sge = 1,
        .opcode = opcode_of((enum rdma_verb)w->options.rdma.verb, imm && piece + 1 == s->pieces),
        .send_flags = (s->inline_bytes ? IBV_SEND_INLINE : 0u) |
                      (!l->window.turns && (i + 1) % s->signal_every == 0 ? IBV_SEND_SIGNALED : 0u),
        .wr.rdma = {(read ? q->remote.out_at : q->remote.in_at) + offset,
                    read ? q->remote.out_key : q->remote.in_key},
    };
}

static int make_credits(struct rdma_queue *q)
{
    const struct wire_window *window = &q->link->window;
    int err = 0;

    if (!takes_credits(q))
        return 0;
    if (window->in)
        err = rdma_memory_open(q, &q->credits[0], CREDITS_BYTES, IBV_ACCESS_REMOTE_READ);
    if (window->out && !err) /* iWARP fetches by a write of the other end */
        err = rdma_memory_open(q, &q->credits[1], CREDITS_BYTES,
                               IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    q->posts = (_Atomic uint64_t *)(void *)q->credits[0].at;
    q->heard = (_Atomic uint64_t *)(void *)q->credits[1].at;
    return err;
}

static int region(struct rdma_queue *q, const void *at, const struct rdma_region **found)
{
    *found = at ? rdma_region_of(q, at, q->shape.bytes) : NULL;
    return at && !*found
               ? rdma_fail(rdma_wire_of(q), -EINVAL,
                           "connection %u is in memory that was not announced", q->link->index)
               : 0;
}

int rdma_window_post_receives(struct rdma_queue *q, unsigned n)
{
    unsigned slots = q->shape.receives;
    struct ibv_recv_wr *last = &q->recv[(q->recv_head + n - 1) % slots], *next = last->next, *bad;

    last->next = NULL;
    int err = ibv_post_recv(q->qp, &q->recv[q->recv_head % slots], &bad);
    last->next = next;
    q->recv_head = (q->recv_head + n) % slots;
    q->recv_posted += n;
    if (q->posts && !err)
        atomic_store_explicit(q->posts, q->recv_posted, memory_order_release);
    return rdma_refused(q, "receiving", err);
}

int rdma_window_prepare(struct rdma_queue *q)
{
    const struct rdma_shape *s = &q->shape;
    const struct rdma_region *in, *out;
    int err = region(q, q->link->window.in, &in);

    err = err ? err : region(q, q->link->window.out, &out);
    err = err ? err : make_credits(q);
    if (err)
        return err;
    q->recv = xcalloc(s->receives, sizeof(*q->recv));
    q->send = xcalloc(s->slots, sizeof(*q->send));
    q->sges = xcalloc(s->receives + s->slots, sizeof(*q->sges));
    while (q->marks_mask < s->window + s->slots)
        q->marks_mask = 2 * q->marks_mask + 1;
    q->marks = xcalloc(q->marks_mask + 1, sizeof(*q->marks));
    const struct rdma_region *any = in ? in : out;
    if (q->rail->protocol == NIC_IWARP && any) {
        q->nothing = (struct ibv_sge){.addr = any->at, .lkey = any->mr->lkey};
        q->n_nothing = 1;
    }
    for (unsigned i = 0; i < s->receives; i++)
        prepare_receive(q, i, in);
    return 0;
}

int rdma_window_ready(struct rdma_queue *q)
{
    const struct wire_window *window = &q->link->window;
    const struct rdma_region *local;
    int err = region(q, rdma_reads(rdma_wire_of(q)) ? window->in : window->out, &local);

    q->looks = q->turns && window->in && rdma_wire_of(q)->options.rdma.verb == RDMA_WRITE &&
               !q->link->turns_beside;
    for (unsigned i = 0; i < q->shape.slots && local && q->initiates; i++)
        prepare_send(q, i, local->mr->lkey);
    return err;
}

void rdma_window_close(struct rdma_queue *q)
{
    rdma_memory_close(&q->credits[0]);
    rdma_memory_close(&q->credits[1]);
    free(q->send);
    free(q->recv);
    free(q->sges);
    free(q->marks);
}

/* ---- Out ---- */

static uint64_t credits_of(const struct rdma_queue *q)
{
    return !q->heard ? UINT64_MAX : q->granted > q->taken ? q->granted - q->taken : 0;
}

/* Reads what the other end has posted, unless that is under way. */
static int ask_credits(struct rdma_queue *q)
{
    struct ibv_sge word = {
        .addr = (uintptr_t)q->heard, .length = sizeof(*q->heard), .lkey = q->credits[1].mr->lkey};
    struct ibv_send_wr wr = {.wr_id = rdma_wr_id(q, RDMA_CREDITS),
                             .sg_list = &word,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_READ,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {q->remote.out_at, q->remote.out_key}},
                       *bad;

    if (q->asking)
        return 0;
    int err = ibv_post_send(q->qp, &wr, &bad);
    q->asking = !err;
    return rdma_refused(q, "reading credits", err);
}

static inline void mark(struct rdma_queue *q, uint64_t posted)
{
    q->marks[q->signalled++ & q->marks_mask] = posted;
}

static int post_chain(struct rdma_queue *q, unsigned n)
{
    unsigned slots = q->shape.slots, head = (unsigned)(q->posted % slots);
    unsigned every = q->shape.signal_every;
    struct ibv_send_wr *last = &q->send[(head + n - 1) % slots], *next = last->next, *bad;
    unsigned flags = last->send_flags;
    uint64_t end = q->posted + n;

    last->next = NULL;
    last->send_flags |= IBV_SEND_SIGNALED;
    int err = ibv_post_send(q->qp, &q->send[head], &bad);
    last->next = next;
    last->send_flags = flags;
    for (uint64_t at = q->posted / every * every + every; at < end; at += every)
        mark(q, at);
    mark(q, end);
    q->posted = end;
    q->taken += n;
    return err ? rdma_refused(q, "sending", err) : 0;
}

/* What may go of what is wanted. */
static int push(struct rdma_queue *q)
{
    uint64_t credits = credits_of(q), left = q->wanted - q->posted;
    uint64_t n = q->shape.window - (q->posted - q->completed);

    n = n < left ? n : left;
    n = n < credits ? n : credits;
    int err = n ? post_chain(q, (unsigned)n) : 0;
    if (err || !q->heard || credits_of(q) > q->shape.receives / 2 || (!n && !left))
        return err;
    return ask_credits(q);
}

/* One signalled completion: what is through by it. */
static void retire(struct rdma_queue *q)
{
    const struct rdma_shape *s = &q->shape;
    uint64_t to = q->marks[q->heard_of++ & q->marks_mask], n = to - q->completed;
    uint64_t piece = s->pieces > 1 ? q->completed % s->pieces : 0, bytes = n * s->bytes, whole = n;

    q->completed = to;
    if (q->turns && !q->reads)
        return;
    if (q->turns) {
        bytes = s->bytes;
        whole = 1;
    } else if (s->pieces > 1) {
        bytes = rdma_piece_bytes(s, piece);
        whole = piece + 1 == s->pieces;
    }
    (q->reads ? wire_came : wire_went)(q->link, bytes, (unsigned)whole);
}

/* 1: something is through; 0: nothing is. */
static int have_acted(struct wire_worker *k, const struct ibv_wc *wc, int n)
{
    int moved = 0, err = n < 0 ? n : 0;

    for (int i = 0; i < n; i++) {
        if (wc[i].status != IBV_WC_SUCCESS)
            return rdma_bad_completion(k->wire, &wc[i]);
        struct rdma_queue *q = rdma_queue_of(&wc[i]);
        enum rdma_kind kind = rdma_kind_of(&wc[i]);
        if (kind == RDMA_NUDGE)
            continue;
        if (kind == RDMA_CREDITS) {
            uint64_t posted = atomic_load_explicit(q->heard, memory_order_acquire);
            q->asking = false;
            moved |= posted > q->granted;
            q->granted = posted > q->granted ? posted : q->granted;
            continue;
        }
        moved = 1;
        if (kind == RDMA_MESSAGE) {
            retire(q);
        } else if (++q->told == parts_of_word(q)) {
            q->told = 0;
            q->link->words_out++;
        }
    }
    for (int i = 0; i < n && !err; i++) {
        struct rdma_queue *q = rdma_queue_of(&wc[i]);
        if (q->wanted > q->posted)
            err = push(q);
    }
    return err ? err : moved;
}

static int take_acts(struct wire_worker *k)
{
    struct rdma_worker *rw = k->state;
    struct ibv_wc wc[RDMA_POLL_BATCH];

    return have_acted(k, wc, rdma_poll(k, &rw->acts, wc));
}

static int post_turn(struct rdma_queue *q)
{
    unsigned pieces = q->shape.pieces;
    struct ibv_send_wr *last = &q->send[pieces - 1], *bad;
    int err = 0;

    /* A signalled one is through before more is posted than the queue holds; as a rule it was when
     * the answer came. */
    if (q->signalled != q->heard_of) {
        err = take_acts(q->link->worker);
        if (err >= 0)
            err = q->posted - q->completed + pieces > q->shape.window ? -EAGAIN : 0;
    }
    if (err)
        return err;
    bool signal = ++q->unsignalled == UNSIGNALLED || pieces > 1 || q->reads;
    last->imm_data = htonl(q->link->turn_out);
    last->send_flags &= ~(unsigned)IBV_SEND_SIGNALED;
    q->wanted = q->posted += pieces;
    if (signal) {
        last->send_flags |= IBV_SEND_SIGNALED;
        q->unsignalled = 0;
        mark(q, q->posted);
    }
    err = ibv_post_send(q->qp, q->send, &bad);
    return err ? rdma_refused(q, "sending", err) : 0;
}

static int act(struct rdma_queue *q, size_t bytes)
{
    uint64_t n;

    if (q->turns && q->initiates && bytes == q->shape.bytes)
        return post_turn(q);
    n = bytes / q->shape.bytes;
    if (!q->initiates || !n || n * q->shape.bytes != bytes || q->turns)
        return rdma_fail(rdma_wire_of(q), -EINVAL,
                         "%zu bytes are no messages of %llu on connection %u", bytes,
                         (unsigned long long)q->link->window.message_bytes, q->link->index);
    q->wanted += n * q->shape.pieces;
    return push(q);
}

static int window_send(struct wire_link *l, const void *at, size_t bytes)
{
    struct rdma_queue *q = l->state;
    int err = act(q, bytes);

    (void)at;
    if (err)
        return err;
    l->out.posted += bytes;
    if (q->turns) { /* the answer proves it */
        l->out.through = l->out.posted;
        l->out.messages++;
    }
    return 0;
}

/* Where messages come by themselves, it says how many are waited for. */
static int window_receive(struct wire_link *l, void *at, size_t bytes)
{
    struct rdma_queue *q = l->state;
    int err = q->reads ? act(q, bytes) : 0;

    (void)at;
    l->in.posted += err ? 0 : bytes;
    return err;
}

static void window_retract(struct wire_link *l)
{
    if (!((const struct rdma_queue *)l->state)->reads)
        l->in.posted = l->in.through;
}

static int window_word(struct wire_link *l)
{
    struct rdma_queue *q = l->state;
    struct ibv_send_wr wr = {.wr_id = rdma_wr_id(q, RDMA_WORD),
                             .sg_list = &q->nothing,
                             .num_sge = q->n_nothing,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED},
                       *bad;
    int err = 0;

    for (unsigned n = parts_of_word(q); n-- > 0 && !err; q->taken++)
        err = ibv_post_send(q->qp, &wr, &bad);
    return rdma_refused(q, "sending", err);
}

/* ---- In ---- */

static void came(struct rdma_queue *q, uint64_t bytes, unsigned whole)
{
    struct wire_link *l = q->link;

    wire_came(l, bytes, whole);
    if (l->in.posted < l->in.through) /* they come whether or not they were asked for */
        l->in.posted = l->in.through;
}

/* A work request of ours that a message took: of a sent one, each of its pieces takes one. */
static int take_message(struct rdma_queue *q, const struct ibv_wc *wc)
{
    struct wire *w = rdma_wire_of(q);
    const struct rdma_shape *s = &q->shape;
    bool imm = wc->wc_flags & IBV_WC_WITH_IMM, sent = w->options.rdma.verb == RDMA_SEND;
    uint64_t piece = sent && s->pieces > 1 ? q->recv_done % s->pieces : s->pieces - 1;
    uint64_t expected = sent ? rdma_piece_bytes(s, piece) : wc->byte_len;

    if (!sent && !imm)
        return rdma_fail(w, -EPROTO, "%s sent what was not asked for", q->peer);
    if (wc->byte_len != expected)
        return rdma_fail(w, -EBADMSG, "connection %u received %u bytes where %llu were sent",
                         q->link->index, wc->byte_len, (unsigned long long)expected);
    if (imm)
        q->link->turn_in = (uint8_t)ntohl(wc->imm_data);
    q->recv_done++;
    came(q, sent ? expected : s->bytes, piece + 1 == s->pieces);
    return 0;
}

static int take_one(struct wire_worker *k, const struct ibv_wc *wc)
{
    struct rdma_queue *q = rdma_queue_of(wc);

    if (wc->status != IBV_WC_SUCCESS)
        return rdma_bad_completion(k->wire, wc);
    q->recv_free++;
    if (wc->opcode != IBV_WC_RECV || wc->byte_len)
        return take_message(q, wc);
    if (++q->empty == parts_of_word(q)) {
        q->empty = 0;
        q->link->words_in++;
    }
    return 0;
}

static int have_heard(struct wire_worker *k, const struct ibv_wc *wc, int n)
{
    int err = n < 0 ? n : 0;

    for (int i = 0; i < n && !err; i++)
        err = take_one(k, &wc[i]);
    for (int i = 0; i < n && !err; i++) {
        /* Not each by itself. */
        struct rdma_queue *q = rdma_queue_of(&wc[i]);
        unsigned some = q->shape.receives / (q->link->window.turns ? 2 : 8), n_free = q->recv_free;
        if (!n_free || n_free < some)
            continue;
        q->recv_free = 0;
        err = rdma_window_post_receives(q, n_free);
    }
    return err ? err : n > 0;
}

/* ---- Waiting ---- */

/* After many empty looks: is something wrong? Errors of messages in turns, of which nobody waits
 * for the completion, come as these. And where this end has to share its CPU with the other one, or
 * with a software device's threads, that one must run. */
static __attribute__((noinline)) int look_around(struct wire_worker *k, bool turns,
                                                 uint64_t *since_ns, uint64_t wait_ns)
{
    uint64_t now_ns = clock_now_ns();
    int err = turns && !rdma_reads(k->wire) ? take_acts(k) : 0;

    if (turns)
        sched_yield();
    if (err >= 0)
        err = rdma_events(k->wire);
    *since_ns = *since_ns ? *since_ns : now_ns;
    return err < 0 ? err : now_ns - *since_ns >= wait_ns;
}

/* Waits for the number in the buffer. */
static int look_written(struct wire_worker *k, struct rdma_queue *q, uint64_t wait_ns)
{
    struct wire_link *l = q->link;
    const volatile uint8_t *at = (uint8_t *)l->window.in + q->shape.bytes - 1;
    uint64_t since_ns = 0;

    for (unsigned looks = 1; (*at & TURN) != (l->turn_in & TURN); looks++) {
        if (wait_ns && looks % LOOKS)
            continue;
        int rc = wait_ns ? look_around(k, true, &since_ns, wait_ns) : 1;
        if (rc)
            return rc < 0 ? rc : 0;
    }
    came(q, q->shape.bytes, 1);
    return 1;
}

/* Waits for the completion of the one message there is. */
static int look_completed(struct wire_worker *k, bool acts, uint64_t wait_ns)
{
    struct rdma_worker *rw = k->state;
    struct ibv_cq *cq = acts ? rw->acts.cq : rw->hears.cq;
    uint64_t since_ns = 0;
    struct ibv_wc wc;
    int n;

    for (unsigned looks = 1; (n = ibv_poll_cq(cq, 1, &wc)) == 0; looks++) {
        if (wait_ns && looks % RDMA_SPINS)
            continue;
        int rc = wait_ns ? look_around(k, true, &since_ns, wait_ns) : 1;
        if (rc)
            return rc < 0 ? rc : 0;
    }
    n = n < 0 ? rdma_unread(k) : n;
    return acts ? have_acted(k, &wc, n) : have_heard(k, &wc, n);
}

static int poll_sides(struct wire_worker *k, bool acts, bool hears)
{
    int moved = acts ? take_acts(k) : 0;
    struct rdma_worker *rw = k->state;
    struct ibv_wc wc[RDMA_POLL_BATCH];
    int heard = hears && moved >= 0 ? have_heard(k, wc, rdma_poll(k, &rw->hears, wc)) : 0;

    return moved < 0 ? moved : heard < 0 ? heard : moved || heard;
}

/* Of the one side that is read, what is waited for are own completions; both: words, too. */
static int window_progress(struct wire_worker *k, enum wire_side sides, uint64_t wait_ns)
{
    struct rdma_worker *rw = k->state;
    struct rdma_queue *first = k->links->state;

    if (first->looks && sides == WIRE_IN)
        return look_written(k, first, wait_ns);
    if (first->turns && sides == WIRE_IN && !rw->hears.channel)
        return look_completed(k, first->reads, wait_ns);
    bool both = sides == WIRE_BOTH;
    bool acts = both || sides == WIRE_OUT || first->reads, hears = both || !acts;
    struct rdma_cq *cq = acts ? &rw->acts : &rw->hears;
    uint64_t since_ns = 0;

    for (unsigned polls = 1;; polls++) {
        int rc = poll_sides(k, acts, hears);
        if (rc || !wait_ns)
            return rc;
        if (both) {
            usleep(WORD_US);
        } else if (cq->channel) {
            rdma_cq_sleep(cq, wait_ns < RDMA_SLEEP_NS ? wait_ns : RDMA_SLEEP_NS);
        } else if (polls % RDMA_SPINS) {
            if (polls % RDMA_YIELD == 0) /* software works on the CPU that asks it to */
                sched_yield();
            continue;
        }
        rc = look_around(k, first->turns, &since_ns, wait_ns);
        if (rc)
            return rc < 0 ? rc : 0;
    }
}

/* ---- RDMA CM's first messages ---- */

static bool have_greeted(const struct wire *w, bool out)
{
    for (unsigned i = 0; i < w->n_links; i++)
        if (!w->links[i].words_in || (out && !w->links[i].words_out))
            return false;
    return true;
}

#define NUDGES_MOST 6u /* the send queue has room for these beside the greeting */
#define NUDGE_NS    500000000u

/* An empty read. Linux' soft iWARP lets what comes lie, now and then, where its socket calls
 * while the queue pair is locked, until more comes: the answer to this is more. */
static int nudge(struct wire *w)
{
    int err = 0;

    for (unsigned i = 0; i < w->n_links && !err; i++) {
        struct rdma_queue *q = w->links[i].state;
        struct ibv_send_wr wr = {.wr_id = rdma_wr_id(q, RDMA_NUDGE),
                                 .sg_list = &q->nothing,
                                 .num_sge = q->n_nothing,
                                 .opcode = IBV_WR_RDMA_READ,
                                 .send_flags = IBV_SEND_SIGNALED,
                                 .wr.rdma = {.remote_addr = q->remote.in_at,
                                             .rkey = q->remote.in_key}},
                           *bad;
        if (!strcmp(q->rail->driver, "siw"))
            err = rdma_refused(q, "an empty read", ibv_post_send(q->qp, &wr, &bad));
    }
    return err;
}

static int wait_greetings(struct wire *w, bool out)
{
    struct clock_wait wait = {0};
    unsigned nudges = 0;
    int err = 0;

    while (err >= 0 && !have_greeted(w, out)) {
        for (unsigned i = 0; i < w->n_workers && err >= 0; i++)
            if (w->workers[i].n_links)
                err = poll_sides(&w->workers[i], true, true);
        if (err >= 0)
            err = rdma_events(w);
        if (!err && (err = wire_attend(w)) != 0)
            return rdma_fail(w, err, "the wait for the first message was ended");
        uint64_t waited_ns = clock_waited_ns(&wait);
        if (out && !err && nudges < NUDGES_MOST && waited_ns > (nudges + 1) * (uint64_t)NUDGE_NS) {
            nudges++;
            err = nudge(w);
        }
        if (waited_ns > WIRE_STILL_NS)
            return rdma_fail(w, -ETIMEDOUT, "the first message of %s did not come through",
                             rdma_of(w)->queues[0].peer);
        usleep(WORD_US);
    }
    return err < 0 ? err : 0;
}

int rdma_window_greet(struct wire *w)
{
    int err = 0;

    if (w->world->rank < w->links[0].peer) /* first hear, then speak */
        err = wait_greetings(w, false);
    for (unsigned i = 0; i < w->n_links && !err; i++)
        err = window_word(&w->links[i]);
    err = err ? err : wait_greetings(w, true);
    for (unsigned i = 0; i < w->n_links; i++)
        w->links[i].words_in = w->links[i].words_out = 0;
    return err;
}

const struct wire_ops rdma_window_ops = {
    .name = "rdma",
    .ways = WIRE_CAN(WIRE_POLL) | WIRE_CAN(WIRE_EVENTS),
    .windows = true,
    .memory = rdma_memory_add,
    .link = rdma_link,
    .address = rdma_address,
    .join = rdma_join,
    .send = window_send,
    .receive = window_receive,
    .progress = window_progress,
    .retract = window_retract,
    .word = window_word,
    .describe = rdma_describe,
    .facts = rdma_facts,
    .rail = rdma_rail,
    .close = rdma_close,
};
