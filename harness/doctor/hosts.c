/* SPDX-License-Identifier: Apache-2.0 */
/* plumb doctor --hosts: all hosts are asked for their facts and judged here: see doctor.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/program.h"
#include "harness/doctor/doctor.h"
#include "harness/hosts/launcher.h"

#define FACTS_MAX 12 /* of a host that differs, on a terminal */

struct patient {
    const char *name;
    json_t *machine; /* NULL: no answer */
    struct exam *x;
    json_t *facts;
    char *why;   /* there is no answer */
    json_t *odd; /* [{path, value, others, alike}]: facts in which it is not like the most */
};

struct ward {
    struct patient *all;
    size_t n, n_answered;
};

/* ---- Asking */

static struct patient *find(struct ward *w, const char *name)
{
    size_t i = 0;

    while (i < w->n && strcmp(w->all[i].name, name) != 0)
        i++;
    return i < w->n ? &w->all[i] : NULL;
}

static void take(const struct host *host, const char *output, size_t size, const char *why,
                 void *arg)
{
    struct patient *p = find(arg, host->name);
    json_error_t error;

    p->machine = output ? json_loadb(output, size, 0, &error) : NULL;
    if (!p->machine)
        p->why = strdup(why ? why : "its plumb probe --json gave no JSON");
}

/* 0, or -ENOMEM. */
static int examine_all(struct ward *w)
{
    for (size_t i = 0; i < w->n; i++) {
        struct patient *p = &w->all[i];

        if (!p->machine)
            continue;
        p->x = exam_new(p->machine);
        if (!p->x)
            return -ENOMEM;
        p->facts = doctor_facts(p->x);
        p->odd = json_array();
        w->n_answered++;
    }
    return 0;
}

static int ask(const struct hosts_run *run, struct ward *w)
{
    static const char *const arguments[] = {"probe", "--json", NULL};
    char program[4096];
    ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);
    int err = n > 0 ? 0 : -errno;

    w->all = calloc(run->hosts.n, sizeof(*w->all));
    if (!w->all)
        return -ENOMEM;
    w->n = run->hosts.n;
    for (size_t i = 0; i < w->n; i++)
        w->all[i].name = run->hosts.all[i].name;
    if (err)
        return err;
    program[n] = '\0';
    err = hosts_ask(run, program, arguments, take, w);
    return err ? err : examine_all(w);
}

static void ward_release(struct ward *w)
{
    for (size_t i = 0; i < w->n; i++) {
        exam_free(w->all[i].x);
        json_decref(w->all[i].machine);
        json_decref(w->all[i].facts);
        json_decref(w->all[i].odd);
        free(w->all[i].why);
    }
    free(w->all);
}

/* ---- Who is not like the most: by the majority of each fact */

static size_t count_alike(const struct ward *w, const char *path, const json_t *value)
{
    size_t n = 0;

    for (size_t i = 0; i < w->n; i++) {
        const json_t *other = json_object_get(w->all[i].facts, path);

        n += w->all[i].facts && (value ? json_equal(other, value) : !other);
    }
    return n;
}

/* The value that more than half of the hosts have; NULL with *n 0: there is none, and NULL with *n
 * set: most have no such fact. */
static const json_t *usual(const struct ward *w, const char *path, size_t *n)
{
    for (size_t i = 0; i < w->n; i++) {
        const json_t *value = json_object_get(w->all[i].facts, path);

        *n = w->all[i].facts ? count_alike(w, path, value) : 0;
        if (*n > w->n_answered / 2)
            return value;
    }
    *n = 0;
    return NULL;
}

static bool is_known_odd(const struct patient *p, const char *path)
{
    const json_t *one;
    size_t i;

    json_array_foreach (p->odd, i, one)
        if (exam_is(one, "path", path))
            return true;
    return false;
}

static void look_at_fact(struct ward *w, const char *path)
{
    size_t alike;
    const json_t *most = usual(w, path, &alike);

    if (!alike || alike == w->n_answered)
        return;
    for (size_t i = 0; i < w->n; i++) {
        const json_t *own = json_object_get(w->all[i].facts, path);

        if (!w->all[i].facts || (own && most ? json_equal(own, most) : own == most) ||
            is_known_odd(&w->all[i], path))
            continue;
        json_array_append_new(w->all[i].odd,
                              json_pack("{s:s, s:O?, s:O?, s:I}", "path", path, "value", own,
                                        "others", most, "alike", (json_int_t)alike));
    }
}

static void find_odd(struct ward *w)
{
    const char *path;
    json_t *value;

    if (w->n_answered < 3) /* of two, none is the odd one */
        return;
    for (size_t i = 0; i < w->n; i++)
        json_object_foreach (w->all[i].facts, path, value)
            look_at_fact(w, path);
}

/* ---- For people */

static void print_odd(const struct doctor_pen *p, const struct ward *w)
{
    const json_t *one;
    bool any = false;
    size_t k;

    for (size_t i = 0; i < w->n; i++) {
        const struct patient *host = &w->all[i];
        size_t n = json_array_size(host->odd);

        if (!n)
            continue;
        if (!any)
            doctor_heading(p, "HOSTS THAT DIFFER FROM THE OTHERS");
        any = true;
        doctor_entry(p, 2, "", 2, host->name);
        json_array_foreach (host->odd, k, one)
            if (k < FACTS_MAX)
                doctor_entry(
                    p, 4, exam_format(host->x, "%s:", exam_name(one, "path")), 8,
                    exam_format(host->x, "%s; %.0f of %zu hosts: %s",
                                doctor_value_text(host->x, json_object_get(one, "value")),
                                exam_value(one, "alike", 0), w->n_answered,
                                doctor_value_text(host->x, json_object_get(one, "others"))));
        if (n > FACTS_MAX)
            doctor_entry(p, 4, "", 4, exam_format(host->x, "and %zu more: --json", n - FACTS_MAX));
    }
}

