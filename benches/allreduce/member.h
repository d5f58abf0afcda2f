/* SPDX-License-Identifier: Apache-2.0 */
/* What every member does for a request of rank 0, rank 0 itself too: see order.h. */
#ifndef PLUMB_BENCHES_ALLREDUCE_MEMBER_H
#define PLUMB_BENCHES_ALLREDUCE_MEMBER_H

#include "benches/allreduce/helper.h"
#include "benches/allreduce/order.h"
#include "benches/allreduce/overlap.h"
#include "benches/allreduce/pulse.h"
#include "core/hw/gpu_watch.h"
#include "core/hw/machine.h"

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
    struct collective c;
    bool open, bound, first_of_node, first_of_machine;
    struct watchdog *dog;  /* of backends that wait in a library */
    struct helper *helper; /* or what they are done by; NULL: the channels are not a library's */
    struct pulse *pulse;   /* NULL: none */
    bool by_helper;        /* this point is */
    /* Called while the helper is waited for. Not 0: it is abandoned. */
    int (*await)(struct member *m);
    uint64_t request; /* for the heartbeats */
    uint64_t fed_ns,
        limit_ns; /* atomic: when the helper was last seen to move, and how long it may not be */
    struct member_job *job; /* of the helper, which may never end with it */
    uint64_t operation_ns;  /* of the last run, each; 0: there was none */
    uint64_t filled_seed;   /* that the inputs are of */
    bool ran;               /* there are results of these inputs */
    struct overlap overlap; /* open where it has matrices */
    struct collective_told mark;
    struct cpu_reading cpu_mark;
    bool cpu_known;
    struct path *path;
    struct gpu_watch *watch; /* of this member's GPU; NULL: it has none, or is rank 0 */
};

/* What rank 0 has asked, and what it needs: order, members and calls; cards to join; run, and
 * times; overlap_ns, and ns; nothing. */
struct member_job {
    enum collective_request what;
    const struct collective_order *order;
    const uint32_t *members;
    const struct collective_call *calls;
    const struct card_list *cards;
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
/* A helper thread, and heartbeats, which rank 0 leads. What cannot be had is left out. */
void member_stand_beside(struct member *m, struct collective_hello *hello);
void member_stand_alone(struct member *m);

/* Each 0, or -errno with m->c.error. `members` and calls are copied. */
int member_open(struct member *m, const struct collective_order *order, const uint32_t *members,
                const struct collective_call *calls);
int member_cards(struct member *m, struct card_list *cards);      /* for whom each is */
int member_join(struct member *m, const struct card_list *cards); /* from whom */
int member_run(struct member *m, const struct session_run *run, struct collective_times *times);
int member_overlap_alone(struct member *m, uint64_t overlap_ns, uint64_t *ns);
int member_mark(struct member *m);
void member_tell(struct member *m, struct collective_account *account);
int member_check(struct member *m);
void member_prove(struct member *m, const struct collective_claims *claims,
                  struct collective_proof *proof);
/* 0; -EHOSTUNREACH where a link of it has sent what nobody acknowledged for so long, in c.error. */
int member_links(struct member *m, uint64_t for_ns);
void member_close(struct member *m); /* however far it came; harmless when nothing is open */

/* How long one request may take before something must be wrong, where a backend waits in a library
 * and nothing can be seen of its progress. */
uint64_t member_patience_ns(const struct member *m, enum collective_request request,
                            const struct session_run *run);
/* From here on that is the limit; the watchdog's too, where there is one, until it is told to
 * rest. */
void member_watch(struct member *m, enum collective_request request, const struct session_run *run);
/* Fills the inputs. */
int member_fill(struct member *m, uint64_t seed);
/* Is it the one that is to be missing (COLLECTIVE_ABSENT)? */
bool member_is_absent(const struct member *m);

#endif
