/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What waits for what. Each space is cut at the ends of all ranges that actions touch; to every
 * interval between two cuts belong the action that wrote it last and those that have read it since.
 * Going through the list once, a reader waits for the writer; a writer for the readers, or, where
 * there are none, for the writer before it.
 */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/collective/engine.h"

#define NONE UINT32_MAX

struct touch {
    enum action_space space;
    uint64_t first;
    bool write;
};

struct reader {
    uint32_t action, next;
};

struct map { /* of one space */
    uint64_t *cuts;
    size_t n;
    uint32_t *writer, *readers; /* of each interval; readers: the first of a list */
};

struct sweep {
    const struct schedule *s;
    struct deps *d;
    struct map maps[SPACES];
    struct reader *readers;
    uint32_t n_readers;
};

/* Reads before writes. */
static unsigned touches(const struct action *a, struct touch t[2])
{
    unsigned n = 0;

    if (a->kind != ACTION_RECEIVE)
        t[n++] = (struct touch){a->source, a->from, false};
    if (a->kind != ACTION_SEND)
        t[n++] = (struct touch){a->target, a->first, true};
    return n;
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static void cut(struct sweep *w, enum action_space space)
{
    struct map *m = &w->maps[space];
    struct touch t[2];
    size_t n = 0;

    m->cuts = xcalloc(4 * w->s->n, sizeof(*m->cuts));
    for (size_t i = 0; i < w->s->n; i++)
        for (unsigned k = touches(&w->s->actions[i], t); k-- > 0;)
            if (t[k].space == space) {
                m->cuts[n++] = t[k].first;
                m->cuts[n++] = t[k].first + w->s->actions[i].count;
            }
    qsort(m->cuts, n, sizeof(*m->cuts), by_value);
    for (size_t i = 0; i < n; i++)
        if (!m->n || m->cuts[i] != m->cuts[m->n - 1])
            m->cuts[m->n++] = m->cuts[i];
    m->writer = xcalloc(m->n, sizeof(*m->writer));
    m->readers = xcalloc(m->n, sizeof(*m->readers));
    memset(m->writer, 0xff, m->n * sizeof(*m->writer));
    memset(m->readers, 0xff, m->n * sizeof(*m->readers));
}

/* The interval that begins at a cut. */
static size_t interval(const struct map *m, uint64_t at)
{
    size_t low = 0, high = m->n;

    while (low + 1 < high) {
        size_t middle = (low + high) / 2;
        if (m->cuts[middle] <= at)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* The action waits for an earlier one where both touch [first, first + count) of a space; `base`,
 * `earlier_base`: where they begin there. */
static void wait_for(struct sweep *w, uint32_t action, uint64_t base, uint32_t earlier,
                     uint64_t earlier_base, uint64_t first, uint64_t count)
{
    struct deps *d = w->d;
    int64_t shift = (int64_t)(base - earlier_base);
    uint64_t begin = first - base, end = begin + count;

    for (size_t i = d->first[action]; i < d->n; i++)
        if (d->all[i].earlier == earlier && d->all[i].shift == shift) {
            d->all[i].begin = begin < d->all[i].begin ? begin : d->all[i].begin;
            d->all[i].end = end > d->all[i].end ? end : d->all[i].end;
            return;
        }
    *ARRAY_ADD(d->all, d->n) = (struct dep){earlier, shift, begin, end};
}

static void visit(struct sweep *w, uint32_t action, const struct touch *t, size_t i)
{
    struct map *m = &w->maps[t->space];
    const struct action *all = w->s->actions;
    uint64_t first = m->cuts[i], count = m->cuts[i + 1] - first;

    if (m->writer[i] != NONE && (!t->write || m->readers[i] == NONE))
        wait_for(w, action, t->first, m->writer[i], all[m->writer[i]].first, first, count);
    if (!t->write) {
        *ARRAY_ADD(w->readers, w->n_readers) = (struct reader){action, m->readers[i]};
        m->readers[i] = w->n_readers - 1;
        return;
    }
    for (uint32_t r = m->readers[i]; r != NONE; r = w->readers[r].next) {
        uint32_t reader = w->readers[r].action;
        if (reader != action)
            wait_for(w, action, t->first, reader, all[reader].from, first, count);
    }
    m->writer[i] = action;
    m->readers[i] = NONE;
}

static void sweep(struct sweep *w)
{
    const struct schedule *s = w->s;
    struct touch t[2];

    for (size_t a = 0; a < s->n; a++) {
        unsigned n = touches(&s->actions[a], t);
        w->d->first[a] = w->d->n;
        for (unsigned k = 0; k < n; k++) {
            const struct map *m = &w->maps[t[k].space];
            for (size_t i = interval(m, t[k].first);
                 i + 1 < m->n && m->cuts[i] < t[k].first + s->actions[a].count; i++)
                visit(w, (uint32_t)a, &t[k], i);
        }
    }
    w->d->first[s->n] = w->d->n;
}

void deps_make(struct deps *d, const struct schedule *s)
{
    struct sweep w = {.s = s, .d = d};

    *d = (struct deps){.first = xcalloc(s->n + 1, sizeof(*d->first))};
    for (int space = 0; space < SPACES; space++)
        cut(&w, (enum action_space)space);
    sweep(&w);
    for (int space = 0; space < SPACES; space++) {
        free(w.maps[space].cuts);
        free(w.maps[space].writer);
        free(w.maps[space].readers);
    }
    free(w.readers);
}

void deps_release(struct deps *d)
{
    free(d->all);
    free(d->first);
    *d = (struct deps){0};
}
