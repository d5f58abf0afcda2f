/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/selftest/cells.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const lines[] = {
    "= Repetitions scatter more in the judged run than in its baselines",
    "rep 1: equivalent 90 no_less found 90",
    "rep 1 tonight 2:",
    "rep 1 tonight 3:",
    "rep 1 tonight 5:",
    "rep 1 tonight 3 in_every 4: except 1 2",
    "rep 1 run .5 tonight 3:",
    "rep 1 compare: with 1 5 equivalent 90 found 90",
    "rep 1 tonight 3 compare: with 1 5",
    "rep 1 tonight 5 compare: with 1 5",
    "rep 1 tonight 3 in_every 4 compare: with 1 5 except 1",

    "= Repetitions and runs, in few cases and in many",
    "rep .3 run 1 cases 1: loss 25 25 8 7 inconclusive 0 0 2 2 found 0 0 80 80",
    "rep .3 run 1 cases 5: loss 25 12 8 7 inconclusive 0 0 2 2 found 0 0 75 85",
    "rep .3 run 1 cases 10: loss 25 12 8 7 inconclusive 0 0 2 2 found 0 0 80 85 except 1",
    "rep .3 run 1: loss 25 12 8 7 inconclusive 0 0 2 2 found 65 70 90 90",
    "rep .3 run 1 cases 200: with 1 5 loss 25 8 found 65 85 inconclusive 0 4",
    "rep .3 run 1, all of 5 %: no_less",
    "rep 1 cases 1: found 0 0 80 90",
    "rep 1 cases 5: found 0 0 70 85",
    "rep 1 cases 10: found 0 70 90 90",
    "rep 1 cases 200: with 1 5 found 95",
    "rep 1 run 1 cases 1: loss 25 25 10 8 inconclusive 0 0 2 2 found 0 0 75 80",
    "rep 1 run 1 cases 5: loss 25 12 8 7 inconclusive 0 0 2 2 found 0 0 65 85",
    "rep 1 run 1 cases 10: loss 25 12 8 7 inconclusive 0 0 2 2 found 0 0 80 80 except 1 2",
    "rep 1 run 1: loss 25 12 8 7 inconclusive 0 0 2 2 found 65 70 85 90",
    "rep 1 run 1 cases 200: with 1 5 loss 25 8 found 65 85 inconclusive 0 4",
    "rep 1 run .3 cases 1: found 0 0 75 90",
    "rep 1 run .3 cases 5: found 0 0 60 85",
    "rep 1 run .3 cases 10: found 0 0 85 85",
    "rep 1 run .3: no_less found 0 80 90 90",
    "rep 1 run .3 cases 200: with 1 5 found 0 95",
    "rep .3 run 1 compare: except 1 loss 25 15 8 7 found 0 80 90 90",
    "rep 1 run .3 compare: except 1 found 0 80 90 90",
    "rep .3 run 1, and anchors: with 15 20 40 loss 7 found 90 inconclusive 2",
    "rep 1, and anchors: with 15 20 40 found 95",

    "= Few cases, and a loss of 30 %",
    "rep 1 cases 1: with 2 3 5 loss 30 found 0 85 95",
    "rep 1 cases 3: with 2 3 5 loss 30 found 70 88 95",
    "rep 1 cases 9: with 2 3 5 loss 30 found 65 85 95",
    "rep .3 run 1 cases 1: with 2 3 5 loss 30 found 0 90 95",
    "rep .3 run 1 cases 3: with 2 3 5 loss 30 found 0 95 95",
    "rep .3 run 1 cases 9: with 2 3 5 loss 30 found 0 95 95",
    "rep .3 run .3 mixed 3 runs_apart cases 3: with 2 3 5 loss 30 except 2 3 found 0 90 95",
    "rep .3 run .3 mixed 3 runs_apart cases 9: with 2 3 5 loss 30 found 0 90 95",

    "= One baseline of several is off, in the case that may lose",
    "rep .5 run .5 strange -20: with 3 5 10 loss 10 found 90 inconclusive 5",
    "rep .5 run .5 strange 20: with 3 5 10 loss 10 found 90 inconclusive 5",
    "rep .5 run .5 strange -20 strange_all: with 3 5 10 loss 10 found 90 inconclusive 5",
    "rep .5 run .5 strange 20 strange_all: with 3 5 10 loss 10 found 90 inconclusive 5",
    "rep 1 strange -20: with 3 5 10 loss 10 found 90 inconclusive 5",
    "rep .5 run .5 strange -20, tonight so: with 3 5 10 loss 20 passed 5",
    "rep .5 run .5 strange -20 strange_all share 100, tonight so: with 3 5 10 loss 20 passed 5",

    "= Spreads of .1 to 5 % over the cases, and .2 % in the case that may lose",
    "rep .707 mixed 7.07 lost_rep .2: found 0 80 90 90 no_less",
    "rep .707 run .354 mixed 7.07 runs_so lost_rep .2: found 0 80 90 90 no_less",
    "rep .707 run .354 mixed 7.07 runs_so lost_rep .2 compare: except 1 found 0 0 90 90",

    "= Mixed spreads",
    "rep .5 run 1 mixed 7:",
    "rep .5 run .2 mixed 7:",
    "rep .5 run 1 mixed 7 runs_apart: except 1 2",
    "rep .5 run 1 mixed 7 runs_apart cases 10: except 1 2 5",

    "= Boots differ by 1 to 2 %: of the baselines so many, and another one or the last of these",
    "rep .5 run .3 boot 1 2 boots 1: loss 10",
    "rep .5 run .3 boot 1 2 boots 1 same_boot: loss 10 found 90",
    "rep .5 run .3 boot 1 2 boots 2: with 2 5 10 loss 10",
    "rep .5 run .3 boot 1 2 boots 3: with 3 5 10 loss 10",
    "rep .5 run .3 boot 1 2 boots 5: with 5 10 loss 10 found 60",
    "rep .5 run .3 boot 1 2 boots 5 same_boot: with 5 10 loss 10 found 60",
    "rep .5 run .3 boots 10: found 0 80 95 95",

    "= One repetition of five is slow by 20 %, and the margin 2 %",
    "rep 1 in_one_rep: with 1 5 loss 20",
    "rep .3 in_one_rep: with 1 5 loss 20",
    "rep .3 run .3 in_one_rep: with 1 5 loss 20",
    "rep 1 in_one_rep compare: with 1 5 margin 2 loss 20",
    "rep .3 in_one_rep compare: with 1 5 margin 2 loss 20",

    "= Values in steps",
    "rep 1 step 3: except 1 2 5 10",
    "rep .3 step 3: except 1 2 5 10",
    "rep .3 step 1: except 1 2",
    "rep .3 run .3 step 1: except 1 2 5",
    "rep .3 run 1 step 3: except 1 2 5",
    "rep .3 step 3 compare: with 1 5 except 1 5",
    "rep .3 step 1 compare: with 1 5 except 1 5",

    "= Tails, and what hangs together within a run",
    "rep 1 rep_t3: found 75 75 75 60",
    "rep 1 rep_skewed: found 75 75 75 25",
    "rep .3 run 1 run_t3: except 1 2 5 10",
    "rep .3 run 1 rep_t3 run_t3: except 1 2 5 10",
    "rep .3 run 1 rep_skewed run_skewed: except 1 2 5 10",
    "rep 1 rep_ar .5:",
    "rep .5 wave 1: found 0 80 80 80",
    "rep .5 ramp 3:",
    "rep 1 reps 3: found 0 70 85 85",
    "rep .3 run 1 reps 3: loss 25 12 8 7 found 0 65 85 85",
    "rep 1 rep_t3 compare: with 1 5",
    "rep 1 reps 3 compare: with 1 5",

    "= Two levels, 4 % apart, in so many cases",
    "rep .2 rep_levels 4 1: found 85",
    "rep .2 rep_levels 4 3: found 90",
    "rep .2 rep_levels 4 10: except 1",
    "rep .2 rep_levels 4 40:",
    "rep .2 rep_levels 4 3 cases 3 reps 3:",
    "rep .2 run_levels 4 1: except 1 2 5",
    "rep .2 run_levels 4 10: except 1 2 5 10",
    "rep .2 run_levels 4 40: except 2",

    "= Runs differ in many cases alike, or hang together",
    "rep .3 run 1 common 50:",
    "rep .3 run 1 common 100:",
    "rep .3 run 1 common 50 group 5:",
    "rep .3 run 1 common 100 group 5:",
    "rep .3 run 1 run_ar .5:",

    "= A share of the cases loses",
    "rep 1 share 2: with 1 2 5 loss 6 found 95",
    "rep 1 share 10: with 1 2 5 loss 6 found 95",
    "rep 1 share 30: with 1 2 5 loss 6 passed 5 found 0 80 95",
    "rep 1 share 50: with 1 2 5 loss 6 found 0 0 95 passed 1",
    "rep 1 share 100: with 1 2 5 loss 6 found 0 0 95 passed 1",
    "rep .3 run .3 share 2: with 1 2 5 loss 6 found 0 90 95",
    "rep .3 run .3 share 10: with 1 2 5 loss 6 found 0 90 95 passed 5",
    "rep .3 run .3 share 30: with 1 2 5 loss 6 found 0 0 95 passed 1",
    "rep .3 run .3 share 50: with 1 2 5 loss 6 found 0 0 95 passed 1",
    "rep .3 run .3 share 100: with 1 2 5 loss 6 found 0 0 95 passed 1",
    "rep .3 run 1 share 2: with 1 2 5 loss 6",
    "rep .3 run 1 share 10: with 1 2 5 loss 6 passed 0 0 5",
    "rep .3 run 1 share 30: with 1 2 5 loss 6 passed 0 5 5",
    "rep .3 run 1 share 50: with 1 2 5 loss 6 passed 5",
    "rep .3 run 1 share 100: with 1 2 5 loss 6 passed 1",

    "= In turn: both sides meet two levels of a run, and two of a repetition",
    "rep 1 in_turn compare: with 1 2 5 found 95 equivalent 90",
    "rep 1 in_turn cases 1 compare: with 1 2 5 found 0 0 95",
    "rep .2 rep_levels 4 40 in_turn compare: with 1 2 5",
    "rep .707 mixed 7.07 in_turn compare: with 1 2 5",
    "rep 1 run 1 in_turn compare: with 1 2 5 except 1 found 0 0 80",
    "rep .5 in_turn cases 8 compare: with 1 2 5 found 80 0 90",
    "rep .5 in_turn second 3 cases 8 compare: with 1 2 5 found 80 0 90",
    "rep .5 in_turn second 6 cases 8 compare: with 1 2 5 found 80 0 90",
    "rep .5 in_turn second 3 compare: with 1 2 5 found 95",
    "rep .5 in_turn second 6 compare: with 1 2 5 found 95",

    "= A second figure: what was sustained, that far from the medians",
    "rep 1 sustained .5 in_sustained: loss 10 found 95",
    "rep .3 run 1 sustained .5 in_sustained: loss 25 15 10 10 found 0 80 90 95",
    "rep 1 sustained .5: found 95",
    "rep .3 run 1 sustained .5: loss 25 12 8 7 inconclusive 0 0 2 2 found 0 40 85 90",
    "rep 1 sustained .5 in_sustained compare: loss 10 found 95",

    "= Night after night",
    "nights 90 rep 1:",
    "nights 90 rep .3 run 1:",
    "nights 90 rep .3 run 1 cases 1:",
    "nights 90 rep .3 run 1 common 100:",
    "nights 90 rep .3 run 1 run_t3: except 1",
    "nights 90 rep .3 run 1 run_ar .5: except 1",
    "nights 90 rep .2 run_levels 4 1: except 1",
    "nights 90 rep 1 weekend 3:",
    "nights 90 rep .3 run .5 lose 40 90 4 accepted: found 95 within 3",
    "nights 90 rep .5 run .5 lose 40 90 4 accepted weekend 3: found 95 within 5",
    "nights 90 rep .3 run .5 lose 55 56 10 then 70 90 7: found 95 within 2",
    "nights 90 rep .3 run 1 lose 55 56 10 then 70 90 7: found 95 within 4",
    "nights 90 rep .3 run .3 lose 1 90 6 losers 20:",
    "nights 90 rep .3 run .3 slip 60 90 .1 losers 8 all_kept: found 95 within 24",
    "nights 90 rep .3 run 1 slip 60 90 .1 losers 8 all_kept:",
    "nights 90 rep .3 run 1 slip 60 90 .3 losers 8 all_kept: found 95 within 20",
    NULL};

