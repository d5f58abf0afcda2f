/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What starts a benchmark on other hosts, and the command lines of a launch there.
 *
 * A launcher is a const table of operations. Every command runs an agent of this build on its host
 * (agent.h), with an order, and has its answers on standard output.
 */
#ifndef PLUMB_HARNESS_LAUNCHER_H
#define PLUMB_HARNESS_LAUNCHER_H

#include <stdbool.h>
#include <stdint.h>

#include "harness/hosts/hosts.h"
#include "harness/text.h"

#define HOSTS_PORT  18600 /* the first of HOSTS_PORTS that listeners take */
#define HOSTS_PORTS 100

enum hosts_task {
    TASK_CHECK,  /* the questions before anything is measured: check.h; `arguments` are programs */
    TASK_ASK,    /* runs a program, whose output is sent back: hosts_ask() */
    TASK_LISTEN, /* the ends of a pair */
    TASK_LEAD,
    TASK_RANKS,      /* both, as ranks of one job */
    TASK_GROUP_LEAD, /* rank 0 of a group */
    TASK_GROUP_JOIN, /* n_ranks further ones, from first_rank on */
    TASK_GROUP_RANKS /* all, as ranks of one job on all hosts */
};

/* One command line. */
struct hosts_order {
    const struct hosts_run *run;
    enum hosts_task task;
    const struct host *host, *other; /* other: of TASK_RANKS */
    unsigned first_rank, n_ranks;    /* the first rank of all has the rows */
    const char *agent, *program;     /* on the hosts; program: NULL with TASK_CHECK */
    const char *const *arguments;    /* of it, ended by NULL */
    bool shown;                      /* for people: without the agent */
};

struct launcher {
    const char *name;
    /* One command starts both ends, which find each other. Else one end listens; the other gets its
     * address, and both get a secret on their standard input. */
    bool ranks;
    /* Can it start anything here? Called when the run is planned. 0 or -errno with error. */
    int (*check)(struct hosts_run *run, char *error, size_t len);
    void (*command)(const struct hosts_order *order, struct argv *w);
};

/* What came from a host that was asked, while take() runs. */
struct host_answer {
    const json_t *begin, *end; /* the agent's first message and its last; end: NULL, and why */
    double begin_s, end_s;     /* our clock before it was asked, and when `begin` had come */
    const char *why;
};

/* Gives the words for a host: programs of TASK_CHECK, of TASK_ASK one and its arguments. None: it is
 * not asked. */
typedef void hosts_order_fn(struct host *host, struct argv *words, void *arg);
/* Called once for each host that was asked, in no order. */
typedef void hosts_take_fn(struct host *host, const struct host_answer *answer, void *arg);
/* Asks hosts, some at a time. 0, or -errno of this machine. */
int hosts_ask(struct hosts_run *run, enum hosts_task task, hosts_order_fn *order,
              hosts_take_fn *take, void *arg);

/* All of them, after LAUNCHER_LOCAL, which is none; ended by NULL. */
#define LAUNCHER_LOCAL "local"
extern const char *const launcher_names[];
const struct launcher *launcher_find(const char *name); /* NULL: no such one */

#define LAUNCHER_BY_SIZE 160
/* For sentences: "by ssh", or by the program of --rsh. Returns text. */
const char *launcher_by(const struct hosts_run *run, char text[LAUNCHER_BY_SIZE]);

#define LAUNCHER_HINT_SIZE 300
/* The command that shows all of ssh's messages, for the end of a sentence:
 * "; see 'ssh -o BatchMode=yes node2 true'". "" where the launcher is no ssh. Returns text. */
const char *launcher_hint(const struct hosts_run *run, const char *host,
                          char text[LAUNCHER_HINT_SIZE]);

/* ---- One launch over hosts ---- */

/*
 * One launch over hosts: the launcher starts its ends, and its rows and samples come out like those
 * of a benchmark on this machine. It is a body of a child (child.h), which the harness stops and
 * times like any other.
 *
 *   order    A launcher that starts each end by itself starts the listener first, with a port of
 *            the run's range; where the port is taken, with another one. When it listens, the
 *            others follow: one connection a host, some at a time. mpirun and srun start all as one
 *            job.
 *   secret   All ends get a secret made for this launch.
 *   leader   Of a group the listener: it is rank 0. Of a pair the other end. The leader has the
 *            rows, and reports itself which of the others is missing or gone.
 *   faults   If the leader cannot report, since its host is gone or was never reached, this does.
 */
struct host_launch {
    const struct hosts_run *run;
    const struct host *from, *to; /* a pair; NULL: a group, on each host as many ranks as slots */
    const char *program;          /* of this machine; on the others by host_program_path() */
    /* Ended by NULL. They select the format of rows, not the place of samples. The slots replace a
     * group's --np N. */
    const char *const *arguments;
    unsigned number; /* of the launch: which port is tried first */
};

/* A launch of a plan. The arguments, ended by NULL, stay the caller's. */
struct host_launch host_launch_of(const struct hosts_run *run, const struct launch *l,
                                  const char *program, const char *const *arguments);

/* Exit statuses beside those of benchmarks. The last line on standard error is the reason. LOST: of
 * a group; all is measured, but a rank that no case needs was lost. */
#define HOST_LAUNCH_FAILED 120
#define HOST_LAUNCH_LOST   121

/* A child's body: rows to standard output, samples to CHILD_SAMPLES_FD, messages to standard error.
 * Returns the benchmark's exit status, or one of the above. `arg` is a struct host_launch. */
int host_launch_body(void *arg);

/* Its command lines, for people: one for each connection. New text. */
char *host_launch_commands(const struct hosts_run *run, const struct launch *l,
                           const char *program);

/* One connection. The first is the listener, or with mpirun and srun all of them. */
struct host_connection {
    const struct host *host;
    enum hosts_task task;
    unsigned first, n; /* its ranks there */
};

/* To be freed. */
struct host_connection *host_connections(const struct host_launch *l, unsigned *n);
/* The port that a launch tries as its first, second, ... */
unsigned host_port(const struct host_launch *l, unsigned attempt);
/* The words of one connection. */
void host_order(const struct host_launch *l, const struct host_connection *connection,
                unsigned port, bool shown, struct argv *out);

/* Where the program is on a host: at the same place as here, or in --remote-dir. */
void host_program_path(const struct hosts_run *run, const struct host *host, const char *program,
                       char *path, size_t len);
/* The same of the agent: of this program. */
void host_agent_path(const struct hosts_run *run, const struct host *host, char *path, size_t len);

#endif
