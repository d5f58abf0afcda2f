/* SPDX-License-Identifier: Apache-2.0 */
/* MPI as a way to find each other: see core/group/mpi.h. */
#include <dlfcn.h>
#include <errno.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/clock.h"
#include "core/group/mpi/mpi_check.h"

#define TAG          4711
#define TURNS_BUSY   2000  /* a message is there within some us, as a rule */
#define TURN_IDLE_NS 50000 /* after that the CPU is for those who move data */

int mpi_failed(const char *call, int code, char *error, size_t len)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int n = 0;

    MPI_Error_string(code, text, &n);
    snprintf(error, len, "%s: error %d: %s", call, code, text);
    return -EIO;
}

/* ---- GPU memory ---- */

/*
 * Does this MPI take pointers to a GPU's memory? One that does not would read and write there from
 * the host, and crash: so only one that says that it does is ever given any.
 *
 * Open MPI has MPIX_Query_cuda_support() (mpi-ext.h), MPICH and what is made of it
 * MPIX_GPU_query_support() (mpi.h): both say how the library was built and what is switched on.
 * They are looked up when the module runs: it may have been built with another MPI of the same
 * kind. Others have no such question, or answer it wrongly, but a switch that is documented.
 */

#define SUPPORT_CUDA 0 /* MPIX_GPU_SUPPORT_CUDA, of every MPICH that has it */

typedef int gpu_query_fn(int kind, int *is_supported);
typedef int cuda_query_fn(void);

static enum { NOT_ASKED, SAYS_NO, SAYS_NOTHING, SAYS_YES } answer;

/* Only of the MPI that knows it: another one would not care. */
struct gpu_switch {
    const char *version;                              /* what its version text has in it */
    const char *name, *value, *beside, *beside_value; /* NULL: no other one is needed */
    const char *what;
};

static const struct gpu_switch switches[] = {
    /* docs.nersc.gov, cray-mpich: at run time MPICH_GPU_SUPPORT_ENABLED=1 must be set; MPI_Init
     * fails where it cannot be */
    {"CRAY MPICH", "MPICH_GPU_SUPPORT_ENABLED", "1", NULL, NULL, "MPICH_GPU_SUPPORT_ENABLED=1"},
    /* NVIDIA, GPUDirect RDMA manual, benchmark tests: -genv MV2_USE_CUDA=1 */
    {"MVAPICH2", "MV2_USE_CUDA", "1", NULL, NULL, "MV2_USE_CUDA=1"},
    /* Intel MPI's developer reference, GPU support: NVIDIA's by this mode, which the older ones do
     * not know */
    {"Intel(R) MPI", "I_MPI_OFFLOAD", "1", "I_MPI_OFFLOAD_MODE", "cuda",
     "I_MPI_OFFLOAD=1 and I_MPI_OFFLOAD_MODE=cuda (2021.14 or newer)"},
};

