/* SPDX-License-Identifier: Apache-2.0 */
/* An engine: one round of work, its memory and links, and an operation from begin to end. */
#include "core/collective/engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/collective/data.h"

#define ENGINE_SLOTS                                                                               \
    8 /* segments of a link that may have come, or be on their way, before they are reduced */

/* A segment that has been posted. */
struct piece {
    uint32_t action;
    uint64_t begin, end; /* elements of the action */
    uint64_t end_bytes;  /* of the link, when it is through */
    void *slot;          /* where it waits to be reduced; NULL: it goes where it belongs */
};

/* What goes to, or comes from, one peer. */
struct way {
    struct wire_link *link;
    unsigned peer; /* member */
    bool out;
    uint32_t *actions, n, next;      /* the next one to post, */
    uint64_t at;                     /* and its next element */
    struct piece pieces[WIRE_POSTS]; /* posted and not done: a ring */
    unsigned oldest, posted;
    uint64_t bytes;  /* of the link, when all that is posted is through */
    unsigned index;  /* in wire->links */
    uint8_t *slots;  /* NULL: nothing to reduce */
    unsigned in_use; /* slots, taken and given back in turn */
    unsigned next_slot;
};

struct engine {
    struct collective *c;
    struct wire *wire;
    const struct schedule *schedule;
    enum collective_type type;
    enum collective_sum sum;
    size_t element_bytes;
    uint64_t segment;       /* elements */
    uint8_t *scratch;       /* of the caller */
    uint8_t *space[SPACES]; /* of this operation */
    struct deps deps;
    uint64_t *done;  /* of each action: elements through, in their place, put together */
    uint32_t *queue; /* of all ways, then of copies */
    struct way *ways;
    unsigned n_ways, *open, n_open; /* those with something left to do */
    uint32_t *copies, n_copies, next_copy;
    uint64_t idle_since_ns; /* 0: something has just moved */
    uint64_t attended_ns;
    unsigned rounds; /* modulo ATTEND_ROUNDS, over operations */
};

/* --- one round of work: what has come is put together, what can go is posted --- */

/* Has all been done that elements begin to end of the action want? */
static bool engine_ready(const struct engine *e, uint32_t action, uint64_t begin, uint64_t end)
{
    const struct deps *d = &e->deps;

    for (size_t i = d->first[action]; i < d->first[action + 1]; i++) {
        const struct dep *dep = &d->all[i];
        if (end <= dep->begin || begin >= dep->end)
            continue;
        uint64_t last = end < dep->end ? end : dep->end;
        if (e->done[dep->earlier] < last + (uint64_t)dep->shift)
            return false;
    }
    return true;
}

static void *place(const struct engine *e, unsigned space, uint64_t element)
{
    return e->space[space] + element * e->element_bytes;
}

static void reduce(struct engine *e, const struct piece *p)
{
    const struct action *a = &e->schedule->actions[p->action];

    data_reduce(e->type, e->sum, place(e, a->target, a->first + p->begin),
                place(e, a->source, a->from + p->begin), p->slot, p->end - p->begin);
}

/* Retires what is through. One reduction at most, so that what it has made goes on its way before
 * the next. */
static bool collect(struct engine *e, struct way *w)
{
    uint64_t through = w->out ? w->link->out.through : w->link->in.through;
    bool reduced = false, any = false;

    while (w->posted && w->pieces[w->oldest].end_bytes <= through && !reduced) {
        const struct piece *p = &w->pieces[w->oldest];
        if (p->slot) {
            if (!engine_ready(e, p->action, p->begin, p->end))
                break;
            reduce(e, p);
            reduced = true;
        }
        /* The oldest piece is through and in its place. */
        e->done[p->action] = p->end;
        w->in_use -= p->slot != NULL;
        w->oldest = (w->oldest + 1) % WIRE_POSTS;
        w->posted--;
        any = true;
    }
    return any;
}

