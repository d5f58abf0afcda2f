/* SPDX-License-Identifier: Apache-2.0 */
/* The launchers, their scripts, and the command lines of a launch: see launcher.h. */
#include "harness/hosts/launcher.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/group/notice.h"
#include "core/group/secret.h"
#include "harness/child.h"

/* ---- The scripts that run on a host ---- */

/* The benchmark writes its notices (core/group/notice.h). */
#define SCRIPT_LAUNCHED NOTICE_LAUNCHED "=1; export " NOTICE_LAUNCHED "; "

/* Removes the folders of launches that were killed together with their cleaning. Each has a file
 * `owner`: of this user, this boot and this namespace of processes, by a process that is dead (or a
 * zombie, which init takes note of when it likes). A folder of which any of this is unknown stays. A
 * launch that was killed before it wrote that file has left an empty folder: it goes where it is older
 * than a minute. */
#define SCRIPT_SWEEP                                                                               \
    "u=$(readlink /proc/self/ns/pid 2>/dev/null) z=; "                                             \
    "{ read -r z </proc/sys/kernel/random/boot_id; } 2>/dev/null; "                                \
    "for o in \"${TMPDIR:-/tmp}\"/plumb.??????; do "                                               \
    "[ \"$u\" ] && [ \"$z\" ] && [ -O \"$o/owner\" ] && read -r k l e <\"$o/owner\" && "           \
    "[ \"$l $e\" = \"$u $z\" ] && { kill -0 \"$k\" && ! grep -q \"^State:.*Z\" /proc/$k/status "   \
    "|| "                                                                                          \
    "rm -rf \"$o\"; } 2>/dev/null; done; "                                                         \
    "find \"${TMPDIR:-/tmp}/\" -mindepth 1 -maxdepth 1 -name \"plumb.??????\" -type d -mmin +1 "   \
    "-user \"$(id -u)\" -exec rmdir {} \\; 2>/dev/null; "
/* A program that was told to end may put a last file there, and so keep the folder from going the
 * first time. */
#define SCRIPT_REMOVE                                                                              \
    "rid() { for i in 1 2 3; do rm -rf \"$d\"; [ -e \"$d\" ] || break; sleep 1; done; }; "
/* The watcher, `w`: waits for the end of standard input, which is the end of the connection, or under
 * mpirun and srun, which have none to give, for the end of who started this or of this shell itself.
 * Then it ends the programs, `p`, and what reads their messages, `q`. */
#define SCRIPT_WATCH                                                                               \
    "( trap - EXIT; if [ $m = ranks ]; then [ -d /proc/$PPID ] || exit 0; "                        \
    "while [ -d /proc/$PPID ] && [ -d /proc/$$ ]; do sleep 5; done; "                              \
    "else while IFS= read -r l; do :; done <&3; fi; exec 3<&-; kill $p; kill -CONT $p; "           \
    "for i in 1 2 3; do a=; for k in $p; do kill -0 $k && a=1; done; [ \"$a\" ] || break; "        \
    "sleep 1; done; kill -9 $p; kill $q; rid ) >/dev/null 2>&1 & w=$! ; "
#define SCRIPT_OWN "[ -z \"$d\" ] || printf \"%s %s %s\\n\" $$ \"$u\" \"$z\" >\"$d/owner\"; "

/*
 * sh -c SCRIPT plumb TOKEN MODE FIRST COUNT PROGRAM ARGUMENT...
 *
 *   lead    rank 0
 *   join    COUNT ranks from FIRST on, each with its number and the secret
 *   ranks   the one that mpirun or srun started
 *
 * Lines of a rank's standard error come out with "plumb-rank R " in front, through a FIFO each: so
 * the ranks are children of this shell, which can end them. The launcher ends all ranks when one
 * ends badly. So one that was killed stays a while, and rank 0 can report which one it was.
 */
