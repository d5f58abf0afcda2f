/* SPDX-License-Identifier: Apache-2.0 */
/* Results and checks for a terminal: see doctor.h. */
#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "core/program.h"
#include "core/text.h"
#include "harness/doctor/doctor.h"

#define FIRST_MAX 3 /* things to do first */

struct doctor_pen doctor_pen(FILE *out)
{
    return (struct doctor_pen){out, wrap_width(out)};
}

void doctor_entry(const struct doctor_pen *p, size_t indent, const char *label, size_t at,
                  const char *text)
{
    size_t next, n;
    int used = fprintf(p->out, "%*s%s", (int)indent, "", label);

    fprintf(p->out, "%*s", used < (int)at ? (int)at - used : *label != 0, "");
    do {
        n = wrap_take(text, p->width - at, &next);
        fprintf(p->out, "%.*s\n", (int)n, text);
        text += next;
        if (*text)
            fprintf(p->out, "%*s", (int)at, "");
    } while (*text);
}

void doctor_heading(const struct doctor_pen *p, const char *text)
{
    fprintf(p->out, "\n%s\n", text);
}

/* ---- Results */

static void print_finding(const struct doctor_pen *p, struct exam *x, const struct exam_result *r,
                          size_t n, bool live)
{
    char number[16], cost[512];

    snprintf(number, sizeof(number), "%zu.", n);
    exam_cost_text(&r->cost, cost, sizeof(cost));
    if (live && r->cost.basis == EXAM_NOT_PRICED && exam_measurable(r->check, r->subject))
        snprintf(cost, sizeof(cost), "not known here; to measure it: plumb doctor --measure=%s",
                 r->check->id);
    doctor_entry(p, 2, number, 6, exam_sentence(x, r));
    doctor_entry(p, 6, "cost", 14, cost);
    if (*r->remedy)
        doctor_entry(p, 6, "remedy", 14, r->remedy);
    doctor_entry(p, 6, "check", 14, exam_format(x, "%s (%s)", r->check->id, r->area));
}

static void print_findings(const struct doctor_pen *p, struct exam *x, bool live)
{
    size_t n = 0;

    for (const struct exam_result *r = exam_results(x); r; r = r->next) {
        if (r->state != EXAM_FOUND || exam_repeats(x, r))
            continue;
        if (!n)
            doctor_heading(p, "FINDINGS, costliest first");
        print_finding(p, x, r, ++n, live);
    }
}

static size_t count_unknown(struct exam *x, bool matters)
{
    size_t n = 0;

    for (const struct exam_result *r = exam_results(x); r; r = r->next)
        n += r->state == EXAM_UNKNOWN && r->matters == matters;
    return n;
}

/* Why it is not known, without the fact's path: "cpu.clock.boost: not recorded". */
const char *doctor_unknown_reason(const struct exam_result *r)
{
    const char *colon = strstr(r->text, ": "), *end = strrchr(r->text, ':');

    if (end && !strcmp(end, ": not there"))
        return "a file of /proc or /sys is not there";
    return colon && strcspn(r->text, " ") > (size_t)(colon - r->text) ? colon + 2 : r->text;
}

static bool is_alike(const struct exam_result *a, const struct exam_result *b)
{
    return b->state == EXAM_UNKNOWN && a->matters == b->matters &&
           !strcmp(doctor_unknown_reason(a), doctor_unknown_reason(b));
}

/* Was this reason shown with an earlier result; or, of_check, with one of the same check? */
static bool was_shown(struct exam *x, const struct exam_result *r, bool of_check)
{
    for (const struct exam_result *at = exam_results(x); at != r; at = at->next)
        if (is_alike(r, at) && (!of_check || at->check == r->check))
            return true;
    return false;
}

/* "acs (0000:18:00.0), gpu-mode (8), settings": the checks with this reason, and their results. */
static const char *checks_with(struct exam *x, const struct exam_result *first)
{
    const char *text = "";

    for (const struct exam_result *r = first; r; r = r->next) {
        size_t n = 0;

        if (!is_alike(first, r) || was_shown(x, r, true))
            continue;
        for (const struct exam_result *at = r; at; at = at->next)
            n += at->check == r->check && is_alike(first, at);
        text = exam_format(x, "%s%s%s", text, *text ? ", " : "", r->check->id);
        if (n > 1)
            text = exam_format(x, "%s (%zu)", text, n);
        else if (r->matters && strcmp(r->subject, "machine") != 0)
            text = exam_format(x, "%s (%s)", text, r->subject);
    }
    return text;
}

