/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is tried, and what is promised of it: a line each in cells.c, of words with their numbers
 * (spreads and shares in percent). Its words up to the colon are its name.
 */
#ifndef PLUMB_SELFTEST_CELLS_H
#define PLUMB_SELFTEST_CELLS_H

#include "tests/selftest/worlds.h"

#define COLUMNS 4 /* a line has a cell for each of so many numbers of baselines */

struct cell {
    struct world w;
    double with[COLUMNS]; /* so many baselines, or pairs of runs in turn; as a rule 1, 2, 5, 10 */
    double compare;       /* as plumb compare judges, or else as plumb check does */
    double margin;        /* 0: theirs */
    double loss[COLUMNS]; /* of the case that loses; 5 */
    double planted;       /* enum planted: in which of its figures */
    double share;         /* so many of the cases lose it; 0: one */
    /* Promised: with other numbers of baselines than these, false alarms in 1 % of unchanged suites
     * at most, and in 5 % a loss is called equivalent that is no smaller than the margin. */
    double except[COLUMNS];
    /* Promised where above 0. At least so many unchanged cases are called equivalent within 5 %, and
     * losses named. At most so many unchanged suites are undecided, and suites with a loss pass. */
    double equivalent[COLUMNS], found[COLUMNS], undecided[COLUMNS], passed[COLUMNS];
    double no_less; /* promised: with more baselines no less is found */
    /* Nights one after the other: those that are judged well become baselines. */
    double nights;
    double lose[3], then[3]; /* from, until, and the loss meanwhile, in the case that may lose */
    double slip[3];          /* the same, and what is lost every night */
    double losers;           /* so many cases lose; 0: one */
    double accepted;         /* a loss that is named is: the case's baselines start anew */
    double all_kept;         /* nobody looks: each night becomes a baseline */
    double within;           /* promised: the last loss is named after so many nights, mean */
};

extern const char *const lines[]; /* NULL at the end; a heading begins with "= " */

/* Aborts where it does not understand, and says so. */
void cell_read(const char *line, struct cell *cell);

#endif
