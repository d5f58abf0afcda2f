/* SPDX-License-Identifier: Apache-2.0 */
/* Do all ranks find each other? See check.h. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/group/world.h"
#include "core/units.h"
#include "harness/child.h"
#include "harness/hosts/check.h"
#include "harness/hosts/host_launch.h"
#include "harness/store/table.h"

#define TRIAL_NS 100000000000ull /* ranks wait for each other for a minute */
#define NAME_CUT (WORLD_NAME_MAX - 1)

static unsigned number_of(const struct table *t, size_t row, const char *column)
{
    uint64_t n = 0;

    return units_parse_u64(table_text(t, row, column), &n) || n > UINT32_MAX ? UINT32_MAX
                                                                             : (unsigned)n;
}

/* A connection of its own puts a rank where it is to be; a launcher of ranks may have other ideas. By the names that the hosts call
 * themselves, as far as known; a rank's may be cut off. */
static bool is_elsewhere(const struct hosts_run *run, const struct host *h, const char *is)
{
    size_t n = strlen(is);

    return run->launcher->ranks && h->calls &&
           (n < NAME_CUT ? strcmp(h->calls, is) : strncmp(h->calls, is, n)) != 0;
}

/* Is each rank where the hosts file puts it? */
static int check_seats(const struct hosts_run *run, const struct table *t, char *error, size_t len)
{
    size_t row = 0;

    for (size_t i = 0; i < run->hosts.n; i++) {
        const struct host *h = &run->hosts.all[i];
        for (unsigned k = 0; k < h->slots; k++, row++) {
            const char *is = table_text(t, row, "host");
            if (number_of(t, row, "rank") != row) {
                snprintf(error, len, "its rank %zu is missing or out of order", row);
                return -EBADMSG;
            }
            if (!is_elsewhere(run, h, is))
                continue;
            snprintf(error, len,
                     "rank %zu is on '%s', and by the hosts file it belongs on '%s' ('%s'): see "
                     "%s's own options",
                     row, is, h->name, h->calls, run->launcher->name);
            return -EBADMSG;
        }
    }
    return 0;
}

int check_who(const struct hosts_run *run, const char *csv, size_t size, char *error, size_t len)
{
    unsigned wanted = hosts_slots(&run->hosts);
    struct table t;
    int err = table_parse("who", csv, size, &t, error, len);

    if (err)
        return err == -ENOMEM ? err : -EBADMSG;
    if (t.n_rows != wanted) {
        snprintf(error, len, "%zu of %u ranks see each other", t.n_rows, wanted);
        err = -EBADMSG;
    } else {
        err = check_seats(run, &t, error, len);
    }
    table_release(&t);
    return err;
}

/* The table as it is, for run.json. */
static void keep_who(struct hosts_run *run, const struct bench_info *bench, const char *csv,
                     size_t size)
{
    json_t *list = json_array();
    char ignored[256];
    struct table t;

    if (table_parse("who", csv, size, &t, ignored, sizeof(ignored))) {
        json_decref(list);
        return;
    }
    for (size_t row = 0; row < t.n_rows; row++) {
        json_t *one = json_object();
        for (size_t i = 0; i < t.n_columns; i++)
            json_object_set_new(one, t.columns[i], json_string(table_cell(&t, row, i)));
        json_array_append_new(list, one);
    }
    table_release(&t);
    if (!run->ranks)
        run->ranks = json_object();
    json_object_set_new(run->ranks, bench->name, list);
}

static void last_line(const char *text, char *line, size_t len)
{
    size_t end = strlen(text), begin;

    while (end && text[end - 1] == '\n')
        end--;
    for (begin = end; begin && text[begin - 1] != '\n';)
        begin--;
    snprintf(line, len, "%.*s", (int)(end - begin), text + begin);
}

static int take_problem(struct hosts_run *run, const struct bench_info *bench, const char *why)
{
    struct host *h = &run->hosts.all[0];

    for (size_t i = 0; i < h->n_programs; i++) {
        struct host_program *p = &h->programs[i];
        if (strcmp(p->bench, bench->name) != 0)
            continue;
        if (asprintf(&p->problem, "a trial of '%s' over all hosts failed: %s", bench->name, why) <
            0) {
            p->problem = NULL;
            return -ENOMEM;
        }
    }
    return 0;
}

int check_trial(struct hosts_run *run, const struct bench_info *bench)
{
    static const char *const who[] = {"--who", NULL};
    struct host_launch group = {.run = run, .program = bench->path, .arguments = who};
    struct child_result r = {0};
    char why[700] = "";
    int err = child_run(&(struct child_spec){.body = host_launch_body,
                                             .body_arg = &group,
                                             .samples = true,
                                             .timeout_ns = TRIAL_NS + run->wait_ns},
                        &r);

    if (!err && r.timed_out)
        snprintf(why, sizeof(why), "it did not end in %.3g s",
                 (double)(TRIAL_NS + run->wait_ns) * 1e-9);
    else if (!err && r.status)
        last_line(r.err.text, why, sizeof(why));
    else if (!err)
        err = check_who(run, r.out.text, r.out.size, why, sizeof(why));
    if (!err && !*why && r.status == 0)
        keep_who(run, bench, r.out.text, r.out.size);
    if (err == -EBADMSG || (!err && (*why || r.status)))
        err = take_problem(run, bench, *why ? why : "it ended without a word");
    child_result_release(&r);
    return err;
}
