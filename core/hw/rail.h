/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rails: each GPU of a machine with the RDMA port that is nearest to it. Rail N is that of GPU N,
 * by the numbers that programs give GPUs; on a machine without GPUs, that of port N. Hosts that are
 * built alike have the same rails, so that rail N of one talks to rail N of the other.
 *
 *   nearest  by the words of nic_way(): PIX, PXB, PHB, NODE, SYS, not known. Of ports that are
 *            equally near, one of the kind that over half of the ports have (link layer, and of
 *            those that are up the rate), which a management adapter is not; then the one that
 *            fewest rails have; then one that is up; then by name, so that mlx5_2 is before mlx5_10. GPUs that have a port nearer than others choose first
 *   ports    of an adapter with several, those that are up; where none is, the first of them: a
 *            rail that is down is a rail
 *
 * Where a guest hides which device is near which, all are equally near, and rail N is GPU N with
 * port N: `way` then says PHB, or nothing.
 */
#ifndef PLUMB_CORE_HW_RAIL_H
#define PLUMB_CORE_HW_RAIL_H

#include <stdbool.h>

#include "core/backend.h"
#include "core/hw/gpu.h"
#include "core/hw/nic.h"

#define RAILS_MAX   64
#define RAIL_PREFIX "rail" /* of their names among backends: "rail0" */

struct rail {
    int gpu;                  /* its number; -1: this machine has none */
    char address[24];         /* of the GPU; "" not known */
    char port[NIC_NAME + 12]; /* "mlx5_3:1"; "": this machine has no RDMA device */
    const char *way;          /* nic_way(); "" not known */
    bool up;                  /* the port is */
    unsigned of;              /* how many rails the machine has */
    /* The GPU among all GPUs of its vendor that the system shows, in the order of their addresses, those
     * that programs do not see too: it is the seat-th of so many, from 1. 0: not known. */
    unsigned seat, seats;
};

/* Those of a machine with n GPUs at these PCI addresses ("": not known). How many there are, at
 * most RAILS_MAX. */
unsigned rails_find(const char *root, const char (*addresses)[24], unsigned n_gpus,
                    struct rail rails[RAILS_MAX]);

/* The ports in use on this machine that none of these has, with kind and rate, one after the other:
 * "mlx5_an0:1 (Ethernet, 100 Gb/s)"; "": none. */
void rails_unused(const char *root, const struct rail *rails, unsigned n, char *text, size_t len);

/* Rail `number` of this machine. 0, or -ENODEV with *error: which there are. */
int rail_get(struct gpus *gpus, unsigned number, struct rail *rail, char *error, size_t len);

/* For a benchmark's `backends` hook: says each ("rail3", "cuda:3 with mlx5_3:1, PIX"), and the ports that no rail
 * has ("unused"). */
void rails_say(backend_say_fn *say, void *arg);

/* An option's value: the number of a rail, in *value as text. For OPT_CUSTOM. */
int rail_read(const char *text, void *value, char *error, size_t len);
/* As struct opt's `expand`: "rails" is each of this machine; where it has none the first one, whose
 * row says why. */
bool rail_words(const char *word, char *list, size_t len);

#endif
