/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a crosscheck leaves behind, in its folder:
 *   crosscheck.csv    a line a comparison      crosscheck.json   the same and more, for programs
 *   pairs.csv         a line a pair, written as they end
 *   log/              what every run of both printed: NAME-PAIR-WHAT
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/text.h"
#include "harness/crosscheck/check.h"
#include "harness/store/store.h"

static int fail(struct check *c, const char *what, const char *path)
{
    int err = errno ? -errno : -EIO;

    snprintf(c->error, sizeof(c->error), "cannot %s '%.400s': %s", what, path, strerror(-err));
    return err;
}

static int fail_folder(struct check *c)
{
    int err = -errno;

    snprintf(c->error, sizeof(c->error),
             "cannot make the folder '%.400s': %s; name another with --out", c->folder,
             strerror(-err));
    return err;
}

const char *check_path(const struct check *c, const char *name, char path[CHECK_PATH_MAX])
{
    snprintf(path, CHECK_PATH_MAX, "%s/%s", c->folder, name);
    return path;
}

static int choose_folder(struct check *c)
{
    char path[64];
    time_t now = time(NULL);
    struct tm tm;

    if (c->options.out) {
        c->folder = strdup(c->options.out);
    } else {
        gmtime_r(&now, &tm);
        strftime(path, sizeof(path), "results/crosscheck-%Y%m%d-%H%M%S", &tm);
        int err = store_make_results(c->error, sizeof(c->error));
        if (err)
            return err;
        c->folder = strdup(path);
    }
    if (c->folder && strlen(c->folder) < CHECK_PATH_MAX - 128)
        return 0;
    errno = c->folder ? ENAMETOOLONG : ENOMEM;
    return fail(c, "make", c->options.out ? c->options.out : path);
}

int check_open_folder(struct check *c)
{
    char path[CHECK_PATH_MAX];
    int err = choose_folder(c);

    if (err)
        return err;
    if (mkdir(c->folder, 0755)) /* one that is there holds another's results */
        return fail_folder(c);
    if (mkdir(check_path(c, "log", path), 0755))
        return fail(c, "make", path);
    c->pairs_file = fopen(check_path(c, "pairs.csv", path), "we");
    if (!c->pairs_file)
        return fail(c, "write", path);
    fputs("witness,pair,first,unit,ours,theirs,ratio,printed,printed_unit,cpus,detail\n",
          c->pairs_file);
    return fflush(c->pairs_file) ? fail(c, "write", path) : 0;
}

int check_close_folder(struct check *c)
{
    char path[CHECK_PATH_MAX];
    int failed = c->pairs_file && fclose(c->pairs_file);

    c->pairs_file = NULL;
    return failed ? fail(c, "write", check_path(c, "pairs.csv", path)) : 0;
}

int check_keep(struct check *c, const struct comparison *m, const char *what,
               const struct buffer *text)
{
    char name[96], path[CHECK_PATH_MAX];

    if (!text->size)
        return 0;
    snprintf(name, sizeof(name), "log/%.40s-%03zu-%.32s", m->w->name, m->pairs + 1, what);
    int fd = open(check_path(c, name, path), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0)
        return fail(c, "write", path);
    int err = write_all(fd, text->text, text->size);
    if (close(fd) && !err)
        err = -errno;
    errno = -err;
    return err ? fail(c, "write", path) : 0;
}

int check_keep_pair(struct check *c, const struct comparison *m, bool ours_first)
{
    char path[CHECK_PATH_MAX];
    FILE *out = c->pairs_file;
    size_t i = m->pairs;

    fprintf(out, "%s,%zu,%s,%s,", m->w->name, i + 1, ours_first ? "ours" : "theirs", m->w->unit);
    csv_print_number(out, m->ours[i]);
    putc(',', out);
    csv_print_number(out, m->theirs[i]);
    putc(',', out);
    csv_print_number(out, m->ours[i] / m->theirs[i]);
    putc(',', out);
    csv_print_number(out, m->printed[i]);
    fprintf(out, ",%s,", m->w->printed_unit);
    csv_print(out, m->last.cpus);
    putc(',', out);
    csv_print(out, m->last.detail);
    putc('\n', out);
    return fflush(out) ? fail(c, "write", check_path(c, "pairs.csv", path)) : 0;
}
