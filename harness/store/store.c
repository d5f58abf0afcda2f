/* SPDX-License-Identifier: Apache-2.0 */
/* Writing a run folder, and opening one to go on: see store.h. */
#include "harness/store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/units.h"
#include "harness/table.h"
#include "harness/text.h"

struct store_file {
    char name[128];
    int fd;
    uint64_t size, undo; /* bytes now, and before the last append */
    bool dirty, known;   /* known: its header has been compared */
};

struct store {
    char *path;
    int dir, plan_fd; /* the lock is on dir */
    struct plan *plan;
    struct store_file *files;
    size_t n_files;
    uint64_t last_sync_ns, spent_ns;
};

/* Of samples/BENCH.csv, with its line end. */
#define STORE_SAMPLES_HEADER "case,repeat,row,value,origin,disturbed\n"

/* The file of this name, opened for appending and kept open. */
static struct store_file *store_file(struct store *s, const char *name)
{
    for (size_t i = 0; i < s->n_files; i++)
        if (!strcmp(s->files[i].name, name))
            return &s->files[i];
    struct store_file *grown = realloc(s->files, (s->n_files + 1) * sizeof(*grown));
    if (!grown)
        return NULL;
    s->files = grown;
    struct store_file *f = &grown[s->n_files];
    *f = (struct store_file){
        .fd = openat(s->dir, name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)};
    snprintf(f->name, sizeof(f->name), "%s", name);
    struct stat st;
    if (f->fd < 0 || fstat(f->fd, &st)) {
        int err = errno;
        if (f->fd >= 0)
            close(f->fd);
        errno = err;
        return NULL;
    }
    f->size = (uint64_t)st.st_size;
    s->n_files++;
    return f;
}

static int complain(struct store *s, const char *name, int err, char *error, size_t len)
{
    const char *hint = err != -ENOSPC && err != -EDQUOT ? ""
                       : s->plan_fd < 0 ? ": free some space, then start it again" /* no folder */
                                        : ": free some space first";

    snprintf(error, len, "cannot write '%s/%s': %s%s", s->path, name, strerror(-err), hint);
    return err;
}

/* Rows go only under their own columns: a benchmark that was rebuilt may have others. */
static int check_header(struct store *s, struct store_file *f, const char *header, char *error,
                        size_t len)
{
    char path[4400];
    struct buffer start = {0};
    size_t size = strlen(header);

    if (f->known || f->size == 0)
        return 0;
    snprintf(path, sizeof(path), "%s/%s", s->path, f->name);
    int err = file_read(path, SIZE_MAX, &start);
    if (err)
        err = complain(s, f->name, err, error, len);
    else if (start.size < size || memcmp(start.text, header, size) != 0) {
        snprintf(error, len,
                 "'%s' has other columns than this benchmark prints now: it was rebuilt since the "
                 "run began; start a new run",
                 path);
        err = -ESTALE;
    }
    buffer_release(&start);
    f->known = !err;
    return err;
}

/* Appends header (to an empty file) and text in one write; undoes a write that was cut short. */
static int append(struct store *s, const char *name, const char *header, const char *text,
                  char *error, size_t len)
{
    struct store_file *f = store_file(s, name);
    struct buffer whole = {0};
    int err = 0;

    if (!f)
        return complain(s, name, errno ? -errno : -ENOMEM, error, len);
    err = check_header(s, f, header, error, len);
    if (err)
        return err;
    if (f->size == 0)
        err = buffer_try(&whole, header, strlen(header));
    err = err ? err : buffer_try(&whole, text, strlen(text));
    err = err ? err : write_all(f->fd, whole.text, whole.size);
    if (!err) {
        f->undo = f->size;
        f->size += whole.size;
        f->dirty = true;
    } else if (ftruncate(f->fd, (off_t)f->size)) {
        snprintf(error, len, "cannot write '%s/%s': %s, nor cut off what was half written", s->path,
                 name, strerror(-err));
    } else {
        complain(s, name, err, error, len);
    }
    buffer_release(&whole);
    return err;
}

static void undo(struct store *s, const char *name)
{
    struct store_file *f = store_file(s, name);

    if (f && ftruncate(f->fd, (off_t)f->undo) == 0)
        f->size = f->undo;
}

/* Some file systems know neither: what is written there is as safe as it gets. */
static bool is_unknown_there(int err)
{
    return err == EINVAL || err == ENOSYS || err == EOPNOTSUPP || err == ENOLCK;
}

static int sync_file(int (*sync)(int fd), int fd)
{
    return sync(fd) && !is_unknown_there(errno) ? -errno : 0;
}

