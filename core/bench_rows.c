/* SPDX-License-Identifier: Apache-2.0 */
/* What a benchmark says of its rows, as data: see bench_rows.h. */
#include "core/bench_rows.h"

#include <stddef.h>

const char *const bench_stage_names[] = {"",        "compute", "memory", "copy", "call",
                                         "latency", "network", "group",  NULL};
const char *const bench_part_names[] = {"",        "product", "stream", "call",
                                        "sum",     "scatter", "gather", "exchange",
                                        "message", "overlap", "step",   NULL};
static const char *const better_names[] = {"", "more", "less", NULL};
static const char *const limit_names[] = {"machine",   "gpu",          "host link",
                                          "peer link", "nvlink group", NULL};

#define TEXT(s, member)                                                                            \
    {                                                                                              \
#member, ROWS_TEXT, 0, offsetof(struct s, member), NULL                                    \
    }
#define NEEDED(s, member)                                                                          \
    {                                                                                              \
#member, ROWS_TEXT, ROWS_NEEDED, offsetof(struct s, member), NULL                          \
    }
#define NUMBER(s, member)                                                                          \
    {                                                                                              \
#member, ROWS_NUMBER, 0, offsetof(struct s, member), NULL                                  \
    }
#define FLAG(s, name, bit)                                                                         \
    {                                                                                              \
        name, ROWS_FLAG, bit, offsetof(struct s, flags), NULL                                      \
    }
#define CHOICE(s, member, from)                                                                    \
    {                                                                                              \
#member, ROWS_CHOICE, 0, offsetof(struct s, member), from                                  \
    }
#define END                                                                                        \
    {                                                                                              \
        NULL, ROWS_TEXT, 0, 0, NULL                                                                \
    }

static const struct rows_field columns[] = {
    NEEDED(bench_column, name),
    FLAG(bench_column, "outcome", COLUMN_OUTCOME),
    FLAG(bench_column, "decides", COLUMN_DECIDES),
    FLAG(bench_column, "used", COLUMN_USED),
    FLAG(bench_column, "bytes", COLUMN_BYTES),
    FLAG(bench_column, "place", COLUMN_PLACE),
    TEXT(bench_column, sought_by),
    END,
};

static const struct rows_field metrics[] = {
    NEEDED(bench_metric, name),
    TEXT(bench_metric, units),
    CHOICE(bench_metric, better, better_names),
    TEXT(bench_metric, unjudged),
    TEXT(bench_metric, where),
    TEXT(bench_metric, says),
    END,
};

static const struct rows_field headlines[] = {
    NEEDED(bench_headline, pipe),
    NEEDED(bench_headline, label),
    NEEDED(bench_headline, where),
    TEXT(bench_headline, by),
    TEXT(bench_headline, at),
    NUMBER(bench_headline, low_below),
    CHOICE(bench_headline, stage, bench_stage_names),
    FLAG(bench_headline, "gpu", HEADLINE_GPU),
    FLAG(bench_headline, "tail", HEADLINE_TAIL),
    FLAG(bench_headline, "quiet", HEADLINE_QUIET),
    FLAG(bench_headline, "over", HEADLINE_OVER),
    END,
};

static const struct rows_field contrasts[] = {
    NEEDED(bench_contrast, title),
    NEEDED(bench_contrast, where),
    NEEDED(bench_contrast, column),
    NEEDED(bench_contrast, other),
    TEXT(bench_contrast, by),
    NEEDED(bench_contrast, lower),
    NEEDED(bench_contrast, higher),
    NEEDED(bench_contrast, same),
    FLAG(bench_contrast, "gpu", HEADLINE_GPU),
    END,
};

static const struct rows_field siblings[] = {
    NEEDED(bench_sibling, title),
    NEEDED(bench_sibling, where),
    NEEDED(bench_sibling, column),
    TEXT(bench_sibling, against),
    TEXT(bench_sibling, but),
    TEXT(bench_sibling, named),
    NUMBER(bench_sibling, below),
    NEEDED(bench_sibling, says),
    TEXT(bench_sibling, refused),
    TEXT(bench_sibling, absent),
    END,
};

