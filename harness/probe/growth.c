/* SPDX-License-Identifier: Apache-2.0 */
/* How the counters of a machine grew between two readings: see probe.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "harness/probe/facts.h"
#include "harness/probe/probe.h"

/* ---- Two readings ---- */

/* The entry with that name; of an object without one, with that port. */
static const json_t *find_like(const json_t *list, const json_t *one)
{
    const char *key = json_object_get(one, "name") ? "name" : "port";
    const json_t *other;
    size_t i;

    json_array_foreach (list, i, other)
        if (json_equal(json_object_get(other, key), json_object_get(one, key)))
            return other;
    return NULL;
}

/* What is smaller than it was has begun anew, and what lacks was not read: neither grew. */
static void add_grown(json_t *grown, const json_t *before, const json_t *after)
{
    const char *key;
    json_t *value;

    json_object_foreach ((json_t *)after, key, value) {
        const json_t *was = json_object_get(before, key);
        json_int_t more = json_integer_value(value) - json_integer_value(was);

        if (json_is_integer(value) && json_is_integer(was) && more >= 0)
            json_object_set_new(grown, key, json_integer(more));
    }
}

static void set_grown(json_t *object, const json_t *before, const json_t *after)
{
    static const char *const counters[] = {"counters", "hw_counters", "pause_counters"};
    json_t *grown = json_object();

    for (size_t i = 0; i < sizeof(counters) / sizeof(*counters); i++)
        add_grown(grown, json_object_get(before, counters[i]), json_object_get(after, counters[i]));
    if (json_object_size(grown))
        json_object_set(object, "grown", grown);
    else
        json_object_del(object, "grown");
    json_decref(grown);
}

static void set_each(json_t *list, const json_t *before, const json_t *after)
{
    json_t *one, *ports;
    size_t i;

    json_array_foreach (list, i, one) {
        const json_t *was = find_like(before, one), *is = find_like(after, one);

        set_grown(one, was, is);
        ports = json_object_get(one, "ports");
        if (ports)
            set_each(ports, json_object_get(was, "ports"), json_object_get(is, "ports"));
    }
}

static double uptime_of(const json_t *machine)
{
    return fact_number(json_object_get(machine, "load"), "uptime_seconds", 0);
}

void probe_growth(json_t *machine, const json_t *before, const json_t *after)
{
    static const char *const lists[] = {"network", "rdma"};
    double seconds = uptime_of(after) - uptime_of(before);
    json_t *load = json_object_get(machine, "load");

    if (!load || uptime_of(before) <= 0 || seconds <= 0)
        return;
    fact_set_real(load, "watched_seconds", seconds);
    for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++)
        set_each(json_object_get(machine, lists[i]), json_object_get(before, lists[i]),
                 json_object_get(after, lists[i]));
}

/* ---- The second reading ---- */

/* Where the object's folder is in the second reading: in a recording below another one, which has no
 * links. */
static bool place(const struct tree *tree, const char *below, const char *folder, const char *name,
                  char *path, size_t size)
{
    char real[TREE_PATH];

    return name && !strchr(name, '/') &&
           !tree_resolve(tree, tree_join(folder, name).s, real, sizeof(real)) &&
           (size_t)snprintf(path, size, "%s%s", below, real) < size;
}

/* ports: those of the device, as they were at first. */
static void device_again(const struct tree *tree, json_t *now, const char *device,
                         const json_t *ports)
{
    json_t *list = fact_list(now, "ports");
    const json_t *port;
    char path[TREE_PATH];
    size_t i;

    json_array_foreach (ports, i, port) {
        json_t *one = json_object();

        json_array_append_new(list, one);
        fact_set_number(one, "port", fact_integer(port, "port", 0));
        if ((size_t)snprintf(path, sizeof(path), "%s/ports/%lld", device,
                             fact_integer(port, "port", 0)) < sizeof(path))
            rdma_fill_counters(tree, one, path);
    }
}

typedef void again_fn(const struct tree *tree, json_t *now, const char *path, const json_t *arg);

/* The entries of a list by their names, with their counters of now. asked NULL: each one's ports. */
static json_t *list_again(const struct tree *tree, const char *below, const char *folder,
                          const json_t *list, again_fn *again, const json_t *asked)
{
    json_t *all = json_array();
    const json_t *one;
    char path[TREE_PATH];
    size_t i;

    json_array_foreach (list, i, one) {
        const char *name = fact_string(one, "name");
        json_t *now = json_object();

        json_array_append_new(all, now);
        fact_set_text(now, "name", name ? name : "");
        if (place(tree, below, folder, name, path, sizeof(path)))
            again(tree, now, path, asked ? asked : json_object_get(one, "ports"));
    }
    return all;
}

void probe_again(const struct tree *tree, const char *below, json_t *machine)
{
    char line[TREE_LINE];
    double seconds;
    json_t *now, *asked;

    if (tree_line(tree, tree_join(*below ? below : ".", "proc/uptime").s, line, sizeof(line)) ||
        sscanf(line, "%lf", &seconds) != 1 || uptime_of(machine) <= 0)
        return;
    now = json_object();
    fact_set_real(fact_object(now, "load"), "uptime_seconds", seconds);
    asked = net_asked(tree, below);
    json_object_set_new(now, "network",
                        list_again(tree, below, "sys/class/net",
                                   json_object_get(machine, "network"), net_fill_counters, asked));
    json_object_set_new(now, "rdma",
                        list_again(tree, below, "sys/class/infiniband",
                                   json_object_get(machine, "rdma"), device_again, NULL));
    json_decref(asked);
    probe_growth(machine, machine, now);
    json_decref(now);
}

void probe_watch(json_t *machine, double seconds)
{
    struct timespec rest = {.tv_sec = (time_t)seconds,
                            .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
    struct tree tree;

    while (nanosleep(&rest, &rest) && errno == EINTR)
        continue;
    if (!tree_open(&tree, NULL)) {
        probe_again(&tree, "", machine);
        tree_close(&tree);
    }
}
