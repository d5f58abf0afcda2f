/* SPDX-License-Identifier: Apache-2.0 */
/* MPI as a way to find each other and to exchange control messages: see mpi_module.h. */
#include <errno.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
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

static int begin(unsigned *rank, unsigned *size, char *error, size_t len)
{
    int own = 0, all = 0, level = 0, begun = 0;

    CHECK(MPI_Initialized, &begun);
    if (!begun && mpi_control_prepare(error, len))
        return -EIO;
    if (!begun)
        CHECK(MPI_Init_thread, NULL, NULL, MPI_THREAD_SERIALIZED, &level);
    CHECK(MPI_Comm_set_errhandler, MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    CHECK(MPI_Comm_rank, MPI_COMM_WORLD, &own);
    CHECK(MPI_Comm_size, MPI_COMM_WORLD, &all);
    mpi_cuda_ask();
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
            return until_ns ? -ETIMEDOUT : -EAGAIN;
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
