/* SPDX-License-Identifier: Apache-2.0 */
/* Two machines, or two nights, side by side: see doctor.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/program.h"
#include "harness/compare/compare.h"
#include "harness/doctor/doctor.h"
#include "harness/probe/probe.h"

#define FACTS_MAX 40 /* shown on a terminal */

/* A check's results for one subject, of which one is a finding that the other side has not. */
struct differing {
    const struct exam_result *a, *b; /* NULL: no result */
};

struct sides {
    const char *names[2]; /* as the user named them */
    json_t *machines[2];
    struct exam *a, *b;
    double hours; /* from A to B; 0: B is no later, or they are not of one host in one boot */
    struct differing *all;
    size_t n;
    json_t *facts, *counters; /* of --json */
};

/* ---- Findings */

static const struct exam_result *find(struct exam *x, const struct exam_result *like)
{
    for (const struct exam_result *r = exam_results(x); r; r = r->next)
        if (r->check == like->check && !strcmp(r->subject, like->subject))
            return r;
    return NULL;
}

static bool is_found(const struct exam_result *r)
{
    return r && r->state == EXAM_FOUND;
}

/* A finding of one side that the other has not, or has with another sentence: of counters, that is
 * another count. */
static bool is_other(const struct exam_result *r, const struct exam_result *other)
{
    return is_found(r) &&
           (!is_found(other) || (!r->check->counts && strcmp(r->text, other->text) != 0));
}

static void find_differing(struct sides *s)
{
    for (const struct exam_result *r = exam_results(s->a); r; r = r->next)
        if (is_other(r, find(s->b, r)))
            *ARRAY_ADD(s->all, s->n) = (struct differing){r, find(s->b, r)};
    for (const struct exam_result *r = exam_results(s->b); r; r = r->next)
        if (is_found(r) && !is_found(find(s->a, r)))
            *ARRAY_ADD(s->all, s->n) = (struct differing){find(s->a, r), r};
}

/* ---- Facts */

/* What the object is called among others of its list: "eth0", "0000:3b:00.0"; "": by its place. */
static const char *name_of(struct exam *x, const json_t *object)
{
    static const char *const keys[] = {"address", "name", "locator", NULL};
    static const char *const numbers[] = {"node", "port", "level", "page_bytes", "index", NULL};

    for (size_t i = 0; keys[i]; i++)
        if (*fact_name(object, keys[i]))
            return fact_name(object, keys[i]);
    for (size_t i = 0; numbers[i]; i++)
        if (json_is_integer(json_object_get(object, numbers[i])))
            return exam_format(x, "%s%s%.0f", numbers[i], fact_name(object, "type"),
                               fact_number(object, numbers[i], 0));
    return "";
}

static const char *below(struct exam *x, const char *path, const char *key)
{
    return exam_format(x, "%s%s%s", path, *path ? "." : "", key);
}

/* That a device is there is a fact of its own, before those of the device. */
static void flatten(struct exam *x, const char *path, const json_t *value, json_t *flat)
{
    const char *key;
    json_t *member;
    size_t n = 0;

    json_object_foreach ((json_t *)value, key, member)
        if (!fact_passes(key))
            flatten(x, below(x, path, key), member, flat);
    if (json_is_object(value) || json_is_null(value))
        return;
    if (!json_is_object(json_array_get(value, 0))) {
        if (!fact_fits("source|probe_schema|pci_names_why|host.hostname", path))
            json_object_set_new(flat, path, json_deep_copy(value)); /* not of the record itself */
        return;
    }
    FACT_EACH (value, one) {
        const char *name = name_of(x, one);
        const char *at = below(x, path, *name ? name : exam_format(x, "%zu", n));

        json_object_set_new(flat, at, json_true());
        if (json_is_object(one))
            flatten(x, at, one, flat);
        n++;
    }
}

json_t *doctor_facts(struct exam *x)
{
    json_t *flat = json_object();

    flatten(x, "", exam_machine(x), flat);
    return flat;
}

