/* SPDX-License-Identifier: Apache-2.0 */
/* The launchers, and the command lines of a launch: see launcher.h. */
#include "harness/hosts/launcher.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "harness/child.h"
#include "harness/hosts/agent.h"
#include "harness/hosts/end.h"

/* Adds the command on the host: the agent with its order, or what is shown of it. */
static void agent_command(const struct hosts_order *order, struct argv *w)
{
    enum hosts_task task = order->task;
    const char *at = strchr(order->host->name, '@'), *name = at ? at + 1 : order->host->name;
    bool job = order->run->launcher->ranks;
    json_t *message, *arguments;

    if (order->shown) {
        argv_add(w, order->program);
        argv_add_all(w, order->arguments);
        return;
    }
    arguments = json_array();
    for (size_t i = 0; order->arguments && order->arguments[i]; i++)
        json_array_append_new(arguments, message_text(order->arguments[i]));
    /* An address is no name; a job has one command for all its hosts. */
    if (task == TASK_RANKS || task == TASK_GROUP_RANKS || !name[strspn(name, "0123456789.:[]")])
        name = NULL;
    message = json_pack("{s:i, s:s, s:s*, s:o*, s:o, s:i, s:i, s:b, s:b, s:b, s:b}", "protocol",
                        AGENT_PROTOCOL, "ask", task == TASK_CHECK ? "check" : "start", "host", name,
                        "program", order->program ? message_text(order->program) : NULL,
                        "arguments", arguments, "first", (int)order->first_rank, "n",
                        (int)order->n_ranks, "group", task >= TASK_GROUP_LEAD, "job", job, "secret",
                        !job && task >= TASK_LISTEN, "watch", task != TASK_ASK);
    char *text = json_dumps(message, JSON_COMPACT | JSON_ENSURE_ASCII);
    argv_add(w, order->agent);
    argv_add(w, "agent");
    argv_add(w, text);
    free(text);
    json_decref(message);
}

/* Is a program of this name in PATH (or, with a '/', at that place)? */
static bool launcher_has_program(const char *name)
{
    char *path = path_program(name);

    free(path);
    return path != NULL;
}

/* ---- ssh, or another program that is called as `PROGRAM HOST COMMAND` ---- */

/* No questions to a user. A host that is gone is noticed: at the start, and later within 10 s. */
static const char *const ssh_options[] = {
    "-o", "BatchMode=yes",         "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=3",
    "-o", "ServerAliveCountMax=3", NULL};

static const char *program_of(const struct hosts_run *run)
{
    return run->rsh && *run->rsh ? run->rsh : "ssh";
}

static bool is_ssh(const char *program)
{
    const char *slash = strrchr(program, '/');

    return !strcmp(slash ? slash + 1 : program, "ssh");
}

const char *launcher_hint(const struct hosts_run *run, const char *host,
                          char text[LAUNCHER_HINT_SIZE])
{
    struct argv w = {0};

    if (!run->launcher->ranks)
        argv_split(&w, program_of(run));
    text[0] = 0;
    if (w.n && is_ssh(w.all[0]))
        snprintf(text, LAUNCHER_HINT_SIZE, "; see '%s -o BatchMode=yes %s true'", program_of(run),
                 host);
    argv_release(&w);
    return text;
}

static int check(struct hosts_run *run, char *error, size_t len)
{
    struct argv w = {0};
    int err = 0;

    argv_split(&w, program_of(run));
    if (!w.n || !launcher_has_program(w.all[0])) {
        snprintf(error, len, "the program '%s', which is to reach the hosts, is not here",
                 program_of(run));
        err = -ENOENT;
    }
    argv_release(&w);
    return err;
}

/* This machine needs no connection: its agent is started at once. */
static void command(const struct hosts_order *order, struct argv *w)
{
    struct argv far = {0};

    if (order->host->here) {
        agent_command(order, w);
        return;
    }
    argv_split(w, program_of(order->run));
    if (w->n && is_ssh(w->all[0]))
        argv_add_all(w, ssh_options);
    argv_add(w, order->host->name);
    if (order->shown) {
        agent_command(order, w);
        return;
    }
    argv_add(&far, "exec");
    agent_command(order, &far);
    char *text = argv_quoted(&far, 0);
    argv_add(w, text);
    free(text);
    argv_release(&far);
}

