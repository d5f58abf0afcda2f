/* SPDX-License-Identifier: Apache-2.0 */
/* One round of an engine's work: what has come is put together, what can go is posted. */
#include <errno.h>
#include <string.h>

#include "core/collective/data.h"
#include "core/collective/engine_parts.h"

bool engine_ready(const struct engine *e, uint32_t action, uint64_t begin, uint64_t end)
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

/* The oldest piece is through and in its place. */
static void retire(struct engine *e, struct way *w)
{
    const struct piece *p = &w->pieces[w->oldest];

    e->done[p->action] = p->end;
    if (p->slot)
        w->in_use--;
    w->oldest = (w->oldest + 1) % FABRIC_POSTS;
    w->posted--;
}

static void reduce(struct engine *e, const struct piece *p)
{
    const struct action *a = &e->schedule->actions[p->action];

    data_reduce(e->type, e->sum, place(e, a->target, a->first + p->begin),
                place(e, a->source, a->from + p->begin), p->slot, p->end - p->begin);
}

/* Retires what is through. One reduction at most, so that what it has made goes on its way before the next. */
static bool collect(struct engine *e, struct way *w)
{
    uint64_t through = w->out ? w->link->sent : w->link->received;
    bool reduced = false, any = false;

    while (w->posted && w->pieces[w->oldest].end_bytes <= through && !reduced) {
        const struct piece *p = &w->pieces[w->oldest];
        if (p->slot) {
            if (!engine_ready(e, p->action, p->begin, p->end))
                break;
            reduce(e, p);
            reduced = true;
        }
        retire(e, w);
        any = true;
    }
    return any;
}

/* What is reduced waits in a slot, and so for none but a free one; all else goes from or to where it belongs, once that may be touched. */
static bool may_post(const struct engine *e, const struct way *w, uint32_t action, uint64_t end)
{
    if (e->schedule->actions[action].kind == ACTION_REDUCE)
        return w->in_use < ENGINE_SLOTS;
    return engine_ready(e, action, w->at, end);
}

static void *take_slot(struct engine *e, struct way *w)
{
    void *slot = w->slots + w->next_slot * e->segment * e->element_bytes;

    w->next_slot = (w->next_slot + 1) % ENGINE_SLOTS;
    w->in_use++;
    return slot;
}

/* 1: one more segment of this way is posted; 0: it cannot be yet; -errno. */
static int post(struct engine *e, struct way *w)
{
    struct fabric *f = e->fabric;
    uint32_t action = w->actions[w->next];
    const struct action *a = &e->schedule->actions[action];
    uint64_t end = a->count - w->at > e->segment ? w->at + e->segment : a->count;
    uint64_t bytes = (end - w->at) * e->element_bytes;
    struct piece *p = &w->pieces[(w->oldest + w->posted) % FABRIC_POSTS];
    int err;

    if (!may_post(e, w, action, end))
        return 0;
    *p = (struct piece){action, w->at, end, w->bytes + bytes, NULL};
    if (a->kind == ACTION_SEND) {
        err = fabric_send(f, w->link, place(e, a->source, a->from + w->at), bytes);
    } else if (a->kind == ACTION_RECEIVE) {
        err = fabric_receive(f, w->link, place(e, a->target, a->first + w->at), bytes);
    } else {
        p->slot = take_slot(e, w);
        err = fabric_receive(f, w->link, p->slot, bytes);
    }
    if (err)
        return collective_fail(e->c, err, "%s", f->error[0] ? f->error : strerror(-err));
    w->bytes += bytes;
    w->posted++;
    w->at = end < a->count ? end : 0;
    w->next += end == a->count;
    return 1;
}

static int post_all(struct engine *e, struct way *w)
{
    int any = 0, posted = 1;

    while (posted > 0 && w->next < w->n && w->posted < FABRIC_POSTS) {
        posted = post(e, w);
        any |= posted > 0;
    }
    return posted < 0 ? posted : any;
}

int engine_move(struct engine *e)
{
    bool any = false;
    unsigned left = 0;
    int posted = 0;

    for (unsigned i = 0; i < e->n_open; i++)
        any |= collect(e, &e->ways[e->open[i]]);
    for (unsigned i = 0; i < e->n_open && posted >= 0; i++) {
        struct way *w = &e->ways[e->open[i]];
        posted = post_all(e, w);
        any |= posted > 0;
        if (w->posted || w->next < w->n)
            e->open[left++] = e->open[i];
    }
    if (posted < 0)
        return posted;
    e->n_open = left;
    return any;
}

bool engine_copy(struct engine *e)
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

bool engine_finished(const struct engine *e)
{
    return !e->n_open && e->next_copy == e->n_copies;
}
