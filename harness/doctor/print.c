/* SPDX-License-Identifier: Apache-2.0 */
/* Results and checks for a terminal: see doctor.h. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/program.h"
#include "core/text.h"
#include "harness/doctor/doctor.h"
#include "harness/report/facts.h"

#define FIRST_MAX 3 /* things to do first */

void doctor_entry(size_t indent, const char *label, size_t at, const char *text)
{
    size_t next, n, width = wrap_width(stdout);
    int used = printf("%*s%s", (int)indent, "", label);

    size_t column = used < (int)at ? at : (size_t)used + (*label != 0);

    printf("%*s", (int)column - used, "");
    do {
        n = wrap_take(text, column < width ? width - column : 1, &next);
        printf("%.*s\n", (int)n, text);
        text += next;
        column = at;
        if (*text)
            printf("%*s", (int)at, "");
    } while (*text);
}

void doctor_heading(const char *text)
{
    printf("\n%s\n", text);
}

/* ---- Findings */

/* Are they one finding, of two machines? */
static bool is_same(const struct patient *a, const struct exam_result *one, const struct patient *b,
                    const struct exam_result *other)
{
    return one->check == other->check &&
           (one == other || !strcmp(exam_sentence(a->x, one), exam_sentence(b->x, other)));
}

static bool has_finding(const struct patient *p, const struct patient *of,
                        const struct exam_result *like)
{
    for (const struct exam_result *r = p->x ? exam_results(p->x) : NULL; r; r = r->next)
        if (r->state == EXAM_FOUND && is_same(p, r, of, like))
            return true;
    return false;
}

struct finding { /* and the first machine that has it */
    const struct exam_result *r;
    const struct patient *of;
};

/* Each once, costliest first. */
struct findings {
    struct finding *all;
    size_t n;
};

static struct findings findings_of(const struct ward *w)
{
    struct findings f = {0};

    for (const struct patient *p = w->all; p < w->all + w->n; p++)
        for (const struct exam_result *r = p->x ? exam_results(p->x) : NULL; r; r = r->next) {
            bool known = r->state != EXAM_FOUND || exam_repeats(p->x, r);
            size_t at = f.n;

            for (size_t i = 0; i < f.n && !known; i++)
                known = is_same(f.all[i].of, f.all[i].r, p, r);
            if (known)
                continue;
            *ARRAY_ADD(f.all, f.n) = (struct finding){r, p};
            for (; at && exam_before(r, f.all[at - 1].r); at--)
                f.all[at] = f.all[at - 1];
            f.all[at] = (struct finding){r, p};
        }
    return f;
}

/* "all 16 hosts: ", "node1, node2 and 3 more: "; "" of a machine alone. */
static const char *hosts_with(const struct ward *w, const struct finding *f)
{
    struct exam *x = f->of->x;
    const char *text = "";
    size_t n = 0;

    if (!f->of->name)
        return "";
    for (const struct patient *p = f->of; p < w->all + w->n; p++)
        if (has_finding(p, f->of, f->r) && ++n <= 3)
            text = exam_format(x, "%s%s%s", text, n > 1 ? ", " : "", p->name);
    if (n == w->n_answered && n > 1)
        return n == 2 ? "both hosts: " : exam_format(x, "all %zu hosts: ", n);
    return n > 3 ? exam_format(x, "%s and %zu more: ", text, n - 3) : exam_format(x, "%s: ", text);
}

static void print_findings(const struct ward *w, const struct findings *all, bool live)
{
    if (all->n)
        doctor_heading("FINDINGS, costliest first");
    for (size_t i = 0; i < all->n; i++) {
        const struct finding *f = &all->all[i];
        const struct exam_check *check = f->r->check;
        struct exam *x = f->of->x;
        char cost[512];

        exam_cost_text(&f->r->cost, cost, sizeof(cost));
        if (live && f->r->cost.basis == EXAM_NOT_PRICED && exam_measurable(check, f->r->subject))
            snprintf(cost, sizeof(cost), "not known here; to measure it: plumb doctor --measure=%s",
                     check->id);
        doctor_entry(2, exam_format(x, "%zu.", i + 1), 6,
                     exam_format(x, "%s%s", hosts_with(w, f), exam_sentence(x, f->r)));
        doctor_entry(6, "cost", 14, cost);
        if (*f->r->remedy)
            doctor_entry(6, "remedy", 14, f->r->remedy);
        doctor_entry(6, "check", 14, exam_format(x, "%s (%s)", check->id, f->r->area));
    }
}

/* ---- What is not known, by its reason */

/* Without the fact's path: "cpu.clock.boost: not recorded". */
static const char *reason_of(const struct patient *p, const struct exam_result *r)
{
    const char *colon = strstr(r->text, ": "), *end = strrchr(r->text, ':');

    if (p->name && !strncmp(r->text, "library_settings:", 17))
        return "the variables of your job are not seen by what starts plumb here: run plumb doctor "
               "--json within the job";
    if (end && !strcmp(end, ": not there"))
        return "a file of /proc or /sys is not there";
    return colon && strcspn(r->text, " ") > (size_t)(colon - r->text) ? colon + 2 : r->text;
}

