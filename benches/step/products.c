/* SPDX-License-Identifier: Apache-2.0 */
/* A rank's products of matrices: see products.h. */
#include "benches/step/products.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/clock.h"

struct products {
    struct step_spec spec;
    const struct step_layer *layers;
    const struct products_place *place;
    void *state;               /* the place's */
    struct gemm_shape *shapes; /* that the plan has, each once */
    size_t n;
    bool is_ready;
};

static uint64_t divided(uint64_t n, uint64_t by)
{
    return (n + by - 1) / by;
}

/* So many products Y = X W of this shape, in one of the passes. */
static unsigned add_passes(enum step_kind kind, const struct step_layer *l, struct gemm_shape y,
                           uint64_t count, struct step_product *out)
{
    unsigned products = 0;

    if (!count || !y.m)
        return 0;
    if (kind == STEP_FORWARD)
        out[products++] = (struct step_product){y, count};
    if (kind == STEP_BACKWARD && l->backward > 1)
        out[products++] = (struct step_product){{y.m, y.k, y.n}, count * (l->backward - 1)};
    if (kind == STEP_BACKWARD && l->backward)
        out[products++] = (struct step_product){{y.k, y.n, y.m}, count};
    return products;
}

unsigned step_products(const struct step_spec *s, const struct step_layer *l, enum step_kind kind,
                       struct step_product out[STEP_PRODUCTS_MOST])
{
    uint64_t samples = s->batch / s->micro, m = l->m, n = l->n, k = l->k, count = l->count;
    bool many = count > 1, split = s->tp > 1 && l->split != MODEL_WHOLE;
    unsigned products = 0;

    if (!m || !n || !k)
        return 0;
    if (many)
        count = divided(count, split ? s->tp : 1) * samples;
    else
        m *= samples;
    if (split && !many && l->split == MODEL_COLUMN)
        n = divided(n, s->tp);
    if (split && !many && l->split == MODEL_ROW)
        k = divided(k, s->tp);
    uint64_t experts = many || !l->experts ? 1 : divided(l->experts, s->ep), longer = m % experts;
    products = add_passes(kind, l, (struct gemm_shape){m / experts + 1, n, k}, count * longer, out);
    return products + add_passes(kind, l, (struct gemm_shape){m / experts, n, k},
                                 count * (experts - longer), out + products);
}

/* ---- Shapes ---- */

/* n: there is no such shape yet. */
static size_t find(const struct products *p, const struct gemm_shape *shape)
{
    size_t i = 0;

    while (i < p->n && memcmp(&p->shapes[i], shape, sizeof(*shape)) != 0)
        i++;
    return i;
}

static int list_shapes(struct products *p, const struct step_plan *plan, char *why)
{
    struct step_product products[STEP_PRODUCTS_MOST];
    int err = 0;

    for (size_t i = 0; i < plan->n_ops && !err; i++) {
        const struct step_op *op = &plan->ops[i];
        for (unsigned l = 0; op->lane == LANE_COMPUTE && l < op->n_layers && !err; l++) {
            const struct step_layer *layer = &p->layers[op->first_layer + l];
            unsigned n = step_products(&p->spec, layer, (enum step_kind)op->kind, products);
            for (unsigned k = 0; k < n && !err; k++) {
                const struct gemm_shape *shape = &products[k].shape;
                if (find(p, shape) < p->n)
                    continue;
                if (shape->m > INT_MAX || shape->n > INT_MAX || shape->k > INT_MAX)
                    err = gemm_why(why, -EOPNOTSUPP,
                                   "a product of %llu x %llu x %llu: give a lower --batch",
                                   (unsigned long long)shape->m, (unsigned long long)shape->n,
                                   (unsigned long long)shape->k);
                else
                    *ARRAY_ADD(p->shapes, p->n) = *shape;
            }
        }
    }
    return err;
}

