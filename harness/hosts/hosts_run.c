/* SPDX-License-Identifier: Apache-2.0 */
/* How a run reaches its hosts: see hosts_run.h. */
#include "harness/hosts/hosts_run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "harness/hosts/pair.h"

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
                                          : NULL;

    if (o->launcher && strcmp(o->launcher, "local") != 0)
        return refuse(error, len, "--launcher %s wants to know where: give --hosts FILE",
                      o->launcher);
    return useless ? refuse(error, len, "%s says nothing without --hosts FILE", useless) : 0;
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

static int copy_text(char **to, const char *from)
{
    *to = from && *from ? strdup(from) : NULL;
    return from && *from && !*to ? -ENOMEM : 0;
}

static int copy_options(const struct hosts_options *o, struct hosts_run *run)
{
    const char *rsh = o->rsh ? o->rsh : getenv("PLUMB_RSH");
    int err = copy_text(&run->file, o->file);

    run->launcher = launcher_find(o->launcher ? o->launcher : "ssh");
    run->port = o->port ? o->port : HOSTS_PORT;
    run->wait_ns = o->wait_ns ? o->wait_ns : WAIT_NS;
    err = err ? err : copy_text(&run->rsh, rsh);
    err = err ? err : copy_text(&run->remote_dir, o->remote_dir);
    return err ? err : copy_text(&run->arguments, o->arguments);
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
    err = copy_options(o, run);
    if (err)
        snprintf(error, len, "out of memory");
    return err;
}

int hosts_run_check(struct hosts_run *run, char *error, size_t len)
{
    int err = 0;

    if (run->hosts.n < 2) {
        snprintf(error, len, "'%s' names %s: a suite with cases between hosts needs two or more",
                 run->file, run->hosts.n ? "one host" : "no host");
        return -EINVAL;
    }
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
    *run = (struct hosts_run){0};
}

/* How many launches wait for this host, and the benchmark of the first; NULL: none. */
static size_t waiting_for(const struct plan *plan, const char *host, const char **bench)
{
    size_t n = 0;

    *bench = NULL;
    for (size_t i = 0; i < plan->n; i++) {
        const struct launch *l = &plan->launches[i];
        if (l->state != LAUNCH_TODO || !launch_has_hosts(l) ||
            (strcmp(l->from, host) && strcmp(l->to, host)))
            continue;
        *bench = *bench ? *bench : l->bench;
        n++;
    }
    return n;
}

static int ask(const struct hosts_run *run, const struct bench_info *bench, struct host *h,
               size_t launches)
{
    char version[256], error[768] = "";
    int err = pair_ask(run, h, bench->path, version, error, sizeof(error));

    h->unreached = err == -EHOSTUNREACH;
    if (h->unreached)
        fprintf(stderr, "plumb run: %s: %zu %s at once\n", error, launches,
                launches == 1 ? "launch that needs it fails" : "launches that need it fail");
    else if (err)
        fprintf(stderr, "plumb run: %s\n", error);
    err = copy_text(err ? &h->problem : &h->version, err ? error : version);
    return err;
}

int hosts_run_ask(struct hosts_run *run, const struct bench_list *benches, const struct plan *plan)
{
    int err = 0;

    for (size_t i = 0; !err && i < run->hosts.n; i++) {
        const char *name;
        size_t launches = waiting_for(plan, run->hosts.all[i].name, &name);
        const struct bench_info *bench = name ? bench_list_find(benches, name) : NULL;
        if (bench)
            err = ask(run, bench, &run->hosts.all[i], launches);
    }
    return err;
}

static json_t *text_or_null(const char *text)
{
    return text && *text ? json_string(text) : json_null();
}

static json_t *host_meta(const struct host *h)
{
    json_t *meta = json_object();

    json_object_set_new(meta, "name", json_string(h->name));
    json_object_set_new(meta, "address", text_or_null(h->address));
    json_object_set_new(meta, "this_machine", json_boolean(h->here));
    json_object_set_new(meta, "version", text_or_null(h->version));
    if (h->problem)
        json_object_set_new(meta, "problem", text_or_null(h->problem));
    return meta;
}

json_t *hosts_run_meta(const struct hosts_run *run)
{
    json_t *meta = json_object(), *list = json_array();

    json_object_set_new(meta, "launcher", json_string(run->launcher->name));
    json_object_set_new(meta, "file", text_or_null(run->file));
    json_object_set_new(meta, "rsh", text_or_null(run->rsh));
    json_object_set_new(meta, "remote_dir", text_or_null(run->remote_dir));
    json_object_set_new(meta, "launcher_args", text_or_null(run->arguments));
    json_object_set_new(meta, "port", json_integer((json_int_t)run->port));
    json_object_set_new(meta, "wait_s", json_real((double)run->wait_ns * 1e-9));
    json_object_set_new(meta, "machine_is",
                        json_string("the one that plumb run was started on, whether or not it is "
                                    "among the hosts"));
    json_object_set_new(meta, "list", list);
    for (size_t i = 0; i < run->hosts.n; i++)
        json_array_append_new(list, host_meta(&run->hosts.all[i]));
    return meta;
}

static const char *text_of(const json_t *meta, const char *key)
{
    return json_string_value(json_object_get(meta, key));
}

static int add_from_meta(struct hosts_run *run, const json_t *list)
{
    const json_t *one;
    size_t i;
    int err = 0;

    json_array_foreach (list, i, one) {
        const char *name = text_of(one, "name");
        err = name ? hosts_add(&run->hosts, name, text_of(one, "address"), 0) : -EBADMSG;
        if (err)
            return err;
    }
    return 0;
}

int hosts_run_from_meta(const json_t *meta, struct hosts_run *run, char *error, size_t len)
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
    int err = o.launcher && launcher_find(o.launcher) ? copy_options(&o, run) : -EBADMSG;
    if (!err)
        err = add_from_meta(run, json_object_get(meta, "list"));
    if (err == -EBADMSG || err == -ENOMEM)
        snprintf(error, len, "%s",
                 err == -ENOMEM ? "out of memory" : "run.json: its 'hosts' are damaged");
    return err ? err : hosts_run_check(run, error, len);
}