struct lack {
    const char *reason;
    const struct patient *first, *last; /* that have it */
    size_t n;                           /* how many do */
};

/* Is r one of the results that are unknown for this reason? */
static bool is_of(const struct lack *l, bool matters, const struct patient *p,
                  const struct exam_result *r)
{
    return r->state == EXAM_UNKNOWN && r->matters == matters && !strcmp(reason_of(p, r), l->reason);
}

static struct lack *find_lacks(const struct ward *w, bool matters, size_t *n)
{
    struct lack *all = NULL;

    *n = 0;
    for (const struct patient *p = w->all; p < w->all + w->n; p++)
        for (const struct exam_result *r = p->x ? exam_results(p->x) : NULL; r; r = r->next) {
            size_t i = 0;

            if (r->state != EXAM_UNKNOWN || r->matters != matters)
                continue;
            while (i < *n && strcmp(all[i].reason, reason_of(p, r)) != 0)
                i++;
            if (i == *n)
                *ARRAY_ADD(all, *n) = (struct lack){reason_of(p, r), p, NULL, 0};
            all[i].n += all[i].last != p;
            all[i].last = p;
        }
    return all;
}

/* "acs (0000:18:00.0), gpu-mode (8), settings": the checks with this reason, and of one machine
 * their results; and what would tell more. */
static void print_checks(const struct lack *l, bool matters)
{
    struct exam *x = l->first->x;
    const char *text = "", *more = NULL;

    for (const struct patient *of = l->first; of <= l->last; of++)
        for (const struct exam_result *r = of->x ? exam_results(of->x) : NULL; r; r = r->next) {
            size_t n = 0;

            if (!is_of(l, matters, of, r) || doctor_lists(text, r->check->id))
                continue;
            for (const struct exam_result *at = r; at; at = at->next)
                n += at->check == r->check && is_of(l, matters, of, at);
            text = exam_format(x, "%s%s%s", text, *text ? ", " : "", r->check->id);
            if (!of->name && n > 1)
                text = exam_format(x, "%s (%zu)", text, n);
            else if (!of->name && matters && strcmp(r->subject, "machine") != 0)
                text = exam_format(x, "%s (%s)", text, r->subject);
        }
    doctor_entry(6, "", 6, text);
    for (const struct exam_result *r = matters ? exam_results(x) : NULL; r; r = r->next) {
        if (!is_of(l, matters, l->first, r) || !r->check->more || r->check->more == more)
            continue;
        more = r->check->more;
        doctor_entry(6, "", 6, exam_format(x, "more with %s", more));
    }
}

static void print_lacks(const struct ward *w, bool matters)
{
    size_t n;
    struct lack *all = find_lacks(w, matters, &n);

    if (n)
        doctor_heading(matters ? "NOT KNOWN, and it matters" : "NOT KNOWN");
    for (size_t i = 0; i < n; i++) {
        const struct lack *l = &all[i];
        struct exam *x = l->first->x;

        doctor_entry(2, "", 2,
                     !l->first->name ? l->reason
                     : l->n == 1
                         ? exam_format(x, "%s: %s", l->first->name, l->reason)
                         : exam_format(x, "%zu of %zu hosts: %s", l->n, w->n_answered, l->reason));
        print_checks(l, matters);
    }
    free(all);
}

/* ---- Results */

const char *doctor_machine_text(struct exam *x)
{
    const json_t *machine = exam_machine(x);
    struct pool pool = {0};
    const char *name = fact_name(machine, "host.hostname"),
               *vendor = fact_name(machine, "host.vendor"),
               *product = fact_name(machine, "host.product"),
               *nature = shown_nature(&pool, machine);

    nature = exam_format(x, "%s: %s%s%s%s%s", *name ? name : "machine", vendor, *vendor ? " " : "",
                         product, *product ? ", " : "",
                         *nature ? nature : "bare metal or virtual: not known");
    pool_release(&pool);
    return nature;
}

/* "3 findings, and 4 of 60 results are not known: the GPUs were not examined". */
void doctor_print_counts(const struct ward *w)
{
    struct findings found = findings_of(w);
    size_t unknown = 0, fine = 0, all = 0, blind = 0;

    for (size_t i = 0; i < w->n; i++) {
        struct exam *x = w->all[i].x;

        if (!x)
            continue;
        unknown += exam_count(x, EXAM_UNKNOWN);
        fine += exam_count(x, EXAM_FINE);
        all += exam_count(x, EXAM_UNKNOWN) + exam_count(x, EXAM_FINE) + exam_count(x, EXAM_FOUND);
        blind += exam_lacks_gpus(x);
    }
    if (found.n)
        printf("%zu finding%s", found.n, found.n == 1 ? "" : "s");
    else
        fputs("nothing found", stdout);
    if (unknown)
        printf(", %s %zu of %zu results %s not known", found.n ? "and" : "but", unknown, all,
               unknown == 1 ? "is" : "are");
    else
        printf("; %zu result%s fine", fine, fine == 1 ? "" : "s");
    if (unknown && blind)
        printf(w->n > 1 ? ": the GPUs of %zu hosts were not examined"
                        : ": the GPUs were not examined",
               blind);
    putchar('\n');
    free(found.all);
}

