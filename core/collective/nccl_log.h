/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What NCCL says of itself: there is no way to ask it which algorithm and which wires it took, but
 * its debug output tells. That goes to a file in memory while a communicator is made and tried
 * once, and is switched off again, since it costs a line for each call. Where somebody set
 * NCCL_DEBUG, that is left as it is and nothing is read.
 */
#ifndef PLUMB_CORE_COLLECTIVE_NCCL_LOG_H
#define PLUMB_CORE_COLLECTIVE_NCCL_LOG_H

#include <stdbool.h>
#include <stddef.h>

struct nccl_log {
    /* "ring/simple, channels 0-3"; "": it did not say (the communicator's first member does) */
    char algorithm[64];
    char chose[24], protocol[40]; /* "ring", "simple": parts of that, as in collective.h */
    unsigned channels;            /* 0: not said */
    char wires[64];               /* "NET/IB and P2P/CUMEM"; "": nothing was connected */
    unsigned carriers;            /* the kinds of path that these are: row.h */
    bool network;                 /* one of them is a network */
    char devices[64];             /* of its network, "mlx5_0:1 mlx5_1:1" */
    unsigned n_devices;
    bool members_add;  /* no switch adds on the way: by tree, ring or pat, or a kernel without it */
    bool switches_add; /* by the others of them that are told */
    bool heard;        /* there was something to read */
    bool chatty;       /* it still writes a line for each call: times are longer */
    int fd;            /* of a file in memory that NCCL writes to; below 1: none */
};

/* Before NCCL's first call of this point. */
void nccl_log_begin(struct nccl_log *s);
/* Reads what came, and switches it off. */
void nccl_log_end(struct nccl_log *s);
/* After a further call of NCCL's: has that been written down, too? */
void nccl_log_check(struct nccl_log *s);
void nccl_log_close(struct nccl_log *s); /* harmless when it was never begun */

/* The text of such a file, which is changed. */
void nccl_log_parse(struct nccl_log *s, char *text);

/* NCCL_ALGO and NCCL_PROTO of "ring" or "ring/simple". 0; -EOPNOTSUPP with the names that there
 * are. */
int nccl_log_algorithm(const char *asked, const char **algorithm, const char **protocol, char *why,
                       size_t len);

#endif
