/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two ends of a benchmark between two processes: which of them this one is, as its command line
 * or a launcher says it, and how it meets the other.
 *
 *   PAIR_SOCK  one listens (--listen), the other is given its host: meet.h
 *   PAIR_MPI   ranks 0 and 1 of mpirun or srun; rank 0 leads
 *   PAIR_NONE  neither: the benchmark is alone, or forks its peer
 *
 * Errors: 0 or -errno with `error`, a sentence for people.
 */
#ifndef PLUMB_CORE_GROUP_PAIR_H
#define PLUMB_CORE_GROUP_PAIR_H

#include "core/group/channel.h"
#include "core/group/meet.h"
#include "core/option.h"

struct pair_params {
    const char *host, *listen, *secret_file;
    uint64_t port, wait_ns, runs;
};

/* Entries of a benchmark's table of options. at(field): `.offset` of that member of its struct
 * pair_params. `alone`: for the help, what happens without a HOST. */
/* clang-format off */
#define PAIR_OPTIONS(at, program, alone)                                                           \
    {.name = "host", .type = OPT_STRING, at(host), .arg = "HOST",                                  \
     .help = "peer on which `" program " --listen` runs; HOST is the same; default: " alone},      \
    {.name = "listen", .letter = 'l', .type = OPT_STRING, at(listen), .arg = "ADDR",               \
     .help = "serve peers on this address (0.0.0.0: all) until stopped; 'loopback': this machine " \
             "only"},                                                                              \
    {.name = "port", .letter = 'p', .type = OPT_U64, at(port), .def = "18515", .max = 65535,       \
     .help = "port of the listener"},                                                              \
    {.name = "secret-file", .type = OPT_STRING, at(secret_file), .arg = "FILE",                    \
     .help = "both ends' secret, 16 characters or more in one line ('-': stdin); "                 \
             "$PLUMB_SECRET_FILE"},                                                                \
    {.name = "wait", .type = OPT_DURATION, at(wait_ns), .def = "10s",                              \
     .help = "longest time to wait for a listener that does not answer or is busy"},               \
    {.name = "runs", .type = OPT_U64, at(runs), .def = "0",                                        \
     .help = "number of peers after which a listener ends; 0: never"}
/* clang-format on */

/* For a bench's `defaults`: an argument without an option's name is the host. */
int pair_defaults(struct opts *o);

enum pair_kind { PAIR_NONE, PAIR_SOCK, PAIR_MPI };
enum pair_kind pair_kind(const struct pair_params *p);

/* The leader's channel to its peer, not of PAIR_NONE; protocol: meet_protocol(). The secret is loaded
 * at the first call, where it is all zeros before. */
int pair_open(struct channel **c, const struct pair_params *p, uint32_t protocol,
              struct meet_secret *secret, const volatile int *cancel, char *error, size_t len);

struct pair_service {
    uint32_t protocol;
    channel_child_fn *fn;
    void *listener, *rank; /* fn's argument, of an end that listens or is a launcher's rank 1 */
    bool forks; /* without any of these it has a peer of its own, and a launcher's must not each */
};

/* Where the options or the launcher make this process the peer: serves, and returns the exit status;
 * -1: it leads, or is alone. What is wrong is told on stderr. */
int pair_serve(const struct pair_params *p, const struct pair_service *service,
               const volatile int *cancel);

/* When all is done: takes leave of the launcher. */
void pair_end(void);

#endif
