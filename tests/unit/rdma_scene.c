/* SPDX-License-Identifier: Apache-2.0 */
/* See rdma_scene.h. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rdma_scene.h"

#define WAIT_NS 60000000000u

struct scene scene_of(int (*act)(struct side *s), size_t bytes)
{
    struct scene scene = {.act = act, .bytes = bytes, .options = wire_options(1)};

    scene.options.device = getenv("PLUMB_TEST_DEVICES");
    scene.options.message_most = bytes;
    return scene;
}

static int prepare(struct wire_party *p)
{
    struct scene *scene = p->arg;

    scene->at = aligned_alloc(4096, (scene->bytes + 4095) / 4096 * 4096);
    memset(scene->at, 0xee, scene->bytes);
    int err = wire_memory(p->wire, scene->at, scene->bytes);
    return err ? wire_fault(p, err, "%s", p->wire->error) : 0;
}

/* Ranks stay until all have come to the end: the last of the others' messages must still find them. */
static int act(struct wire_party *p)
{
    const struct scene *scene = p->arg;
    struct side side = {.party = p,
                        .f = p->wire,
                        .rank = p->rank,
                        .size = p->size,
                        .at = scene->at,
                        .bytes = scene->bytes};
    int err = scene->act(&side);

    return err || scene->dies ? err : wire_barrier(p);
}

void play(unsigned size, struct scene *scene)
{
    struct wire_fixture x = {.ops = &wire_rdma,
                             .size = size,
                             .options = scene->options,
                             .prepare = prepare,
                             .run = act,
                             .arg = scene};
    struct wire_outcome outcomes[4];

    fflush(NULL);
    wire_fixture_run(&x, outcomes);
    free(scene->at);
    scene->at = NULL;
    if (scene->dies)
        outcomes[1].rc = 0;
    assert_string_equal(wire_first_fault(outcomes, size), "");
}

static void find(void *arg, const struct backend *b)
{
    bool *found = arg;

    *found |= b->state == BACKEND_PRESENT;
}

bool have_port(void)
{
    bool found = false;

    wire_rdma.backends(find, &found);
    return found;
}

/* iWARP's ($PLUMB_TEST_IWARP) is refused. */
void need_port(void)
{
    if (!have_port() || getenv("PLUMB_TEST_IWARP")) {
        print_message("no RDMA port for this here\n");
        skip();
    }
}

int until(struct side *s, const uint64_t *count, uint64_t wanted)
{
    uint64_t end_ns = clock_now_ns() + WAIT_NS;

    while (*count < wanted) {
        MUST(wire_progress(s->f->workers, WIRE_BOTH, 1000000000));
        if (clock_now_ns() > end_ns)
            return wire_fault(s->party, -ETIMEDOUT, "%llu of %llu bytes in a minute",
                              (unsigned long long)*count, (unsigned long long)wanted);
    }
    return *count == wanted ? 0 : wire_fault(s->party, -ERANGE, "more bytes than were asked for");
}