static const char script_group[] =
    "t=$1 m=$2 f=$3 n=$4 x=$5; shift 5; h=$(uname -n); b=begin; " SCRIPT_LAUNCHED
    "[ $m = ranks ] && f=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-${SLURM_PROCID:-0}}} && n=1 && "
    "[ $f != 0 ] && b=peer; "
    "v=$(\"$x\" --version 2>&1 </dev/null); c=$?; v=$(printf \"%s\\n\" \"$v\" | head -n 1); "
    "[ $c = 0 ] || { printf \"plumb-missing %s %s|%s\\n\" $t \"$h\" \"$v\"; exit 127; "
    "}; " SCRIPT_REMOVE "d=; p=; q=; w=; trap \"exit 143\" TERM INT HUP PIPE; "
    "trap \"kill \\$p \\$w 2>/dev/null; rid 2>/dev/null\" EXIT; " SCRIPT_SWEEP
    "d=$(mktemp -d \"${TMPDIR:-/tmp}/plumb.XXXXXX\") || "
    "{ printf \"plumb-missing %s %s|no folder for its rows\\n\" $t \"$h\"; exit 1; }; "
    "printf \"plumb-$b %s %s|%s\\n\" $t \"$h\" \"$v\"; " SCRIPT_OWN
    "[ $m = ranks ] || { exec 3<&0; IFS= read -r s; }; "
    "i=$f; while [ $i -lt $((f + n)) ]; do mkfifo \"$d/e$i\" || exit 1; "
    "( trap - EXIT; exec 3<&-; while IFS= read -r l || [ -n \"$l\" ]; do "
    "printf \"plumb-rank %s %s\\n\" $i \"$l\" >&2; done ) <\"$d/e$i\" >/dev/null & q=\"$q $! \"; "
    "case $m$i in "
    "lead0) printf \"%s\\n\" \"$s\" | \"$x\" \"$@\" --samples \"$d/s\" >\"$d/r\" "
    "2>\"$d/e$i\" 3<&- "
    "& ;; "
    "ranks0) \"$x\" \"$@\" --samples \"$d/s\" >\"$d/r\" 2>\"$d/e$i\" & ;; "
    "ranks*) \"$x\" \"$@\" >/dev/null 2>\"$d/e$i\" & ;; "
    "*) printf \"%s\\n\" \"$s\" | \"$x\" \"$@\" --rank $i >/dev/null 2>\"$d/e$i\" 3<&- & ;; esac; "
    "p=\"$p $! \"; i=$((i + 1)); done; s=; " SCRIPT_WATCH
    "c=0; for k in $p; do wait $k; e=$?; [ $c != 0 ] || c=$e; done; p=; wait $q; "
    "[ $m = join ] && exit $c; "
    "[ $f = 0 ] || { [ $c -gt 128 ] && { sleep 7; exit $c; }; exit 0; }; "
    "for k in r s; do : >>\"$d/$k\"; printf \"plumb-$k %s %d\\n\" $t $(wc -c <\"$d/$k\"); "
    "cat \"$d/$k\"; done; printf \"plumb-end %s %d\\n\" $t $c; exit 0";

/*
 * sh -c SCRIPT plumb TOKEN check PROGRAM...
 *
 * The clock first, next to the beginning. Then each program's version. Then the interfaces that are
 * not down, with the kernel's speed of those that have a device or are made of others: the speeds
 * of veth and tun are made up.
 */