/* Below a device that only one side has: that it is there says all. */
static bool is_below(const char *path, const char *device)
{
    size_t n = strlen(device);

    return n && !strncmp(path, device, n) && path[n] == '.';
}

/* Adds what differs from the other side; `only`: what that one lacks alone. */
static void add_facts(json_t *list, json_t *own, const json_t *others, bool is_a, bool only)
{
    const char *path, *device = "";
    json_t *value;

    json_object_foreach (own, path, value) {
        const json_t *other = json_object_get(others, path);

        if (is_below(path, device) || (only && other) || json_equal(value, other))
            continue;
        device = !other && json_is_true(value) ? path : device;
        json_array_append_new(list, json_pack("{s:s, s:O?, s:O?}", "path", path, "a",
                                              is_a ? value : other, "b", is_a ? other : value));
    }
}

/* {path, a, b}; null: not known, or not there. */
static json_t *facts_that_differ(struct sides *s)
{
    json_t *list = json_array(), *a = doctor_facts(s->a), *b = doctor_facts(s->b);

    add_facts(list, a, b, true, false);
    add_facts(list, b, a, false, true);
    json_decref(a);
    json_decref(b);
    return list;
}

/* ---- Counters */

/* Hours from A to B. Containers of one host have its boot, and names of their own. */
static double hours_between(const json_t *a, const json_t *b)
{
    const char *name = fact_name(a, "host.hostname"), *boot = fact_name(a, "load.boot");
    double seconds =
        fact_number(b, "load.uptime_seconds", 0) - fact_number(a, "load.uptime_seconds", 0);
    bool same =
        *name && *boot && fact_is(b, "load.boot", boot) && fact_is(b, "host.hostname", name);

    return same && seconds > 0 ? seconds / 3600 : 0;
}

/* Of the machine itself, or a rate: no count of events. */
static bool is_counter(const char *path, const json_t *value)
{
    size_t n = strlen(path);

    return json_is_number(value) && strncmp(path, "load.", 5) != 0 &&
           (n < 6 || strcmp(path + n - 6, "_per_s") != 0);
}

/* What the checks of counters read of a subject that is not fine in both. One that began anew, as
 * its driver did, did not grow. */
static void add_growth(json_t *list, const struct exam_result *a, const struct exam_result *b)
{
    const char *path;
    json_t *value;

    json_object_foreach (b->evidence, path, value) {
        const json_t *before = json_object_get(a->evidence, path);
        double from = json_number_value(before), to = json_number_value(value);

        if (is_counter(path, value) && json_is_number(before) && to >= from)
            json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:f, s:f}", "check",
                                                  b->check->id, "subject", b->subject, "counter",
                                                  path, "a", from, "b", to));
    }
}

static bool is_told(const struct exam_result *r)
{
    return r->state == EXAM_FOUND || r->state == EXAM_UNKNOWN;
}

/* {check, subject, counter, a, b}; null: B is no later, or they are not of one boot. */
static json_t *counters_between(struct sides *s)
{
    json_t *list = s->hours > 0 ? json_array() : json_null();

    for (const struct exam_result *r = s->hours > 0 ? exam_results(s->b) : NULL; r; r = r->next) {
        const struct exam_result *before = r->check->counts ? find(s->a, r) : NULL;

        if (before && (is_told(before) || is_told(r)))
            add_growth(list, before, r);
    }
    return list;
}

/* ---- Numbers */

static bool has_moved(const struct view_pipe *pipe)
{
    return pipe->counts[DECISION_WORSE] || pipe->counts[DECISION_BETTER];
}

bool doctor_lists(const char *text, const char *id)
{
    size_t n = strlen(id);

    for (const char *at = text; *at; at += strcspn(at, ","), at += *at ? 2 : 0)
        if (!strncmp(at, id, n) && (!at[n] || at[n] == ' ' || at[n] == ','))
            return true;
    return false;
}

static bool is_unknown(const struct exam_result *r)
{
    return r && r->state == EXAM_UNKNOWN;
}

/* "governor, cpu-quota": the findings that differ and can explain the component; or, of those of
 * side A, or B, alone, "governor (B only)", "governor (A and B)". What the other side did not record
 * may be there as well, and explains nothing. */
