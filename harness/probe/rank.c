/* SPDX-License-Identifier: Apache-2.0 */
/* Which of a host's processes of one job this is, as its launcher tells by variables. See probe.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "harness/probe/facts.h"
#include "harness/probe/probe.h"

/* The innermost launcher first: torchrun within mpirun within a step of Slurm. A number of processes
 * that the launcher does not tell is NULL. */
static const struct launcher {
    const char *local, *size, *only_with;
} launchers[] = {{"LOCAL_RANK", "LOCAL_WORLD_SIZE", NULL},
                 {"OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", NULL},
                 {"MPI_LOCALRANKID", "MPI_LOCALNRANKS", NULL},
                 {"MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_SIZE", NULL},
                 {"PMI_LOCAL_RANK", "PMI_LOCAL_SIZE", NULL},
                 {"PALS_LOCAL_RANKID", "PALS_LOCAL_SIZE", NULL},
                 {"JSM_NAMESPACE_LOCAL_RANK", "JSM_NAMESPACE_LOCAL_SIZE", NULL},
                 {"FLUX_TASK_LOCAL_ID", NULL, NULL},
                 /* A batch script has it, too, outside of any step. */
                 {"SLURM_LOCALID", "SLURM_NTASKS_PER_NODE", "SLURM_STEP_ID"}};

static const char *value_of(const char *const *variables, const char *name)
{
    size_t n = name ? strlen(name) : 0;

    for (; n && *variables; variables++)
        if (!strncmp(*variables, name, n) && (*variables)[n] == '=')
            return *variables + n + 1;
    return "";
}

/* ---- The others */

static bool read_status(long pid, const char *field, char *value, size_t size)
{
    char text[8192];

    return !sys_read(NULL, text, sizeof(text), NULL, "proc/%ld/status", pid) &&
           text_field(text, field, value, size);
}

static bool is_same_program(long pid, const char *own)
{
    char path[64], program[SYS_PATH];
    ssize_t n;

    snprintf(path, sizeof(path), "/proc/%ld/exe", pid);
    n = readlink(path, program, sizeof(program) - 1);
    if (n < 0)
        return false;
    program[n] = '\0';
    return !strcmp(program, own);
}

/* The CPUs of each process that our parent started with this program: the launcher has no file that
 * tells them. */
static json_t *ask_peers(const char *own)
{
    json_t *peers = json_array();
    struct names names;
    char text[SYS_LINE];

    sys_list(NULL, &names, "proc");
    for (size_t i = 0; i < names.count; i++) {
        long pid = (long)digits_number(names.name[i]);

        if (pid > 0 && read_status(pid, "PPid", text, sizeof(text)) && atol(text) == getppid() &&
            is_same_program(pid, own) && read_status(pid, "Cpus_allowed_list", text, sizeof(text)))
            json_array_append_new(peers, fact_text(text));
    }
    names_free(&names);
    return peers;
}

enum { TRIES = 50, TRY_NS = 10 * 1000 * 1000 };

/* A launcher starts them one after the other: wait for the last, and not for long. */
static void set_peers(json_t *rank, long long size)
{
    const struct timespec pause = {.tv_nsec = TRY_NS};
    char own[SYS_PATH];
    ssize_t n = readlink("/proc/self/exe", own, sizeof(own) - 1);
    json_t *peers = NULL;
    long long seen = -1;

    own[n < 0 ? 0 : n] = '\0';
    for (int i = 0; i < TRIES && seen < size; i++) {
        if (i)
            nanosleep(&pause, NULL);
        json_decref(peers);
        peers = ask_peers(own);
        seen = (long long)json_array_size(peers);
    }
    fact_set_if(rank, "peers", seen == size, peers, "%lld of %lld processes of this host were seen",
                seen, size);
}

json_t *probe_rank(const char *const *variables)
{
    const struct launcher *launcher = NULL;
    const char *visible;
    long long size;
    json_t *rank;

    for (size_t i = 0; variables && !launcher && i < sizeof(launchers) / sizeof(*launchers); i++)
        if (digits_number(value_of(variables, launchers[i].local)) >= 0 &&
            (!launchers[i].only_with || *value_of(variables, launchers[i].only_with)))
            launcher = &launchers[i];
    if (!launcher)
        return NULL;
    rank = json_object();
    visible = value_of(variables, "CUDA_VISIBLE_DEVICES");
    size = digits_number(value_of(variables, launcher->size));
    fact_set_number(rank, "local", digits_number(value_of(variables, launcher->local)));
    fact_set_text(rank, "by", launcher->local);
    if (*visible)
        fact_set_text(rank, "visible_devices", visible);
    if (size > 0) {
        fact_set_number(rank, "local_size", size);
        set_peers(rank, size);
    } else {
        fact_set_unknown(rank, "local_size", "the launcher does not tell it");
        fact_set_unknown(rank, "peers", "the launcher does not tell how many there are");
    }
    return rank;
}