static const struct gpu_switch *switch_of(void)
{
    char all[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int n = 0;

    MPI_Get_library_version(all, &n);
    for (size_t i = 0; i < sizeof(switches) / sizeof(*switches); i++)
        if (strstr(all, switches[i].version))
            return &switches[i];
    return NULL;
}

static bool is_set(const char *name, const char *value)
{
    const char *set = getenv(name);

    return set && !strcmp(set, value);
}

/* The one of MPICH first: it answers the other one, too, on some systems with no where it means
 * yes. */
static int ask_library(void)
{
    gpu_query_fn *gpu;
    cuda_query_fn *cuda;
    int yes = 0;

    *(void **)&gpu = dlsym(RTLD_DEFAULT, "MPIX_GPU_query_support");
    *(void **)&cuda = dlsym(RTLD_DEFAULT, "MPIX_Query_cuda_support");
    if (gpu)
        return gpu(SUPPORT_CUDA, &yes) == MPI_SUCCESS && yes ? SAYS_YES : SAYS_NO;
    if (cuda)
        return cuda() == 1 ? SAYS_YES : SAYS_NO;
    return SAYS_NOTHING;
}

static bool mpi_cuda_aware(char *why, size_t len)
{
    const struct gpu_switch *s = switch_of();
    char version[64];

    mpi_version(version, sizeof(version));
    if (answer == NOT_ASKED)
        snprintf(why, len, "%s tells whether it takes a GPU's memory when it has started", version);
    else if (s)
        snprintf(why, len, "%s is not configured for GPU memory: set %s", version, s->what);
    else if (answer == SAYS_NO)
        snprintf(why, len,
                 "%s says that it is not CUDA-aware: take one that was built for CUDA, and switch "
                 "it on where it is off (Open MPI: mpirun --mca opal_cuda_support 1; MPICH: "
                 "MPIR_CVAR_ENABLE_GPU=1)",
                 version);
    else
        snprintf(why, len,
                 "%s cannot be asked whether it is CUDA-aware: take an MPI that says so (Open MPI, "
                 "MPICH 4)",
                 version);
    return answer == SAYS_YES;
}

/* docs.open-mpi.org, tuning-apps/networking/cuda: of Open MPI's collectives that do not block none
 * takes a GPU's memory; over UCX those that sum nothing do. */
int mpi_cuda_may_start(enum collective_op op, char *error, size_t len)
{
    char version[64], pml[64];

    mpi_version(version, sizeof(version));
    bool ucx = !strcmp(mpi_control_text("pml", pml, sizeof(pml)), "ucx");
    bool sums =
        op == COLLECTIVE_ALLREDUCE || op == COLLECTIVE_REDUCE_SCATTER || op == COLLECTIVE_REDUCE;
    if (!strstr(version, "Open MPI") || op == COLLECTIVE_SEND_RECEIVE || (ucx && !sums))
        return 0;
    snprintf(error, len,
             "Open MPI's operations that do not block take no GPU's memory%s: leave --overlap out",
             sums ? "" : ", but over UCX (mpirun --mca pml ucx)");
    return -EOPNOTSUPP;
}

/* ---- The module ---- */

/* Two threads of this process call MPI, in turn and under a lock: MPI_THREAD_SERIALIZED. But Open
 * MPI takes locks of its own at any level except MPI_THREAD_SINGLE, and an allreduce of 8 bytes
 * takes 1.3 times as long with them (4.1.4), and calls in turn need none. MPI_Init, which OSU's and
 * Intel's benchmarks call too, has that level, unless the environment has OMPI_MPI_THREAD_LEVEL. */
static int start_mpi(char *error, size_t len)
{
    char version[64];
    int level;

    mpi_version(version, sizeof(version));
    if (strstr(version, "Open MPI"))
        CHECK(MPI_Init, NULL, NULL);
    else
        CHECK(MPI_Init_thread, NULL, NULL, MPI_THREAD_SERIALIZED, &level);
    return 0;
}

static int begin(unsigned *rank, unsigned *size, char *error, size_t len)
{
    int own = 0, all = 0, begun = 0;

    CHECK(MPI_Initialized, &begun);
    if (!begun && mpi_control_prepare(error, len))
        return -EIO;
    if (!begun && start_mpi(error, len))
        return -EIO;
    CHECK(MPI_Comm_set_errhandler, MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    CHECK(MPI_Comm_rank, MPI_COMM_WORLD, &own);
    CHECK(MPI_Comm_size, MPI_COMM_WORLD, &all);
    const struct gpu_switch *s = switch_of();
    bool on = s && is_set(s->name, s->value) && (!s->beside || is_set(s->beside, s->beside_value));
    answer = on ? SAYS_YES : ask_library(); /* MPICH ends who asks earlier */
    *rank = (unsigned)own;
    *size = (unsigned)all;
    return 0;
}

static void end(void)
{
    int begun = 0, ended = 0;

    if (MPI_Initialized(&begun) == MPI_SUCCESS && begun && MPI_Finalized(&ended) == MPI_SUCCESS &&
        !ended)
        MPI_Finalize();
}

/* Blanks, several of them too, are one. */
static void squeeze(char *text)
{
    char *to = text;

    for (const char *from = text; *from; from++) {
        bool blank = *from == ' ' || *from == '\t';
        if (!blank || (to > text && to[-1] != ' '))
            *to++ = blank ? ' ' : *from;
    }
    *to = 0;
}

/* "MPICH Version:      4.0.2" is "MPICH 4.0.2". */
void mpi_version(char *text, size_t len)
{
    static const char word[] = " Version:";
    char all[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int n = 0;

    MPI_Get_library_version(all, &n);
    all[strcspn(all, "\n,")] = 0;
    squeeze(all);
    char *at = strstr(all, word);
    if (at)
        memmove(at, at + sizeof(word) - 1, strlen(at + sizeof(word) - 1) + 1);
    snprintf(text, len, "%s", all);
}

const char *mpi_device(char *text, size_t len)
{
    static const char word[] = "MPICH Device:";
    char all[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int n = 0;

    MPI_Get_library_version(all, &n);
    const char *at = strstr(all, word);
    at = at ? at + sizeof(word) - 1 : "";
    at += strspn(at, " \t");
    snprintf(text, len, "%.*s", (int)strcspn(at, "\n\r"), at);
    return text;
}

static void turn(unsigned turns)
{
    struct timespec t = {.tv_nsec = TURN_IDLE_NS};

    if (turns > TURNS_BUSY)
        nanosleep(&t, NULL);
}

static int finish(MPI_Request *request, uint64_t until_ns, char *error, size_t len)
{
    int done = 0;

    for (unsigned turns = 0;; turns++) {
        CHECK(MPI_Test, request, &done, MPI_STATUS_IGNORE);
        if (done)
            return 0;
        if (clock_now_ns() >= until_ns)
            break;
        turn(turns);
    }
    MPI_Cancel(request);
    MPI_Request_free(request);
    return -ETIMEDOUT;
}

static int send_message(unsigned rank, const void *data, size_t n, uint64_t until_ns, char *error,
                        size_t len)
{
    MPI_Request request;

    /* NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker): finish() tests it until it is done */
    CHECK(MPI_Isend, data, (int)n, MPI_BYTE, (int)rank, TAG, MPI_COMM_WORLD, &request);
    return finish(&request, until_ns, error, len);
    /* NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker) */
}

static int receive_message(unsigned rank, void *data, size_t size, size_t *n, uint64_t until_ns,
                           char *error, size_t len)
{
    MPI_Status status;
    int there = 0, count = 0;

    for (unsigned turns = 0; !there; turns++) {
        CHECK(MPI_Iprobe, (int)rank, TAG, MPI_COMM_WORLD, &there, &status);
        if (!there && clock_now_ns() >= until_ns)
            return -ETIMEDOUT;
        if (!there)
            turn(turns);
    }
    CHECK(MPI_Get_count, &status, MPI_BYTE, &count);
    if (count < 0 || (size_t)count > size)
        return -EMSGSIZE;
    CHECK(MPI_Recv, data, count, MPI_BYTE, (int)rank, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    *n = (size_t)count;
    return 0;
}

__attribute__((visibility("default"))) const struct mpi_module plumb_mpi_module = {
    .abi = MPI_MODULE_ABI,
    .begin = begin,
    .end = end,
    .version = mpi_version,
    .send = send_message,
    .receive = receive_message,
    .cuda_aware = mpi_cuda_aware,
    .collectives = &mpi_collectives,
};