static const char *causes_of(const struct sides *s, const char *pipe, char side)
{
    const char *text = "";

    for (size_t i = 0; i < s->n; i++) {
        const struct differing *d = &s->all[i];
        bool in_a = is_found(d->a), in_b = is_found(d->b);
        const char *id = (in_a ? d->a : d->b)->check->id;

        if (is_unknown(d->a) || is_unknown(d->b))
            continue;
        if (!(in_b ? exam_explains(s->b, d->b, pipe) : exam_explains(s->a, d->a, pipe)) ||
            doctor_lists(text, id) || (side == 'A' && !in_a) || (side == 'B' && !in_b))
            continue;
        text = exam_format(s->a, "%s%s%s%s", text, *text ? ", " : "", id,
                           !side          ? ""
                           : in_a && in_b ? " (A and B)"
                           : in_b         ? " (B only)"
                                          : " (A only)");
    }
    return text;
}

/* ---- For people */

static const char *said(struct exam *x, const struct exam_result *r)
{
    char cost[512];

    if (!r)
        return exam_state_name(EXAM_NOT_APPLICABLE);
    if (r->state == EXAM_UNKNOWN)
        return exam_format(x, "unknown: %s", r->text);
    if (r->state != EXAM_FOUND)
        return exam_state_name(r->state);
    exam_cost_text(&r->cost, cost, sizeof(cost));
    return exam_format(x, "%s. Cost: %s", r->text, cost);
}

const char *doctor_value_text(struct exam *x, const json_t *value)
{
    char *text;
    const char *kept;

    if (json_is_string(value))
        return exam_format(x, "%s", json_string_value(value));
    if (!value || json_is_null(value))
        return "not known, or not there";
    text = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));
    kept = exam_format(x, "%s", text ? text : "");
    free(text);
    return kept;
}

/* What one side did not record is no difference; that a device is there is one. */
static bool is_unrecorded(const json_t *fact)
{
    const json_t *a = json_object_get(fact, "a"), *b = json_object_get(fact, "b");

    return (json_is_null(a) && !json_is_true(b)) || (json_is_null(b) && !json_is_true(a));
}

static const char *fact_text(struct exam *x, const json_t *fact)
{
    const json_t *a = json_object_get(fact, "a"), *b = json_object_get(fact, "b");

    if (json_is_null(a) || json_is_null(b))
        return json_is_null(a) ? "B only" : "A only";
    return exam_format(x, "%s against %s", doctor_value_text(x, a), doctor_value_text(x, b));
}

static void print_facts(struct exam *x, const json_t *facts)
{
    size_t n = 0, shown = 0;

    FACT_EACH (facts, one)
        n += !is_unrecorded(one);
    if (json_array_size(facts))
        doctor_heading(exam_format(x, "FACTS THAT DIFFER: %zu", n));
    FACT_EACH (facts, one) {
        if (is_unrecorded(one) || shown == FACTS_MAX)
            continue;
        shown++;
        doctor_entry(2, exam_format(x, "%s:", fact_name(one, "path")), 6, fact_text(x, one));
    }
    if (n > shown)
        doctor_entry(2, "", 2, exam_format(x, "and %zu more: --json lists all", n - shown));
    if (json_array_size(facts) > n)
        doctor_entry(2, "", 2,
                     exam_format(x, "%zu that only one side recorded: --json lists them",
                                 json_array_size(facts) - n));
}

