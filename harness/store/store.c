/* SPDX-License-Identifier: Apache-2.0 */
/* Writing a run folder: see store.h. Opening one to go on is in store_open.c. */
#include "harness/store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/clock.h"
#include "harness/store/store_files.h"
#include "harness/text.h"

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
    const char *hint = err == -ENOSPC || err == -EDQUOT
                           ? ": free some space, then go on with `plumb run --resume`"
                           : "";

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
        err = buffer_add(&whole, header, strlen(header));
    if (!err)
        err = buffer_add(&whole, text, strlen(text));
    if (!err)
        err = write_all(f->fd, whole.text, whole.size);
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

int store_replace(struct store *s, const char *name, const char *text, size_t size)
{
    char temporary[300];
    snprintf(temporary, sizeof(temporary), "%s.new", name);
    int fd = openat(s->dir, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    int err = fd < 0 ? -errno : write_all(fd, text, size);

    if (!err && fsync(fd))
        err = -errno;
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

    if (out)
        fclose(out);
    if (!err)
        err = store_replace(s, "plan.csv", text, size);
    if (err)
        complain(s, "plan.csv", err, error, len);
    free(text);
    return err;
}

int store_open_folder(const char *path, struct plan *plan, struct store **store, char *error,
                      size_t len)
{
    struct store *s = calloc(1, sizeof(*s));
    int err = s ? 0 : -ENOMEM;

    if (err)
        return err;
    *s = (struct store){.path = strdup(path),
                        .dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
                        .plan_fd = -1,
                        .plan = plan};
    if (s->dir < 0) {
        err = -errno;
        snprintf(error, len, "cannot open the run folder '%s': %s", path, strerror(-err));
    } else if (flock(s->dir, LOCK_EX | LOCK_NB)) {
        err = errno == EWOULDBLOCK ? -EBUSY : -errno;
        snprintf(error, len, "'%s' is being written by another plumb", path);
    }
    if (err) {
        store_close(s);
        return err;
    }
    *store = s;
    return 0;
}

int store_open_plan(struct store *s, char *error, size_t len)
{
    s->plan_fd = openat(s->dir, "plan.csv", O_WRONLY | O_CLOEXEC);
    s->last_sync_ns = clock_now_ns();
    return s->plan_fd < 0 ? complain(s, "plan.csv", -errno, error, len) : 0;
}

static int make_subfolders(struct store *s, char *error, size_t len)
{
    static const char *const names[] = {"samples", "log"};

    for (size_t i = 0; i < 2; i++)
        if (mkdirat(s->dir, names[i], 0755) && errno != EEXIST)
            return complain(s, names[i], -errno, error, len);
    return 0;
}

int store_make_results(char *error, size_t len)
{
    int err = mkdir("results", 0755) && errno != EEXIST ? -errno : 0;

    if (err)
        snprintf(error, len, "cannot make the folder 'results' here: %s; name a folder with --out",
                 strerror(-err));
    return err;
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

    if (!err)
        err = make_subfolders(s, error, len);
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
    if (!err) {
        free(s->path);
        s->path = strdup(path);
        err = s->path ? 0 : -ENOMEM;
    }
    if (err)
        store_close(s);
    else
        *store = s;
    return err;
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
        if (s->files[i].dirty && fdatasync(s->files[i].fd) && !err)
            err = -errno;
        s->files[i].dirty = false;
    }
    if (s->plan_fd >= 0 && fdatasync(s->plan_fd) && !err)
        err = -errno;
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