/* 1: one more segment of this way is posted; 0: it cannot be yet; -errno. */
static int post(struct engine *e, struct way *w)
{
    uint32_t action = w->actions[w->next];
    const struct action *a = &e->schedule->actions[action];
    uint64_t end = a->count - w->at > e->segment ? w->at + e->segment : a->count;
    uint64_t bytes = (end - w->at) * e->element_bytes;
    struct piece *p = &w->pieces[(w->oldest + w->posted) % WIRE_POSTS];
    int err;

    /* What is reduced waits in a slot, and so for none but a free one; all else goes from or to
     * where it belongs, once that may be touched. */
    if (a->kind == ACTION_REDUCE ? w->in_use >= ENGINE_SLOTS : !engine_ready(e, action, w->at, end))
        return 0;
    *p = (struct piece){action, w->at, end, w->bytes + bytes, NULL};
    if (a->kind == ACTION_SEND) {
        err = wire_send(w->link, place(e, a->source, a->from + w->at), bytes);
    } else if (a->kind == ACTION_RECEIVE) {
        err = wire_receive(w->link, place(e, a->target, a->first + w->at), bytes);
    } else {
        p->slot = w->slots + w->next_slot * e->segment * e->element_bytes;
        w->next_slot = (w->next_slot + 1) % ENGINE_SLOTS;
        w->in_use++;
        err = wire_receive(w->link, p->slot, bytes);
    }
    if (err)
        return collective_fail(e->c, err, "%s",
                               e->wire->error[0] ? e->wire->error : strerror(-err));
    w->bytes += bytes;
    w->posted++;
    w->at = end < a->count ? end : 0;
    w->next += end == a->count;
    return 1;
}

/* One round over all ways: 1: something was posted or done; 0; -errno with c->error. */
static int engine_move(struct engine *e)
{
    bool any = false;
    unsigned left = 0;
    int posted = 0;

    for (unsigned i = 0; i < e->n_open; i++)
        any |= collect(e, &e->ways[e->open[i]]);
    for (unsigned i = 0; i < e->n_open && posted >= 0; i++) {
        struct way *w = &e->ways[e->open[i]];
        for (posted = 1; posted > 0 && w->next < w->n && w->posted < WIRE_POSTS;) {
            posted = post(e, w);
            any |= posted > 0;
        }
        if (w->posted || w->next < w->n)
            e->open[left++] = e->open[i];
    }
    if (posted < 0)
        return posted;
    e->n_open = left;
    return any;
}

/* A piece of a copy: it waits until there is nothing else to do. True: one was made. */
static bool engine_copy(struct engine *e)
{
    if (e->next_copy == e->n_copies)
        return false;
    uint32_t action = e->copies[e->next_copy];
    const struct action *a = &e->schedule->actions[action];
    uint64_t begin = e->done[action];
    uint64_t end = a->count - begin > e->segment ? begin + e->segment : a->count;
    if (!engine_ready(e, action, begin, end))
        return false;
    memcpy(place(e, a->target, a->first + begin), place(e, a->source, a->from + begin),
           (end - begin) * e->element_bytes);
    e->done[action] = end;
    e->next_copy += end == a->count;
    return true;
}

static bool engine_finished(const struct engine *e)
{
    return !e->n_open && e->next_copy == e->n_copies;
}

#define LINE_BYTES    64u
#define ATTEND_NS     50000000u
#define ATTEND_ROUNDS 16u /* between two looks at the clock while bytes move without a pause */
#define WAIT_NS       20000000u
#define FILL_SHARE    64u