static void print_numbers(const struct sides *s, const struct view *numbers)
{
    size_t n = 0;

    doctor_heading("NUMBERS THAT DIFFER");
    for (size_t i = 0; i < numbers->n_pipes; i++) {
        const struct view_pipe *pipe = &numbers->pipes[i];
        size_t worse = pipe->counts[DECISION_WORSE], better = pipe->counts[DECISION_BETTER];
        const char *on_a = causes_of(s, pipe->name, 'A'), *on_b = causes_of(s, pipe->name, 'B');

        if (!has_moved(pipe))
            continue;
        n++;
        doctor_entry(2, "", 2,
                     exam_format(s->a, "%s: of %zu cases %zu worse, %zu better in B", pipe->name,
                                 pipe->n_cases, worse, better));
        if (pipe->worst)
            doctor_entry(4, "lowest", 24,
                         exam_format(s->a, "%s: %.3g %% of A", pipe->worst->name,
                                     100 * pipe->worst->decide.ratio));
        if (worse)
            doctor_entry(4, "may explain worse", 24, *on_b ? on_b : "no finding that differs");
        else if (*on_b)
            doctor_entry(4, "works against it", 24, on_b);
        if (better)
            doctor_entry(4, "may explain better", 24, *on_a ? on_a : "no finding that differs");
        else if (*on_a)
            doctor_entry(4, "works against it", 24, on_a);
    }
    if (!n)
        doctor_entry(2, "", 2, "no number is proven to differ");
    doctor_entry(2, "", 2,
                 exam_format(s->a, "all cases: plumb compare %s %s", s->names[0], s->names[1]));
}

static void print_counters(const struct sides *s)
{
    if (json_array_size(s->counters))
        doctor_heading(exam_format(s->a, "COUNTERS in %.3g hours", s->hours));
    FACT_EACH (s->counters, one)
        doctor_entry(
            2, exam_format(s->a, "%s, %s:", fact_name(one, "check"), fact_name(one, "subject")), 6,
            exam_format(s->a, "%s: %.0f more, of %.0f", fact_name(one, "counter"),
                        fact_number(one, "b", 0) - fact_number(one, "a", 0),
                        fact_number(one, "b", 0)));
}

/* "governor (B only), cpu-quota (A and B)": findings that differ, and may explain a component that moved. */
static const char *causes_of_any(const struct sides *s, const struct view *numbers)
{
    const char *text = "";

    for (size_t i = 0; i < numbers->n_pipes; i++) {
        const char *causes =
            has_moved(&numbers->pipes[i]) ? causes_of(s, numbers->pipes[i].name, 0) : "";

        for (size_t n; *causes; causes += n + strspn(causes + n, ", ")) {
            n = strcspn(causes, ",");
            const char *id = exam_format(s->a, "%.*s", (int)n, causes);

            if (!doctor_lists(text, id))
                text = exam_format(s->a, "%s%s%s", text, *text ? ", " : "", id);
        }
    }
    return text;
}

/* Who is faster where, and what that differs may explain it. */
static const char *opening(const struct sides *s, const struct view *numbers)
{
    const char *text = numbers ? numbers->verdict : "",
               *causes = numbers ? causes_of_any(s, numbers) : "";
    bool moved = false;

    for (size_t i = 0; numbers && i < numbers->n_pipes; i++)
        moved = moved || has_moved(&numbers->pipes[i]);
    if (*causes)
        return exam_format(s->a, "%s. May explain it: %s", text, causes);
    if (moved)
        return exam_format(s->a, "%s. No finding that differs explains it", text);
    return exam_format(s->a, "%s%s%s",
                       s->n ? exam_format(s->a, "%zu findings differ", s->n) : "no finding differs",
                       *text ? "; " : "", text);
}

static void print_both(const struct sides *s, const struct view *numbers)
{
    doctor_entry(0, "", 0, opening(s, numbers));
    doctor_entry(0, "A", 3, exam_format(s->a, "%s: %s", s->names[0], doctor_machine_text(s->a)));
    doctor_entry(0, "B", 3, exam_format(s->a, "%s: %s", s->names[1], doctor_machine_text(s->b)));
    if (s->n)
        doctor_heading("FINDINGS THAT DIFFER");
    for (size_t i = 0; i < s->n; i++) {
        const struct differing *d = &s->all[i];
        const struct exam_result *one = d->a ? d->a : d->b;

        doctor_entry(2, "", 2, exam_format(s->a, "%s, %s", one->check->id, one->subject));
        doctor_entry(4, "A", 7, said(s->a, d->a));
        doctor_entry(4, "B", 7, said(s->a, d->b));
    }
    print_counters(s);
    if (numbers)
        print_numbers(s, numbers);
    print_facts(s->a, s->facts);
}

