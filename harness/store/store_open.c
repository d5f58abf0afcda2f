/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a run folder to go on: what was committed is kept, whatever else is there is taken out.
 * See store.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/units.h"
#include "harness/store/store_files.h"
#include "harness/table.h"
#include "harness/text.h"

#define ABSENT 1 /* no launch of this benchmark has been stored yet */

struct entry {
    uint64_t key; /* case and repeat */
    size_t launch;
    unsigned rows; /* found */
    bool wrong;    /* one of them is of wrong data */
};

struct index {
    struct entry *entries; /* by key */
    size_t n;
};

static uint64_t key_of(uint64_t case_number, uint64_t repeat)
{
    return case_number << 32 | repeat;
}

static int by_key(const void *a, const void *b)
{
    uint64_t x = ((const struct entry *)a)->key, y = ((const struct entry *)b)->key;

    return (x > y) - (x < y);
}

static int index_make(const struct plan *plan, struct index *index)
{
    index->n = plan->n;
    index->entries = calloc(plan->n + 1, sizeof(*index->entries));
    if (!index->entries)
        return -ENOMEM;
    for (size_t i = 0; i < plan->n; i++)
        index->entries[i] = (struct entry){
            key_of(plan->launches[i].case_number, plan->launches[i].repeat), i, 0, false};
    qsort(index->entries, index->n, sizeof(index->entries[0]), by_key);
    return 0;
}

/* The launch that a line with columns case and repeat belongs to; NULL: to none of the plan. */
static struct entry *index_find(const struct index *index, const struct table *t, size_t row,
                                size_t case_column, size_t repeat_column)
{
    uint64_t case_number, repeat;

    if (units_parse_u64(table_cell(t, row, case_column), &case_number) ||
        units_parse_u64(table_cell(t, row, repeat_column), &repeat))
        return NULL;
    struct entry wanted = {.key = key_of(case_number, repeat)};
    return bsearch(&wanted, index->entries, index->n, sizeof(wanted), by_key);
}

struct cutting {
    struct store *store;
    struct index index;
    char *error;
    size_t len;
};

static int load(struct cutting *c, const char *name, struct buffer *text, struct table *t)
{
    char path[4400];
    int torn, err;

    snprintf(path, sizeof(path), "%s/%s", c->store->path, name);
    err = file_read(path, SIZE_MAX, text);
    if (err == -ENOENT)
        return ABSENT;
    if (err) {
        snprintf(c->error, c->len, "cannot read '%s': %s", path, strerror(-err));
        return err;
    }
    return table_parse_tail(path, text->text, text->size, t, &torn, c->error, c->len);
}

/* What to do with a line of a table, which is the entry's. */
typedef int row_fn(struct cutting *c, const struct table *t, size_t row, struct entry *entry);

/* Takes out every line for which `keep` is false; a file that needs no change is not touched. */
static int filter(struct cutting *c, const char *name, row_fn *keep)
{
    struct buffer text = {0}, kept = {0};
    struct table t = {0};
    int err = load(c, name, &text, &t);

    if (err)
        goto out;
    size_t case_column = table_column(&t, "case"), repeat_column = table_column(&t, "repeat");
    size_t begin = t.header_end;
    err = buffer_add(&kept, text.text, t.header_end);
    for (size_t row = 0; !err && row < t.n_rows; row++) {
        struct entry *entry = index_find(&c->index, &t, row, case_column, repeat_column);
        if (entry && keep(c, &t, row, entry))
            err = buffer_add(&kept, text.text + begin, t.ends[row] - begin);
        begin = t.ends[row];
    }
    if (!err && kept.size != text.size) {
        err = store_replace(c->store, name, kept.text, kept.size);
        if (err)
            snprintf(c->error, c->len, "cannot write '%s/%s': %s", c->store->path, name,
                     strerror(-err));
    }
out:
    table_release(&t);
    buffer_release(&text);
    buffer_release(&kept);
    return err == ABSENT ? 0 : err;
}

static int count_row(struct cutting *c, const struct table *t, size_t row, struct entry *entry)
{
    (void)c;
    (void)t;
    (void)row;
    entry->rows++;
    return 1;
}

static int note_wrong(struct cutting *c, const struct table *t, size_t row, struct entry *entry)
{
    (void)c;
    entry->wrong |= !strcmp(table_cell(t, row, table_column(t, "status")), "wrong");
    return 1;
}

static int is_committed(struct cutting *c, const struct table *t, size_t row, struct entry *entry)
{
    (void)t;
    (void)row;
    return c->store->plan->launches[entry->launch].state != LAUNCH_TODO;
}