static uint64_t round_up(uint64_t bytes)
{
    return (bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
}

/* At the least: what a message of its own costs is little against. At the most: what stays in a
 * CPU's own cache from when it comes until it is reduced. Between them an eighth of the message, so
 * that work on one segment goes on while the next ones are on their way. Measured: a vector of 8
 * MiB over links of 1 Gbit/s goes within 1 % as fast in any segments from 16 KiB to 512 KiB; where
 * copies are the limit (shared memory, loopback) CPU time falls up to 128 KiB and hardly changes
 * beyond. Over soft RoCE, where each message costs most, 4 MiB take twice as long in segments of 16
 * KiB as in 256 KiB, and as long in 2 MiB: so RDMA has those of TCP, and the two can be compared
 * message by message.
 *
 * A vector that is passed on whole from member to member (a chain) is through after the time of its
 * segments and of one more for each hop but the first: that is to be a FILL_SHARE-th at most. Over
 * 7 hosts with links of 1 Gbit/s 8 MiB reach 92 % of the goodput in segments of 256 KiB, and all of
 * it in 32 KiB. Within a machine there is no line to be filled: 16 MiB over 4 ranks by shared
 * memory take 1.3 times as long in 32 KiB as in 256 KiB. */
uint64_t engine_segment(const struct wire_ops *transport, uint64_t longest_bytes, unsigned hops,
                        uint64_t asked)
{
    const uint64_t least = transport->near ? 16 << 10 : 32 << 10, most = 256 << 10;
    uint64_t bytes = asked;

    if (!asked) {
        bytes = longest_bytes / 8;
        if (!transport->near && hops > 1 && bytes > longest_bytes / FILL_SHARE / (hops - 1))
            bytes = longest_bytes / FILL_SHARE / (hops - 1);
        bytes = bytes < least ? least : bytes;
        bytes = bytes > most ? most : bytes;
    }
    bytes = round_up(bytes);
    longest_bytes = round_up(longest_bytes ? longest_bytes : 1);
    return bytes < longest_bytes ? bytes : longest_bytes;
}

/* Ways are known by their peer and direction: number 2 x peer + out of this table; UINT32_MAX where
 * there is none. */
struct index {
    uint32_t *way; /* of 2 x members */
    uint32_t *n;   /* actions of each */
    unsigned ways, reducing;
};

static bool communicates(const struct action *a)
{
    return a->kind != ACTION_COPY;
}

static unsigned index_key(const struct action *a)
{
    return 2 * a->peer + (a->kind == ACTION_SEND);
}

static void index_release(struct index *x)
{
    free(x->way);
    free(x->n);
}

static void index_make(struct index *x, const struct schedule *s)
{
    bool *reduces = xcalloc(s->members, sizeof(*reduces));

    *x = (struct index){.way = xcalloc(2 * s->members, sizeof(*x->way)),
                        .n = xcalloc(2 * s->members, sizeof(*x->n))};
    for (size_t i = 0; i < s->n; i++) {
        const struct action *a = &s->actions[i];
        if (communicates(a) && !x->n[index_key(a)]++)
            x->way[index_key(a)] = x->ways++;
        if (a->kind == ACTION_REDUCE && !reduces[a->peer]) {
            reduces[a->peer] = true;
            x->reducing++;
        }
    }
    free(reduces);
}

static uint64_t scratch_bytes(const struct collective *c, const struct schedule *s)
{
    return round_up(s->scratch * collective_type_bytes(c->point->type));
}

size_t engine_spare_bytes(const struct collective *c, const struct schedule *s,
                          uint64_t segment_bytes)
{
    struct index x;

    index_make(&x, s);
    index_release(&x);
    return scratch_bytes(c, s) + x.reducing * ENGINE_SLOTS * round_up(segment_bytes);
}

/* Each way gets its part of the queue, and of the spare memory what it needs. */
static void share_out(struct engine *e, const struct index *x, uint8_t *spare)
{
    const struct schedule *s = e->schedule;
    uint32_t *queue = e->queue;

    for (size_t i = 0; i < s->n; i++) {
        const struct action *a = &s->actions[i];
        if (!communicates(a))
            continue;
        struct way *w = &e->ways[x->way[index_key(a)]];
        if (!w->actions) {
            w->actions = queue;
            w->peer = a->peer;
            w->out = a->kind == ACTION_SEND;
            queue += x->n[index_key(a)];
        }
        if (a->kind == ACTION_REDUCE && !w->slots) {
            w->slots = spare;
            spare += ENGINE_SLOTS * e->segment * e->element_bytes;
        }
        w->actions[w->n++] = (uint32_t)i;
    }
    e->copies = queue;
    for (size_t i = 0; i < s->n; i++)
        if (!communicates(&s->actions[i]))
            e->copies[e->n_copies++] = (uint32_t)i;
}

struct engine *engine_open(struct collective *c, struct wire *f, const struct schedule *schedule,
                           void *spare, uint64_t segment_bytes)
{
    struct engine *e = xcalloc(1, sizeof(*e));
    struct index x;

    e->c = c;
    e->wire = f;
    e->schedule = schedule;
    e->type = (enum collective_type)c->point->type;
    e->sum = (enum collective_sum)c->point->sum;
    e->element_bytes = collective_type_bytes(e->type);
    e->segment = round_up(segment_bytes) / e->element_bytes;
    index_make(&x, schedule);
    e->n_ways = x.ways;
    e->ways = xcalloc(x.ways, sizeof(*e->ways));
    e->open = xcalloc(x.ways, sizeof(*e->open));
    e->done = xcalloc(schedule->n, sizeof(*e->done));
    e->queue = xcalloc(schedule->n, sizeof(*e->queue));
    deps_make(&e->deps, schedule);
    e->scratch = spare;
    share_out(e, &x, e->scratch + scratch_bytes(c, schedule));
    index_release(&x);
    return e;
}

void engine_close(struct engine *e)
{
    if (!e)
        return;
    deps_release(&e->deps);
    free(e->ways);
    free(e->open);
    free(e->done);
    free(e->queue);
    free(e);
}

int engine_link(struct engine *e)
{
    for (unsigned i = 0; i < e->n_ways; i++) {
        int link = wire_link(e->wire, e->c->members[e->ways[i].peer], NULL);
        if (link < 0)
            return collective_fail(e->c, link, "%s", e->wire->error);
        e->ways[i].index = (unsigned)link;
    }
    return 0;
}

int engine_begin(struct engine *e, void *input, void *result)
{
    e->space[SPACE_INPUT] = input;
    e->space[SPACE_RESULT] = result;
    e->space[SPACE_SCRATCH] = e->scratch;
    memset(e->done, 0, e->schedule->n * sizeof(*e->done));
    e->next_copy = 0;
    e->idle_since_ns = 0;
    e->n_open = e->n_ways;
    for (unsigned i = 0; i < e->n_ways; i++) {
        struct way *w = &e->ways[i];
        w->link = &e->wire->links[w->index];
        w->bytes = w->out ? w->link->out.posted : w->link->in.posted;
        w->next = w->oldest = w->posted = w->in_use = w->next_slot = 0;
        w->at = 0;
        e->open[i] = i;
    }
    int err = engine_move(e);
    return err < 0 ? err : 0;
}

static bool going(const struct engine *e)
{
    for (unsigned i = 0; i < e->n_open; i++) {
        const struct way *w = &e->ways[e->open[i]];
        if (w->out && w->posted)
            return true;
    }
    return false;
}

/* An operation of which nothing goes to or comes from others has no link. */
static int progress(struct engine *e, uint64_t wait_ns)
{
    return e->wire->n_links ? wire_progress(e->wire->workers, WIRE_BOTH, wait_ns) : 0;
}

/* The clock is read around waits alone. */
static int wait(struct engine *e, uint64_t wait_ns)
{
    uint64_t begin_ns = clock_now_ns();
    uint64_t *sum = going(e) ? &e->c->blocked_ns : &e->c->waited_ns;
    int moved;

    if (!e->idle_since_ns)
        e->idle_since_ns = begin_ns;
    moved = wait_ns ? progress(e, wait_ns) : 0;
    *sum += wait_ns ? clock_now_ns() - begin_ns : 0;
    return moved;
}

int engine_progress(struct engine *e, uint64_t wait_ns)
{
    int moved = engine_move(e), came = 0;
    bool copied = false;

    if (moved >= 0 && !engine_finished(e) && e->n_open)
        came = progress(e, 0);
    if (!moved && !came && !engine_finished(e))
        copied = engine_copy(e);
    if (!moved && !came && !copied && !engine_finished(e))
        came = wait(e, wait_ns);
    if (came < 0)
        return collective_fail(e->c, came, "%s", e->wire->error);
    if (moved > 0 || came > 0 || copied)
        e->idle_since_ns = 0;
    if (came > 0)
        moved = engine_move(e);
    return moved < 0 ? moved : engine_finished(e);
}

/* A wire may count a message when all of it is there, and those of all ways may share a link. */
static uint64_t message_ns(const struct engine *e)
{
    return WIRE_SLOWEST_NS * e->segment * e->element_bytes * e->n_ways;
}

int engine_attend(struct engine *e)
{
    struct collective *c = e->c;
    uint64_t now_ns = clock_now_ns(), idle_ns = e->idle_since_ns ? now_ns - e->idle_since_ns : 0;

    if (!c->attend || now_ns - e->attended_ns < ATTEND_NS)
        return 0;
    e->attended_ns = now_ns;
    return c->attend(c, idle_ns > message_ns(e) ? idle_ns - message_ns(e) : 0);
}

/* Where bytes never cease to move, the clock is read now and then: who asks is to be answered. */
int engine_run(struct engine *e, void *input, void *result)
{
    int done = engine_begin(e, input, result);

    while (!done) {
        done = engine_progress(e, WAIT_NS);
        e->rounds = (e->rounds + 1) % ATTEND_ROUNDS;
        if (!done && (e->idle_since_ns || !e->rounds))
            done = engine_attend(e);
    }
    return done < 0 ? done : 0;
}
