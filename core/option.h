/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options as one table: it parses, bounds, prints --help with the current defaults, and answers a
 * typo with a hint.
 *
 * A program gives one or more tables. Each option that was set holds a list of texts (one, unless
 * OPT_LIST), already split, expanded from ranges and checked; opts_apply() writes one choice of
 * values into a struct of the caller's at the offsets of the table.
 */
#ifndef PLUMB_CORE_OPTION_H
#define PLUMB_CORE_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum opt_type {               /* what lies at `offset` */
                OPT_FLAG,     /* bool */
                OPT_U64,      /* uint64_t */
                OPT_SIZE,     /* uint64_t, bytes: 16K, 1M, 2G */
                OPT_DURATION, /* uint64_t, ns: 2s, 500ms */
                OPT_FRACTION, /* double: 1% or 0.01 */
                OPT_DOUBLE,   /* double */
                OPT_CHOICE,   /* int, index in `choices` */
                OPT_STRING,   /* const char *, lives as long as the struct opts */
                OPT_CUSTOM,   /* whatever `parse` writes */
};

#define OPT_LIST                                                                                   \
    1u /* takes several values: a,b,c and, for numbers, lo..hi, lo..hixF, lo..hi+STEP */
#define OPT_COLUMN 2u  /* is a column of every row, under its own name with '_' for '-' */
#define OPT_HIDDEN 4u  /* not in --help */
#define OPT_SPLITS 8u  /* one value may stand for several: a point's rows differ in this column */
#define OPT_SWEEP  16u /* is meant for those points that it says something of */
/* its value is a place: "host", "cuda:0"; a point is on a GPU where one is */
#define OPT_PLACE 64u
/* its default is a race, the column of its name the winner: a run keeps it */
#define OPT_KEPT 32u

#define OPT_LIST_MAX 65536 /* values of one option */

/* Where an option says something; how `when` is written: the head of this file. */
struct opt_scope {
    const char *when; /* "op=graph*" */
    const char *what; /* for messages, behind "it is for": "graphs" */
};

struct opt {
    const char *name; /* without the dashes; NULL ends the table */
    char letter;      /* short form, or 0 */
    enum opt_type type;
    unsigned flags;
    size_t offset;
    const char *def;                   /* default as text; NULL: unset (a flag: off) */
    uint64_t min, max;                 /* numbers: inclusive bounds; max 0: no bound */
    const char *const *choices;        /* OPT_CHOICE: NULL-terminated */
    const char *arg;                   /* what --help shows behind the name; NULL: by type */
    const char *help;                  /* one line */
    const char *(*make_default)(void); /* computed from this machine; wins over def; static or
                                          allocated for the process' life */
    int (*parse)(const char *text, void *value, char *error, size_t len); /* OPT_CUSTOM */
    /* Of OPT_LIST: where `word` stands for a list (every GPU of this machine) or is another name of
     * a value, writes that list and returns true. */
    bool (*expand)(const char *word, char *list, size_t len);
    const struct opt_scope *scope; /* NULL: it says something of every point */
    /* The word by which a launch leaves the choice to the benchmark, as not naming the option does;
     * "" where there is no such word: the same work, done as this machine does it. The row's column
     * then is ROW_LEFT, and an outcome column NAME_used has what was chosen. NULL: it is no such
     * choice. */
    const char *left_by;
    const char *tried; /* names under which people look for it in vain: "device from"; NULL: none */
};

/* Entries of a table of a file that has AT(field), the `.offset` of a member of its struct. `mode`:
 * flags; `from`: the default. */
#define OPT_SWEPT                          (OPT_LIST | OPT_COLUMN)
#define OPT_OF(kind, mode, field, from)    .type = (kind), .flags = (mode), AT(field), .def = (from)
#define OPT_WORD(mode, field, from, words) OPT_OF(OPT_CHOICE, mode, field, from), .choices = (words)
#define OPT_NUMBER(kind, mode, field, from, least, most)                                           \
    OPT_OF(kind, mode, field, from), .min = (least), .max = (most)
#define OPT_READ(mode, field, from, shown, reader)                                                 \
    OPT_OF(OPT_CUSTOM, mode, field, from), .arg = (shown), .parse = (reader)

struct opt_values {
    char **texts; /* canonical: sizes in bytes, choices in full; each once, where it stood first */
    size_t n;
    bool given;     /* on the command line, not by default */
    unsigned times; /* of which the last one counts */
};

