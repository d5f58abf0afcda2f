/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plumb doctor: why a machine is slow, what each cause costs, and what to do first.
 *
 *   exam      harness/exam: the table of checks, and their results on one machine
 *   load      a machine: this one, a recorded tree, a run's run.json, a file of --json
 *   hosts     many machines, asked at once
 *   differ    two machines or two nights side by side
 *   print     results for a terminal; --list and --explain: the checks themselves
 */
#ifndef PLUMB_DOCTOR_H
#define PLUMB_DOCTOR_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "harness/exam/exam.h"
#include "harness/hosts/hosts.h"

/* The command. argv[0] is "doctor". Returns the exit status: 0 nothing is found, 1 something is, 2
 * usage, 3 what matters is not known, 4 the output could not be written whole, 5 a file is damaged.
 */
int cmd_doctor(int argc, char **argv);

/*
 * The object of docs/probe.md, from a run folder, a recorded tree, or a file written by "plumb
 * probe --json" or "plumb doctor --json". path NULL: this machine, whose counters are read again
 * after watch_ns (0: not). The caller owns *machine. Returns 0; -EBADMSG: a file is damaged; other -errno. error says what failed.
 */
int doctor_load(const char *path, uint64_t watch_ns, json_t **machine, char *error, size_t len);

/* A machine that is examined, and those that are examined together. */
struct patient {
    const char *name; /* of a host; NULL: one alone */
    json_t *machine;  /* NULL: no answer */
    struct exam *x;
    json_t *facts;
    char *why;   /* there is no answer */
    json_t *odd; /* [{path, value, others, alike}]: facts in which it is not like the most */
};

struct ward {
    const struct hosts_run *run;
    struct patient *all;
    size_t n, n_answered;
};

/* How much is found and unknown. Then findings, each once, and what is unknown by its reasons; then,
 * as the end of all output, what to do first: after costs that were measured, of few findings, too.
 * live: it is this machine, now. */
void doctor_print_counts(const struct ward *w);
void doctor_print_results(const struct ward *w, bool live);
void doctor_print_first(const struct ward *w, bool live, bool measured);
/* The object of docs/doctor.md, with the machine in it. New. */
json_t *doctor_json(struct exam *x);
/* Writes an object to stdout, and gives it back. */
void doctor_put(json_t *json);

/* The exit status of these results: EXIT_GOOD, EXIT_BAD or EXIT_UNDECIDED. */
int doctor_status(struct exam *x);

/* All checks, each with its question; all of one check: 0, or -ENOENT. */
void doctor_list(void);
int doctor_explain(const char *id);

/* Two machines, or two nights, side by side: findings and facts that differ; of two runs the
 * numbers, too, by the verdicts of plumb compare. Returns the exit status: 0 no finding differs, 1
 * one does. */
int doctor_both(char *const *paths, bool as_json);

/* All hosts of a file, asked for their facts by plumb probe there, and examined here: who is not
 * like the others, and what is found. Returns the exit status. */
int doctor_hosts(const struct hosts_options *options, bool as_json);

/* ---- Inside of this folder */

/* The label at column `indent`, the text from column `at` on, also in its further lines. */
void doctor_entry(size_t indent, const char *label, size_t at, const char *text);
void doctor_heading(const char *text);
/* The facts by their paths, {"cpu.clock.boost": true}: of the set-up, and known. New. */
json_t *doctor_facts(struct exam *x);
const char *doctor_value_text(struct exam *x, const json_t *value);
/* Is `id` listed in "governor (B only), cpu-quota (A and B)"? */
bool doctor_lists(const char *text, const char *id);
/* "gpu01: Supermicro SYS-821GE-TNHR, bare metal" */
const char *doctor_machine_text(struct exam *x);

#endif