static const char script_check[] =
    "t=$1; shift 2; h=$(uname -n); printf \"plumb-begin %s %s|%s\\n\" $t \"$h\" \"$(date "
    "+%s.%N)\"; "
    "for x in \"$@\"; do v=$(\"$x\" --version 2>&1 </dev/null); c=$?; "
    "printf \"plumb-build %s %s|%s\\n\" $t $c \"$(printf \"%s\\n\" \"$v\" | head -n 1)\"; done; "
    "for i in /sys/class/net/*; do n=${i##*/}; [ $n = lo ] && continue; "
    "o=; [ -r $i/operstate ] && read -r o <$i/operstate; [ \"$o\" = down ] && continue; "
    "s=; for f in $i/device $i/lower_*; do [ -e $f ] && s=$(cat $i/speed 2>/dev/null); done; "
    "a=$(ip -o addr show dev $n scope global 2>/dev/null | while read -r z y k b l; do "
    "printf \"%s \" ${b%/*}; done); "
    "printf \"plumb-net %s %s|%s|%s\\n\" $t $n \"$s\" \"$a\"; done; "
    "for i in /sys/class/infiniband/*/ports/*; do [ -r $i/rate ] || continue; "
    "n=${i#/sys/class/infiniband/}; read -r s k <$i/rate; "
    "printf \"plumb-net %s %s|%s|\\n\" $t ${n%%/*}:${n##*/} ${s}G; done; "
    "printf \"plumb-done %s |\\n\" $t; exit 0";

/*
 * sh -c SCRIPT plumb TOKEN TASK PROGRAM ARGUMENT...
 *
 * It is one line with a blank behind each '!', so that any login shell passes it on unchanged. The
 * shell reads the secret, and its own printf passes it on: it is on no command line and in no file.
 */
static const char script_pair[] =
    "t=$1 m=$2 x=$3; shift 3; r=0; h=$(uname -n); " SCRIPT_LAUNCHED
    "[ $m = ranks ] && r=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-${SLURM_PROCID:-0}}}; "
    "b=begin; [ $r = 0 ] || b=peer; "
    "v=$(\"$x\" --version 2>&1 </dev/null); c=$?; v=$(printf \"%s\\n\" \"$v\" | head -n 1); "
    "[ $c = 0 ] || { printf \"plumb-missing %s %s|%s\\n\" $t \"$h\" \"$v\"; exit 127; }; "
    "printf \"plumb-$b %s %s|%s\\n\" $t \"$h\" \"$v\"; "
    "[ $r = 0 ] || exec \"$x\" \"$@\"; " SCRIPT_REMOVE
    "d=; p=; q=; w=; trap \"exit 143\" TERM INT HUP PIPE; "
    "trap \"kill \\$p \\$w 2>/dev/null; rid 2>/dev/null\" EXIT; " SCRIPT_SWEEP
    "[ $m = listen ] || d=$(mktemp -d \"${TMPDIR:-/tmp}/plumb.XXXXXX\") || "
    "{ printf \"plumb-missing %s %s|no folder for its rows\\n\" $t \"$h\"; exit 1; }; " SCRIPT_OWN
    "[ $m = ranks ] || { exec 3<&0; IFS= read -r s; }; "
    "case $m in "
    "ranks) \"$x\" \"$@\" --samples \"$d/s\" >\"$d/r\" & ;; "
    "lead) printf \"%s\\n\" \"$s\" | \"$x\" \"$@\" --samples \"$d/s\" >\"$d/r\" 3<&- & ;; "
    "*) printf \"%s\\n\" \"$s\" | \"$x\" \"$@\" 3<&- & ;; esac; p=$! ; s=; " SCRIPT_WATCH
    "wait $p; c=$?; p=; [ $m = listen ] && exit $c; "
    "for f in r s; do : >>\"$d/$f\"; printf \"plumb-$f %s %d\\n\" $t $(wc -c <\"$d/$f\"); "
    "cat \"$d/$f\"; done; printf \"plumb-end %s %d\\n\" $t $c; exit 0";

/* sh -c SCRIPT plumb TOKEN ask PROGRAM ARGUMENT... Its output is rows. */
static const char script_ask[] =
    "t=$1 x=$3; shift 3; LC_ALL=C; h=$(uname -n); "
    "v=$(\"$x\" --version 2>&1 </dev/null); c=$?; v=$(printf \"%s\\n\" \"$v\" | head -n 1); "
    "[ $c = 0 ] || { printf \"plumb-missing %s %s|%s\\n\" $t \"$h\" \"$v\"; exit 127; }; "
    "printf \"plumb-begin %s %s|%s\\n\" $t \"$h\" \"$v\"; "
    "o=$(\"$x\" \"$@\" </dev/null); c=$?; "
    "printf \"plumb-r %s %d\\n%s\" $t ${#o} \"$o\"; "
    "printf \"plumb-s %s 0\\nplumb-end %s %d\\n\" $t $t $c; exit 0";