static const struct rows_field plots[] = {
    NEEDED(bench_plot, x),
    TEXT(bench_plot, lines),
    TEXT(bench_plot, ignore),
    TEXT(bench_plot, square),
    TEXT(bench_plot, undrawn),
    TEXT(bench_plot, elsewhere),
    FLAG(bench_plot, "gpu", PLOT_GPU),
    FLAG(bench_plot, "bytes", PLOT_BYTES),
    FLAG(bench_plot, "cache_marks", PLOT_CACHE_MARKS),
    END,
};

static const struct rows_field terms[] = {
    NEEDED(bench_terms, where),
    NEEDED(bench_terms, messages),
    NEEDED(bench_terms, bytes),
    NEEDED(bench_terms, bus),
    END,
};

static const struct rows_field pipes[] = {
    NEEDED(bench_pipe, pipe),
    TEXT(bench_pipe, where),
    FLAG(bench_pipe, "gpu", HEADLINE_GPU),
    END,
};

static const struct rows_field limits[] = {
    NEEDED(bench_limit, where),  CHOICE(bench_limit, of, limit_names),
    TEXT(bench_limit, figures),  NUMBER(bench_limit, times),
    TEXT(bench_limit, by),       TEXT(bench_limit, remark),
    TEXT(bench_limit, exceeded), END,
};

static const struct rows_field experiments[] = {
    NEEDED(bench_experiment, check),
    NEEDED(bench_experiment, cause),
    NEEDED(bench_experiment, lost),
    TEXT(bench_experiment, both),
    NEEDED(bench_experiment, with),
    NEEDED(bench_experiment, without),
    TEXT(bench_experiment, unset),
    NEEDED(bench_experiment, metric),
    TEXT(bench_experiment, where),
    TEXT(bench_experiment, counts),
    TEXT(bench_experiment, absent),
    NEEDED(bench_experiment, pipe),
    TEXT(bench_experiment, machine),
    TEXT(bench_experiment, lacks),
    END,
};

static const struct rows_field parts[] = {
    NEEDED(bench_part, where),
    CHOICE(bench_part, of, bench_part_names),
    TEXT(bench_part, rate),
    NEEDED(bench_part, measure),
    END,
};

static const struct rows_field starts[] = {
    NEEDED(bench_start, what),
    TEXT(bench_start, where),
    END,
};

static const struct rows_field imported[] = {
    NEEDED(bench_imported, program),  TEXT(bench_imported, where),
    NEEDED(bench_imported, quantity), NEEDED(bench_imported, metric),
    NEEDED(bench_imported, columns),  TEXT(bench_imported, differs),
    TEXT(bench_imported, refused),    END,
};

static const struct rows_field jobs[] = {
    NEEDED(bench_job, label), NEEDED(bench_job, where),
    NEEDED(bench_job, by),    TEXT(bench_job, at),
    TEXT(bench_job, on),      TEXT(bench_job, thing),
    TEXT(bench_job, stated),  TEXT(bench_job, stated_where),
    NUMBER(bench_job, gain),  END,
};

static const struct rows_field bounds[] = {
    NEEDED(bench_bound, where),
    NEEDED(bench_bound, word),
    NEEDED(bench_bound, says),
    TEXT(bench_bound, todo),
    FLAG(bench_bound, "rest", BOUND_REST),
    END,
};

static const struct rows_field advice[] = {
    NEEDED(bench_advice, column),
    TEXT(bench_advice, where),
    NEEDED(bench_advice, says),
    TEXT(bench_advice, measure),
    END,
};

#define LIST(member)                                                                               \
    {                                                                                              \
#member, offsetof(struct bench_rows, member), sizeof(*((struct bench_rows *)0)->member),   \
            member                                                                                 \
    }

const struct rows_list rows_lists[] = {
    LIST(columns), LIST(metrics),      LIST(headlines), LIST(contrasts), LIST(siblings),
    LIST(plots),   LIST(terms),        LIST(pipes),     LIST(limits),    LIST(experiments),
    LIST(parts),   LIST(starts),       LIST(imported),  LIST(jobs),      LIST(bounds),
    LIST(advice),  {NULL, 0, 0, NULL},
};
