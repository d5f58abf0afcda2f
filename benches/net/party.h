/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How this program's leader gets its peer: a listener on another machine, rank 1 of mpirun or srun, or, where
 * neither is asked for, a child process. And the other side: to be that peer.
 */
#ifndef PLUMB_BENCHES_NET_PARTY_H
#define PLUMB_BENCHES_NET_PARTY_H

#include "benches/net/lead.h"
#include "benches/net/net_work.h"
#include "core/group/meet.h"

enum net_group { NET_GROUP_LOCAL, NET_GROUP_SOCK, NET_GROUP_MPI };

/* From the options and the environment. */
enum net_group net_party_kind(const struct net_params *p);

struct net_secret { /* zeroed: not loaded yet */
    bool loaded;
    struct meet_secret secret;
};

/* The leader's channel to its peer. The secret is loaded at the first call. 0, or -errno with error: -EBUSY,
 * where a child is wanted that is to use a GPU, and this process has used one (gpus_used()). */
int net_party_open(struct channel **c, const struct net_params *p, struct net_secret *secret,
                   const volatile int *cancel, char *error, size_t len);

/* Are buffers in `memory` (as --memory and --peer-memory have it; NULL: the default) a GPU's? */
bool net_party_gpu(const char *memory);

/* Where the options or the launcher make this process the peer: serves, and returns the exit status; -1: it
 * is not the peer. */
int net_party_serve(const struct net_params *p, const volatile int *cancel);

/* When all is done: takes leave of the launcher. */
void net_party_end(void);

/* A child as the peer. */
int net_party_fork(struct channel **c, const struct net_local *own);

/* This end's own part of the options; what the peer is told. */
void net_party_locals(const struct net_params *p, struct net_local *own, struct net_local *peers);

#endif