static const struct {
    const char *script, *word;
} tasks[] = {
    [TASK_CHECK] = {script_check, "check"},       [TASK_ASK] = {script_ask, "ask"},
    [TASK_SWEEP] = {SCRIPT_SWEEP, "sweep"},       [TASK_LISTEN] = {script_pair, "listen"},
    [TASK_LEAD] = {script_pair, "lead"},          [TASK_RANKS] = {script_pair, "ranks"},
    [TASK_GROUP_LEAD] = {script_group, "lead"},   [TASK_GROUP_JOIN] = {script_group, "join"},
    [TASK_GROUP_RANKS] = {script_group, "ranks"},
};

/* Is it a job of a launcher that starts several ranks together? */
static bool task_is_job(enum hosts_task task)
{
    return task == TASK_RANKS || task == TASK_GROUP_RANKS;
}

/* Adds the script's command: sh -c SCRIPT ... */
static void script_command(const struct hosts_order *order, struct argv *w)
{
    const char *script = tasks[order->task].script, *at = strchr(order->host->name, '@');
    const char *name = at ? at + 1 : order->host->name;

    if (!order->shown) {
        /* An address is no name; a job has one command for all its hosts. */
        if (!task_is_job(order->task) && name[strspn(name, "0123456789.:[]")]) {
            argv_add(w, "env");
            argv_addf(w, "%s=%s", NOTICE_HOST, name);
        }
        argv_add(w, "sh");
        argv_add(w, "-c");
        argv_add(w, script);
        argv_add(w, "plumb");
        argv_add(w, order->token);
        argv_add(w, tasks[order->task].word);
    }
    if (!order->shown && script == script_group) {
        argv_addf(w, "%u", order->first_rank);
        argv_addf(w, "%u", order->n_ranks);
    }
    argv_add(w, order->program);
    argv_add_all(w, order->arguments);
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

/* This machine needs no connection: the same script, started at once. */
static void command(const struct hosts_order *order, struct argv *w)
{
    struct argv far = {0};

    if (order->host->here) {
        script_command(order, w);
        return;
    }
    argv_split(w, program_of(order->run));
    if (w->n && is_ssh(w->all[0]))
        argv_add_all(w, ssh_options);
    argv_add(w, order->host->name);
    if (order->shown) {
        script_command(order, w);
        return;
    }
    argv_add(&far, "exec");
    script_command(order, &far);
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
    script_command(order, w);
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
    script_command(order, w);
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

static const struct launcher *const launchers[] = {&launcher_ssh, &launcher_mpirun, &launcher_srun,
                                                   NULL};

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

int host_token(char token[HOSTS_TOKEN_SIZE])
{
    unsigned char bytes[(HOSTS_TOKEN_SIZE - 1) / 2];
    int err = secret_random(bytes, sizeof(bytes));

    for (size_t i = 0; !err && i < sizeof(bytes); i++)
        snprintf(token + 2 * i, 3, "%02x", bytes[i]);
    return err;
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
        connections[(*n)++] = (struct host_connection){l->to, TASK_LISTEN, 0, 1};
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
                const char *token, unsigned port, bool shown, struct argv *out)
{
    bool joins = connection->task == TASK_GROUP_JOIN;
    char program[4096];
    struct argv a = {0};

    if (!task_is_job(connection->task))
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
    host_program_path(l->run, host_for_path(l, connection), l->program, program, sizeof(program));
    l->run->launcher->command(&(struct hosts_order){.run = l->run,
                                                    .task = connection->task,
                                                    .host = connection->host,
                                                    .other = l->to,
                                                    .first_rank = connection->first,
                                                    .n_ranks = connection->n,
                                                    .token = token,
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
        host_order(&over, &connections[i], "", host_port(&over, 0), true, &w);
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