static const struct launcher launcher_ssh = {
    .name = "ssh",
    .check = check,
    .command = command,
};

/* ---- mpirun and srun: both ends of a pair, all ranks of a group are one job ---- */

#define ASK_TIMEOUT_NS 20000000000ull

static unsigned ranks_of(const struct hosts_order *order)
{
    return order->task == TASK_GROUP_RANKS ? order->n_ranks : order->task == TASK_RANKS ? 2 : 1;
}

/* The hosts of an order as one word. Of a group mpirun takes "a:2,b:2", srun "a,a,b,b": with
 * `arbitrary` a name for each task. */
static void add_hosts(const struct hosts_order *order, bool colons, struct argv *w)
{
    const struct hosts *hosts = &order->run->hosts;
    struct buffer names = {0};

    if (order->task == TASK_RANKS) {
        argv_addf(w, "%s,%s", order->host->name, order->other->name);
    } else if (order->task == TASK_GROUP_RANKS) {
        for (size_t i = 0; i < hosts->n; i++) {
            const struct host *h = &hosts->all[i];
            char slots[16];
            snprintf(slots, sizeof(slots), ":%u", h->slots);
            for (unsigned k = 0; k < (colons ? 1 : h->slots); k++) {
                buffer_text(&names, i || k ? "," : "");
                buffer_text(&names, h->name);
            }
            buffer_text(&names, colons ? slots : "");
        }
        argv_add(w, names.text);
        buffer_release(&names);
    } else {
        argv_add(w, order->host->name);
    }
}

static int check_mpirun(struct hosts_run *run, char *error, size_t len)
{
    static const char *const ask[] = {"/bin/sh", "-c", "exec mpirun --version", NULL};
    struct child_result r = {0};

    if (!launcher_has_program("mpirun")) {
        snprintf(error, len,
                 "no mpirun in PATH: install Open MPI or MPICH, or take --launcher ssh");
        return -ENOENT;
    }
    int err = child_run(&(struct child_spec){.argv = ask, .timeout_ns = ASK_TIMEOUT_NS}, &r);
    if (!err && (r.status || r.timed_out)) {
        snprintf(error, len, "mpirun --version ended with status %d: %.200s", r.status, r.err.text);
        err = -ENOEXEC;
    } else if (err) {
        snprintf(error, len, "cannot start mpirun: %s", strerror(-err));
    } else {
        run->hydra = !strstr(r.out.text, "Open MPI") && !strstr(r.out.text, "OpenRTE");
    }
    child_result_release(&r);
    return err;
}

/* Open MPI refuses root without these variables; containers have no other user. */
static void mpirun_command(const struct hosts_order *order, struct argv *w)
{
    bool hydra = order->run->hydra, group = order->task == TASK_GROUP_RANKS;

    if (!geteuid() && !hydra) {
        argv_add(w, "env");
        argv_add(w, "OMPI_ALLOW_RUN_AS_ROOT=1");
        argv_add(w, "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1");
    }
    argv_add(w, "mpirun");
    argv_add(w, hydra ? "-n" : "-np");
    argv_addf(w, "%u", ranks_of(order));
    argv_add(w, hydra ? "-hosts" : "--host");
    add_hosts(order, true, w);
    if (hydra)
        argv_split(w, group ? NULL : "-ppn 1");
    else
        argv_split(w, group ? "--map-by slot --bind-to none" : "--map-by node --bind-to none");
    argv_split(w, order->run->arguments);
    agent_command(order, w);
}

static int check_srun(struct hosts_run *run, char *error, size_t len)
{
    (void)run;
    if (launcher_has_program("srun"))
        return 0;
    snprintf(error, len,
             "no srun in PATH: this is no node of a Slurm cluster; take --launcher ssh");
    return -ENOENT;
}

