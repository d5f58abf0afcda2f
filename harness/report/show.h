/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers and parameters as people read them. Every text lives in the pool. */
#ifndef PLUMB_REPORT_SHOW_H
#define PLUMB_REPORT_SHOW_H

#include <stdbool.h>
#include <stddef.h>

#include "harness/document/document.h"
#include "harness/document/pool.h"
#include "harness/report/model.h"

const char *show_short(struct pool *pool, double value); /* three digits: 0.012, 12.3, 1234 */
const char *show_interval(struct pool *pool, const struct report_point *p); /* "12.3 to 12.4" */
/* What a value is shown times, and in which unit, so that it is from 1 to 999 where there is such a
 * unit: 4308 GB/s is shown as 4.31 TB/s, 0.2 us as 200 ns. */
struct show_scale {
    double factor;
    const char *unit;
};
struct show_scale show_scale(struct pool *pool, double value, const char *unit);
const char *show_count(struct pool *pool, size_t n, const char *thing); /* "1 row", "2 rows" */

/* " (simulated)", behind a value that was not measured; "" behind one that was. */
const char *show_origin(struct pool *pool, const char *origin);

/* A column's name; that of what was chosen is the option's: isa of isa_used. */
const char *show_column(struct pool *pool, const struct report_bench *b, size_t param);
/* A parameter's value: 65536 as 64K where the benchmark's hint says that it is a size in bytes. */
const char *show_param(struct pool *pool, const struct report_bench *b, size_t param,
                       const char *text);

/* The same with its name before a number: "threads 2", but "triad"; the ends of a copy as "from
 * node0" and "to cuda:0", and so the hosts of a pair. */
const char *show_named_param(struct pool *pool, const struct report_bench *b, size_t param,
                             const char *text);

/* The same with its name always: "dtype f64". */
const char *show_full_param(struct pool *pool, const struct report_bench *b, size_t param,
                            const char *text);

/* Does the parameter tell the case from others of the benchmark, of the same metric where there are
 * any? Not where it is the same in all of them, or follows from others. Of a case that stands alone
 * all is said. */
bool show_tells_apart(const struct report_bench *b, const struct report_case *c, size_t param);

/* The form with the text in place of its "%s", where it has one. */
const char *show_filled(struct pool *pool, const char *form, const char *text);

/* Texts joined by ", "; either may be "". */
const char *show_joined(struct pool *pool, const char *list, const char *item);
/* Is it one of "Memory, Network"? "Memory" is not in "GPU memory". */
bool show_lists(const char *list, const char *item);

/* Names for pool_list(), one by one. */
struct show_list {
    struct pool *pool;
    size_t max;        /* that are named */
    const char *parts; /* between them; NULL: ", " */
    const char **names;
    size_t n;
};

void show_list_add(struct show_list *list, const char *item);
const char *show_list_text(const struct show_list *list); /* "" of none */

/* ---- What several runs, or launches, say of one thing ---- */

/* The text itself where all n are the same; else "6.1 in 2 of 3 runs, 6.5 in 1", in the order in
 * which they come first, and *mixed (may be NULL) is set. Those that are "" count among the n
 * alone. things: "runs". Lives in the pool. */
const char *shares_text(struct pool *pool, const char *const *texts, size_t n, const char *things,
                        bool *mixed);

#endif