struct opts {
    const struct opt *const *tables; /* NULL-terminated */
    struct opt_values *values;       /* one an option, in table order */
    size_t n;
    char **args; /* what is not an option, in order */
    size_t n_args;
    char error[512]; /* set when a call below fails: no full stop, no program name */
};

/* Fills in the defaults. 0, or -EINVAL when a default of the table itself does not parse. */
int opts_init(struct opts *o, const struct opt *const *tables);
/* Parses argv[1..]; `--name value`, `--name=value`, `-l value`, `--` ends the options. 0, or -EINVAL
 * with o->error set. */
int opts_parse(struct opts *o, int argc, char **argv);
void opts_release(struct opts *o);

/* Sets one option from text, as the command line would. */
int opts_set(struct opts *o, const char *name, const char *text);
/* The same, as if it was not given: what follows from other options. */
int opts_imply(struct opts *o, const char *name, const char *text);
/* The same where it was not given: for a default that hangs on other options. NULL: leaves it. */
int opts_default(struct opts *o, const char *name, const char *text);

/* Option number i over all tables; NULL past the end. */
const struct opt *opts_at(const struct opts *o, size_t i);
const struct opt_values *opts_values(const struct opts *o,
                                     const char *name); /* NULL when there is no such option */

/* Writes value number pick[i] of each option i of `table` (a member of o->tables) into *params;
 * pick NULL: the first of each. */
int opts_apply(struct opts *o, const struct opt *table, const size_t *pick, void *params);

/* Writes the default of one option alone, one value (of a list the first). An option without one is
 * left alone. */
int opts_apply_default(struct opts *o, const struct opt *opt, void *params);

/* The options as --help lists them, defaults as they now are. */
void opts_help(const struct opts *o, FILE *out);
/* The name in `names` (NULL-terminated) nearest to `text`, or NULL when none is near: for "did you
 * mean". */
const char *opts_nearest(const char *text, const char *const *names);

const char *opt_type_name(enum opt_type type);

/* How the text of one option becomes values: one element, lists and ranges. Used by option.c and by
 * the suite parser's checks. */

/* Reads one element into *value (see enum opt_type). 0 or -EINVAL with `error` set to a sentence
 * that names option and choices. */
int opt_value_read(const struct opt *opt, const char *text, void *value, char *error, size_t len);

/* Reads a whole text (list and ranges where allowed) into canonical texts; the caller owns *out,
 * also on error. */
int opt_values_read(const struct opt *opt, const char *text, struct opt_values *out, char *error,
                    size_t len);

/*
 * Options that say something of some combinations only: the threads of a product on CPUs say
 * nothing of one on a GPU. Where is said by data (struct opt_scope), which the benchmark's command
 * line and the harness read alike, so that nothing is asked for in vain and nothing is measured
 * twice.
 *
 * `when` is a condition (core/condition.h) on the values of options, by their names.
 *
 * `values` are those of the options of `table`, in its order; `pick` says which one of each (NULL:
 * the first).
 */

/* Does this text of the option leave the choice to the benchmark (opt.left_by)? `given`: it stands on
 * the command line, and is not the default. */
bool opt_is_left(const struct opt *opt, const char *text, bool given);

/* Does the condition hold of the values of this combination? */
bool opt_holds(const struct opt *table, const struct opt_values *values, const size_t *pick,
               const char *when);

/* Does option number i say something of this combination? */
bool opt_speaks(const struct opt *table, const struct opt_values *values, const size_t *pick,
                size_t i);

/* The same of any combination of the values. */
bool opt_ever_speaks(const struct opt *table, const struct opt_values *values, size_t i);

/* Is this combination another one's repetition: a later value of an option that says nothing of
 * it? */
bool opt_repeats(const struct opt *table, const struct opt_values *values, const size_t *pick);

/* The number of an option that was given, with one value, and says nothing of this combination;
 * SIZE_MAX: there is none. OPT_SWEEP ones are not meant. */
size_t opt_in_vain(const struct opt *table, const struct opt_values *values, const size_t *pick);

/* Is this combination there only by default, and an option was given that says nothing of it? What
 * was asked for is meant then: --streams 8 is for the patterns that stream, of those that are
 * measured by default. */
bool opt_left_out(const struct opt *table, const struct opt_values *values, const size_t *pick);

/* 0, or -EINVAL with o->error set where an option was given that says nothing of any
 * combination. */
int opts_refuse_vain(struct opts *o);

#endif