/* Writes a file whole: beside it, synced, renamed. */
static int store_replace(struct store *s, const char *name, const char *text, size_t size)
{
    char temporary[300];
    snprintf(temporary, sizeof(temporary), "%s.new", name);
    int fd = openat(s->dir, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    int err = fd < 0 ? -errno : write_all(fd, text, size);

    if (!err)
        err = sync_file(fsync, fd);
    if (fd >= 0 && close(fd) && !err)
        err = -errno;
    if (!err && renameat(s->dir, temporary, s->dir, name))
        err = -errno;
    if (err && fd >= 0)
        unlinkat(s->dir, temporary, 0);
    if (!err)
        fsync(s->dir);
    return err;
}

int store_meta(struct store *s, const json_t *meta, char *error, size_t len)
{
    char *text = json_dumps(meta, JSON_INDENT(2));
    int err = text ? store_replace(s, "run.json", text, strlen(text)) : -ENOMEM;

    if (err)
        complain(s, "run.json", err, error, len);
    free(text);
    return err;
}

static int write_plan(struct store *s, char *error, size_t len)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    int err = out ? plan_print(out, s->plan) : -ENOMEM;

    if (out && fclose(out) && !err)
        err = -ENOMEM;
    if (!err)
        err = store_replace(s, "plan.csv", text, size);
    if (err)
        complain(s, "plan.csv", err, error, len);
    free(text);
    return err;
}

static int store_open_folder(const char *path, struct plan *plan, struct store **store, char *error,
                             size_t len)
{
    struct store *s = xcalloc(1, sizeof(*s));
    int err = 0;

    *s = (struct store){.path = xstrdup(path),
                        .dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
                        .plan_fd = -1,
                        .plan = plan};
    if (s->dir < 0) {
        err = -errno;
        snprintf(error, len, "cannot open the run folder '%s': %s", path, strerror(-err));
    } else if (flock(s->dir, LOCK_EX | LOCK_NB) && !is_unknown_there(errno)) {
        err = errno == EWOULDBLOCK ? -EBUSY : -errno;
        snprintf(error, len, "'%s' %s%s", path,
                 err == -EBUSY ? "is being written by another plumb" : "cannot be locked: ",
                 err == -EBUSY ? "" : strerror(-err));
    }
    if (err) {
        store_close(s);
        return err;
    }
    *store = s;
    return 0;
}

static int store_open_plan(struct store *s, char *error, size_t len)
{
    s->plan_fd = openat(s->dir, "plan.csv", O_WRONLY | O_CLOEXEC);
    s->last_sync_ns = clock_now_ns();
    return s->plan_fd < 0 ? complain(s, "plan.csv", -errno, error, len) : 0;
}

int store_extend(struct store *s, char *error, size_t len)
{
    uint64_t last_sync_ns = s->last_sync_ns; /* of the rows, which are not synced here */
    int err = write_plan(s, error, len);

    if (err)
        return err;
    close(s->plan_fd);
    err = store_open_plan(s, error, len);
    s->last_sync_ns = last_sync_ns;
    return err;
}

char *store_path(const char *out, const char *suite, const char *kind, char *error, size_t len)
{
    char stamp[32];
    time_t now = time(NULL);
    struct tm tm;

    if (out) {
        size_t n = strlen(out);

        while (n > 1 && out[n - 1] == '/')
            n--;
        return xstrndup(out, n);
    }
    if (mkdir("results", 0755) && errno != EEXIST) {
        snprintf(error, len, "cannot make the folder 'results' here: %s; name a folder with --out",
                 strerror(errno));
        return NULL;
    }
    gmtime_r(&now, &tm);
    strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &tm);
    return xasprintf("results/%.400s%s-%s", suite, kind, stamp);
}

/* A folder of an earlier start that was killed before it had a plan: nothing was promised for it.
 */
static void remove_unfinished(const char *path)
{
    static const char *const names[] = {"run.json", "run.json.new", "plan.csv", "plan.csv.new"};
    char name[4400];

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(name, sizeof(name), "%s/%s", path, names[i]);
        unlink(name);
    }
    snprintf(name, sizeof(name), "%s/samples", path);
    rmdir(name);
    snprintf(name, sizeof(name), "%s/log", path);
    rmdir(name);
    rmdir(path);
}

/* Fills the folder under another name, so that the one that was asked for is there whole or not at
 * all. */
static int create_at(const char *path, const char *building, const json_t *meta, struct plan *plan,
                     struct store **store, char *error, size_t len)
{
    struct store *s = NULL;
    int err = store_open_folder(building, plan, &s, error, len);

