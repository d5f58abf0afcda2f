/* SPDX-License-Identifier: Apache-2.0 */
/* Products on a GPU: see library.h. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "benches/gemm/library.h"
#include "core/alloc.h"
#include "core/backend.h"
#include "core/hw/gpu.h"
#include "core/hw/gpu_kernels.h"
#include "core/search.h"

/*
 * ---- Matrix products on a GPU by its module's library (cuBLASLt): operands in its memory, its own
 * events for a clock. Two libraries by name: what the library's heuristics choose, which is what a
 * user gets, and the fastest of all that they answer. ----
 */

#define CANDIDATES       32         /* of the heuristics' answers */
#define CONTEST_NS       2000000000 /* for choosing among them */
#define CONTEST_BRIEF_NS 100000000
#define CONTEST_EACH_NS  2000000.0 /* of one time at least, but for long products */
#define CONTEST_MOST     64        /* products in it */
#define ROOM_SHARE       0.9       /* of free memory: the driver keeps some for itself */
#define KERNELS_EACH     3         /* of a product: split sums add a fill and a reduction */

struct gpu_run {
    struct gemm_run base;
    struct gpu *gpu;
    struct gpu_gemm *gemm;
    struct gpu_timer timer;
    struct gpu_operands operands;
    bool planned;
    unsigned candidate, tried, answers;
    double gap;           /* of the contest */
    const unsigned *ways; /* candidates of the contest by its numbers; NULL: the same */
    bool decided;         /* `candidate` is the outcome of a whole contest, here or earlier */
    bool kept;            /* ... earlier */
    uint64_t products;    /* so far: number i takes set i mod sets */
};

static int gpu_failed(const struct gpu_run *r, int err)
{
    return point_gpu_failed(r->base.pt, r->gpu, err);
}

static const struct gpu_gemm_ops *gemm_ops(const struct gpu_run *r)
{
    return gpu_ops(r->gpu)->gemm;
}

static int open_library(struct gpu_run *r)
{
    struct point *pt = r->base.pt;

    if (!gemm_ops(r))
        return point_reason(pt, -ENODEV,
                            "the GPU module has no library for matrix products: build it where "
                            "cublasLt.h is");
    int err = gemm_ops(r)->open(r->gpu, &r->gemm);
    if (err)
        return gpu_failed(r, err);
    if (!strcmp(gpu_ops(r->gpu)->origin(),
                "simulated")) /* this library may be, where the driver is not */
        pt->origin = "simulated";
    point_column(pt, "kernel", "%s", gemm_ops(r)->version(r->gemm));
    err = gpu_timer_open(&r->timer, r->gpu, pt->watch);
    return err ? gpu_failed(r, err) : 0;
}

static int gpu_open(struct point *pt, const struct gemm_request *request, struct gemm_run **run)
{
    struct gpu_run *r = xcalloc(1, sizeof(*r));

    *run = &r->base;
    r->base = (struct gemm_run){.pt = pt, .request = *request};
    int err = point_gpu(pt, request->index, &r->gpu);
    if (err)
        return err;
    point_option(pt, "device", "%s:%u", gpu_ops(r->gpu)->name, request->index);
    point_column(pt, "address", "%s", gpu_base(r->gpu)->facts.address);
    return open_library(r);
}

static void gpu_end(struct gemm_run *run)
{
    struct gpu_run *r = (struct gpu_run *)run;

    if (r->planned)
        gemm_ops(r)->unplan(r->gemm);
    r->planned = false;
    gpu_operands_close(&r->operands);
}

static void gpu_close(struct gemm_run *run)
{
    struct gpu_run *r = (struct gpu_run *)run;

    if (r->gpu)
        gpu_timer_close(&r->timer);
    if (r->gemm)
        gemm_ops(r)->close(r->gemm);
    free(r);
}

