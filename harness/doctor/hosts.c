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
#define FIRST_MAX 3  /* things to do first */
#define LACKS_MAX 32 /* reasons why something is not known */

struct patient {
    const char *name;
    json_t *machine; /* NULL: no answer */
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
            exam_one_of(w->all[i].odd, "path", path))
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
        return n == 2 ? "both hosts" : exam_format(x, "all %zu hosts", n);
    return n > 3 ? exam_format(x, "%s and %zu more", text, n - 3) : text;
}

static bool was_before(const struct ward *w, size_t host, const struct exam_result *r)
{
    for (size_t i = 0; i < host; i++)
        if (has_finding(&w->all[i], r))
            return true;
    return false;
}

struct shared { /* a finding, and the first host that has it */
    const struct exam_result *r;
    size_t host;
};

/* Each finding once, costliest first. New. */
static struct shared *findings_of(const struct ward *w, size_t *n)
{
    struct shared *all;
    size_t room = 1;

    for (size_t i = 0; i < w->n; i++)
        room += w->all[i].x ? exam_count(w->all[i].x, EXAM_FOUND) : 0;
    *n = 0;
    all = xcalloc(room, sizeof(*all));
    for (size_t i = 0; i < w->n; i++)
        for (const struct exam_result *r = w->all[i].x ? exam_results(w->all[i].x) : NULL; r;
             r = r->next) {
            size_t at = *n;

            if (r->state != EXAM_FOUND || was_before(w, i, r))
                continue;
            for (; at && exam_before(r, all[at - 1].r); at--)
                all[at] = all[at - 1];
            all[at] = (struct shared){r, i};
            ++*n;
        }
    return all;
}

static void print_finding(const struct doctor_pen *p, const struct ward *w, const struct shared *f,
                          size_t n)
{
    struct exam *x = w->all[f->host].x;
    char cost[512];

    exam_cost_text(&f->r->cost, cost, sizeof(cost));
    doctor_entry(p, 2, exam_format(x, "%zu.", n), 6,
                 exam_format(x, "%s: %s, %s", hosts_with(w, f->host, f->r), f->r->check->id,
                             exam_subject(x, f->r)));
    doctor_entry(p, 6, "", 6, f->r->text);
    doctor_entry(p, 6, "cost", 14, cost);
    if (*f->r->remedy)
        doctor_entry(p, 6, "remedy", 14, f->r->remedy);
}

static void print_first(const struct doctor_pen *p, const struct ward *w, const struct shared *all,
                        size_t n)
{
    size_t first = 0;

    for (size_t i = 0; n > FIRST_MAX && i < n && first < FIRST_MAX; i++) {
        struct exam *x = w->all[all[i].host].x;

        if (!*all[i].r->remedy)
            continue;
        if (!first)
            doctor_heading(p, "DO FIRST");
        doctor_entry(
            p, 2, exam_format(x, "%zu.", ++first), 6,
            exam_format(x, "%s: %s", hosts_with(w, all[i].host, all[i].r), all[i].r->remedy));
    }
}

/* ---- What is not known, by its reason over all hosts */

struct lack {
    const char *reason, *first; /* first: host */
    bool matters;
    size_t n_hosts, last; /* hosts with it, and the last of them plus 1 */
    const char *checks;   /* "settings, threads" */
};

#define JOB_UNSEEN                                                                                 \
    "the variables of your job are not seen by what starts plumb here: run plumb doctor --json "   \
    "within the job"

static const char *reason_here(const struct exam_result *r)
{
    return strncmp(r->text, "library_settings:", 17) ? doctor_unknown_reason(r) : JOB_UNSEEN;
}

static void add_lack(const struct ward *w, size_t host, const struct exam_result *r,
                     struct lack *all, size_t *n)
{
    const struct patient *p = &w->all[host];
    size_t i = 0;

    while (i < *n && (all[i].matters != r->matters || strcmp(all[i].reason, reason_here(r)) != 0))
        i++;
    if (i == LACKS_MAX)
        return;
    if (i == *n)
        all[(*n)++] = (struct lack){reason_here(r), p->name, r->matters, 0, 0, ""};
    if (!doctor_lists(all[i].checks, r->check->id))
        all[i].checks =
            exam_format(p->x, "%s%s%s", all[i].checks, *all[i].checks ? ", " : "", r->check->id);
    all[i].n_hosts += all[i].last != host + 1;
    all[i].last = host + 1;
}

static void print_lacks(const struct doctor_pen *p, const struct ward *w, bool matters)
{
    struct lack all[LACKS_MAX];
    bool any = false;
    size_t n = 0;

    for (size_t i = 0; i < w->n; i++)
        for (const struct exam_result *r = w->all[i].x ? exam_results(w->all[i].x) : NULL; r;
             r = r->next)
            if (r->state == EXAM_UNKNOWN)
                add_lack(w, i, r, all, &n);
    for (size_t i = 0; i < n; i++) {
        struct exam *x = w->all[all[i].last - 1].x;

        if (all[i].matters != matters)
            continue;
        if (!any)
            doctor_heading(p, matters ? "NOT KNOWN, and it matters" : "NOT KNOWN");
        any = true;
        doctor_entry(p, 2, "", 2,
                     all[i].n_hosts == 1 ? exam_format(x, "%s: %s", all[i].first, all[i].reason)
                                         : exam_format(x, "%zu of %zu hosts: %s", all[i].n_hosts,
                                                       w->n_answered, all[i].reason));
        doctor_entry(p, 6, "", 6, all[i].checks);
    }
}

/* "nothing found, but 32 of 96 results are not known" */
static void print_counts(const struct ward *w, size_t found)
{
    size_t unknown = 0, all = 0, blind = 0;

    for (size_t i = 0; i < w->n; i++) {
        struct exam *x = w->all[i].x;

        if (!x)
            continue;
        unknown += exam_count(x, EXAM_UNKNOWN);
        all += exam_count(x, EXAM_UNKNOWN) + exam_count(x, EXAM_FINE) + exam_count(x, EXAM_FOUND);
        blind += exam_lacks_gpus(x);
    }
    if (found)
        printf("%zu finding%s", found, found == 1 ? "" : "s");
    else
        printf("nothing found");
    if (unknown)
        printf(", %s %zu of %zu results are not known", found ? "and" : "but", unknown, all);
    if (blind)
        printf(": of %zu host%s, the GPUs were not examined", blind, blind == 1 ? "" : "s");
    putchar('\n');
}

static void print_head(const struct doctor_pen *p, const struct hosts_run *run,
                       const struct ward *w)
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
            doctor_entry(p, 2, "", 2, w->all[i].why);
}

static void print_ward(const struct hosts_run *run, const struct ward *w)
{
    struct doctor_pen p = doctor_pen(stdout);
    size_t n;
    struct shared *all = findings_of(w, &n);

    print_head(&p, run, w);
    if (w->n_answered)
        print_counts(w, n);
    if (w->n_answered == 2)
        printf("no host can be told as the one that differs: that takes three hosts\n");
    print_odd(&p, w);
    if (n)
        doctor_heading(&p, "FINDINGS, costliest first");
    for (size_t i = 0; i < n; i++)
        print_finding(&p, w, &all[i], i + 1);
    print_lacks(&p, w, true);
    print_lacks(&p, w, false);
    print_first(&p, w, all, n);
    free(all);
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