void doctor_print_results(const struct ward *w, bool live)
{
    struct findings found = findings_of(w);

    print_findings(w, &found, live);
    print_lacks(w, true);
    print_lacks(w, false);
    free(found.all);
}

/* More is known of the machine itself: of this one only by root, if rights are the reason. */
static void print_ask_again(struct exam *x, bool live)
{
    const char *command;
    bool root = false;

    for (const struct exam_result *r = exam_results(x); r; r = r->next)
        root = root || (r->state == EXAM_UNKNOWN && r->matters &&
                        (strstr(r->text, "root only") || strcasestr(r->text, "permi")));
    command = root && (!live || geteuid()) ? "sudo plumb doctor" : live ? "" : "plumb doctor";
    if (!*command)
        return;
    doctor_heading("DO FIRST");
    doctor_entry(
        2, "1.", 6,
        live ? command
             : exam_format(x, "on that machine, since this record lacks facts: %s", command));
}

void doctor_print_first(const struct ward *w, bool live, bool measured)
{
    struct findings found = findings_of(w);
    /* So many findings are seen at a glance; of more, the first. */
    bool few = !measured && found.n <= FIRST_MAX;
    size_t n = 0;

    for (size_t i = 0; i < found.n && n < FIRST_MAX && !few; i++) {
        const struct finding *f = &found.all[i];
        const struct exam_cost *cost = &f->r->cost;
        struct exam *x = f->of->x;
        char share[80] = "";

        if (!*f->r->remedy || (cost->basis == EXAM_MEASURED && cost->low <= 0))
            continue;
        if (!n)
            doctor_heading("DO FIRST");
        if (cost->basis != EXAM_NOT_PRICED)
            exam_share_text(cost, share, sizeof(share));
        doctor_entry(2, exam_format(x, "%zu.", ++n), 6,
                     exam_format(x, "%s%s", hosts_with(w, f), f->r->remedy));
        doctor_entry(6, "", 6,
                     exam_format(x, "for %s of %s%s%s%s", f->r->check->id, exam_subject(x, f->r),
                                 *share ? ": " : "", share,
                                 *share && cost->of_time ? " longer" : ""));
    }
    if (!found.n && !w->all[0].name && doctor_status(w->all[0].x) != EXIT_GOOD)
        print_ask_again(w->all[0].x, live);
    free(found.all);
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
    for (const struct exam_result *r = exam_results(x); r; r = r->next)
        if (r->state == EXAM_UNKNOWN && r->matters)
            return EXIT_UNDECIDED;
    return EXIT_GOOD;
}

/* ---- The checks themselves */

/* "Network, Allreduce" of "Network*|Allreduce|" */
static void print_pipes(const char *pipes)
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
    doctor_entry(2, "can slow", 14, text);
}

static void print_check(const struct exam_check *c, const char *area)
{
    char text[512];

    printf("%s (%s)\n", c->id, area);
    doctor_entry(2, "question", 14, c->question);
    doctor_entry(2, "seen by", 14, c->seen);
    if (c->more)
        doctor_entry(2, "more with", 14, c->more);
    if (c->pipes)
        print_pipes(c->pipes);
    exam_cost_text(&c->cost, text, sizeof(text));
    if (c->cost.basis != EXAM_NOT_PRICED)
        doctor_entry(2, "cost", 14, text);
    snprintf(text, sizeof(text), "plumb doctor --measure=%s", c->id);
    if (exam_measurable(c, NULL))
        doctor_entry(2, "measured by", 14, text);
    if (c->matters)
        doctor_entry(2, "", 2, "If this is not known, the exit status is 3.");
}

int doctor_explain(const char *id)
{
    const char *area;
    const struct exam_check *c = exam_find(id, &area);

    if (!c)
        return -ENOENT;
    print_check(c, area);
    return 0;
}

void doctor_list(void)
{
    const char *last = "";

    fputs("All of one check: plumb doctor --explain ID\n", stdout);
    for (const struct exam_area *area = exam_areas; area->name; area++) {
        if (strcmp(last, area->name) != 0)
            doctor_heading(area->name);
        last = area->name;
        for (const struct exam_check *c = area->checks; c->id; c++)
            doctor_entry(2, c->id, 21, c->question);
    }
}
