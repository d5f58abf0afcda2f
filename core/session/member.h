/* SPDX-License-Identifier: Apache-2.0 */
/* What every member does for a request of rank 0, rank 0 itself too: see session.h. */
#ifndef PLUMB_CORE_SESSION_MEMBER_H
#define PLUMB_CORE_SESSION_MEMBER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/group/world.h"
#include "core/hw/machine.h"
#include "core/session/session.h"

/* A thread that does what may never end, for one that has to go on: a call of MPI that waits for a
 * rank which is gone cannot be ended by anybody. One of the two threads works at a time, as if
 * there were one. */

struct helper;

int helper_open(struct helper **h);
/* Does fn(arg) in the thread, and calls look(look_arg) here about every 20 ms meanwhile. Returns
 * what fn does; or what look does, where that is not 0: then the thread is left where it is, for
 * good, with all that it works on, which must not be freed; and this process ends without the exit
 * handlers of the library that it is in. */
int helper_do(struct helper *h, int (*fn)(void *arg), void *arg, int (*look)(void *look_arg),
              void *look_arg);
/* Of what fn does: between these two look() is not called, and helper_do() does not return. Neither
 * returns in a thread that was left. NULL: harmless. */
void helper_hold(struct helper *h);
void helper_let(struct helper *h);
bool helper_abandoned(const struct helper *h); /* NULL: no */
void helper_close(struct helper *h);           /* NULL is left alone, and so is one that was left */

/* For backends that wait in a library, where nothing of ours gets its turn: a timer that ends the
 * process when a deadline goes by, having said on stderr what hangs. The others then see that this
 * rank is gone. */

struct watchdog;

int watchdog_open(struct watchdog **d);
/* From now on. `what`: of the sentence "WHAT has not ended after 20 s". Again: another deadline. */
void watchdog_set(struct watchdog *d, uint64_t ns, const char *what);
void watchdog_feed(struct watchdog *d);  /* the same time again from now; NULL is left alone */
void watchdog_rest(struct watchdog *d);  /* no deadline; NULL is left alone */
void watchdog_close(struct watchdog *d); /* NULL is left alone */

/*
 * Work for the thread that waits for a collective: products of 64 x 64 matrices of f32, C = A B, in
 * the CPU's nearest caches, so that they are bound by its arithmetic and not by the memory that the
 * collective needs, too. They are plain C, a part of the CPU's peak (that is measured by the
 * benchmark gemm); what matters here is how long a fixed amount of such work takes alone and beside
 * a collective.
 *
 * The unit is a panel of four rows of C (OVERLAP_UNIT_FLOP floating-point operations). Work is done in slices
 * of about OVERLAP_SLICE_NS, between which the collective gets its turn.
 */

#define OVERLAP_SLICE_NS  30000u
#define OVERLAP_UNIT_FLOP 32768.0

struct overlap {
    float *matrices; /* A, B, C; NULL: closed */
    double unit_ns;  /* a unit alone, of the calibration */
    unsigned row;    /* where the next unit begins */
};

void overlap_close(struct overlap *o); /* harmless when it is closed */

typedef const struct collective_ops *collective_find_fn(const char *name);

/* One rank's part of one point. */
struct member {
    struct world *world;
    const struct topo *topo;  /* NULL: it is not bound to a CPU */
    collective_find_fn *find; /* backends by name */
    const char *device;       /* of its own command line, or NULL */
    /* Looks after the channels while this rank waits: as collective.attend, with c.error. */
    int (*look)(struct member *m);
    /* How long nothing has moved in all other ranks that rank 0 waits for, as far as this one
     * knows. UINT64_MAX: there are none. */
    uint64_t (*others_still_ns)(struct member *m);
    void *arg;
    uint64_t looked_ns, links_ns;
    uint64_t moved_ns; /* when something last moved here */
    /* What stands still for so long in all ranks, or takes as long in a library, has failed. */
    uint64_t still_ns;
    struct collective_point point;
    unsigned members[WORLD_RANKS_MAX];
    struct collective_call *calls;
    void *extra;
    struct collective c;
    bool open, bound, first_of_node, first_of_machine;
    struct watchdog *dog;  /* of backends that wait in a library */
    struct helper *helper; /* or what they are done by; NULL: nothing was, yet */
    bool by_helper;        /* this point is */
    /* Called while the helper is waited for. Not 0: it is abandoned. */
    int (*await)(struct member *m);
    uint64_t fed_ns,
        limit_ns; /* atomic: when the helper was last seen to move, and how long it may not be */
    struct member_job *job; /* of the helper, which may never end with it */
    uint64_t operation_ns;  /* of the last run, each; 0: there was none */
    uint64_t filled_seed;   /* that the inputs are of */
    bool ran;               /* there are results of these inputs */
    struct overlap overlap; /* open where it has matrices */
    struct collective_report mark;
    struct cpu_reading cpu_mark;
    bool cpu_known;
    struct path *path;
    struct gpu_watch *watch; /* of this member's GPUs; NULL: it has none, or is rank 0 */
};

/* What rank 0 has asked, and what it needs: order, members and calls; addresses to join; run, and
 * times; overlap_ns, and ns; nothing. */
struct member_job {
    enum collective_request what;
    const struct collective_order *order;
    const uint32_t *members;
    const struct collective_call *calls;
    const void *extra; /* as many bytes as the order says */
    const struct address_list *addresses;
    struct session_run run;
    struct collective_times times; /* out */
    uint64_t overlap_ns, ns;       /* in, out */
    struct member *member;
};
/* Does it, by the helper where the backend may wait for good. 0 or -errno: await()'s where the
 * helper was abandoned, and from then on -ECANCELED. */
int member_do(struct member *m, struct member_job *job);
/* How long nothing has moved in the helper, where that is too long; 0: it is not. */
uint64_t member_still_ns(const struct member *m);
void member_end(struct member *m); /* of its helper; one that was abandoned is left alone */

/* Each 0, or -errno with m->c.error. `members` and calls are copied. */
int member_addresses(struct member *m, struct address_list *addresses); /* for whom each is */
int member_run(struct member *m, const struct session_run *run, struct collective_times *times);
int member_overlap_alone(struct member *m, uint64_t overlap_ns, uint64_t *ns);
int member_mark(struct member *m);
void member_tell(struct member *m, struct collective_account *account);
int member_check(struct member *m);
void member_prove(struct member *m, const struct collective_claims *claims,
                  struct collective_proof *proof);
/* 0; -EHOSTUNREACH where a link of it has sent what nobody acknowledged for so long, in c.error. */
int member_links(struct member *m, uint64_t for_ns);

/* How long one request may take before something must be wrong, where a backend waits in a library
 * and nothing can be seen of its progress. */
uint64_t member_patience_ns(const struct member *m, enum collective_request request,
                            const struct session_run *run);
/* From here on that is the limit; the watchdog's too, where there is one, until it is told to
 * rest. */
void member_watch(struct member *m, enum collective_request request, const struct session_run *run);
/* Fills the inputs. */
int member_fill(struct member *m, uint64_t seed);

#endif