/* `arbitrary` keeps the order of the list: Slurm would sort it. */
static void srun_command(const struct hosts_order *order, struct argv *w)
{
    size_t nodes = order->task == TASK_GROUP_RANKS ? order->run->hosts.n : ranks_of(order);

    argv_add(w, "srun");
    argv_addf(w, "-N%zu", nodes);
    argv_addf(w, "-n%u", ranks_of(order));
    argv_add(w, "--distribution=arbitrary");
    argv_add(w, "--nodelist");
    add_hosts(order, false, w);
    argv_add(w, "--cpu-bind=none");
    argv_split(w, order->run->arguments);
    agent_command(order, w);
}

static const struct launcher launcher_mpirun = {
    .name = "mpirun",
    .ranks = true,
    .check = check_mpirun,
    .command = mpirun_command,
};

static const struct launcher launcher_srun = {
    .name = "srun",
    .ranks = true,
    .check = check_srun,
    .command = srun_command,
};

/* ---- All launchers ---- */

#define LAUNCHERS(X) X(ssh) X(mpirun) X(srun)
#define NAME(L)      #L,
#define TABLE(L)     &launcher_##L,

const char *const launcher_names[] = {LAUNCHER_LOCAL, LAUNCHERS(NAME) NULL};
static const struct launcher *const launchers[] = {LAUNCHERS(TABLE) NULL};

const struct launcher *launcher_find(const char *name)
{
    for (size_t i = 0; launchers[i]; i++)
        if (!strcmp(launchers[i]->name, name))
            return launchers[i];
    return NULL;
}

const char *launcher_by(const struct hosts_run *run, char text[LAUNCHER_BY_SIZE])
{
    struct argv w = {0};

    if (!run->launcher->ranks && run->rsh)
        argv_split(&w, run->rsh);
    snprintf(text, LAUNCHER_BY_SIZE, "by %s", w.n ? w.all[0] : run->launcher->name);
    argv_release(&w);
    return text;
}

/* ---- The command lines of a launch over hosts ---- */

void host_program_path(const struct hosts_run *run, const struct host *host, const char *program,
                       char *path, size_t len)
{
    const char *slash = strrchr(program, '/');

    if (run->remote_dir && !host->here)
        snprintf(path, len, "%s/%s", run->remote_dir, slash ? slash + 1 : program);
    else
        snprintf(path, len, "%s", program);
}

void host_agent_path(const struct hosts_run *run, const struct host *host, char *path, size_t len)
{
    char own[4096];
    ssize_t n = readlink("/proc/self/exe", own, sizeof(own) - 1);

    own[n > 0 ? n : 0] = 0;
    host_program_path(run, host, n > 0 ? own : "plumb", path, len);
}

unsigned host_port(const struct host_launch *l, unsigned attempt)
{
    return (unsigned)l->run->port + (l->number + attempt * 7) % HOSTS_PORTS;
}

struct host_connection *host_connections(const struct host_launch *l, unsigned *n)
{
    const struct hosts *hosts = &l->run->hosts;
    struct host_connection *connections = xcalloc(hosts->n + 2, sizeof(*connections));

    *n = 0;
    if (l->run->launcher->ranks) {
        connections[(*n)++] = l->from ? (struct host_connection){l->from, TASK_RANKS, 0, 2}
                                      : (struct host_connection){&hosts->all[0], TASK_GROUP_RANKS,
                                                                 0, hosts_slots(hosts)};
    } else if (l->from) {
        connections[(*n)++] = (struct host_connection){l->to, TASK_LISTEN, 1, 1};
        connections[(*n)++] = (struct host_connection){l->from, TASK_LEAD, 0, 1};
    } else {
        unsigned rank = 1;

        connections[(*n)++] = (struct host_connection){&hosts->all[0], TASK_GROUP_LEAD, 0, 1};
        for (size_t i = 0; i < hosts->n; i++) {
            const struct host *h = &hosts->all[i];
            unsigned left = h->slots - (i == 0);
            if (left)
                connections[(*n)++] = (struct host_connection){h, TASK_GROUP_JOIN, rank, left};
            rank += left;
        }
    }
    return connections;
}

/* How the ends meet. */
static void add_meeting(const struct host_launch *l, enum hosts_task task, unsigned port,
                        struct argv *w)
{
    const struct hosts *hosts = &l->run->hosts;
    const char *first = hosts->all[0].address;

