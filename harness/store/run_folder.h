/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run folder as it is read: run.json, plan.csv, a table of rows per benchmark. Writing is in
 * store.h.
 *
 *   run.json              what, where, when, on which machine: see harness/run/run.h
 *   plan.csv              state,rows,order,case,repeat,bench,arguments,timeout_s
 *                         a line a launch, in the order they are run; behind these from,to,hosts
 *                         where launches are for hosts, margin where the suite says one, and turn
 *                         (first, second) where they are measured in turn with those of another run
 *   BENCH.csv             rows, see core/row.h
 *   samples/BENCH.csv     case,repeat,row,value,origin,disturbed
 *                         every sample in its row's unit; row counts from 0 within a launch
 *   log/CASE-REPEAT.txt   what a launch wrote to stderr, where it wrote anything;
 *                         before it the choices that it was given: harness/run/launch.h
 *   plots/, report.html   made by plumb report
 *
 * The state in plan.csv is todo (not run), done, skip (cannot run here), fail (failed or wrong) or
 * late (over its time-out). A launch counts when its state is not todo and as many of its rows are
 * there as `rows` says. Rows of launches that are todo are a torn tail and are not read. A launch
 * that ended and lacks rows (a loss of power took them) has, when it is read, the state fail and
 * one row instead of those that are left: failed, with this as its reason.
 */
#ifndef PLUMB_HARNESS_RUN_FOLDER_H
#define PLUMB_HARNESS_RUN_FOLDER_H

#include <jansson.h>

#include "harness/table.h"

struct run_bench {
    char name[64];
    struct table rows;
};

struct run_folder {
    char *path;
    json_t *meta; /* run.json */
    struct table plan;
    struct run_bench *benches;
    size_t n_benches;
    size_t n_lost_rows; /* of launches that ended and lack rows */
};

/* Is this a run folder? It has a run.json. */
bool run_folder_is(const char *path);

struct run_paths {
    char **all;
    size_t n;
};

/* Adds this run folder, or else the run folders that lie in it, by name; none may lie there. 0 or
 * -errno of reading. */
int run_folders_in(const char *path, struct run_paths *paths);
void run_paths_release(struct run_paths *paths);

/* Is run.json, read from `path`, of the schema that this program reads? If not, error says so. */
bool run_schema_fits(const json_t *meta, const char *path, char *error, size_t len);

/* run.json of a folder, a new object. As run_folder_load(). */
int run_folder_meta(const char *path, json_t **meta, char *error, size_t len);

/* 0; -EBADMSG: a file is damaged, or of another schema (error names it); -ENOENT: no run folder; other -errno. *run is
 * empty on an error. */
int run_folder_load(const char *path, struct run_folder *run, char *error, size_t len);
void run_folder_release(struct run_folder *run);

#endif
