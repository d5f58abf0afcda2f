/* SPDX-License-Identifier: Apache-2.0 */
/* gemm: dense matrix products by the libraries that people use, against what the unit could do.
 *
 * Timed: sample() -> the place's sample(): host_sample() in host_blas.c, which runs the library's
 * product between two readings of the clock, or gpu_sample() in gpu_blas.c, which queues the
 * library's products between two events. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "benches/gemm/library.h"
#include "core/alloc.h"
#include "core/bench/bench.h"
#include "core/hw/place.h"
#include "core/hw/topo.h"

#define DEFAULT_SIZE 1024

enum fault { FAULT_NONE, FAULT_ENTRY };

struct params {
    struct gemm_asked ask;
    int fault;
    uint64_t size, search_ns; /* 0: not given */
    struct gemm_shape shape;  /* m 0: not given */
};

struct state {
    const struct gemm_where *where;
    struct gemm_run *run;
};

static void close_pool(struct point *ctx)
{
    gemm_pool_release(ctx->bench_state);
}

static void list_backends(backend_say_fn *say, void *arg)
{
    for (const struct gemm_where *const *at = gemm_wheres; *at; at++)
        (*at)->backends(say, arg);
}

/* Each device has its own types. */
static int default_types(struct opts *o)
{
    const struct opt_values *devices = opts_values(o, "device");
    char text[80];

    gemm_types_text(devices->texts, devices->n, text, sizeof(text));
    return opts_default(o, "dtype", text[0] ? text : NULL);
}

/* In a sweep over devices and libraries, a library that is of another device says nothing. */
static bool wanted(struct point *pt)
{
    const struct params *p = pt->params;
    const struct gemm_where *where = NULL;
    char error[160];
    unsigned index;

    return !p->ask.library ||
           gemm_where_find(p->ask.device, &where, &index, error, sizeof(error)) ||
           gemm_libraries[p->ask.library - 1]->gpu == where->gpu;
}

static void show_shape(struct point *pt, const struct gemm_shape *shape)
{
    point_column(pt, "m", "%llu", (unsigned long long)shape->m);
    point_column(pt, "n", "%llu", (unsigned long long)shape->n);
    point_column(pt, "k", "%llu", (unsigned long long)shape->k);
    pt->series[0].quantity = gemm_operations(shape);
}

/* What can be said of the shape before anything is tried. */
static int read_shape(struct point *pt, struct gemm_shape *shape)
{
    const struct params *p = pt->params;
    uint64_t size = p->size ? p->size : DEFAULT_SIZE;

    if ((p->size != 0) + (p->shape.m != 0) + (p->search_ns != 0) > 1)
        return point_reason(pt, -EINVAL,
                            "--size, --shape and --search exclude each other: give one");
    *shape = p->shape.m ? p->shape : (struct gemm_shape){size, size, size};
    if (!p->search_ns)
        show_shape(pt, shape);
    return 0;
}

static int possible(struct point *pt)
{
    const struct params *p = pt->params;
    const struct gemm_where *where;
    struct gemm_shape shape;
    char ignored[160];
    unsigned index;
    int err = read_shape(pt, &shape);

    if (err || gemm_where_find(p->ask.device, &where, &index, ignored, sizeof(ignored)) ||
        where->gpu)
        return err;
    return point_topo(pt) ? gemm_has_cpus(pt, (unsigned)p->ask.threads) : -EIO;
}

static int setup(struct point *pt)
{
    const struct params *p = pt->params;
    struct state *s = pt->state = xcalloc(1, sizeof(*s));
    struct gemm_request q = {0};
    struct gemm_shape shape = {0};
    char error[160] = "";
    int err;

    point_series(pt, "throughput", gemm_dtypes[p->ask.dtype].unit, 0);
    if ((err = read_shape(pt, &shape)))
        return err;
    if (!point_topo(pt))
        return -EIO;
    err = gemm_where_find(p->ask.device, &s->where, &q.index, error, sizeof(error));
    if (err)
        return point_reason(pt, err, "%s", error);
    if ((err = gemm_resolve(pt, &p->ask, s->where, &q)) ||
        (err = s->where->open(pt, &q, &s->run)) ||
        (err = s->where->limit ? s->where->limit(s->run) : 0) ||
        (err = p->search_ns ? gemm_seek(s->where, s->run, p->search_ns, &shape) : 0))
        return err;
    show_shape(pt, &shape);
    return gemm_begin(s->where, s->run, &shape, false);
}

