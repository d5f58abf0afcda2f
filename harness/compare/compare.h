/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plumb compare: two sets of runs held against each other. See pairs.h for what is paired, view.h
 * for what is shown.
 *
 * plumb report --baseline stands here too: the report knows nothing of verdicts, and is handed what
 * makes and writes them (struct report_judge), so that compare leans on the report and never the
 * other way round.
 */
#ifndef PLUMB_COMPARE_H
#define PLUMB_COMPARE_H

#include <stddef.h>

/* Exit code: 0 equivalent or better, 1 worse, 2 usage or no run there, 3 inconclusive, 4 B failed
 * in cases that A has, a run was not measured to its end, or a file could not be written, 5 a run
 * folder is damaged. argv[0] is "compare". */
int cmd_compare(int argc, char **argv);

/* The report of two runs in the folder `out`, with the verdicts of b against a where they can be
 * compared. 0, or as report_make() with error set. */
int compare_report(const char *a, const char *b, const char *out, char *error, size_t len);

/* plumb report, with verdicts where a baseline is given. argv[0] is "report". */
int cmd_report(int argc, char **argv);

/* ---- What the commands of this room share ---- */

/* The folders of both sides, from what the user named: see compare_sides(). */
struct compare_sides {
    char **a, **b;
    size_t n_a, n_b;
};

/* From the words that are no options. before NULL: two of them, each a folder or several with
 * commas between, or one: the folder of a plumb run --against, whose a and b are meant; else so
 * many of them are A's and the others B's. 0; -EINVAL with error set; -ENOMEM. */
int compare_sides(char *const *words, size_t n, const size_t *before, struct compare_sides *sides,
                  char *error, size_t len);
void compare_sides_release(struct compare_sides *sides);

/* ---- Where the outputs of one command go ---- */

struct output_asked {
    const char *option; /* "--json" */
    const char *path;   /* "-": stdout; NULL: not asked for */
};

/* -EINVAL with error set where two of them go to one place, in which they would mix; else 0. */
int outputs_refuse_mixed(const struct output_asked *all, size_t n, char *error, size_t len);

#endif
