/* SPDX-License-Identifier: Apache-2.0 */
/* Making a report: see report.h. */
#include "harness/report/report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/text.h"
#include "harness/report/page.h"
#include "harness/report/scaling.h"
#include "harness/report/summary.h"

struct making {
    struct report report;
    struct headlines headlines;
    struct figures *figures;
    const char *out_dir;
    const struct report_section *verdicts; /* or NULL */
    bool unfolded;
    char *error;
    size_t len;
};

static int cannot_write(struct making *m, const char *path, int err)
{
    snprintf(m->error, m->len, "cannot write \"%s\": %s", path, strerror(-err));
    return -EIO; /* -ENOENT would say that there is no run */
}

/* Each chart as a file, beside the page. */
static int write_plots(struct making *m)
{
    struct plot plots[FIGURES_MAX];

    if (!m->figures->n)
        return 0;
    for (size_t i = 0; i < m->figures->n; i++)
        plots[i] = m->figures->all[i].plot;
    return plot_write_files(&m->report.pool, plots, m->figures->n,
                            pool_text(&m->report.pool, "%s/plots", m->out_dir), m->error, m->len);
}

static void put_page(struct making *m, FILE *out)
{
    const struct page page = {.out = out,
                              .r = &m->report,
                              .headlines = &m->headlines,
                              .figures = m->figures,
                              .verdicts = m->verdicts,
                              .unfolded = m->unfolded};

    page_write(&page);
}

static void put_csv(struct making *m, FILE *out)
{
    summary_lines(out, NULL, &m->report, &m->headlines);
}

static void put_json(struct making *m, FILE *out)
{
    summary_lines(NULL, out, &m->report, &m->headlines);
}

/* fresh: its name until it is whole. */
static int write_file(struct making *m, void (*put)(struct making *, FILE *), const char *path,
                      const char *fresh)
{
    FILE *out = fopen(fresh, "we");

    if (!out)
        return cannot_write(m, path, -errno);
    put(m, out);
    bool synced = !fflush(out) && (!fsync(fileno(out)) || errno == EINVAL || errno == ENOSYS);
    int err = synced ? 0 : -errno, lost = stream_finish(out);
    err = lost ? lost : err;
    return err ? cannot_write(m, path, err) : 0;
}

/* Written beside, then renamed: a file is whole or the old one. */
static int replace_file(struct making *m, const char *name, void (*put)(struct making *, FILE *))
{
    char *path = xasprintf("%s/%s", m->out_dir, name);
    char *fresh = xasprintf("%s/.%s.new", m->out_dir, name);
    int err = write_file(m, put, path, fresh);

    if (!err && rename(fresh, path))
        err = cannot_write(m, path, -errno);
    if (err)
        unlink(fresh);
    free(fresh);
    free(path);
    return err;
}

static int make(struct making *m, const char *const *runs, size_t n)
{
    int err = report_load(&m->report, runs, n, m->error, m->len);

    if (err)
        return err;
    m->figures = pool_alloc(&m->report.pool, 1, sizeof(*m->figures));
    headlines_make(&m->report, &m->headlines);
    figures_make(&m->report, m->figures);
    scaling_figures(&m->report, &m->headlines, m->figures);
    if (mkdir(m->out_dir, 0777) && errno != EEXIST)
        return cannot_write(m, m->out_dir, -errno);
    err = replace_file(m, "report.html", put_page);
    err = err ? err : replace_file(m, "summary.csv", put_csv);
    err = err ? err : replace_file(m, "summary.json", put_json);
    return err ? err : write_plots(m);
}

int report_make(const char *const *runs, size_t n, const char *out_dir,
                const struct report_section *verdicts, bool unfolded, char *error, size_t len)
{
    struct making *m = xcalloc(1, sizeof(*m));
    int err;

    m->error = error;
    m->len = len;
    m->verdicts = verdicts;
    m->unfolded = unfolded;
    m->out_dir = out_dir ? out_dir : n ? runs[0] : ".";
    if (!n) {
        snprintf(error, len, "no run is named");
        err = -EINVAL;
    } else if (n > 1 && !out_dir) {
        snprintf(error, len, "several runs need a folder for their report: give --out DIR");
        err = -EINVAL;
    } else if (n > REPORT_RUNS_MAX) {
        snprintf(error, len, "%zu runs are too many for one page: at most %d", n, REPORT_RUNS_MAX);
        err = -EINVAL;
    } else {
        err = make(m, runs, n);
    }
    report_release(&m->report);
    free(m);
    return err;
}