/* Room for at least one set of operands, said before anything is allocated. */
static int open_operands(struct gpu_run *r)
{
    const struct gemm_request *q = &r->base.request;
    struct point *pt = r->base.pt;
    const struct gpu_operands_config config = {.form = q->form,
                                               .shape = r->base.shape,
                                               .b_is_nk = q->b_is_nk,
                                               .data = q->data,
                                               .seed = pt->common->seed};
    uint64_t free_bytes = 0, set_bytes, l2_bytes = gpu_base(r->gpu)->facts.l2_bytes;
    int err = gpu_ops(r->gpu)->free_bytes(r->gpu, &free_bytes);

    if (err)
        return gpu_failed(r, err);
    uint64_t sets = gpu_operands_sets(&config, l2_bytes,
                                      (uint64_t)(ROOM_SHARE * (double)free_bytes), &set_bytes);
    if (!sets)
        return point_reason(pt, -EOPNOTSUPP,
                            "needs %.2f GB of GPU memory; %.2f GB are free, of which %.0f %% are "
                            "taken at most",
                            (double)set_bytes * 1e-9, (double)free_bytes * 1e-9, 100 * ROOM_SHARE);
    err = gpu_operands_open(&r->operands, r->gpu, r->timer.stream, &config, sets);
    return err ? gpu_failed(r, err) : 0;
}

static int queue_product(void *arg, struct gpu_stream *stream, uint64_t i)
{
    struct gpu_run *r = arg;
    const struct gpu_operands *o = &r->operands;
    uint64_t set = (r->products + i) % o->sets;

    return gemm_ops(r)->run(r->gemm, r->candidate, stream, gpu_operands_a(o, set),
                            gpu_operands_b(o, set), gpu_operands_c(o, set));
}

static int gpu_sample(struct gemm_run *run, uint64_t inner, uint64_t *ns)
{
    struct gpu_run *r = (struct gpu_run *)run;
    int err = gpu_timer_run(&r->timer, queue_product, r, inner, KERNELS_EACH, ns);

    r->products += inner;
    return err ? gpu_failed(r, err) : 0;
}

/* Once without a held stream: drivers load a kernel when it is first used, and wait for the device
 * to do so, which a held stream would keep from ever being idle. */
static int run_loose(struct gpu_run *r)
{
    int err = queue_product(r, r->timer.stream, 0);

    r->products++;
    return err ? err : gpu_ops(r->gpu)->stream_wait(r->timer.stream);
}

/* A run of the contest: the time of one product. */
static int time_candidate(void *arg, unsigned i, uint64_t passes, struct search_run *run)
{
    struct gpu_run *r = arg;
    uint64_t all_ns = 0, n = 1;

    (void)passes;
    r->candidate = r->ways ? r->ways[i] : i;
    int err = run_loose(r);
    if (err && err != -ENOMEM && !gpu_base(r->gpu)->lost)
        return -EOPNOTSUPP; /* an answer of the heuristics that does not run: the others may */
    if (!err)
        err = gpu_timer_run(&r->timer, queue_product, r, 1, KERNELS_EACH, &all_ns);
    if (err)
        return err;
    double fit = CONTEST_EACH_NS / (double)all_ns;
    if (fit > 1) { /* too short to tell */
        n = fit > CONTEST_MOST ? CONTEST_MOST : (uint64_t)fit + 1;
        err = gpu_timer_run(&r->timer, queue_product, r, n, KERNELS_EACH, &all_ns);
    }
    r->products += n;
    *run = (struct search_run){.cost = (double)all_ns / (double)n, .ns = all_ns};
    return err;
}

static int hold_contest(struct gpu_run *r, unsigned n, bool brief, struct search_result *result)
{
    const struct search contest = {.policy = &search_contest,
                                   .n = n,
                                   .run = time_candidate,
                                   .arg = r,
                                   .budget_ns = brief ? CONTEST_BRIEF_NS : CONTEST_NS};
    int err = search_run(&contest, result);

    return err ? gpu_failed(r, err) : 0;
}

static const char *candidate_text(const struct gpu_run *r, unsigned i, char text[20])
{
    snprintf(text, 20, "%016llx", (unsigned long long)gemm_ops(r)->identity(r->gemm, i));
    return text;
}

/* Takes what an earlier launch chose, if it is no slower here than the heuristics' choice. Leaves
 * r->decided false if there is no such choice. */