static void print_reason(const struct doctor_pen *p, struct exam *x,
                         const struct exam_result *first)
{
    const char *more = NULL;

    doctor_entry(p, 2, "", 2, doctor_unknown_reason(first));
    doctor_entry(p, 6, "", 6, checks_with(x, first));
    for (const struct exam_result *r = first; first->matters && r; r = r->next) {
        if (!is_alike(first, r) || !r->check->more || r->check->more == more)
            continue;
        more = r->check->more;
        doctor_entry(p, 6, "", 6, exam_format(x, "more with %s", more));
    }
}

static void print_unknown(const struct doctor_pen *p, struct exam *x)
{
    const struct exam_result *last = NULL;

    for (const struct exam_result *r = exam_results(x); r; r = r->next) {
        if (r->state != EXAM_UNKNOWN || was_shown(x, r, false))
            continue;
        if (!last || last->matters != r->matters)
            doctor_heading(p, r->matters ? "NOT KNOWN, and it matters" : "NOT KNOWN");
        print_reason(p, x, r);
        last = r;
    }
}

/* Do rights keep back something that matters? */
static bool needs_root(struct exam *x)
{
    for (const struct exam_result *r = exam_results(x); r; r = r->next)
        if (r->state == EXAM_UNKNOWN && r->matters &&
            (strstr(r->text, "root only") || strcasestr(r->text, "permi")))
            return true;
    return false;
}

/* More is known of the machine itself: of this one only by root, if rights are the reason. */
static void print_ask_again(const struct doctor_pen *p, struct exam *x, bool live)
{
    const char *command = needs_root(x) && (!live || geteuid()) ? "sudo plumb doctor"
                          : live                                ? NULL
                                                                : "plumb doctor";

    if (!command)
        return;
    doctor_heading(p, "DO FIRST");
    doctor_entry(
        p, 2, "1.", 6,
        live ? command
             : exam_format(x, "on that machine, since this record lacks facts: %s", command));
}

static size_t count_findings(struct exam *x)
{
    size_t n = 0;

    for (const struct exam_result *r = exam_results(x); r; r = r->next)
        n += r->state == EXAM_FOUND && !exam_repeats(x, r);
    return n;
}

/* So many findings are seen at a glance; of more, the first. */
static void print_first(const struct doctor_pen *p, struct exam *x, bool live, size_t few)
{
    size_t n = 0, found = count_findings(x);

    for (const struct exam_result *r = exam_results(x); r && n < FIRST_MAX; r = r->next) {
        char number[16], share[80] = "";

        if (found <= few || r->state != EXAM_FOUND || exam_repeats(x, r) || !*r->remedy ||
            (r->cost.basis == EXAM_MEASURED && r->cost.low <= 0))
            continue;
        if (!n)
            doctor_heading(p, "DO FIRST");
        if (r->cost.basis != EXAM_NOT_PRICED)
            exam_share_text(&r->cost, share, sizeof(share));
        snprintf(number, sizeof(number), "%zu.", ++n);
        doctor_entry(p, 2, number, 6, r->remedy);
        doctor_entry(p, 6, "", 6,
                     exam_format(x, "for %s of %s%s%s%s", r->check->id, exam_subject(x, r),
                                 *share ? ": " : "", share,
                                 *share && r->cost.of_time ? " longer" : ""));
    }
    if (!found && count_unknown(x, true))
        print_ask_again(p, x, live);
}

const char *doctor_machine_text(struct exam *x, const char *name)
{
    const json_t *host = json_object_get(exam_machine(x), "host"),
                 *virtualization = json_object_get(exam_machine(x), "virtualization");
    const char *hypervisor = fact_name(virtualization, "hypervisor"),
               *container = fact_name(virtualization, "container"),
               *text = name ? name : fact_name(host, "hostname");

    text = exam_format(x, "%s: %s%s%s", *text ? text : "machine", fact_name(host, "vendor"),
                       *fact_name(host, "vendor") ? " " : "", fact_name(host, "product"));
    if (*container && strcmp(container, "none") != 0)
        container = exam_format(x, "a %s container on ", container);
    else
        container = "";
    return exam_format(x, "%s%s%s%s", text, *fact_name(host, "product") ? ", " : "", container,
                       !*hypervisor                  ? "bare metal or virtual: not known"
                       : !strcmp(hypervisor, "none") ? "bare metal"
                                                     : exam_format(x, "a guest of %s", hypervisor));
}

static const char *plural(size_t n)
{
    return n == 1 ? "" : "s";
}

