/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated NCCL's debug output: what the real one writes with NCCL_DEBUG=INFO, as far as it is read. */
#include "tests/sim/nccl.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
    bool asked;
    FILE *file;
} output;

void nccl_say_forget(void)
{
    if (output.file && output.file != stdout)
        fclose(output.file);
    output.file = NULL;
    output.asked = false;
}

static void ask(void)
{
    const char *level = getenv("NCCL_DEBUG"), *name = getenv("NCCL_DEBUG_FILE");

    output.asked = true;
    if (!level || strcmp(level, "INFO") != 0)
        return;
    output.file = name ? fopen(name, "w") : stdout;
    if (output.file)
        setlinebuf(output.file);
}

void nccl_say(const char *format, ...)
{
    va_list args;

    if (!output.asked)
        ask();
    if (!output.file)
        return;
    fprintf(output.file, "host:%d:%d [0] NCCL INFO ", getpid(), getpid());
    va_start(args, format);
    vfprintf(output.file, format, args);
    va_end(args);
    fputc('\n', output.file);
}

bool nccl_same_host(const struct ncclComm *comm, int a, int b)
{
    return comm->share->member[a].host == comm->share->member[b].host;
}

void nccl_say_made(const struct ncclComm *comm)
{
    int from = comm->rank, to = (comm->rank + 1) % comm->ranks;

    nccl_say("NET/Socket : Using [0]lo:127.0.0.1<0>");
    nccl_say("Using network Socket");
    if (from == to)
        return;
    if (nccl_same_host(comm, from, to))
        nccl_say("Channel 00/0 : %d[%d] -> %d[%d] via P2P/CUMEM", from, comm->gpu, to,
                 comm->share->member[to].gpu);
    else
        nccl_say("Channel 00/0 : %d[%d] -> %d[%d] [send] via NET/Socket/0", from, comm->gpu, to,
                 comm->share->member[to].gpu);
}

/* As the real one, the first rank alone says what was chosen. */
void nccl_say_op(const struct nccl_op *op, uint64_t bytes)
{
    static const char *const names[] = {"AllReduce", "ReduceScatter", "AllGather", "Broadcast",
                                        "Reduce"};

    if (op->kind == NCCL_P2P || op->comm->rank || op->comm->ranks == 1)
        return;
    if (op->comm->symmetric && op->kind <= NCCL_ALL_GATHER) {
        static const char *const kernels[] = {"AllReduce_RSxLDMC_AGxSTMC", "ReduceScatter_LD",
                                              "AllGather_STMC"};
        nccl_say("%s [Symmetric]: %llu Bytes -> Kernel %s nchannels 16 nthreads 512 nWorks 1",
                 names[op->kind], (unsigned long long)bytes, kernels[op->kind]);
        return;
    }
    nccl_say("%s: %llu Bytes -> Algo %s proto %s channel{Lo..Hi}={0..1}", names[op->kind],
             (unsigned long long)bytes, op->comm->algorithm, op->comm->protocol);
}
