/* SPDX-License-Identifier: Apache-2.0 */
/* How a run reaches its hosts: see hosts.h. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "harness/hosts/end.h"
#include "harness/hosts/hosts.h"
#include "harness/hosts/launcher.h"
#include "harness/machine/fact.h"

#define WAIT_NS 20000000000ull

static int refuse(char *error, size_t len, const char *format, const char *name)
{
    snprintf(error, len, format, name);
    return -EINVAL;
}

/* Options that say how hosts are reached, where there are none, would do nothing. */
static int check_without(const struct hosts_options *o, char *error, size_t len)
{
    const char *useless = o->rsh          ? "--rsh"
                          : o->remote_dir ? "--remote-dir"
                          : o->arguments  ? "--launcher-args"
                          : o->port       ? "--port"
                          : o->wait_ns    ? "--host-wait"
                          : o->slots      ? "--slots"
                                          : NULL;

    if (o->launcher && strcmp(o->launcher, LAUNCHER_LOCAL) != 0)
        return refuse(error, len, "--launcher %s wants to know where: give --hosts FILE",
                      o->launcher);
    return useless ? refuse(error, len, "%s has no effect without --hosts FILE", useless) : 0;
}

static int check_with(const struct hosts_options *o, char *error, size_t len)
{
    const char *name = o->launcher ? o->launcher : "ssh";
    const struct launcher *launcher = launcher_find(name);

    if (!launcher)
        return refuse(error, len, "--launcher %s is this machine alone: leave out --hosts", name);
    if (launcher->ranks && (o->rsh || o->port))
        return refuse(error, len, "--rsh and --port are of no use with --launcher %s", name);
    if (!launcher->ranks && o->arguments)
        return refuse(error, len,
                      "--launcher-args is for mpirun and srun; --launcher %s takes its arguments "
                      "with --rsh 'PROGRAM ARGUMENT...'",
                      name);
    if (o->port > 65535 - HOSTS_PORTS)
        return refuse(error, len, "--port: %s", "the 100 ports from it on must be below 65536");
    return 0;
}

static char *copy_text(const char *from)
{
    return from && *from ? xstrdup(from) : NULL;
}

static void copy_options(const struct hosts_options *o, struct hosts_run *run)
{
    run->launcher = launcher_find(o->launcher ? o->launcher : "ssh");
    run->port = o->port ? o->port : HOSTS_PORT;
    run->wait_ns = o->wait_ns ? o->wait_ns : WAIT_NS;
    run->file = copy_text(o->file);
    run->rsh = copy_text(o->rsh ? o->rsh : getenv("PLUMB_RSH"));
    run->remote_dir = copy_text(o->remote_dir);
    run->arguments = copy_text(o->arguments);
}

int hosts_run_make(const struct hosts_options *o, struct hosts_run *run, char *error, size_t len)
{
    *run = (struct hosts_run){0};
    int err = o->file ? check_with(o, error, len) : check_without(o, error, len);

    if (err || !o->file)
        return err;
    err = hosts_load(o->file, &run->hosts, error, len);
    if (err)
        return err;
    for (size_t i = 0; o->slots && i < run->hosts.n; i++)
        run->hosts.all[i].slots = (unsigned)o->slots;
    copy_options(o, run);
    return 0;
}

static int check_number(const struct hosts_run *run, bool pairs, bool group, char *error,
                        size_t len)
{
    const struct hosts *hosts = &run->hosts;

    if (!hosts->n || (pairs && hosts->n < 2))
        snprintf(error, len, "'%s' names %s: a suite with cases between hosts needs two or more",
                 run->file, hosts->n ? "one host" : "no host");
    else if (group && hosts_slots(hosts) > HOSTS_SLOTS_MAX)
        snprintf(error, len, "the hosts of '%s' have %u slots, and a group at most %d: --slots N",
                 run->file, hosts_slots(hosts), HOSTS_SLOTS_MAX);
    else if (group && hosts_slots(hosts) < 2)
        snprintf(error, len, "'%s' has one host with one slot: a group needs two ranks or more",
                 run->file);
    else
        return 0;
    return -EINVAL;
}

int hosts_run_check(struct hosts_run *run, bool pairs, bool group, char *error, size_t len)
{
    int err = check_number(run, pairs, group, error, len);

    if (err)
        return err;
    hosts_mark_here(&run->hosts);
    err = run->launcher->check(run, error, len);
    if (!err && !run->launcher->ranks)
        err = hosts_look_up(&run->hosts, error, len);
    return err;
}