static int take_kept(struct gpu_run *r, unsigned n)
{
    /* The candidate of this text; n: none. */
    unsigned kept = 0;
    char one[20];

    while (kept < n && strcmp(candidate_text(r, kept, one), r->base.request.algorithm) != 0)
        kept++;
    unsigned ways[] = {0, kept};
    struct search_result result = {.best = 1};
    int err = 0;

    if (!strcmp(r->base.request.algorithm, "auto"))
        return 0;
    if (kept == n)
        return point_reason(r->base.pt, 0,
                            "cuBLASLt does not offer the algorithm of an earlier launch here: "
                            "searched again");
    r->ways = ways;
    if (kept)
        err = hold_contest(r, 2, false, &result);
    r->ways = NULL;
    if (!err && !result.best && result.tried < 2 && !result.refused) /* no time to compare them */
        result = (struct search_result){.best = 1, .gap = NAN};
    if (err || !result.best)
        return err ? err
                   : point_reason(r->base.pt, 0,
                                  "the algorithm of an earlier launch is not faster here than the "
                                  "heuristics' choice: searched again");
    r->candidate = kept;
    r->gap = kept ? result.gap : 0;
    r->kept = r->decided = true;
    if (!kept && (err = run_loose(r)))
        gpu_failed(r, err);
    return err;
}

static int choose_candidate(struct gpu_run *r, unsigned n, bool brief)
{
    struct search_result result;
    int err = brief ? 0 : take_kept(r, n);

    if (err || r->decided)
        return err;
    err = hold_contest(r, n, brief, &result);
    if (err)
        return err;
    r->candidate = result.best;
    r->tried = result.tried;
    r->gap = result.gap;
    r->decided = result.stop == SEARCH_DECIDED && result.steady;
    return 0;
}

static int plan(struct gpu_run *r, unsigned *n)
{
    const struct gemm_request *q = &r->base.request;
    const struct gpu_gemm_problem problem =
        gpu_operands_problem(q->form, &r->base.shape, q->b_is_nk);

    r->planned = true;
    int err = gemm_ops(r)->plan(r->gemm, &problem, q->library->candidates, n);
    return err ? gpu_failed(r, err) : 0;
}

static void show_gap(const struct gpu_run *r)
{
    struct point *pt = r->base.pt;
    char choice[160], first[160], of[48];

    if (!isnan(r->gap))
        point_column(pt, "gap_percent", "%.2f", 100 * r->gap);
    if (r->kept) /* the launch that chose has said how */
        return;
    point_column(pt, "candidates", "%u", r->tried);
    if (r->tried == r->answers)
        snprintf(of, sizeof(of), "the best of %u", r->tried);
    else
        snprintf(of, sizeof(of), "the best of the %u of %u that ran in time", r->tried, r->answers);
    if (isnan(r->gap))
        point_reason(pt, 0, "%s: the heuristics' choice itself does not run", of);
    else if (r->candidate)
        point_reason(pt, 0, "%s, %.2g %% over the heuristics' choice: %s, not %s", of, 100 * r->gap,
                     gemm_ops(r)->describe(r->gemm, r->candidate, choice, sizeof(choice)),
                     gemm_ops(r)->describe(r->gemm, 0, first, sizeof(first)));
    else
        point_reason(pt, 0, "the heuristics' choice is %s", of);
}

static int gpu_begin(struct gemm_run *run, const struct gemm_shape *shape, bool brief)
{
    struct gpu_run *r = (struct gpu_run *)run;
    unsigned n = 0;
    char text[20];
    int err;

    run->shape = *shape;
    r->candidate = 0;
    if ((err = plan(r, &n)) || (err = open_operands(r)))
        return err;
    r->answers = n;
    r->tried = 1;
    r->gap = 0;
    r->kept = r->decided = false;
    if (n > 1)
        err = choose_candidate(r, n, brief);
    else if ((err = run_loose(r)))
        gpu_failed(r, err);
    if (err)
        return err;
    /* Too small a memory for operands that L2 cannot hold: the row must not pass for a usual one. */
    uint64_t bytes = gpu_operands_bytes(&r->operands), l2 = gpu_base(r->gpu)->facts.l2_bytes;
    if (bytes - bytes / r->operands.sets < GPU_OPERANDS_CACHES * l2)
        point_reason(r->base.pt, 0,
                     "only %llu sets of operands fit into the memory: L2 may hold part of them",
                     (unsigned long long)r->operands.sets);
    if (run->request.library->candidates > 1 && !brief) {
        show_gap(r);
        if (r->decided) /* not where the contest was cut short or disturbed */
            point_column(r->base.pt, "algorithm", "%s", candidate_text(r, r->candidate, text));
    }
    r->products = 0;
    err = gpu_operands_poison(&r->operands); /* results of others than the choice are none of its */
    if (!err)
        err = gpu_ops(r->gpu)->stream_wait(r->timer.stream);
    return err ? gpu_failed(r, err) : 0;
}