/* The names of the benchmarks of the plan, each once; NULL-terminated, texts owned by the plan. */
static const char **bench_names(const struct plan *plan)
{
    const char **names = calloc(plan->n + 1, sizeof(*names));
    size_t n = 0;

    for (size_t i = 0; names && i < plan->n; i++) {
        size_t k = 0;
        while (k < n && strcmp(names[k], plan->launches[i].bench))
            k++;
        if (k == n)
            names[n++] = plan->launches[i].bench;
    }
    return names;
}

static int mark_todo(struct cutting *c, struct launch *l)
{
    char mark[PLAN_MARK_BYTES + 1];

    l->state = LAUNCH_TODO;
    l->rows = 0;
    plan_mark_text(l, mark);
    if (pwrite(c->store->plan_fd, mark, PLAN_MARK_BYTES, (off_t)l->mark_at) == PLAN_MARK_BYTES)
        return 0;
    snprintf(c->error, c->len, "cannot write '%s/plan.csv': %s", c->store->path, strerror(errno));
    return -EIO;
}

/* A launch that says done but whose rows are not all there (power was lost) is to do again. */
static int distrust(struct cutting *c)
{
    struct plan *plan = c->store->plan;
    int err = 0;

    for (size_t i = 0; !err && i < c->index.n; i++) {
        struct launch *l = &plan->launches[c->index.entries[i].launch];
        if (l->state != LAUNCH_TODO && l->rows != c->index.entries[i].rows)
            err = mark_todo(c, l);
    }
    return err;
}

static int clean(struct cutting *c)
{
    const char **names = bench_names(c->store->plan);
    int err = names ? index_make(c->store->plan, &c->index) : -ENOMEM;
    char name[160];

    for (size_t i = 0; !err && names[i]; i++) {
        snprintf(name, sizeof(name), "%s.csv", names[i]);
        err = filter(c, name, count_row);
    }
    if (!err)
        err = distrust(c);
    for (size_t i = 0; !err && names[i]; i++) {
        snprintf(name, sizeof(name), "%s.csv", names[i]);
        err = filter(c, name, is_committed);
        snprintf(name, sizeof(name), "samples/%s.csv", names[i]);
        if (!err)
            err = filter(c, name, is_committed);
    }
    free(c->index.entries);
    free(names);
    return err;
}

int store_redo(struct store *s, size_t launch, char *error, size_t len)
{
    struct cutting c = {.store = s, .error = error, .len = len};
    int err = mark_todo(&c, &s->plan->launches[launch]);

    return err ? err : clean(&c);
}

/* What it printed when it failed is no word of the launch to come. */
static int take_back(struct cutting *c, struct launch *l)
{
    char path[4400];

    snprintf(path, sizeof(path), "%s/log/%u-%u.txt", c->store->path, l->case_number, l->repeat);
    unlink(path);
    return mark_todo(c, l);
}

static int take_failed_back(struct cutting *c)
{
    int err = 0;

    for (size_t i = 0; !err && i < c->index.n; i++) {
        struct launch *l = &c->store->plan->launches[c->index.entries[i].launch];
        if ((l->state == LAUNCH_FAIL || l->state == LAUNCH_LATE) && !c->index.entries[i].wrong)
            err = take_back(c, l);
    }
    return err;
}

int store_retry(struct store *s, char *error, size_t len)
{
    struct cutting c = {.store = s, .error = error, .len = len};
    const char **names = bench_names(s->plan);
    int err = names ? index_make(s->plan, &c.index) : -ENOMEM;
    char name[160];

    for (size_t i = 0; !err && names[i]; i++) {
        snprintf(name, sizeof(name), "%s.csv", names[i]);
        err = filter(&c, name, note_wrong);
    }
    if (!err)
        err = take_failed_back(&c);
    free(c.index.entries);
    free(names);
    return err ? err : clean(&c);
}

static int read_plan(struct store *s, char *error, size_t len)
{
    char path[4400];
    struct table t = {0};

    snprintf(path, sizeof(path), "%s/plan.csv", s->path);
    int err = table_load(path, &t, error, len);
    if (!err)
        err = plan_from_table(&t, s->plan, error, len);
    table_release(&t);
    return err;
}

int store_open(const char *path, struct plan *plan, struct store **store, char *error, size_t len)
{
    struct store *s = NULL;
    struct cutting c = {.error = error, .len = len};

    *plan = (struct plan){0};
    int err = store_open_folder(path, plan, &s, error, len);
    if (err)
        return err;
    c.store = s;
    err = read_plan(s, error, len);
    if (!err)
        err = store_open_plan(s, error, len);
    if (!err)
        err = clean(&c);
    if (err) {
        store_close(s);
        plan_release(plan);
        return err;
    }
    *store = s;
    return 0;
}