/* ---- JSON */

static json_t *result_json(const struct exam_result *r)
{
    return r ? exam_result_json(r) : json_null();
}

static json_t *numbers_json(const struct sides *s, const struct view *numbers)
{
    json_t *list = json_array();

    for (size_t i = 0; i < numbers->n_pipes; i++) {
        const struct view_pipe *pipe = &numbers->pipes[i];

        if (has_moved(pipe))
            json_array_append_new(list,
                                  json_pack("{s:s, s:I, s:I, s:I, s:s}", "component", pipe->name,
                                            "cases", (json_int_t)pipe->n_cases, "worse",
                                            (json_int_t)pipe->counts[DECISION_WORSE], "better",
                                            (json_int_t)pipe->counts[DECISION_BETTER], "findings",
                                            causes_of(s, pipe->name, 0)));
    }
    return list;
}

static json_t *both_json(const struct sides *s, const struct view *numbers)
{
    json_t *findings = json_array();

    for (size_t i = 0; i < s->n; i++) {
        const struct differing *d = &s->all[i];
        const struct exam_result *one = d->a ? d->a : d->b;

        json_array_append_new(findings, json_pack("{s:s, s:s, s:o, s:o}", "check", one->check->id,
                                                  "subject", one->subject, "a", result_json(d->a),
                                                  "b", result_json(d->b)));
    }
    return json_pack("{s:i, s:s, s:s, s:o, s:O, s:O, s:o}", "doctor_schema", 1, "a", s->names[0],
                     "b", s->names[1], "findings", findings, "facts", s->facts, "counters",
                     s->counters, "numbers", numbers ? numbers_json(s, numbers) : json_null());
}

/* ---- The command */

/* The comparison of two runs; NULL where they are none, or are not comparable. */
static struct view *compare_numbers(struct pairs *pairs, struct view *view,
                                    const char *const names[2])
{
    const struct pairs_options options = {.margin = 0.05};
    char error[1024], path[4096];

    for (int i = 0; i < 2; i++)
        if ((size_t)snprintf(path, sizeof(path), "%s/plan.csv", names[i]) >= sizeof(path) ||
            access(path, R_OK))
            return NULL;
    if (pairs_load(pairs, names, 1, names + 1, 1, &options, error, sizeof(error))) {
        fprintf(stderr, "plumb doctor: the numbers are not compared: %s\n", error);
        return NULL;
    }
    view_make(pairs, NULL, view);
    return view;
}

static void show_both(struct sides *s, bool as_json)
{
    struct pairs pairs = {0};
    struct view view = {0};
    const struct view *numbers = compare_numbers(&pairs, &view, s->names);

    find_differing(s);
    s->facts = facts_that_differ(s);
    s->counters = counters_between(s);
    if (as_json)
        doctor_put(both_json(s, numbers));
    else
        print_both(s, numbers);
    pairs_release(&pairs);
}

int doctor_both(char *const *paths, bool as_json)
{
    struct sides s = {.names = {paths[0], paths[1]}};
    char error[1024] = "";
    int status, err = 0;

    for (int i = 0; i < 2 && !err; i++)
        err = doctor_load(paths[i], 0, &s.machines[i], error, sizeof(error));
    if (err) {
        fprintf(stderr, "plumb doctor: %s\n", error);
        status = err == -EBADMSG ? EXIT_DAMAGED : EXIT_USAGE;
    } else {
        s.hours = hours_between(s.machines[0], s.machines[1]);
        if (s.hours > 0)
            probe_growth(s.machines[1], s.machines[0], s.machines[1]);
        s.a = exam_new(s.machines[0]);
        s.b = exam_new(s.machines[1]);
        show_both(&s, as_json);
        status = s.n ? EXIT_BAD : EXIT_GOOD;
    }
    free(s.all);
    json_decref(s.facts);
    json_decref(s.counters);
    exam_free(s.a);
    exam_free(s.b);
    for (int i = 0; i < 2; i++)
        json_decref(s.machines[i]);
    return status;
}
