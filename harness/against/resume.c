/* SPDX-License-Identifier: Apache-2.0 */
/* Going on with a run in turn: see against.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/against/common.h"
#include "harness/against/leader_parts.h"
#include "harness/run/run_meta.h"

static const json_t *pair_of(const json_t *meta)
{
    return json_object_get(meta, "against");
}

bool against_is_pair(const char *path)
{
    char *a = NULL, *b = NULL;
    bool is = asprintf(&a, "%s/a/run.json", path) >= 0 &&
              asprintf(&b, "%s/b/run.json", path) >= 0 && !access(a, R_OK) && !access(b, R_OK);

    free(a);
    free(b);
    return is;
}

/* The stored run.json and what the agent says of itself now must be of one program and one machine. */
static int check_same(struct leader *g, const struct target *t, const json_t *now)
{
    static const char *const keys[] = {"version", "commit", "config_hash"};

    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
        if (!json_equal(json_object_get(t->meta, keys[i]), json_object_get(now, keys[i]))) {
            snprintf(g->error, sizeof(g->error),
                     "target %s is not what it was when this run was begun (its %s differs): start "
                     "a new run",
                     t->side, keys[i]);
            return -ESTALE;
        }
    const json_t *was = json_object_get(json_object_get(t->meta, "machine"), "host");
    const json_t *is = json_object_get(json_object_get(now, "machine"), "host");
    if (json_equal(json_object_get(was, "hostname"), json_object_get(is, "hostname")))
        return 0;
    snprintf(g->error, sizeof(g->error),
             "target %s is on another host than when this run was begun: start a new run", t->side);
    return -ESTALE;
}

/* What was lost with the power is measured again; where that is the launch that went first, so is the one that came after
 * it: the other way round the pair would break the balance, and not be what the plan says. */
static int check_turns(struct leader *g)
{
    const struct plan *a = &g->t[0].plan, *b = &g->t[1].plan;
    int err = 0;

    for (size_t i = 0; !err && i < a->n; i++) {
        int first = a->n == b->n ? common_first(a, b, i) : -1;
        if (first < 0) {
            snprintf(g->error, sizeof(g->error), "'%s' is damaged: its two runs have other plans",
                     g->path);
            return -EBADMSG;
        }
        struct target *then = &g->t[!first];
        if (g->t[first].plan.launches[i].state == LAUNCH_TODO &&
            then->plan.launches[i].state != LAUNCH_TODO)
            err = store_redo(then->store, i, g->error, sizeof(g->error));
    }
    return err;
}

static int open_folders(struct leader *g, const char *path)
{
    int err = 0;

    g->path = strdup(path);
    for (int i = 0; !err && i < 2; i++) {
        struct target *t = &g->t[i];
        if (!g->path || asprintf(&t->path, "%s/%s", path, t->side) < 0)
            return -ENOMEM;
        err = run_meta_load(t->path, &t->meta, g->error, sizeof(g->error));
        if (!err)
            err = store_open(t->path, &t->plan, &t->store, g->error, sizeof(g->error));
        t->command = json_string_value(json_object_get(pair_of(t->meta), "command"));
    }
    return err ? err : check_turns(g);
}

/* Agents plan anew, so that they know suite and seed; the plans that count are those of the folders. */
static int ask_again(struct leader *g)
{
    const json_t *meta = g->t[0].meta;
    struct leader fresh = {.options = g->options};
    int err;

    for (int i = 0; i < 2; i++)
        fresh.t[i] = (struct target){
            .side = g->t[i].side, .command = g->t[i].command, .cancel = g->t[i].cancel};
    err = leader_ask_plans(&fresh, json_string_value(json_object_get(meta, "suite")),
                           json_string_value(json_object_get(meta, "config")),
                           json_string_value(json_object_get(meta, "only")), run_meta_seed(meta));
    memcpy(g->error, fresh.error, sizeof(g->error));
    for (int i = 0; !err && i < 2; i++)
        err = check_same(g, &g->t[i], fresh.t[i].meta);
    for (int i = 0; !err && i < 2; i++) {
        g->t[i].agent = fresh.t[i].agent;
        fresh.t[i].agent = (struct end){.in = -1, .out = -1, .err = -1};
    }
    leader_release(&fresh);
    return err;
}

int against_resume(const char *path, const struct against_options *o)
{
    struct leader g = {0};

    leader_begin(&g, o);
    int err = open_folders(&g, path);
    if (!err)
        err = ask_again(&g);
    for (int i = 0; !err && i < 2; i++)
        err = run_has_wrong(g.t[i].path, &g.t[i].wrong, g.error, sizeof(g.error));
    int status = !err                ? leader_measure(&g)
                 : err == -ECANCELED ? EXIT_INCOMPLETE
                                     : leader_fail(&g, leader_status(err));
    leader_release(&g);
    return status;
}
