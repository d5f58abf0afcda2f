/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is tried, and what is promised of it: a line each in cells.c, of these words with their
 * numbers. Spreads are standard deviations; they, levels, losses and shares are in percent. The
 * words up to the colon are the cell's name.
 */
#ifndef PLUMB_SELFTEST_CELLS_H
#define PLUMB_SELFTEST_CELLS_H

#define COLUMNS 4 /* of a line: it has a cell for each number of baselines */

/* N: takes a number. F: takes none. L: takes up to four, and one alone is four times the same. */
#define CELL_WORDS(N, F, L)                                                                        \
    /* the world */                                                                                \
    N(cases)      /* 40 */                                                                         \
    N(reps)       /* of a run: 5 */                                                                \
    N(rep)        /* spread of a run's repetitions */                                              \
    N(run)        /* spread of runs */                                                             \
    F(rep_t3)     /* Student's, with 3 degrees of freedom */                                       \
    F(rep_skewed) /* log-normal of sigma 1, pointing down */                                       \
    F(run_t3)                                                                                      \
    F(run_skewed)                                                                                  \
    N(mixed)      /* cases' rep: 1/mixed to mixed times that, log-uniform */                       \
    F(runs_so)    /* and their run by the same factor */                                           \
    F(runs_apart) /* or by one of its own */                                                       \
    N(lost_rep)   /* where mixed: the rep of the case that may lose */                             \
    N(tonight)    /* repetitions of the judged run scatter so many times as wide */                \
    N(in_every)   /* but in every so many-th case alone */                                         \
    N(weekend)    /* so many times, in two nights of seven */                                      \
    L(boot)       /* spread of boots: uniform over the cases, from, to */                          \
    N(boots)      /* of the baselines, one after the other */                                      \
    F(same_boot)  /* the judged run is of the last of these, or else of a new one */               \
    N(common)     /* share of the runs' variance that all cases have alike */                      \
    N(group)      /* or so many neighbours */                                                      \
    N(rep_ar)     /* AR(1): what is kept of the one before */                                      \
    N(run_ar)                                                                                      \
    N(wave)        /* within a run: a slow wave of that height */                                  \
    N(ramp)        /* within a run: a fall, of each run its own */                                 \
    L(rep_levels)  /* of repetitions, two, each as likely: how far apart, in how many cases */     \
    L(run_levels)  /* of whole runs */                                                             \
    N(strange)     /* one baseline is off by so much, in the case that may lose */                 \
    F(strange_all) /* or in all of them */                                                         \
    N(step)        /* values are rounded to such steps */                                          \
    N(sustained)   /* there is a second figure, that far from the median */                        \
    F(in_turn)     /* both sides meet the same two levels: of a run, and of a repetition */        \
    N(second)      /* and who goes second there loses so much */                                   \
    /* how it is judged, and what is planted */                                                    \
    F(compare)      /* as plumb compare does, or else as plumb check does */                       \
    N(margin)       /* theirs */                                                                   \
    L(with)         /* so many baselines, or pairs of runs in turn: 1 2 5 10 */                    \
    L(loss)         /* of the case that loses: 5 */                                                \
    F(in_sustained) /* of its second figure alone */                                               \
    F(in_one_rep)   /* of one of its repetitions */                                                \
    N(share)        /* so many of all cases lose: one */                                           \
    /* nights one after the other, in which those that are judged well become baselines */         \
    N(nights)                                                                                      \
    L(lose)     /* from, until, and how much meanwhile */                                          \
    L(then)     /* the same again */                                                               \
    L(slip)     /* from, until, and so much every night */                                         \
    N(losers)   /* cases that have these: one */                                                   \
    F(accepted) /* who sees a loss named accepts it: the case's baselines start anew */            \
    F(all_kept) /* nobody looks: each night becomes a baseline */                                  \
    /* Promised: false alarms in 1 % of unchanged suites at most, and 5 % of losses that are as */ \
    /* large as the margin are called equivalent. But not with so many baselines: */               \
    L(except)                                                                                      \
    /* promised where there is a figure, at least */                                               \
    L(equivalent) /* unchanged cases called so, within 5 % */                                      \
    L(found)      /* losses named */                                                               \
    /* and at most */                                                                              \
    L(inconclusive) /* unchanged suites */                                                         \
    L(passed)       /* suites with a loss, as if there were none */                                \
    N(within)       /* nights until the last loss is named, mean */                                \
    F(no_less)      /* more baselines find no less */

#define CELL_NUMBER(word) double word;
#define CELL_LIST(word)   double word[COLUMNS];
struct cell {
    CELL_WORDS(CELL_NUMBER, CELL_NUMBER, CELL_LIST)
};

extern const char *const lines[]; /* NULL at the end; a heading begins with "= " */

/* Aborts where it does not understand, and says so. */
void cell_read(const char *line, struct cell *cell);

#endif