static int sample(struct point *pt, uint64_t inner, uint64_t *ns)
{
    const struct state *s = pt->state;

    return s->where->sample(s->run, inner, ns);
}

static int check(struct point *pt)
{
    const struct params *p = pt->params;
    const struct state *s = pt->state;
    struct gemm_check c;
    int err = s->where->check(s->run, p->fault == FAULT_ENTRY, &c);

    if (err == -EBADMSG)
        point_reason(pt, 0, "%zu of %zu entries are wrong: C[%zu][%zu] is %.9g, not %.9g +/- %.2g",
                     c.wrong, c.entries, c.row, c.column, c.got, c.want, c.bound);
    return err;
}

static int evidence(struct point *pt)
{
    const struct state *s = pt->state;

    return s->where->evidence(s->run);
}

static void teardown(struct point *pt)
{
    struct state *s = pt->state;

    if (s && s->run) {
        s->where->end(s->run);
        s->where->close(s->run);
    }
    free(s);
}

static const char *default_threads(void)
{
    static char text[16] = "1";
    struct topo *topo;

    if (!topo_open(&topo)) {
        snprintf(text, sizeof(text), "%u", topo_cores(topo));
        topo_close(topo);
    }
    return text;
}

static const char *const data_kinds[] = {"random", "zeros", NULL}; /* enum gpu_data */
static const char *const faults[] = {"none", "entry", NULL};

#define AT(field) .offset = offsetof(struct params, field)

static const struct opt_scope on_cpus = {.when = "device=" PLACES_OF_HOST,
                                         .what = "products on the host's CPUs"};
static const struct opt_scope by_onednn = {.when = "device=" PLACES_OF_HOST " library=auto,onednn",
                                           .what = "--library onednn on the host's CPUs"};
static const struct opt_scope by_openblas = {.when =
                                                 "device=" PLACES_OF_HOST " library=auto,openblas*",
                                             .what = "--library openblas on the host's CPUs"};

static const struct opt_scope by_contest = {.when =
                                                "device=" PLACES_OF_GPUS " library=cublaslt-best",
                                            .what = "--library cublaslt-best on a GPU"};

