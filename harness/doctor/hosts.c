/* SPDX-License-Identifier: Apache-2.0 */
/* plumb doctor --hosts: all hosts are asked for their facts and judged here: see doctor.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/program.h"
#include "harness/doctor/doctor.h"
#include "harness/hosts/launcher.h"

#define FACTS_MAX 12 /* of a host that differs, on a terminal */

/* ---- Asking */

static void take(struct host *host, const struct host_answer *answer, void *arg)
{
    struct patient *p = ((struct ward *)arg)->all;
    const char *rows = json_string_value(json_object_get(answer->end, "rows"));

    while (strcmp(p->name, host->name) != 0)
        p++;
    p->machine = rows ? json_loads(rows, 0, NULL) : NULL;
    if (!p->machine)
        p->why = xstrdup(answer->why ? answer->why : "its plumb probe --json gave no JSON");
}

static void order(struct host *host, struct argv *words, void *arg)
{
    char program[4096];

    host_agent_path(((const struct ward *)arg)->run, host, program, sizeof(program));
    argv_add_all(words, (const char *[]){program, "probe", "--json", "--watch", "1s", NULL});
}

static void examine_all(struct ward *w)
{
    for (size_t i = 0; i < w->n; i++) {
        struct patient *p = &w->all[i];

        if (!p->machine)
            continue;
        p->x = exam_new(p->machine);
        p->facts = doctor_facts(p->x);
        p->odd = json_array();
        w->n_answered++;
    }
}

static int ask(struct hosts_run *run, struct ward *w)
{
    w->run = run;
    w->all = xcalloc(run->hosts.n, sizeof(*w->all));
    w->n = run->hosts.n;
    for (size_t i = 0; i < w->n; i++)
        w->all[i].name = run->hosts.all[i].name;
    int err = hosts_ask(run, TASK_ASK, order, take, w);
    if (!err)
        examine_all(w);
    return err;
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

static void look_at_fact(struct ward *w, const char *path)
{
    size_t alike;
    const json_t *most = usual(w, path, &alike);

    if (!alike || alike == w->n_answered)
        return;
    for (size_t i = 0; i < w->n; i++) {
        const json_t *own = json_object_get(w->all[i].facts, path);

        if (!w->all[i].facts || (own && most ? json_equal(own, most) : own == most) ||
            fact_one_of(w->all[i].odd, "path", path))
            continue;
        json_array_append_new(w->all[i].odd,
                              json_pack("{s:s, s:O?, s:O?, s:I}", "path", path, "value", own,
                                        "others", most, "alike", (json_int_t)alike));
    }
}

/* ---- For people */

static void print_odd(const struct ward *w)
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
            doctor_heading("HOSTS THAT DIFFER FROM THE OTHERS");
        any = true;
        doctor_entry(2, "", 2, host->name);
        json_array_foreach (host->odd, k, one)
            if (k < FACTS_MAX)
                doctor_entry(
                    4, exam_format(host->x, "%s:", fact_name(one, "path")), 8,
                    exam_format(host->x, "%s; %.0f of %zu hosts: %s",
                                doctor_value_text(host->x, json_object_get(one, "value")),
                                fact_number(one, "alike", 0), w->n_answered,
                                doctor_value_text(host->x, json_object_get(one, "others"))));
        if (n > FACTS_MAX)
            doctor_entry(4, "", 4, exam_format(host->x, "and %zu more: --json", n - FACTS_MAX));
    }
}

static void print_head(const struct hosts_run *run, const struct ward *w)
{
    char by[LAUNCHER_BY_SIZE];
    size_t here = 0;

    for (size_t i = 0; i < run->hosts.n; i++)
        here += run->hosts.all[i].here;
    printf("%zu of %zu host%s answered", w->n_answered, w->n, w->n == 1 ? "" : "s");
    if (here < w->n || run->launcher->ranks)
        printf(", asked %s", launcher_by(run, by));
    puts(here && !run->launcher->ranks ? "; this machine is asked directly" : "");
    for (size_t i = 0; i < w->n; i++)
        if (w->all[i].why)
            doctor_entry(2, "", 2, w->all[i].why);
}

static void print_ward(const struct hosts_run *run, const struct ward *w)
{

    print_head(run, w);
    if (w->n_answered)
        doctor_print_counts(w);
    if (w->n_answered == 2)
        printf("no host can be told as the one that differs: that takes three hosts\n");
    print_odd(w);
    doctor_print_results(w, false);
    doctor_print_first(w, false, false);
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
        const char *path;
        json_t *value;
        for (size_t i = 0; i < w.n && w.n_answered >= 3; i++) /* of two, none is the odd one */
            json_object_foreach (w.all[i].facts, path, value)
                look_at_fact(&w, path);
        if (as_json) {
            doctor_put(ward_json(&w));
        } else {
            print_ward(&run, &w);
        }
        status = status_of(&w);
    }
    for (size_t i = 0; i < w.n; i++) {
        exam_free(w.all[i].x);
        json_decref(w.all[i].machine);
        json_decref(w.all[i].facts);
        json_decref(w.all[i].odd);
        free(w.all[i].why);
    }
    free(w.all);
    hosts_run_release(&run);
    return status;
}