    static const char *const folders[] = {"samples", "log"};
    for (size_t i = 0; i < 2 && !err; i++)
        if (mkdirat(s->dir, folders[i], 0755) && errno != EEXIST)
            err = complain(s, folders[i], -errno, error, len);
    if (!err)
        err = store_meta(s, meta, error, len);
    if (!err)
        err = write_plan(s, error, len);
    if (!err)
        err = store_open_plan(s, error, len);
    if (!err && rename(building, path)) {
        err = -errno;
        snprintf(error, len, "cannot make the run folder '%s': %s", path, strerror(-err));
    }
    if (err) {
        store_close(s);
        return err;
    }
    free(s->path);
    s->path = xstrdup(path);
    *store = s;
    return 0;
}

int store_create(const char *path, const json_t *meta, struct plan *plan, struct store **store,
                 char *error, size_t len)
{
    char building[4300];
    int err = -EEXIST;

    snprintf(building, sizeof(building), "%s.new", path);
    if (access(path, F_OK) == 0) {
        snprintf(error, len,
                 "the run folder '%s' is there already: name another with --out, or go on with "
                 "--resume",
                 path);
        return err;
    }
    remove_unfinished(building);
    if (mkdir(building, 0755)) {
        err = -errno;
        snprintf(error, len, "cannot make the run folder '%s': %s; name another with --out", path,
                 strerror(-err));
        return err;
    }
    err = create_at(path, building, meta, plan, store, error, len);
    if (err)
        remove_unfinished(building);
    return err;
}

static int sync_now(struct store *s)
{
    int err = 0;

    for (size_t i = 0; i < s->n_files; i++) {
        int one = s->files[i].dirty ? sync_file(fdatasync, s->files[i].fd) : 0;
        err = err ? err : one;
        s->files[i].dirty = false;
    }
    int plan = s->plan_fd >= 0 ? sync_file(fdatasync, s->plan_fd) : 0;
    err = err ? err : plan;
    s->last_sync_ns = clock_now_ns();
    return err;
}

