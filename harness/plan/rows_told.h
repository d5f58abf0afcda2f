/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What benchmarks said of their rows (core/bench_rows.h), read from JSON: of --describe, or of a
 * run folder, whose run.json keeps the object `rows` of every benchmark that was installed, by
 * name, under `benchmarks`. Folders of before that have none: for those what the benchmarks of then
 * would have said is part of this program (benches-before.json), and is not changed any more.
 */
#ifndef PLUMB_PLAN_ROWS_TOLD_H
#define PLUMB_PLAN_ROWS_TOLD_H

#include <jansson.h>

#include "core/bench_rows.h"

/* Reads one such object. All tables are there, ended as bench_rows.h says; their texts are the
 * JSON's, which is to live as long. A text that every entry needs is there. 0; -EBADMSG: it is
 * damaged, error says where; -ENOMEM. *rows is empty on an error. */
int rows_told_read(const json_t *told, struct bench_rows *rows, char *error, size_t len);
void rows_told_release(struct bench_rows *rows);

/* Adds those columns of `from` that `rows` lacks: another version's. 0 or -ENOMEM. */
int rows_told_add_columns(struct bench_rows *rows, const struct bench_rows *from);

/* The benchmarks that runs of before tell nothing of, by name. A new object, or NULL: no memory. */
json_t *rows_told_before(void);

#endif
