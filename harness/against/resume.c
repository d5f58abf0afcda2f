/* SPDX-License-Identifier: Apache-2.0 */
/* Going on with a run in turn: see against.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/row.h"
#include "core/text.h"
#include "harness/against/common.h"
#include "harness/against/leader_parts.h"
#include "harness/against/wire.h"
#include "harness/run/run_meta.h"
#include "harness/store/run_folder.h"

#define KEEP_NS 30000000000ull /* for an agent to answer what takes it no time */

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

static void print_cells(FILE *out, char *const *cells, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        csv_print(out, cells[i]);
        fputc(i + 1 < n ? ',' : '\n', out);
    }
}

/* The rows of one launch, under their header. A new text; NULL: memory is short. */
static char *rows_of(const struct table *t, const struct launch *l)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    if (!out)
        return NULL;
    print_cells(out, t->columns, t->n_columns);
    for (size_t row = 0; row < t->n_rows; row++)
        if (table_number(t, row, "case") == l->case_number &&
            table_number(t, row, "repeat") == l->repeat)
            print_cells(out, t->cells + row * t->n_columns, t->n_columns);
    if (!fclose(out))
        return text;
    free(text);
    return NULL;
}

/* Does this launch decide what the later ones of its case are given? */
static bool decides(const struct target *t, size_t i)
{
    const struct launch *all = t->plan.launches;

    if (all[i].state != LAUNCH_DONE ||
        !json_object_get(json_object_get(t->meta, "kept_options"), all[i].bench))
        return false;
    for (size_t k = 0; k < i; k++)
        if (all[k].case_number == all[i].case_number && all[k].state == LAUNCH_DONE)
            return false;
    return true;
}

static int tell_rows(struct leader *g, struct target *t, const struct run_folder *folder,
                     const struct launch *l)
{
    json_t *answer = NULL, *message = wire_launch(l);
    char *rows = NULL;

    for (size_t i = 0; i < folder->n_benches; i++)
        if (!strcmp(folder->benches[i].name, l->bench))
            rows = rows_of(&folder->benches[i].rows, l);
    json_object_set_new(message, "ask", json_string("keep"));
    json_object_set_new(message, "rows", wire_text(rows ? rows : ""));
    free(rows);
    int err = target_ask(t, message, g->error, sizeof(g->error));
    if (!err)
        err = target_answer(t, KEEP_NS, &answer, g->error, sizeof(g->error));
    json_decref(answer);
    return err;
}

/* What the launches of a target chose (harness/run/kept.h) its new agent does not know. */
static int tell_choices(struct leader *g, struct target *t)
{
    struct run_folder folder;
    int err = run_folder_load(t->path, &folder, g->error, sizeof(g->error));

    if (err)
        return err;
    for (size_t i = 0; !err && i < t->plan.n; i++)
        if (decides(t, i))
            err = tell_rows(g, t, &folder, &t->plan.launches[i]);
    run_folder_release(&folder);
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
    for (int i = 0; !err && i < 2; i++)
        err = tell_choices(&g, &g.t[i]);
    int status = !err                ? leader_measure(&g)
                 : err == -ECANCELED ? EXIT_INCOMPLETE
                                     : leader_fail(&g, leader_status(err));
    leader_release(&g);
    return status;
}
