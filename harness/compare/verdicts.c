/* SPDX-License-Identifier: Apache-2.0 */
/* plumb report, with verdicts where a baseline is given: see compare.h. */
#include "harness/compare/compare.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "harness/report/report.h"

#define COMPARE_MARGIN 0.05 /* where neither the user nor the suite says one */

struct verdicts {
    struct pairs pairs;
    struct view view;
};

static void close_verdicts(void *verdicts)
{
    struct verdicts *of = verdicts;

    pairs_release(&of->pairs);
    free(of);
}

static int open_verdicts(const char *run, const char *baseline, void **verdicts, char *error,
                         size_t len)
{
    const struct pairs_options options = {.margin = COMPARE_MARGIN};
    struct verdicts *of = xcalloc(1, sizeof(*of));
    int err = pairs_load(&of->pairs, &baseline, 1, &run, 1, &options, error, len);

    if (!err)
        err = pairs_refuse_same(&of->pairs, error, len);
    if (err) {
        close_verdicts(of);
        /* nothing is damaged: another program's run */
        return err == -EPROTO || err == -EEXIST ? -EINVAL : err;
    }
    view_make(&of->pairs, NULL, &of->view);
    *verdicts = of;
    return 0;
}

static void write_section(FILE *out, void *verdicts)
{
    view_print_html_section(out, &((struct verdicts *)verdicts)->view);
}

static void write_line(FILE *out, void *verdicts)
{
    struct view *v = &((struct verdicts *)verdicts)->view;
    const struct document_terminal terminal = document_terminal_of(out);
    struct document *d = document_new(v->pool);

    document_paragraph(d, pool_text(v->pool, "against the baseline: %s", v->verdict));
    document_write_terminal(d, &terminal, out);
}

int compare_report(const char *a, const char *b, const char *out, char *error, size_t len)
{
    const char *const runs[] = {a, b};
    void *verdicts = NULL;
    int err = open_verdicts(b, a, &verdicts, error, len);
    const struct report_section section = {write_section, verdicts};

    /* what cannot be compared may be shown all the same */
    err = report_make(runs, 2, out, err ? NULL : &section, false, error, len);
    if (verdicts)
        close_verdicts(verdicts);
    return err;
}

int cmd_report(int argc, char **argv)
{
    static const struct report_judge judge = {.open = open_verdicts,
                                              .section = write_section,
                                              .line = write_line,
                                              .close = close_verdicts};

    return report_command(argc, argv, &judge);
}