static int gpu_check(struct gemm_run *run, bool spoil, struct gemm_check *out)
{
    struct gpu_run *r = (struct gpu_run *)run;
    uint64_t last = (r->products - 1) % r->operands.sets;
    int err = gpu_operands_check(&r->operands, last, spoil, out);

    return err && err != -EBADMSG && err != -ENOMEM ? gpu_failed(r, err) : err;
}

static int gpu_evidence(struct gemm_run *run)
{
    struct gpu_run *r = (struct gpu_run *)run;
    struct point *pt = run->pt;
    const struct gpu_facts *facts = &gpu_base(r->gpu)->facts;
    char text[160];

    snprintf(pt->evidence, sizeof(pt->evidence),
             "%s at %s: %llu products on %llu sets of operands, %.3g GB; L2 holds %.3g MB; %s",
             facts->name, facts->address, (unsigned long long)r->products,
             (unsigned long long)r->operands.sets, (double)gpu_operands_bytes(&r->operands) * 1e-9,
             (double)facts->l2_bytes * 1e-6,
             gemm_ops(r)->describe(r->gemm, r->candidate, text, sizeof(text)));
    if (*gpu_timer_disagreement(&r->timer, text, sizeof(text)))
        point_reason(pt, 0, "%s", text);
    return 0;
}

static unsigned gpu_units(const struct gemm_run *run)
{
    return gpu_base(((const struct gpu_run *)run)->gpu)->facts.sms;
}

/* The library as the first GPU has it; `text` is for its words. */
static struct backend library_backend(struct gpus *gpus, char text[GPU_ERROR_BYTES])
{
    struct backend b = {.why = ""};
    const struct gpu_ops *ops = gpus_module(gpus, &b.why);
    struct gpu_gemm *gemm = NULL;
    struct gpu *gpu;

    if (!ops)
        return b;
    b.why = text;
    b.simulated = !strcmp(ops->origin(), "simulated");
    snprintf(text, GPU_ERROR_BYTES, "there is no GPU");
    if (!ops->gemm) {
        b.why = "the GPU module was built without cublasLt.h";
    } else if (!gpus_get(gpus, 0, &gpu, text, GPU_ERROR_BYTES)) {
        bool opens = !ops->gemm->open(gpu, &gemm);
        snprintf(text, GPU_ERROR_BYTES, "%s", opens ? ops->gemm->version(gemm) : gpu_error(gpu));
        b.state = opens ? BACKEND_PRESENT : BACKEND_ABSENT;
        b.version = opens ? text : NULL;
        b.what = opens ? ops->gemm->file(gemm) : NULL;
        b.why = opens ? NULL : text;
    }
    if (gemm)
        ops->gemm->close(gemm);
    return b;
}

static void gpu_backends(backend_say_fn *say, void *arg)
{
    struct gpus *gpus = gpus_open();
    char text[GPU_ERROR_BYTES];
    struct backend library = library_backend(gpus, text);

    for (const struct gemm_library *const *at = gemm_libraries; *at; at++) {
        library.name = (*at)->name;
        if ((*at)->gpu)
            say(arg, &library);
    }
    gpus_say_on(gpus, say, arg);
    gpus_close(gpus);
}

const struct gemm_where gemm_on_gpu = {
    .name = "a GPU",
    .gpu = true,
    .forms = gemm_gpu_forms,
    .transposes = true,
    .open = gpu_open,
    .close = gpu_close,
    .begin = gpu_begin,
    .end = gpu_end,
    .sample = gpu_sample,
    .check = gpu_check,
    .evidence = gpu_evidence,
    .units = gpu_units,
    .backends = gpu_backends,
};

const struct gemm_library gemm_cublaslt = {
    .name = "cublaslt",
    .gpu = true,
    .dtypes = (1u << GEMM_DTYPES) - 1,
    .candidates = 1,
};

const struct gemm_library gemm_cublaslt_best = {
    .name = "cublaslt-best",
    .gpu = true,
    .dtypes = (1u << GEMM_DTYPES) - 1,
    .candidates = CANDIDATES,
};
