/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What starts a benchmark on other hosts: a const table of operations each, listed in launcher.c.
 *
 * Every command runs a small script (script.c) by `sh` on its host, which says that it is there and which version it
 * has, runs the benchmark, and hands rows and samples back as sections of one stream. Where the launcher
 * has a standard input to give, the script ends the benchmark when that is closed: however the connection
 * goes, nothing is left behind. Where it has none the script looks after the process that started it.
 */
#ifndef PLUMB_HARNESS_LAUNCHER_H
#define PLUMB_HARNESS_LAUNCHER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/group/notice.h"
#include "harness/hosts/hosts.h"
#include "harness/hosts/words.h"

#define HOSTS_PORT       18600 /* the first of HOSTS_PORTS that listeners take */
#define HOSTS_PORTS      100
#define HOSTS_TOKEN_SIZE 17 /* what marks one launch's sections, and its end */

struct launcher;
struct json_t;

/* How a run reaches its hosts. */
struct hosts_run {
    const struct launcher *launcher; /* NULL: no hosts, every case is run on this machine */
    struct hosts hosts;
    char *file, *rsh, *remote_dir,
        *arguments;         /* rsh: a program and its arguments; NULL: not given */
    uint64_t port, wait_ns; /* wait_ns: a host that has said nothing for so long is not there */
    bool hydra;             /* mpirun is MPICH's or one of its kin */
    struct json_t
        *ranks; /* by benchmark, what its ranks said of themselves: check.h; NULL: nothing */
};

enum hosts_task {
    TASK_CHECK,  /* what is asked before anything is measured: check.h; `arguments` are programs */
    TASK_LISTEN, /* the ends of a pair */
    TASK_LEAD,
    TASK_RANKS,      /* both, as ranks of one job */
    TASK_GROUP_LEAD, /* rank 0 of a group */
    TASK_GROUP_JOIN, /* n_ranks further ones, from first_rank on */
    TASK_GROUP_RANKS /* all, as ranks of one job on all hosts */
};

/* Is it a job of a launcher that starts several ranks together? */
static inline bool task_is_job(enum hosts_task task)
{
    return task == TASK_RANKS || task == TASK_GROUP_RANKS;
}

/* What a command line is wanted for. */
struct hosts_order {
    const struct hosts_run *run;
    enum hosts_task task;
    const struct host *host, *other; /* other: of TASK_RANKS */
    unsigned first_rank, n_ranks;    /* of groups */
    const char *token;
    const char *program;          /* on the hosts */
    const char *const *arguments; /* of it, ended by NULL */
    bool shown;                   /* for people: without the script */
};

struct launcher {
    const char *name, *help;
    bool
        ranks; /* one command starts both ends, which find each other; else there is a listener, and a leader
                       that is told where, and a secret on the standard input of both */
    /* Can it start anything here? Called when the run is planned. 0 or -errno with error. */
    int (*check)(struct hosts_run *run, char *error, size_t len);
    void (*command)(const struct hosts_order *order, struct words *w);
};

extern const struct launcher launcher_ssh, launcher_mpirun, launcher_srun;
extern const struct launcher *const launchers[]; /* ends with NULL */
const struct launcher *launcher_find(const char *name);

#define LAUNCHER_BY_SIZE 160
/* What starts things there, for sentences: "by ssh", or by the program of --rsh. Returns text. */
const char *launcher_by(const struct hosts_run *run, char text[LAUNCHER_BY_SIZE]);

#define LAUNCHER_HINT_SIZE 300
/* How a person sees all that ssh says of a host, for the end of a sentence: "; see 'ssh -o BatchMode=yes node2 true'". "" where the
 * launcher is no ssh. Returns text. */
const char *launcher_hint(const struct hosts_run *run, const char *host,
                          char text[LAUNCHER_HINT_SIZE]);

/* Adds the script's command: sh -c SCRIPT ... */
void script_command(const struct hosts_order *order, struct words *w);
extern const char script_pair[], script_group[], script_check[];

/* Is a program of this name in PATH (or, with a '/', at that place)? */
bool launcher_has_program(const char *name);

/* The benchmark writes its notices (core/group/notice.h). */
#define SCRIPT_LAUNCHED NOTICE_LAUNCHED "=1; export " NOTICE_LAUNCHED "; "

/* Of what is run on a host: before a folder is made, those of launches that were killed with all that would have cleaned up go. They have a file
 * `owner` of this user's, of this boot and namespace of processes, by a process that is dead. A folder of which any of this is not known stays. */
#define SCRIPT_SWEEP                                                                               \
    "u=$(readlink /proc/self/ns/pid 2>/dev/null) z=; "                                             \
    "{ read -r z </proc/sys/kernel/random/boot_id; } 2>/dev/null; "                                \
    "for o in \"${TMPDIR:-/tmp}\"/plumb.??????; do "                                               \
    "[ \"$u\" ] && [ \"$z\" ] && [ -O \"$o/owner\" ] && read -r k l e <\"$o/owner\" && "           \
    "[ \"$l $e\" = \"$u $z\" ] && { kill -0 \"$k\" 2>/dev/null || rm -rf \"$o\"; }; done; "
#define SCRIPT_OWN "[ -z \"$d\" ] || printf \"%s %s %s\\n\" $$ \"$u\" \"$z\" >\"$d/owner\"; "

#endif