    if (task == TASK_GROUP_LEAD || task == TASK_GROUP_JOIN)
        argv_addf(w, "--np=%u", hosts_slots(hosts));
    if (task == TASK_LISTEN)
        argv_add_all(w, (const char *[]){"--listen", l->to->address, NULL});
    else if (task == TASK_LEAD)
        argv_add(w, l->to->address);
    else if (task == TASK_GROUP_LEAD)
        argv_add_all(w, (const char *[]){"--rank=0", "--listen", first, NULL});
    else
        argv_add_all(w, (const char *[]){"--leader", first, NULL});
    argv_addf(w, "--port=%u", port);
    argv_add(w, "--secret-file=-");
    if (task == TASK_LISTEN)
        argv_add(w, "--runs=1");
}

/* A job has one path for all its hosts: that of the first host that is not this machine. */
static const struct host *host_for_path(const struct host_launch *l,
                                        const struct host_connection *connection)
{
    const struct hosts *hosts = &l->run->hosts;

    if (connection->task == TASK_RANKS)
        return l->from->here ? l->to : l->from;
    for (size_t i = 0; connection->task == TASK_GROUP_RANKS && i < hosts->n; i++)
        if (!hosts->all[i].here)
            return &hosts->all[i];
    return connection->host;
}

void host_order(const struct host_launch *l, const struct host_connection *connection,
                unsigned port, bool shown, struct argv *out)
{
    bool joins = connection->task == TASK_GROUP_JOIN;
    const struct host *at = host_for_path(l, connection);
    char agent[4096], program[4096];
    struct argv a = {0};

    if (!l->run->launcher->ranks)
        add_meeting(l, connection->task, port, &a);
    if (!joins && connection->task != TASK_LISTEN) {
        /* The arguments of the case, but for a group's --np: here the hosts' slots say it. */
        for (size_t i = 0; l->arguments[i]; i++) {
            const char *word = l->arguments[i];
            if (!l->from && !strcmp(word, "--np") && l->arguments[i + 1])
                i++;
            else if (l->from || strncmp(word, "--np=", 5) != 0)
                argv_add(&a, word);
        }
    }
    if (joins && shown && connection->n > 1)
        argv_addf(&a, "--rank=%u..%u", connection->first, connection->first + connection->n - 1);
    else if (joins && shown)
        argv_addf(&a, "--rank=%u", connection->first);
    host_program_path(l->run, at, l->program, program, sizeof(program));
    host_agent_path(l->run, at, agent, sizeof(agent));
    l->run->launcher->command(&(struct hosts_order){.run = l->run,
                                                    .task = connection->task,
                                                    .host = connection->host,
                                                    .other = l->to,
                                                    .first_rank = connection->first,
                                                    .n_ranks = connection->n,
                                                    .agent = agent,
                                                    .program = program,
                                                    .arguments = (const char *const *)a.all,
                                                    .shown = shown},
                              out);
    argv_release(&a);
}

struct host_launch host_launch_of(const struct hosts_run *run, const struct launch *l,
                                  const char *program, const char *const *arguments)
{
    bool pair = launch_has_pair(l);

    return (struct host_launch){.run = run,
                                .from = pair ? hosts_find(&run->hosts, l->from) : NULL,
                                .to = pair ? hosts_find(&run->hosts, l->to) : NULL,
                                .program = program,
                                .arguments = arguments,
                                .number = l->case_number * 7 + l->repeat};
}

char *host_launch_commands(const struct hosts_run *run, const struct launch *l, const char *program)
{
    struct argv arguments = {0};
    struct buffer all = {0};
    unsigned n = 0;

    argv_split(&arguments, l->arguments);
    argv_add(&arguments, "--csv");
    struct host_launch over = host_launch_of(run, l, program, (const char *const *)arguments.all);
    struct host_connection *connections = host_connections(&over, &n);
    buffer_text(&all, "");
    for (unsigned i = 0; i < n; i++) {
        struct argv w = {0};
        host_order(&over, &connections[i], host_port(&over, 0), true, &w);
        char *line = argv_quoted(&w, 0);
        buffer_text(&all, i ? " ; " : "");
        buffer_text(&all, line);
        free(line);
        argv_release(&w);
    }
    free(connections);
    argv_release(&arguments);
    return all.text;
}