#define NUMBER(word) {#word, offsetof(struct cell, word), 1},
#define FLAG(word)   {#word, offsetof(struct cell, word), 0},
#define LIST(word)   {#word, offsetof(struct cell, word), COLUMNS},
static const struct word {
    const char *word;
    size_t at, most;
} words[] = {CELL_WORDS(NUMBER, FLAG, LIST)};

static const struct word *word_of(const char *text, size_t length)
{
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (strlen(words[i].word) == length && !strncmp(words[i].word, text, length))
            return &words[i];
    fprintf(stderr, "verdicts: a cell's word is not known: %s\n", text);
    abort();
}

/* Returns what follows. */
static const char *set(const struct word *word, const char *text, struct cell *cell)
{
    double numbers[COLUMNS] = {1}, *to = (double *)(void *)((char *)cell + word->at);
    size_t n = 0;
    char *end;

    for (; n < word->most; n++, text = end) {
        double number = strtod(text, &end);

        if (end == text)
            break;
        numbers[n] = number;
    }
    if (word->most && !n)
        abort();
    for (size_t i = 0; i < COLUMNS && (i < word->most || i == 0); i++)
        to[i] = n == 1 ? numbers[0] : numbers[i];
    return text;
}

void cell_read(const char *line, struct cell *cell)
{
    *cell = (struct cell){.with = {1, 2, 5, 10}, .loss = {5, 5, 5, 5}};
    for (const char *text = line; *(text += strspn(text, " :"));) {
        size_t length = strcspn(text, " :,");

        text = *text == ',' ? strchr(text, ':') /* what is said for the reader alone */
                            : set(word_of(text, length), text + length, cell);
    }
    if (cell->nights > 0)
        memcpy(cell->with, (double[COLUMNS]){1}, sizeof(cell->with));
}
