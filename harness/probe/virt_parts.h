/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of probe_virtualization(): what has been found so far, and the part that reads DMI. */
#ifndef PLUMB_PROBE_VIRT_PARTS_H
#define PLUMB_PROBE_VIRT_PARTS_H

#include "harness/probe/facts.h"

enum rank {
    RANK_NONE,
    RANK_POSE = 20,    /* a name that others take on */
    RANK_FAMILY = 30,  /* qemu, with or without KVM */
    RANK_ENGINE = 50,  /* the clock or CPUID names the engine */
    RANK_PRODUCT = 60, /* DMI names the product */
    RANK_LIKELY = 65,  /* several marks that together fit one product */
    RANK_OWN = 80,     /* an interface that only this hypervisor has */
};

struct verdict {
    struct probe *p;
    json_t *because;
    const char *name;
    int rank;
    bool x86;
    bool flag;        /* x86: the CPU says that there is a hypervisor */
    bool control;     /* we are Xen's control domain: the devices are real */
    bool dmi;         /* maker and product were read */
    bool metal;       /* the product's own name says bare metal */
    char device[160]; /* a sign of a guest that names no hypervisor; or "" */
    char unread[160]; /* what should have told and could not be read; or "" */
};

/* The name counts unless one of the same rank or a higher one stands. */
void virt_propose(struct verdict *v, int rank, const char *name);

void virt_look_dmi(struct verdict *v);

#endif
