/* SPDX-License-Identifier: Apache-2.0 */
/* Two machines, or two nights, side by side: see doctor.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/program.h"
#include "harness/compare/compare.h"
#include "harness/doctor/doctor.h"
#include "harness/probe/probe.h"

#define FACTS_MAX 40 /* shown on a terminal */

struct doctor_side {
    struct exam *x;
    const char *name; /* as the user named it */
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
static bool is_other(const struct exam_result *r, struct exam *x)
{
    const struct exam_result *other = find(x, r);

    return is_found(r) &&
           (!is_found(other) || (!r->check->counts && strcmp(r->text, other->text) != 0));
}

/* Calls look for each pair of results, of which one is a finding that the other side has not. */
typedef void differing_fn(const struct exam_result *a, const struct exam_result *b, void *arg);

static void each_differing(const struct doctor_side *a, const struct doctor_side *b,
                           differing_fn *look, void *arg)
{
    for (const struct exam_result *r = exam_results(a->x); r; r = r->next)
        if (is_other(r, b->x))
            look(r, find(b->x, r), arg);
    for (const struct exam_result *r = exam_results(b->x); r; r = r->next)
        if (is_other(r, a->x) && !is_found(find(a->x, r)))
            look(find(a->x, r), r, arg);
}

static bool has_other(struct exam *x, struct exam *other)
{
    for (const struct exam_result *r = exam_results(x); r; r = r->next)
        if (is_other(r, other))
            return true;
    return false;
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

static void flatten(struct exam *x, const char *path, const json_t *value, json_t *flat);

static void flatten_object(struct exam *x, const char *path, const json_t *object, json_t *flat)
{
    const char *key;
    json_t *value;

    json_object_foreach ((json_t *)object, key, value)
        if (!fact_passes(key))
            flatten(x, below(x, path, key), value, flat);
}

/* That a device is there is a fact of its own, before those of the device. */
static void flatten_list(struct exam *x, const char *path, const json_t *list, json_t *flat)
{
    const json_t *one;
    size_t i;

    json_array_foreach (list, i, one) {
        const char *name = name_of(x, one);
        const char *at = below(x, path, *name ? name : exam_format(x, "%zu", i));

        json_object_set_new(flat, at, json_true());
        flatten_object(x, at, one, flat);
    }
}

static void flatten(struct exam *x, const char *path, const json_t *value, json_t *flat)
{
    if (json_is_object(value))
        flatten_object(x, path, value, flat);
    else if (json_is_array(value) && json_is_object(json_array_get(value, 0)))
        flatten_list(x, path, value, flat);
    else if (!json_is_null(value) && /* not of the record itself */
             !fact_fits("source|probe_schema|pci_names_why|host.hostname", path))
        json_object_set_new(flat, path, json_deep_copy(value));
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
static json_t *facts_that_differ(const struct doctor_side *a, const struct doctor_side *b)
{
    json_t *list = json_array(), *facts_a = doctor_facts(a->x), *facts_b = doctor_facts(b->x);

    add_facts(list, facts_a, facts_b, true, false);
    add_facts(list, facts_b, facts_a, false, true);
    json_decref(facts_a);
    json_decref(facts_b);
    return list;
}

/* ---- Counters */

/* Hours from A to B; 0: B is no later, or they are not of one host in one boot. Containers of one
 * host have its boot, and names of their own. */
static double hours_between(const json_t *a, const json_t *b)
{
    const json_t *then = json_object_get(a, "load"), *now = json_object_get(b, "load");
    const char *name = fact_name(a, "host.hostname"), *boot = fact_name(then, "boot");
    double seconds = fact_number(now, "uptime_seconds", 0) - fact_number(then, "uptime_seconds", 0);
    bool same = *name && *boot && fact_is(now, "boot", boot) && fact_is(b, "host.hostname", name);

    return same && seconds > 0 ? seconds / 3600 : 0;
}

static double hours(const struct doctor_side *a, const struct doctor_side *b)
{
    return hours_between(exam_machine(a->x), exam_machine(b->x));
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
static json_t *counters_between(const struct doctor_side *a, const struct doctor_side *b)
{
    json_t *list;

    if (hours(a, b) <= 0)
        return json_null();
    list = json_array();
    for (const struct exam_result *r = exam_results(b->x); r; r = r->next) {
        const struct exam_result *before = r->check->counts ? find(a->x, r) : NULL;

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

/* Which findings differ and can explain a component: those of the side that is not the better one,
 * or those that work against it. */
struct causes {
    struct exam *x, *other; /* of A, and of B */
    const char *pipe, *text;
    bool of_b, both; /* only of this side; or of both sides */
};

bool doctor_lists(const char *text, const char *id)
{
    size_t n = strlen(id);

    for (const char *at = text; *at; at += strcspn(at, ","), at += *at ? 2 : 0)
        if (!strncmp(at, id, n) && (!at[n] || at[n] == ' ' || at[n] == ','))
            return true;
    return false;
}

static void add_cause(const struct exam_result *a, const struct exam_result *b, void *arg)
{
    const struct exam_check *check = a ? a->check : b->check;
    struct causes *c = arg;
    bool in_a = is_found(a), in_b = is_found(b);

    if (!(in_b ? exam_explains(c->other, b, c->pipe) : exam_explains(c->x, a, c->pipe)) ||
        doctor_lists(c->text, check->id) || (!c->both && !(c->of_b ? in_b : in_a)))
        return;
    c->text = exam_format(c->x, "%s%s%s%s", c->text, *c->text ? ", " : "", check->id,
                          c->both        ? ""
                          : in_a && in_b ? " (A and B)"
                          : in_b         ? " (B only)"
                                         : " (A only)");
}

/* "governor, cpu-quota": the findings that differ and concern the component; or "governor (B only)":
 * of one side, or of both in another way. */
static const char *causes_of(const struct doctor_side *a, const struct doctor_side *b,
                             const char *pipe, bool both, bool of_b)
{
    struct causes c = {
        .x = a->x, .other = b->x, .pipe = pipe, .text = "", .both = both, .of_b = of_b};

    each_differing(a, b, add_cause, &c);
    return c.text;
}

/* ---- For people */

struct printing {
    struct doctor_pen pen;
    struct exam *x;
    size_t n;
};

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

static void print_one(const struct exam_result *a, const struct exam_result *b, void *arg)
{
    struct printing *p = arg;

    if (!p->n++)
        doctor_heading(&p->pen, "FINDINGS THAT DIFFER");
    doctor_entry(
        &p->pen, 2, "", 2,
        exam_format(p->x, "%s, %s", a ? a->check->id : b->check->id, a ? a->subject : b->subject));
    doctor_entry(&p->pen, 4, "A", 7, said(p->x, a));
    doctor_entry(&p->pen, 4, "B", 7, said(p->x, b));
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

static void print_facts(struct printing *p, const json_t *facts)
{
    size_t n = 0, shown = 0;

    FACT_EACH (facts, one)
        n += !is_unrecorded(one);
    if (json_array_size(facts))
        doctor_heading(&p->pen, exam_format(p->x, "FACTS THAT DIFFER: %zu", n));
    FACT_EACH (facts, one) {
        if (is_unrecorded(one) || shown == FACTS_MAX)
            continue;
        shown++;
        doctor_entry(&p->pen, 2, exam_format(p->x, "%s:", fact_name(one, "path")), 6,
                     fact_text(p->x, one));
    }
    if (n > shown)
        doctor_entry(&p->pen, 2, "", 2,
                     exam_format(p->x, "and %zu more: --json lists all", n - shown));
    if (json_array_size(facts) > n)
        doctor_entry(&p->pen, 2, "", 2,
                     exam_format(p->x, "%zu that only one side recorded: --json lists them",
                                 json_array_size(facts) - n));
}

static void print_pipe(struct printing *p, const struct doctor_side *a, const struct doctor_side *b,
                       const struct view_pipe *pipe)
{
    size_t worse = pipe->counts[DECISION_WORSE], better = pipe->counts[DECISION_BETTER];
    const char *on_a = causes_of(a, b, pipe->name, false, false),
               *on_b = causes_of(a, b, pipe->name, false, true);

    doctor_entry(&p->pen, 2, "", 2,
                 exam_format(p->x, "%s: of %zu cases %zu worse, %zu better in B", pipe->name,
                             pipe->n_cases, worse, better));
    if (pipe->worst)
        doctor_entry(&p->pen, 4, "lowest", 24,
                     exam_format(p->x, "%s: %.3g %% of A", pipe->worst->label,
                                 100 * pipe->worst->decide.ratio));
    if (worse)
        doctor_entry(&p->pen, 4, "may explain worse", 24, *on_b ? on_b : "no finding that differs");
    else if (*on_b)
        doctor_entry(&p->pen, 4, "works against it", 24, on_b);
    if (better)
        doctor_entry(&p->pen, 4, "may explain better", 24,
                     *on_a ? on_a : "no finding that differs");
    else if (*on_a)
        doctor_entry(&p->pen, 4, "works against it", 24, on_a);
}

static void print_numbers(struct printing *p, const struct doctor_side *a,
                          const struct doctor_side *b, const struct view *numbers)
{
    size_t n = 0;

    doctor_heading(&p->pen, "NUMBERS THAT DIFFER");
    for (size_t i = 0; i < numbers->n_pipes; i++)
        if (has_moved(&numbers->pipes[i]) && ++n)
            print_pipe(p, a, b, &numbers->pipes[i]);
    if (!n)
        doctor_entry(&p->pen, 2, "", 2, "no number is proven to differ");
    doctor_entry(&p->pen, 2, "", 2,
                 exam_format(p->x, "all cases: plumb compare %s %s", a->name, b->name));
}

static void print_counters(struct printing *p, const struct doctor_side *a,
                           const struct doctor_side *b)
{
    json_t *counters = counters_between(a, b);

    if (json_array_size(counters))
        doctor_heading(&p->pen, exam_format(p->x, "COUNTERS in %.3g hours", hours(a, b)));
    FACT_EACH (counters, one)
        doctor_entry(
            &p->pen, 2,
            exam_format(p->x, "%s, %s:", fact_name(one, "check"), fact_name(one, "subject")), 6,
            exam_format(p->x, "%s: %.0f more, of %.0f", fact_name(one, "counter"),
                        fact_number(one, "b", 0) - fact_number(one, "a", 0),
                        fact_number(one, "b", 0)));
    json_decref(counters);
}

static void print_both(FILE *out, const struct doctor_side *a, const struct doctor_side *b,
                       const struct view *numbers)
{
    struct printing p = {doctor_pen(out), a->x, 0};
    json_t *facts = facts_that_differ(a, b);

    doctor_entry(&p.pen, 0, "A", 3,
                 exam_format(a->x, "%s: %s", a->name, doctor_machine_text(a->x, NULL)));
    doctor_entry(&p.pen, 0, "B", 3,
                 exam_format(a->x, "%s: %s", b->name, doctor_machine_text(b->x, NULL)));
    each_differing(a, b, print_one, &p);
    if (!p.n)
        fprintf(out, "no finding differs\n");
    print_counters(&p, a, b);
    if (numbers)
        print_numbers(&p, a, b, numbers);
    print_facts(&p, facts);
    json_decref(facts);
}

/* ---- JSON */

static json_t *result_json(const struct exam_result *r)
{
    return r ? exam_result_json(r) : json_null();
}

static void add_json(const struct exam_result *a, const struct exam_result *b, void *arg)
{
    json_array_append_new(
        arg, json_pack("{s:s, s:s, s:o, s:o}", "check", a ? a->check->id : b->check->id, "subject",
                       a ? a->subject : b->subject, "a", result_json(a), "b", result_json(b)));
}

static json_t *numbers_json(const struct doctor_side *a, const struct doctor_side *b,
                            const struct view *numbers)
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
                                            causes_of(a, b, pipe->name, true, false)));
    }
    return list;
}

static json_t *both_json(const struct doctor_side *a, const struct doctor_side *b,
                         const struct view *numbers)
{
    json_t *findings = json_array();

    each_differing(a, b, add_json, findings);
    return json_pack("{s:i, s:s, s:s, s:o, s:o, s:o, s:o}", "doctor_schema", 1, "a", a->name, "b",
                     b->name, "findings", findings, "facts", facts_that_differ(a, b), "counters",
                     counters_between(a, b), "numbers",
                     numbers ? numbers_json(a, b, numbers) : json_null());
}

/* ---- The command */

/* The comparison of two runs; NULL where they are none, or are not comparable. */
static struct view *compare_numbers(struct pairs *pairs, struct view *view, const char *const *a,
                                    const char *const *b)
{
    const struct pairs_options options = {.margin = 0.05};
    char error[1024], path[4096];

    for (int i = 0; i < 2; i++)
        if ((size_t)snprintf(path, sizeof(path), "%s/plan.csv", i ? *b : *a) >= sizeof(path) ||
            access(path, R_OK))
            return NULL;
    if (pairs_load(pairs, a, 1, b, 1, &options, error, sizeof(error))) {
        fprintf(stderr, "plumb doctor: the numbers are not compared: %s\n", error);
        return NULL;
    }
    view_make(pairs, NULL, view);
    return view;
}

static void show_both(const struct doctor_side *a, const struct doctor_side *b, bool as_json)
{
    struct pairs pairs = {0};
    struct view view = {0};
    const struct view *numbers = compare_numbers(&pairs, &view, &a->name, &b->name);

    if (as_json) {
        doctor_put(both_json(a, b, numbers));
    } else {
        print_both(stdout, a, b, numbers);
    }
    pairs_release(&pairs);
}

int doctor_both(char *const *paths, bool as_json)
{
    struct doctor_side sides[2] = {{.name = paths[0]}, {.name = paths[1]}};
    json_t *machines[2] = {NULL, NULL};
    char error[1024] = "";
    int status = EXIT_INCOMPLETE, err = 0;

    for (int i = 0; i < 2 && !err; i++)
        err = doctor_load(paths[i], 0, &machines[i], error, sizeof(error));
    if (!err && hours_between(machines[0], machines[1]) > 0)
        probe_growth(machines[1], machines[0], machines[1]);
    for (int i = 0; i < 2 && !err; i++)
        sides[i].x = exam_new(machines[i]);
    if (sides[0].x && sides[1].x) {
        show_both(&sides[0], &sides[1], as_json);
        status = has_other(sides[0].x, sides[1].x) || has_other(sides[1].x, sides[0].x) ? EXIT_BAD
                                                                                        : EXIT_GOOD;
    } else {
        fprintf(stderr, "plumb doctor: %s\n", error);
        status = err == -EBADMSG ? EXIT_DAMAGED : err ? EXIT_USAGE : EXIT_INCOMPLETE;
    }
    for (int i = 0; i < 2; i++) {
        exam_free(sides[i].x);
        json_decref(machines[i]);
    }
    return status;
}
