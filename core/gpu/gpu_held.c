/* SPDX-License-Identifier: Apache-2.0 */
/* Windows in which a GPU was held back: see gpu_held.h. */
#include "core/gpu/gpu_held.h"

void gpu_held_clear(struct gpu_held *held)
{
    held->n = 0;
    held->always = 0;
}

void gpu_held_add(struct gpu_held *held, uint64_t from_ns, uint64_t to_ns, unsigned reasons)
{
    size_t last = held->n - 1;

    if (!reasons)
        return;
    if (held->n == GPU_HELD_WINDOWS || (held->n && held->windows[last].reasons == reasons &&
                                        held->windows[last].to_ns >= from_ns)) {
        held->windows[last].reasons |= reasons;
        held->windows[last].to_ns = to_ns;
        return;
    }
    held->windows[held->n].from_ns = from_ns;
    held->windows[held->n].to_ns = to_ns;
    held->windows[held->n++].reasons = reasons;
}

void gpu_held_add_always(struct gpu_held *held, unsigned reasons)
{
    held->always |= reasons;
}

/* The first window that ends at `ns` or later. */
static size_t first_window(const struct gpu_held *held, uint64_t ns)
{
    size_t low = 0, high = held->n;

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (held->windows[middle].to_ns < ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

unsigned gpu_held_between(const struct gpu_held *held, uint64_t from_ns, uint64_t to_ns)
{
    unsigned reasons = held->always;

    for (size_t i = first_window(held, from_ns); i < held->n && held->windows[i].from_ns <= to_ns;
         i++)
        reasons |= held->windows[i].reasons;
    return reasons;
}

unsigned gpu_held_ever(const struct gpu_held *held)
{
    unsigned reasons = held->always;

    for (size_t i = 0; i < held->n; i++)
        reasons |= held->windows[i].reasons;
    return reasons;
}