static const struct opt options[] = {
    {.name = "device",
     OPT_READ(OPT_SWEPT | OPT_PLACE, ask.device, "host", "host|cuda[:N]", place_read_device),
     .expand = place_words,
     .help = "where to multiply: this machine's CPUs, or a GPU; gpus: all of them"},
    {.name = "dtype",
     .letter = 'd',
     OPT_WORD(OPT_SWEPT, ask.dtype, "f32,f64,bf16,int8", gemm_dtype_names),
     .help = "element type; default with --device cuda: all types. int8 is u8 x s8 on CPUs, s8 x "
             "s8 on GPUs; e5m2 is e5m2 x e4m3, because no unit multiplies two e5m2"},
    {.name = "accumulate",
     OPT_WORD(OPT_SWEPT, ask.sums, "default", gemm_sums_names),
     .help = "type of the sums. default: s32 for int8, f64 for f64, fast for e4m3 and e5m2, else "
             "f32. fast: f32 with fewer bits on some units, as frameworks use it. f16: only with "
             "--dtype f16"},
    {.name = "layout",
     OPT_WORD(OPT_SWEPT, ask.layout, "auto", gemm_layout_names),
     .help = "storage of B. nn: k x n; nt: n x k, as the weights of a model; auto: nt for 8-bit "
             "types on a GPU, else nn"},
    {.name = "data",
     OPT_WORD(OPT_SWEPT, ask.data, "random", data_kinds),
     .help = "values of A and B. With zeros, a GPU needs less power, and runs faster than with any "
             "real data"},
    {.name = "library",
     .letter = 'l',
     OPT_WORD(OPT_SWEPT, ask.library, "auto", gemm_library_names),
     .left_by = "auto",
     .help = "library. auto: onednn, openblas for f64, cublaslt on a GPU. cublaslt-best: the "
             "fastest algorithm that the heuristics propose"},
    {.name = "threads",
     .letter = 't',
     OPT_NUMBER(OPT_U64, OPT_SWEPT, ask.threads, NULL, 1, 4096),
     .make_default = default_threads,
     .scope = &on_cpus,
     .left_by = "",
     .help = "number of threads, each bound to a CPU, different cores first; default: the number "
             "of cores in the affinity mask"},
    {.name = "size",
     .letter = 's',
     OPT_NUMBER(OPT_U64, OPT_LIST, size, NULL, 1, GEMM_DIM_MAX),
     .help = "square products, m = n = k; default: 1024, unless --shape or --search is given"},
    {.name = "shape",
     OPT_READ(OPT_LIST, shape, NULL, "MxNxK", gemm_shape_parse),
     .help = "products of A (m x k) and B (k x n), instead of --size: 2048x6144x4096"},
    {.name = "search",
     OPT_OF(OPT_DURATION, OPT_COLUMN, search_ns, NULL),
     .help = "search for the shape with the highest rate for at most this time, then measure it"},
    {.name = "algorithm",
     OPT_OF(OPT_STRING, OPT_KEPT, ask.algorithm, "auto"),
     .arg = "auto|CHOICE",
     .scope = &by_contest,
     .help =
         "of cublaslt-best: the value of an earlier row's column algorithm, instead of a search. "
         "If cuBLASLt does not offer it here, or it is slower than the heuristics' choice, the "
         "search runs all the same"},
    {.name = "onednn-file",
     OPT_OF(OPT_STRING, OPT_SWEEP, ask.files[GEMM_FILE_ONEDNN], NULL), /* for points that take it */
     .arg = "FILE",
     .scope = &by_onednn,
     .help = "use this libdnnl.so, not the system's"},
    {.name = "openblas-file",
     OPT_OF(OPT_STRING, OPT_SWEEP, ask.files[GEMM_FILE_OPENBLAS], NULL), /* the same */
     .arg = "FILE",
     .scope = &by_openblas,
     .help = "use this libopenblas.so, not the system's"},
    {.name = "inject",
     OPT_WORD(OPT_HIDDEN, fault, "none", faults),
     .help = "spoil the result, to test the check"},
    {.name = NULL},
};

const struct bench bench = {
    .name = "gemm",
    .help = "dense matrix products (GEMM), by the usual libraries",
    .about = "Times C = A B on row-major matrices of random values. Only the library's call is\n"
             "timed. The set-up makes oneDNN's primitive, reorders B into its layout (as\n"
             "frameworks do with weights), and asks cuBLASLt's heuristics. OpenBLAS packs A\n"
             "and B inside of each call. A product counts as 2mnk operations.\n"
             "\n"
             "On CPUs the limit is measured by a loop that only multiplies and adds registers.\n"
             "On a GPU, the GPU's own events time the calls, and operands rotate so that its\n"
             "cache cannot hold them. C is compared with f64 at up to 1024 entries; int8 must\n"
             "be exact.",
    .needs = "",
    .options = options,
    .params_size = sizeof(struct params),
    .rows = &bench_rows,
    .defaults = default_types,
    .wanted = wanted,
    .possible = possible,
    .setup = setup,
    .sample = sample,
    .check = check,
    .evidence = evidence,
    .teardown = teardown,
    .backends = list_backends,
    .bench_state_size = sizeof(struct gemm_pool),
    .close = close_pool,
    .sample_ns = 5 * BENCH_SAMPLE_DEFAULT, /* threads start and end some us apart */
};
