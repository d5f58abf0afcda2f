/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cases of wires over RDMA: ranks that each announce some memory and do the same thing. On the first active port, or on
 * $PLUMB_TEST_DEVICES ("rxe0+rxe1"), which the ranks take in turn; scripts/lab-rdma has such devices for every machine.
 */
#ifndef PLUMB_TESTS_UNIT_RDMA_SCENE_H
#define PLUMB_TESTS_UNIT_RDMA_SCENE_H

#include <errno.h>

#include "core/clock.h"
#include "wire_fixture.h"

/* A rank of a case. */
struct side {
    struct wire_party *party;
    struct wire *f;
    unsigned rank, size;
    uint8_t *at; /* `bytes` of it, each 0xee */
    size_t bytes;
};

struct scene {
    int (*act)(struct side *s); /* 0, or what MUST or SURE left with */
    struct wire_options options;
    size_t bytes;
    uint8_t *at;
    bool dies; /* rank 1 does */
};

struct scene scene_of(int (*act)(struct side *s), size_t bytes);
/* Fails the test with the first rank's words. */
void play(unsigned size, struct scene *scene);
void need_port(void); /* skips the test where there is none */
bool have_port(void);
/* Progress until *count is `wanted` and no more. */
int until(struct side *s, const uint64_t *count, uint64_t wanted);

#define MUST(call)                                                                                 \
    do {                                                                                           \
        int must_err = (call);                                                                     \
        if (must_err < 0)                                                                          \
            return wire_fault(s->party, must_err, "%s: %s", #call, s->f->error);                   \
    } while (0)
#define SURE(what)                                                                                 \
    do {                                                                                           \
        if (!(what))                                                                               \
            return wire_fault(s->party, -EBADMSG, "line %d: not so: %s; %s", __LINE__, #what,      \
                              s->f->error);                                                        \
    } while (0)

#endif