static const char *counts_text(struct exam *x)
{
    size_t found = count_findings(x), fine = exam_count(x, EXAM_FINE),
           unknown = exam_count(x, EXAM_UNKNOWN);
    const char *text =
        found ? exam_format(x, "%zu finding%s", found, plural(found)) : "nothing found";
    if (!unknown)
        return exam_format(x, "%s; %zu result%s fine", text, fine, plural(fine));
    return exam_format(x, "%s, %s %zu of %zu results %s not known%s", text, found ? "and" : "but",
                       unknown, fine + unknown + exam_count(x, EXAM_FOUND),
                       unknown == 1 ? "is" : "are",
                       exam_lacks_gpus(x) ? ": the GPUs were not examined" : "");
}

void doctor_print_results(FILE *out, struct exam *x, bool live)
{
    struct doctor_pen p = doctor_pen(out);

    doctor_entry(&p, 0, "", 0, doctor_machine_text(x, NULL));
    doctor_entry(&p, 0, "", 0, counts_text(x));
    print_findings(&p, x, live);
    print_unknown(&p, x);
}

void doctor_print_first(FILE *out, struct exam *x, bool live, bool measured)
{
    struct doctor_pen p = doctor_pen(out);

    print_first(&p, x, live, measured ? 0 : FIRST_MAX);
}

/* ---- JSON and exit status */

json_t *doctor_json(struct exam *x)
{
    json_t *results = json_array();

    for (const struct exam_result *r = exam_results(x); r; r = r->next)
        json_array_append_new(results, exam_result_json(r));
    return json_pack("{s:i, s:{s:I, s:I, s:I, s:I}, s:o, s:O}", "doctor_schema", 1, "counts",
                     "found", (json_int_t)exam_count(x, EXAM_FOUND), "unknown",
                     (json_int_t)exam_count(x, EXAM_UNKNOWN), "fine",
                     (json_int_t)exam_count(x, EXAM_FINE), "not applicable",
                     (json_int_t)exam_count(x, EXAM_NOT_APPLICABLE), "results", results, "machine",
                     exam_machine(x));
}

void doctor_put(json_t *json)
{
    json_dumpf(json, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
    putchar('\n');
    json_decref(json);
}

int doctor_status(struct exam *x)
{
    if (exam_count(x, EXAM_FOUND))
        return EXIT_BAD;
    return count_unknown(x, true) ? EXIT_UNDECIDED : EXIT_GOOD;
}

/* ---- The checks themselves */

/* "Network, Allreduce" of "Network*|Allreduce|" */
static void print_pipes(const struct doctor_pen *p, const char *pipes)
{
    char text[512];
    size_t n = 0;

    for (; *pipes && n + 3 < sizeof(text); pipes++) {
        if (*pipes == '*' || (*pipes == '|' && !pipes[1]))
            continue;
        text[n++] = *pipes == '|' ? ',' : *pipes;
        if (*pipes == '|')
            text[n++] = ' ';
    }
    text[n] = '\0';
    doctor_entry(p, 2, "can slow", 14, text);
}

static void print_check(const struct doctor_pen *p, const struct exam_check *c, const char *area)
{
    char text[512];

    fprintf(p->out, "%s (%s)\n", c->id, area);
    doctor_entry(p, 2, "question", 14, c->question);
    doctor_entry(p, 2, "seen by", 14, c->seen);
    if (c->more)
        doctor_entry(p, 2, "more with", 14, c->more);
    if (c->pipes)
        print_pipes(p, c->pipes);
    exam_cost_text(&c->cost, text, sizeof(text));
    if (c->cost.basis != EXAM_NOT_PRICED)
        doctor_entry(p, 2, "cost", 14, text);
    snprintf(text, sizeof(text), "plumb doctor --measure=%s", c->id);
    if (exam_measurable(c, NULL))
        doctor_entry(p, 2, "measured by", 14, text);
    if (c->matters)
        doctor_entry(p, 2, "", 2, "If this is not known, the exit status is 3.");
}

int doctor_explain(FILE *out, const char *id)
{
    struct doctor_pen p = doctor_pen(out);
    const char *area;
    const struct exam_check *c = exam_find(id, &area);

    if (!c)
        return -ENOENT;
    print_check(&p, c, area);
    return 0;
}

void doctor_list(FILE *out)
{
    struct doctor_pen p = doctor_pen(out);
    const char *last = "";

    fputs("All of one check: plumb doctor --explain ID\n", out);
    for (const struct exam_area *area = exam_areas; area->name; area++) {
        if (strcmp(last, area->name) != 0)
            doctor_heading(&p, area->name);
        last = area->name;
        for (const struct exam_check *c = area->checks; c->id; c++)
            doctor_entry(&p, 2, c->id, 21, c->question);
    }
}