/* A log is not part of the commit: it is whole or not there. */
static int write_log(struct store *s, const struct launch *l, const char *text, char *error,
                     size_t len)
{
    char name[64];

    if (!*text)
        return 0;
    snprintf(name, sizeof(name), "log/%u-%u.txt", l->case_number, l->repeat);
    int fd = openat(s->dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    int err = fd < 0 ? -errno : write_all(fd, text, strlen(text));
    if (fd >= 0)
        close(fd);
    if (err) {
        unlinkat(s->dir, name, 0);
        complain(s, name, err, error, len);
    }
    return err;
}

static int commit(struct store *s, struct launch *l, const struct launch_record *r, char *error,
                  size_t len)
{
    char rows_name[128], samples_name[128], mark[PLAN_MARK_BYTES + 1];
    struct launch marked = *l;

    snprintf(rows_name, sizeof(rows_name), "%s.csv", l->bench);
    snprintf(samples_name, sizeof(samples_name), "samples/%s.csv", l->bench);
    int err = write_log(s, l, r->log ? r->log : "", error, len);
    if (err)
        return err;
    bool samples = r->samples && *r->samples;
    if (samples && (err = append(s, samples_name, STORE_SAMPLES_HEADER, r->samples, error, len)))
        return err;
    err = append(s, rows_name, r->header, r->rows, error, len);
    marked.state = r->state;
    marked.rows = r->n_rows;
    plan_mark_text(&marked, mark);
    errno = 0;
    if (!err && pwrite(s->plan_fd, mark, PLAN_MARK_BYTES, (off_t)l->mark_at) != PLAN_MARK_BYTES) {
        err = complain(s, "plan.csv", errno ? -errno : -EIO, error, len);
        undo(s, rows_name);
    }
    if (err && samples)
        undo(s, samples_name);
    if (!err)
        *l = marked;
    return err;
}

int store_commit(struct store *s, size_t launch, const struct launch_record *record, char *error,
                 size_t len)
{
    uint64_t begin_ns = clock_now_ns();
    int err = commit(s, &s->plan->launches[launch], record, error, len);

    if (!err && clock_now_ns() - s->last_sync_ns >= STORE_SYNC_NS) {
        err = sync_now(s);
        if (err)
            snprintf(error, len, "cannot sync '%s' to the disk: %s", s->path, strerror(-err));
    }
    s->spent_ns += clock_now_ns() - begin_ns;
    return err;
}

uint64_t store_spent_ns(const struct store *s)
{
    return s->spent_ns;
}

int store_close(struct store *s)
{
    if (!s)
        return 0;
    int err = sync_now(s);
    for (size_t i = 0; i < s->n_files; i++)
        close(s->files[i].fd);
    if (s->plan_fd >= 0)
        close(s->plan_fd);
    if (s->dir >= 0)
        close(s->dir);
    free(s->files);
    free(s->path);
    free(s);
    return err;
}

/* Opening a run folder to go on: what was committed is kept, whatever else is there is taken out.
 * See store.h. */

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

static struct index index_make(const struct plan *plan)
{
    struct index index = {xcalloc(plan->n, sizeof(*index.entries)), plan->n};

    for (size_t i = 0; i < plan->n; i++)
        index.entries[i] = (struct entry){
            key_of(plan->launches[i].case_number, plan->launches[i].repeat), i, 0, false};
    qsort(index.entries, index.n, sizeof(*index.entries), by_key);
    return index;
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

/* Takes out every line of a file that is of no launch of the plan, and, where `committed`, of one that
 * is to do; a file that needs no change is not touched. Else counts the rows of each launch. */
static int filter(struct cutting *c, const char *name, bool committed)
{
    struct buffer text = {0}, kept = {0};
    struct table t = {0};
    int err = load(c, name, &text, &t);

    if (err)
        goto out;
    size_t case_column = table_column(&t, "case"), repeat_column = table_column(&t, "repeat");
    size_t status_column = table_column(&t, "status"), begin = t.header_end;
    buffer_add(&kept, text.text, t.header_end);
    for (size_t row = 0; row < t.n_rows; begin = t.ends[row++]) {
        struct entry *entry = index_find(&c->index, &t, row, case_column, repeat_column);
        if (!entry || (committed && c->store->plan->launches[entry->launch].state == LAUNCH_TODO))
            continue;
        entry->rows += !committed;
        entry->wrong |= !strcmp(table_cell(&t, row, status_column), "wrong");
        buffer_add(&kept, text.text + begin, t.ends[row] - begin);
    }
    if (kept.size != text.size) {
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

/* The files of all benchmarks of the plan. */
static int filter_all(struct cutting *c, bool committed)
{
    const struct plan *plan = c->store->plan;
    char name[160];
    int err = 0;

    for (size_t i = 0; !err && i < plan->n; i++) {
        const char *bench = plan->launches[i].bench;
        size_t k = 0;
        while (strcmp(plan->launches[k].bench, bench) != 0)
            k++;
        if (k < i) /* it was before */
            continue;
        snprintf(name, sizeof(name), "%s.csv", bench);
        err = filter(c, name, committed);
        snprintf(name, sizeof(name), "samples/%s.csv", bench);
        if (!err && committed)
            err = filter(c, name, true);
    }
    return err;
}

static int mark_todo(struct cutting *c, struct launch *l)
{
    char mark[PLAN_MARK_BYTES + 1];

    l->state = LAUNCH_TODO;
    l->rows = 0;
    plan_mark_text(l, mark);
    errno = 0;
    if (pwrite(c->store->plan_fd, mark, PLAN_MARK_BYTES, (off_t)l->mark_at) == PLAN_MARK_BYTES)
        return 0;
    return complain(c->store, "plan.csv", errno ? -errno : -EIO, c->error, c->len);
}

static int clean(struct cutting *c)
{
    c->index = index_make(c->store->plan);
    int err = filter_all(c, false);
    /* A launch that says done but whose rows are not all there (power was lost) is to do again. */
    for (size_t i = 0; !err && i < c->index.n; i++) {
        struct launch *l = &c->store->plan->launches[c->index.entries[i].launch];
        if (l->state != LAUNCH_TODO && l->rows != c->index.entries[i].rows)
            err = mark_todo(c, l);
    }
    if (!err)
        err = filter_all(c, true);
    free(c->index.entries);
    return err;
}

int store_redo(struct store *s, size_t launch, char *error, size_t len)
{
    struct cutting c = {.store = s, .error = error, .len = len};
    int err = mark_todo(&c, &s->plan->launches[launch]);

    return err ? err : clean(&c);
}

int store_retry(struct store *s, char *error, size_t len)
{
    struct cutting c = {.store = s, .index = index_make(s->plan), .error = error, .len = len};
    int err = filter_all(&c, false);

    for (size_t i = 0; !err && i < c.index.n; i++) {
        struct launch *l = &s->plan->launches[c.index.entries[i].launch];
        char log[64];

        if (!launch_state_is_bad(l->state) || c.index.entries[i].wrong)
            continue;
        /* What it printed when it failed is no word of the launch to come. */
        snprintf(log, sizeof(log), "log/%u-%u.txt", l->case_number, l->repeat);
        unlinkat(s->dir, log, 0);
        err = mark_todo(&c, l);
    }
    free(c.index.entries);
    return err ? err : clean(&c);
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
    char file[4400];
    struct table t = {0};

    snprintf(file, sizeof(file), "%s/plan.csv", s->path);
    err = table_load(file, &t, error, len);
    if (!err)
        err = plan_from_table(&t, s->plan, error, len);
    table_release(&t);
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