int products_open(struct products **to, const struct products_place *place,
                  const struct step_spec *s, const struct step_layer *layers,
                  const struct step_plan *plan, unsigned sharing, const char *gpu,
                  char why[GEMM_WHY_BYTES])
{
    struct products *p = *to = xcalloc(1, sizeof(*p));
    struct products_need need = {.type = (enum collective_type)s->type,
                                 .adam = s->update == UPDATE_ADAM,
                                 .sharing = sharing,
                                 .gpu = gpu};

    p->spec = *s;
    p->layers = layers;
    p->place = place;
    int err = list_shapes(p, plan, why);
    if (err || !p->n) /* a stage whose layers have none */
        return err;
    for (size_t i = 0; i < plan->n_ops; i++)
        if (plan->ops[i].kind == STEP_UPDATE)
            need.updated = plan->ops[i].bytes /
                           model_update_bytes((enum model_update)s->update, sizeof(float));
    need.shapes = p->shapes;
    need.n = p->n;
    return place->open(&p->state, &need, why);
}

void products_close(struct products *p)
{
    if (!p)
        return;
    if (p->state)
        p->place->close(p->state);
    free(p->shapes);
    free(p);
}

void products_tell(const struct products *p, struct collective_report *told)
{
    size_t used = strlen(told->detail);

    snprintf(told->detail + used, sizeof(told->detail) - used, "%sproducts by %s", used ? ", " : "",
             p->state ? p->place->name(p->state) : "");
    told->simulated |= p->state && p->place->simulated && p->place->simulated(p->state);
}

/* ---- The work ---- */

static int run_layers(struct products *p, const struct step_op *op, const _Atomic int *stop,
                      char *why)
{
    struct step_product products[STEP_PRODUCTS_MOST];
    int err = op->kind == STEP_UPDATE ? p->place->update(p->state, why) : 0;

    for (unsigned l = 0; l < op->n_layers; l++) {
        /* a backward pass begins at its last layer */
        unsigned at = op->kind == STEP_FORWARD ? l : op->n_layers - 1 - l;
        const struct step_layer *layer = &p->layers[op->first_layer + at];
        unsigned n = step_products(&p->spec, layer, (enum step_kind)op->kind, products);
        for (unsigned k = 0; k < n && !err && !atomic_load(stop); k++)
            err = p->place->run(p->state, find(p, &products[k].shape), products[k].count, why);
    }
    return err || !p->place->wait ? err : p->place->wait(p->state, why);
}

int products_run(struct products *p, const struct step_op *op, double times,
                 const _Atomic int *stop, char why[GEMM_WHY_BYTES])
{
    int err = p->is_ready || !p->state ? 0 : p->place->ready(p->state, why);

    p->is_ready |= !err && p->state;
    if (err || !p->state)
        return err;
    uint64_t begin_ns = clock_now_ns();
    err = run_layers(p, op, stop, why);
    double once_ns = (double)(clock_now_ns() - begin_ns);
    while (!err && !atomic_load(stop) &&
           (double)(clock_now_ns() - begin_ns) < (times - 0.5) * once_ns)
        err = run_layers(p, op, stop, why);
    return err;
}

int products_check(struct products *p, char why[GEMM_WHY_BYTES])
{
    int err = 0;

    for (size_t i = 0; p->is_ready && i < p->n && !err; i++) {
        const struct gemm_shape *s = &p->shapes[i];
        struct gemm_check c = {0};
        err = p->place->check(p->state, i, &c, why);
        if (err == -EBADMSG)
            gemm_why(why, err,
                     "a product of %llu x %llu x %llu: entry (%zu, %zu) is %.9g, not %.9g",
                     (unsigned long long)s->m, (unsigned long long)s->n, (unsigned long long)s->k,
                     c.row, c.column, c.got, c.want);
        else if (err && !why[0])
            gemm_why(why, err, "the products cannot be checked: %s", strerror(-err));
    }
    return err;
}
