/* SPDX-License-Identifier: Apache-2.0 */
/* What a GB on the wires costs: the bytes are those that our own backends say that they sent. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/ranks/work_state.h"
#include "tests/unit/session_fixture.h"

#define ELEMENTS   (3u << 14) /* in blocks for 2, 3 and 4 */
#define OPERATIONS 3          /* since the mark: whole() */
#define BARRIERS   0.01       /* that their messages may add */

static void need_session(const struct fixture *f, int err)
{
    if (err)
        fail_msg("%s", session_error(f->s));
}

/* All ranks' bytes of all operations, as each tells what it sent to each device. */
static double told_gb(const struct fixture *f, unsigned n)
{
    double bytes = 0;

    for (unsigned i = 0; i < n; i++) {
        const struct collective_told *told = session_told(f->s, i);
        assert_non_null(told);
        for (uint32_t k = 0; k < told->n_flows; k++)
            bytes += told->flows[k].out_bytes;
    }
    return bytes / 1e9;
}

/* The same by the row: of threads that ran for a second. */
static double row_gb(const struct fixture *f, unsigned n)
{
    static const struct bench columns = {.columns = collective_bench_columns};
    struct collective_work *w = calloc(1, sizeof(*w));
    struct collective_params params = {0};
    struct point pt = {.bench = &columns, .params = &params};
    double cost = NAN;

    assert_non_null(w);
    w->world = f->w;
    w->session = f->s;
    w->point = f->point;
    w->n = n;
    memcpy(w->members, all_ranks, n * sizeof(*w->members));
    w->vector_bytes = f->point.count * collective_type_bytes(f->point.type);
    w->operations = OPERATIONS;
    w->each[0].cpu_ns = 1e9;
    rows_finish(&pt, w);
    for (const struct figure *figure = pt.figures; figure; figure = figure->next)
        if (!strcmp(figure->metric, "cpu_per_gb"))
            cost = figure->values[0];
    figures_release(&pt);
    free(w);
    return 1 / cost;
}

static void measure(struct fixture *f, const char *backend, unsigned op, unsigned n)
{
    char why[256];

    snprintf(f->point.backend, sizeof(f->point.backend), "%s", backend);
    f->point.op = op;
    if (collective_find(backend)->supports(&f->point, n, why, sizeof(why)))
        fail_msg("%s, %s: %s", backend, collective_ops_names[op], why);
    need_session(f, begin(f, n));
    need_session(f, run(f, 2));
    need_session(f, session_mark(f->s));
    need_session(f, run(f, OPERATIONS));
    need_session(f, session_end(f->s));
    double told = told_gb(f, n), row = row_gb(f, n);
    if (!(told >= row && told <= row * (1 + BARRIERS)))
        fail_msg("%s of %u by %s: %.9g GB were sent, the row counts %.9g", collective_ops_names[op],
                 n, backend, told, row);
    session_finish(f->s);
}

/* Of each operation by what sends each byte once. */
static void test_wire_bytes(void **state)
{
    static const struct session_service service = {.find = collective_find};
    char error[256] = "";
    struct fixture f = {0};

    (void)state;
    if (world_fork(&f.w, 4, session_serve, (void *)&service, error, sizeof(error)))
        fail_msg("%s", error);
    assert_int_equal(topo_open(&f.topo), 0);
    assert_int_equal(session_open(&f.s, f.w, f.topo, 0), 0);
    f.point = (struct collective_point){
        .type = COLLECTIVE_F32, .count = ELEMENTS, .seed = 17, .transport = "shm"};
    for (unsigned op = 0; op < COLLECTIVE_OPS; op++)
        for (unsigned n = 2; n <= 4; n++)
            measure(&f, "ring", op, n);
    measure(&f, "halving", COLLECTIVE_ALLREDUCE, 4);
    measure(&f, "halving", COLLECTIVE_BROADCAST, 4);
    stop(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_wire_bytes)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
