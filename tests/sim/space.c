/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory. Devices' addresses are a range that is reserved and never mapped, so that a host that follows
 * one crashes, as on real hardware; the bytes are at the same distance further on. Addresses are not
 * used again before the range is used up: a pointer that was freed is known for one.
 */
#include "tests/sim/sim.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ARENA_BYTES   (UINT64_C(1) << 39)
#define GRAIN         UINT64_C(0x10000)
#define DIRT_BYTES    65536
#define FAULTED_BYTES (16 << 20)

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14; an older one refuses it */
#endif
#define DIRT 0xa7

static size_t rounded(size_t bytes)
{
    return (bytes + GRAIN - 1) & ~(size_t)(GRAIN - 1);
}

static int reserve(struct sim_arena *arena, bool host)
{
    size_t bytes = host ? ARENA_BYTES : 2 * ARENA_BYTES; /* the addresses, and the bytes */
    void *at;

    if (arena->bytes)
        return 0;
    at = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return -1;
    arena->at = (uintptr_t)at;
    arena->bytes = ARENA_BYTES;
    return 0;
}

/* The first block that ends behind `at`. */
static size_t position(const struct sim_space *space, uintptr_t at)
{
    size_t low = 0, high = space->count;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (space->blocks[middle].at + space->blocks[middle].bytes <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct sim_block *sim_space_find(struct sim *sim, uintptr_t at)
{
    struct sim_space *space = &sim->space;
    size_t i = position(space, at);

    return i < space->count && space->blocks[i].at <= at ? &space->blocks[i] : NULL;
}

static struct sim_block *insert(struct sim_space *space, const struct sim_block *block)
{
    size_t i = position(space, block->at);
    struct sim_block *more;

    if (space->count == space->room) {
        more = realloc(space->blocks, (space->room * 2 + 64) * sizeof(*more));
        if (!more)
            return NULL;
        space->blocks = more;
        space->room = space->room * 2 + 64;
    }
    memmove(&space->blocks[i + 1], &space->blocks[i], (space->count - i) * sizeof(*block));
    space->blocks[i] = *block;
    space->count++;
    return &space->blocks[i];
}

static bool is_free(const struct sim_space *space, uintptr_t at, size_t bytes)
{
    size_t i = position(space, at);

    return i == space->count || space->blocks[i].at >= at + bytes;
}

/* The next room in the arena; 0: none. A gap follows each block, so that overruns are seen. */
static uintptr_t find_room(struct sim_space *space, struct sim_arena *arena, size_t bytes)
{
    size_t need = rounded(bytes) + GRAIN;
    unsigned wraps = 0;

    while (need <= arena->bytes && wraps < 2) {
        uintptr_t at = arena->at + arena->next;

        if (arena->next + need > arena->bytes) {
            arena->next = 0;
            wraps++;
            continue;
        }
        arena->next += need;
        if (is_free(space, at, need))
            return at;
    }
    return 0;
}

static void *host_side(const struct sim_arena *arena, bool host, uintptr_t at)
{
    return (void *)(host ? at : at + arena->bytes);
}

void *sim_space_take(struct sim *sim, int number, size_t bytes, enum sim_place place, unsigned gpu)
{
    bool host = number == SIM_HOST_ARENA;
    struct sim_space *space = &sim->space;
    struct sim_arena *arena = host ? &space->host : &space->device[number];
    struct sim_block block = {.bytes = bytes, .place = place, .gpu = gpu};
    void *bytes_at;

    if (reserve(arena, host) || !(block.at = find_room(space, arena, bytes)))
        return NULL;
    bytes_at = host_side(arena, host, block.at);
    if (mprotect(bytes_at, rounded(bytes), PROT_READ | PROT_WRITE))
        return NULL;
    if (place == SIM_MANAGED) {
        block.home = malloc(rounded(bytes) / GRAIN * sizeof(*block.home));
        if (!block.home)
            return NULL;
        memset(block.home, -1, rounded(bytes) / GRAIN * sizeof(*block.home));
    }
    block.node = sim_host_node(&sim->machine);
    if (!insert(space, &block)) {
        free(block.home);
        return NULL;
    }
    if (place != SIM_MANAGED)
        memset(bytes_at, DIRT, bytes < DIRT_BYTES ? bytes : DIRT_BYTES);
    if (bytes <= FAULTED_BYTES) /* now, not while it is timed */
        madvise(bytes_at, bytes, MADV_POPULATE_WRITE);
    if (!host)
        space->used_bytes[number] += rounded(bytes);
    return (void *)block.at;
}

int sim_space_register(struct sim *sim, uintptr_t at, size_t bytes, unsigned gpu)
{
    struct sim_block block = {.at = at,
                              .bytes = bytes,
                              .place = SIM_PINNED,
                              .gpu = gpu,
                              .node = sim_host_node(&sim->machine),
                              .registered = true};

    return insert(&sim->space, &block) ? 0 : -1;
}

void sim_space_give_back(struct sim *sim, const struct sim_block *block)
{
    struct sim_space *space = &sim->space;
    size_t i = (size_t)(block - space->blocks);
    bool host = block->place != SIM_DEVICE;
    void *bytes_at = sim_bytes(sim, block->at);

    sim_forget(sim, block->at, block->bytes);
    if (!block->registered) {
        madvise(bytes_at, rounded(block->bytes), MADV_DONTNEED);
        mprotect(bytes_at, rounded(block->bytes), PROT_NONE);
        if (!host && !block->returned)
            space->used_bytes[block->gpu] -= rounded(block->bytes);
    }
    free(block->home);
    memmove(&space->blocks[i], &space->blocks[i + 1], (space->count - i - 1) * sizeof(*block));
    space->count--;
}

static bool in_arena(const struct sim_arena *arena, uintptr_t at)
{
    return arena->bytes && at >= arena->at && at < arena->at + arena->bytes;
}

void *sim_bytes(struct sim *sim, uintptr_t at)
{
    for (unsigned i = 0; i < sim->machine.gpus; i++)
        if (in_arena(&sim->space.device[i], at))
            return host_side(&sim->space.device[i], false, at);
    return (void *)at;
}

/* Managed memory is taken to be where its first byte is. */
struct sim_where sim_where(struct sim *sim, uintptr_t at, uint64_t bytes, unsigned node)
{
    const struct sim_block *block = sim_space_find(sim, at);
    struct sim_where where = {.place = SIM_PAGEABLE, .gpu = -1, .node = node};
    bool arena = in_arena(&sim->space.host, at);

    for (unsigned i = 0; i < sim->machine.gpus; i++)
        arena = arena || in_arena(&sim->space.device[i], at);
    if (!block) {
        where.bad = arena || !at;
        return where;
    }
    where.block = block;
    where.bad = bytes > block->bytes - (at - block->at);
    where.place = block->place;
    where.node = block->node;
    if (block->place == SIM_DEVICE)
        where.gpu = (int)block->gpu;
    else if (block->place == SIM_MANAGED)
        where.gpu = block->home[(at - block->at) / GRAIN];
    return where;
}

/* Calls with each page's part of the range; sums up what it returns. */
static uint64_t over_pages(struct sim *sim, uintptr_t at, uint64_t bytes, int to, bool move)
{
    struct sim_block *block = sim_space_find(sim, at);
    uint64_t away = 0, offset = at - (block ? block->at : at), left = bytes, part;

    if (!block || !block->home)
        return 0;
    for (; left; left -= part, offset += part) {
        short *home = &block->home[offset / GRAIN];

        part = GRAIN - offset % GRAIN < left ? GRAIN - offset % GRAIN : left;
        if (*home != to)
            away += part;
        if (move)
            *home = (short)to;
    }
    return away;
}

uint64_t sim_managed_away(struct sim *sim, uintptr_t at, uint64_t bytes, int to)
{
    return over_pages(sim, at, bytes, to, false);
}

void sim_managed_move(struct sim *sim, uintptr_t at, uint64_t bytes, int to)
{
    over_pages(sim, at, bytes, to, true);
}

void sim_space_unmap(struct sim *sim)
{
    for (unsigned i = 0; i < SIM_GPUS; i++)
        if (sim->space.device[i].bytes)
            munmap((void *)sim->space.device[i].at, 2 * ARENA_BYTES);
    if (sim->space.host.bytes)
        munmap((void *)sim->space.host.at, ARENA_BYTES);
    for (size_t i = 0; i < sim->space.count; i++)
        free(sim->space.blocks[i].home);
    free(sim->space.blocks);
    sim->space = (struct sim_space){0};
}