void hosts_run_release(struct hosts_run *run)
{
    hosts_release(&run->hosts);
    free(run->file);
    free(run->rsh);
    free(run->remote_dir);
    free(run->arguments);
    json_decref(run->ranks);
    *run = (struct hosts_run){0};
}

static const char *first_version(const struct host *h)
{
    for (size_t i = 0; i < h->n_programs; i++)
        if (h->programs[i].version)
            return h->programs[i].version;
    return NULL;
}

static const char *first_problem(const struct host *h)
{
    for (size_t i = 0; !h->problem && i < h->n_programs; i++)
        if (h->programs[i].problem)
            return h->programs[i].problem;
    return h->problem;
}

static json_t *text_or_null(const char *text)
{
    return text ? message_text(text) : json_null();
}

static json_t *seconds(double s)
{
    return isnan(s) ? json_null() : json_real(s);
}

/* What it answered when it was asked, too. */
static json_t *host_meta(const struct host *h)
{
    json_t *host =
        json_pack("{s:s, s:s?, s:i, s:b, s:s?}", "name", h->name, "address", h->address, "slots",
                  (int)h->slots, "this_machine", h->here, "version", first_version(h));

    if (h->answered) {
        json_t *programs = json_object();

        for (size_t k = 0; k < h->n_programs; k++)
            json_object_set_new(programs, h->programs[k].bench,
                                text_or_null(h->programs[k].version));
        json_object_update_new(host, json_pack("{s:s?, s:o, s:o, s:o, s:O*}", "calls_itself",
                                               h->calls, "versions", programs, "clock_offset_s",
                                               seconds(h->offset_s), "clock_known_to_s",
                                               seconds(isnan(h->offset_s) ? NAN : h->spread_s),
                                               "networks", h->networks));
    }
    if (first_problem(h))
        json_object_set_new(host, "problem", json_string(first_problem(h)));
    return host;
}

json_t *hosts_run_meta(const struct hosts_run *run)
{
    json_t *list = json_array();

    for (size_t i = 0; i < run->hosts.n; i++)
        json_array_append_new(list, host_meta(&run->hosts.all[i]));
    return json_pack("{s:s, s:o, s:o, s:o, s:o, s:I, s:f, s:s, s:O*, s:o}", "launcher",
                     run->launcher->name, "file", text_or_null(run->file), "rsh",
                     text_or_null(run->rsh), "remote_dir", text_or_null(run->remote_dir),
                     "launcher_args", text_or_null(run->arguments), "port", (json_int_t)run->port,
                     "wait_s", (double)run->wait_ns * 1e-9, "machine_is",
                     "the one that plumb run was started on, whether or not it is among the hosts",
                     "ranks", run->ranks, "list", list);
}

static const char *text_of(const json_t *meta, const char *key)
{
    return json_string_value(json_object_get(meta, key));
}

static int add_from_meta(struct hosts_run *run, const json_t *list)
{
    FACT_EACH (list, one) {
        const char *name = text_of(one, "name");
        json_int_t slots = json_integer_value(json_object_get(one, "slots"));
        if (!name)
            return -EBADMSG;
        hosts_add(&run->hosts, name, text_of(one, "address"), 0);
        if (slots > 0 && slots <= HOSTS_SLOTS_MAX)
            run->hosts.all[run->hosts.n - 1].slots = (unsigned)slots;
    }
    return 0;
}

int hosts_run_from_meta(const json_t *meta, const struct plan *plan, struct hosts_run *run,
                        char *error, size_t len)
{
    struct hosts_options o = {
        .file = text_of(meta, "file"),
        .launcher = text_of(meta, "launcher"),
        .rsh = text_of(meta, "rsh"),
        .remote_dir = text_of(meta, "remote_dir"),
        .arguments = text_of(meta, "launcher_args"),
        .port = (uint64_t)json_integer_value(json_object_get(meta, "port")),
        .wait_ns = (uint64_t)(json_number_value(json_object_get(meta, "wait_s")) * 1e9),
    };

    o.rsh = o.rsh ? o.rsh : ""; /* as then, whatever the environment says now */
    *run = (struct hosts_run){0};
    if (!meta)
        return 0;
    if (!o.launcher || !launcher_find(o.launcher) ||
        add_from_meta(run, json_object_get(meta, "list"))) {
        snprintf(error, len, "run.json: its 'hosts' are damaged");
        return -EBADMSG;
    }
    copy_options(&o, run);
    return hosts_run_check(run, plan_has_pairs(plan), plan_has_groups(plan), error, len);
}