static bool has_finding(const struct patient *p, const struct exam_result *like)
{
    for (const struct exam_result *r = p->x ? exam_results(p->x) : NULL; r; r = r->next)
        if (r->state == like->state && r->check == like->check &&
            !strcmp(r->subject, like->subject) && !strcmp(r->text, like->text))
            return true;
    return false;
}

/* "all 16 hosts", "node3", "node1, node2 and 3 more" */
static const char *hosts_with(const struct ward *w, size_t first, const struct exam_result *r)
{
    struct exam *x = w->all[first].x;
    const char *text = "";
    size_t n = 0;

    for (size_t i = first; i < w->n; i++)
        if (has_finding(&w->all[i], r) && ++n <= 3)
            text = exam_format(x, "%s%s%s", text, n > 1 ? ", " : "", w->all[i].name);
    if (n == w->n_answered && n > 1)
        return exam_format(x, "all %zu hosts", n);
    return n > 3 ? exam_format(x, "%s and %zu more", text, n - 3) : text;
}

static bool was_before(const struct ward *w, size_t host, const struct exam_result *r)
{
    for (size_t i = 0; i < host; i++)
        if (has_finding(&w->all[i], r))
            return true;
    return false;
}

/* Each finding once, with the hosts that have it. */
static size_t print_findings(const struct doctor_pen *p, const struct ward *w,
                             enum exam_state state, const char *title)
{
    size_t n = 0;

    for (size_t i = 0; i < w->n; i++)
        for (const struct exam_result *r = w->all[i].x ? exam_results(w->all[i].x) : NULL; r;
             r = r->next) {
            char cost[512];

            if (r->state != state || (state == EXAM_UNKNOWN && !r->matters) || was_before(w, i, r))
                continue;
            if (!n++)
                doctor_heading(p, title);
            exam_cost_text(&r->cost, cost, sizeof(cost));
            doctor_entry(p, 2, "", 2,
                         exam_format(w->all[i].x, "%s: %s, %s", hosts_with(w, i, r), r->check->id,
                                     r->subject));
            doctor_entry(p, 4, "", 4, r->text);
            if (state == EXAM_FOUND)
                doctor_entry(p, 4, "cost", 12, cost);
            if (*r->remedy)
                doctor_entry(p, 4, "remedy", 12, r->remedy);
        }
    return n;
}

static void print_ward(const struct hosts_run *run, const struct ward *w)
{
    struct doctor_pen p = doctor_pen(stdout);
    char by[LAUNCHER_BY_SIZE];

    printf("%zu of %zu hosts answered, asked %s\n", w->n_answered, w->n, launcher_by(run, by));
    for (size_t i = 0; i < w->n; i++)
        if (w->all[i].why)
            doctor_entry(&p, 2, "", 2, w->all[i].why);
    print_odd(&p, w);
    if (!print_findings(&p, w, EXAM_FOUND, "FINDINGS"))
        printf("\nnothing found\n");
    print_findings(&p, w, EXAM_UNKNOWN, "UNKNOWN, and it matters");
}

static json_t *ward_json(const struct ward *w)
{
    json_t *hosts = json_array();

    for (size_t i = 0; i < w->n; i++) {
        const struct patient *p = &w->all[i];

        json_array_append_new(hosts, json_pack("{s:s, s:s?, s:O?, s:o}", "host", p->name, "problem",
                                               p->why, "differs", p->odd, "exam",
                                               p->x ? doctor_json(p->x) : json_null()));
    }
    return json_pack("{s:i, s:o}", "doctor_schema", 1, "hosts", hosts);
}

static int status_of(const struct ward *w)
{
    int status = EXIT_GOOD;

    for (size_t i = 0; i < w->n; i++) {
        int own = w->all[i].x ? doctor_status(w->all[i].x) : EXIT_INCOMPLETE;

        if (own == EXIT_BAD)
            return EXIT_BAD;
        status = own > status ? own : status;
    }
    return status;
}

int doctor_hosts(const struct hosts_options *options, bool as_json)
{
    struct hosts_run run;
    struct ward w = {0};
    char error[1024] = "";
    int status = EXIT_USAGE, err = hosts_run_make(options, &run, error, sizeof(error));

    if (!err) {
        hosts_mark_here(&run.hosts);
        err = run.launcher->check(&run, error, sizeof(error));
    }
    if (!err && !run.hosts.n) {
        snprintf(error, sizeof(error), "'%s' names no host", options->file);
        err = -EINVAL;
    }
    if (!err) {
        err = ask(&run, &w);
        status = EXIT_INCOMPLETE;
    }
    if (err) {
        fprintf(stderr, "plumb doctor: %s\n", *error ? error : strerror(-err));
    } else {
        find_odd(&w);
        if (as_json) {
            json_t *json = ward_json(&w);

            json_dumpf(json, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
            putchar('\n');
            json_decref(json);
        } else {
            print_ward(&run, &w);
        }
        status = status_of(&w);
    }
    ward_release(&w);
    hosts_run_release(&run);
    return status;
}
