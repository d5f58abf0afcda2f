/* SPDX-License-Identifier: Apache-2.0 */
/* plumb forecast: the command. See forecast.h. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/program.h"
#include "harness/command.h"
#include "harness/forecast/forecast.h"
#include "harness/forecast/offer.h"
#include "harness/report/described.h"
#include "harness/report/report.h"

#define NS 1e-9

struct options {
    const char *model, *out, *dtype, *over, *swap, *price;
    double batch;
    uint64_t sequence, dp, tp, pp, ep, micro, zero, bucket, per_node, nodes, compute_ns, memory;
    int update, core;
    bool alone, json, help;
};

static const char *const core_names[] = {"unknown", "full", NULL};

#define AT(member) offsetof(struct options, member)

static const struct opt table[] = {
    {OPTION("model", OPT_STRING, model, "NAME", "the model: a file of configs/models/, or a path"),
     .letter = 'm'},
    {OPTION("batch", OPT_DOUBLE, batch, NULL, "samples of one data-parallel rank in a step"),
     .def = "1"},
    {OPTION("seq", OPT_U64, sequence, NULL, "tokens of a sequence; default: the model's")},
    {OPTION("dtype", OPT_STRING, dtype, "TYPE",
            "of products and gradients: f32, tf32, bf16, f16; default: the fastest measured")},
    {OPTION("dp", OPT_U64, dp, NULL,
            "data-parallel ranks of the answer; default: those of the largest number of nodes "
            "that has a forecast"),
     .min = 1, .max = 1u << 20},
    {OPTION("tp", OPT_U64, tp, NULL, "ranks that share each layer (tensor parallelism)"),
     .def = "1", .min = 1, .max = 1024},
    {OPTION("pp", OPT_U64, pp, NULL, "stages of a pipeline"), .def = "1", .min = 1, .max = 1024},
    {OPTION("micro", OPT_U64, micro, NULL, "micro-batches, into which the batch is cut"),
     .def = "1", .min = 1, .max = 65536},
    {OPTION("ep", OPT_U64, ep, NULL, "data-parallel ranks that experts are spread over"),
     .def = "1", .min = 1, .max = 65536},
    {OPTION("zero", OPT_U64, zero, NULL, "ZeRO: what the data-parallel ranks share: 1, 2, 3"),
     .def = "0", .max = 3},
    {OPTION("bucket", OPT_SIZE, bucket, NULL, "gradients that are summed at once"), .def = "25M"},
    {OPTION("no-overlap", OPT_FLAG, alone, NULL, "sums begin when the backward pass has ended")},
    {OPTION("update", OPT_CHOICE, update, NULL, "what updates the parameters"),
     .choices = model_update_names, .def = "adam"},
    {OPTION("compute", OPT_DURATION, compute_ns, NULL,
            "forward and backward pass of a step alone, of the whole model on one rank, in place "
            "of measured products; --tp and --pp divide it")},
    {OPTION("memory", OPT_SIZE, memory, NULL,
            "memory of a rank's device; default: as the runs tell, or the device that is swapped "
            "in")},
    {OPTION("nodes", OPT_U64, nodes, NULL, "numbers of nodes: 4,8 or 4..1024x2"), .letter = 'n',
     .flags = OPT_LIST, .min = 1, .max = 1u << 20, .def = "1..1024x2"},
    {OPTION("per-node", OPT_U64, per_node, NULL,
            "ranks of a node; default: as the sums were measured"),
     .min = 1, .max = 1024},
    {OPTION("over", OPT_STRING, over, "CONDITION",
            "rows of sums to use: 'backend=ring transport=tcp'; default: the most nodes, then "
            "the fastest")},
    {OPTION("core", OPT_CHOICE, core, NULL,
            "full: the network's core is known to carry all that the nodes send at once; else "
            "the interval allows for less"),
     .choices = core_names, .def = "unknown"},
    {OPTION("swap", OPT_STRING, swap, "PART=RATE,...",
            "with another network, products or memory: network=400Gb/s, network=100:400, "
            "products=gpu.mi300x (configs/hardware), memory=FILE:gpu.KEY")},
    {OPTION("price", OPT_STRING, price, "FILE",
            "samples for money and for energy of offers: a file such as examples/offers.yaml")},
    {OPTION("out", OPT_STRING, out, "DIR",
            "also write the report with the answer, and forecast/ with Markdown and plot"),
     .letter = 'o'},
    {OPTION("json", OPT_FLAG, json, NULL, "print JSON")},
    {OPTION("help", OPT_FLAG, help, NULL, "show this text"), .letter = 'h'},
    {.name = NULL},
};

static void print_help(const struct opts *o)
{
    puts("plumb forecast: how fast a training job runs here, and on more nodes\n"
         "\n"
         "usage: plumb forecast RUN... --model NAME [options]\n"
         "\n"
         "The parts of a step come from runs: matrix products, memory, launches, and sums over "
         "ranks.\n"
         "What is missing is named, with the command that measures it. Beyond the largest number "
         "of\n"
         "ranks that was measured, the interval grows with each doubling. Beyond three doublings, "
         "and\n"
         "where the measured times change their law, there is no forecast.\n");
    opts_help(o, stdout);
    puts("\n"
         "examples:\n"
         "  plumb run node && plumb run cluster --hosts hosts      measure the parts\n"
         "  plumb forecast results/node-* results/cluster-* --model gpt2-xl --batch 4\n"
         "  plumb forecast RUN --model llama3-8b --zero 3 --nodes 4..64x2\n"
         "  plumb forecast RUN --model bert-large --compute 120ms --update none    compute is "
         "known\n"
         "  plumb forecast RUN --model gpt2-xl --price offers.yaml --out DIR       samples for "
         "money\n"
         "\n"
         "exit: 0 a forecast was made, 2 usage or no run found, 3 nothing could be forecast, 4 "
         "out of\n"
         "memory or a file could not be written, 5 a run folder is damaged");
}

struct asked {
    struct options options;
    const struct opts *o;
    struct report r;
    struct bench_list benches;
    struct model model;
    struct parts parts;
    struct forecast f;
    struct forecast_point points[FORECAST_POINTS_MAX];
    struct offers_made offers;
    double nodes[FORECAST_POINTS_MAX];
    size_t n, answer;
    char error[512];
};

static int fail(struct asked *a, int status, const char *text)
{
    snprintf(a->error, sizeof(a->error), "%s", text);
    return status;
}

static int load(struct asked *a)
{
    const char *runs[REPORT_RUNS_MAX];
    const struct options *options = &a->options;

    for (size_t i = 0; i < a->o->n_args; i++)
        runs[i] = a->o->args[i];
    const char *types[] = {"f32", "tf32", "bf16", "f16"};
    size_t type = 0;
    while (type < 4 && options->dtype && strcmp(options->dtype, types[type]) != 0)
        type++;
    if (type == 4)
        return fail(a, EXIT_USAGE, "--dtype is f32, tf32, bf16 or f16");
    if (model_load(options->model, &a->model, a->error, sizeof(a->error)))
        return EXIT_USAGE;
    int err = report_load(&a->r, runs, a->o->n_args, a->error, sizeof(a->error));
    if (err)
        return err == -EBADMSG ? EXIT_DAMAGED : err == -ENOENT ? EXIT_USAGE : EXIT_INCOMPLETE;
    bench_list_load(&a->benches);
    parts_read(&a->r, &a->benches, options->dtype, options->over, (double)options->per_node,
               &a->parts);
    parts_find_host(&a->parts, &a->model);
    return EXIT_GOOD;
}

static void set_job(struct asked *a)
{
    const struct options *o = &a->options;
    struct step_job job =
        forecast_job(&a->model, (enum model_update)o->update, parts_element_bytes(&a->parts));

    job.batch = o->batch;
    job.sequence = o->sequence ? o->sequence : job.sequence;
    job.tp = (double)o->tp;
    job.pp = (double)o->pp;
    job.ep = (double)o->ep;
    job.micro = (double)o->micro;
    job.zero = (unsigned)o->zero;
    job.bucket_bytes = (double)o->bucket;
    job.overlap = !o->alone;
    job.compute_s = o->compute_ns ? (double)o->compute_ns * NS : NAN;
    a->f =
        (struct forecast){.memory_bytes = (double)o->memory, .core_known = o->core > 0, .job = job};
    forecast_use(&a->f, &a->parts, (double)o->per_node);
}

static bool has_layer(const struct asked *a, bool split)
{
    for (size_t i = 0; i < a->model.n_layers; i++)
        if (split ? a->model.layers[i].split != MODEL_WHOLE
                  : a->model.layers[i].kind == MODEL_EXPERT)
            return true;
    return false;
}

static bool has_products(const struct asked *a)
{
    for (size_t i = 0; i < a->model.n_layers; i++)
        if (model_forward_flop(&a->model.layers[i], a->f.job.sequence) > 0)
            return true;
    return false;
}

/* What no job does, at any number of ranks. */
static int check_job(struct asked *a)
{
    const struct step_job *job = &a->f.job;

    if (!(job->batch >= 1) || job->batch != floor(job->batch))
        return fail(a, EXIT_USAGE, "a batch is a whole number of samples, from 1 on: --batch 1");
    if (a->options.sequence && !a->model.sequence)
        return fail(a, EXIT_USAGE, "the model has no sequences: leave --seq out");
    if (job->micro > 1 && fmod(job->batch, job->micro) != 0)
        return fail(a, EXIT_USAGE,
                    pool_text(&a->r.pool,
                              "a batch of %.6g cannot be cut into %.0f equal micro-batches: "
                              "--batch %.0f",
                              job->batch, job->micro, job->micro * ceil(job->batch / job->micro)));
    if (job->tp > 1 && !has_layer(a, true))
        return fail(a, EXIT_USAGE, "the model says of no layer how it is split: leave --tp out");
    if (job->ep > 1 && !has_layer(a, false))
        return fail(a, EXIT_USAGE, "the model has no experts: leave --ep out");
    if (job->ep > 1 && fmod((double)a->model.experts, job->ep) != 0)
        return fail(a, EXIT_USAGE,
                    pool_text(&a->r.pool,
                              "%.0f experts cannot be spread over %.0f ranks evenly: "
                              "--ep divides their number",
                              (double)a->model.experts, job->ep));
    if (!isnan(job->compute_s) && !has_products(a))
        return fail(a, EXIT_USAGE,
                    "no layer of the model has a product, by which --compute is divided");
    return EXIT_GOOD;
}

static int by_value(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;

    return (a > b) - (a < b);
}

/* Numbers of nodes that hold at least one replica of the model. */
static int list_nodes(struct asked *a)
{
    const struct opt_values *values = opts_values(a->o, "nodes");
    double ranks = (double)(a->options.tp * a->options.pp * a->options.ep);

    for (size_t i = 0; i < values->n; i++) {
        double nodes = strtod(values->texts[i], NULL);

        if (nodes * a->f.per_node < ranks)
            continue;
        if (a->n == FORECAST_POINTS_MAX)
            return fail(a, EXIT_USAGE, "too many numbers of nodes: at most 64");
        a->nodes[a->n++] = nodes;
    }
    /* Each once, the fewest first: rows say what holds "from" a number of nodes on. */
    size_t n = 0;

    qsort(a->nodes, a->n, sizeof(*a->nodes), by_value);
    for (size_t i = 0; i < a->n; i++)
        if (!n || a->nodes[i] != a->nodes[n - 1])
            a->nodes[n++] = a->nodes[i];
    a->n = n;
    return a->n ? EXIT_GOOD
                : fail(a, EXIT_USAGE,
                       "no number of nodes holds the model once: fewer stages, ranks of a layer or "
                       "of experts, or more nodes");
}

static int add_asked(struct asked *a)
{
    double ranks = (double)(a->options.dp * a->options.tp * a->options.pp);
    double nodes = ranks / a->f.per_node;
    size_t at = 0;

    while (at < a->n && a->nodes[at] < nodes)
        at++;
    if (!(ranks > 0) || (at < a->n && a->nodes[at] == nodes))
        return EXIT_GOOD;
    if (nodes != floor(nodes))
        return fail(a, EXIT_USAGE, "--dp: these ranks do not fill whole nodes: see --per-node");
    if (a->n == FORECAST_POINTS_MAX)
        return fail(a, EXIT_USAGE, "too many numbers of nodes: at most 64");
    memmove(&a->nodes[at + 1], &a->nodes[at], (a->n - at) * sizeof(*a->nodes));
    a->nodes[at] = nodes;
    a->n++;
    return EXIT_GOOD;
}

/* Prints the document or JSON, and writes the files that were asked for. */
static int put_out(struct asked *a, const struct document *d, const char *name, const char *title,
                   const struct plot *plot)
{
    struct document_terminal terminal = document_terminal_of(stdout);
    struct forecast_files files = {.folder = a->options.out,
                                   .name = name,
                                   .title = pool_text(&a->r.pool, "%s: %s", title, a->model.name),
                                   .plot = plot,
                                   .runs = (const char *const *)a->o->args,
                                   .n_runs = a->o->n_args};
    int err = !a->options.json   ? document_write_terminal(d, &terminal, stdout)
              : a->options.price ? offers_print_json(stdout, &a->offers)
                                 : forecast_print_json(stdout, &a->f, a->answer);

    if (!err && a->options.out)
        err = forecast_write(&a->r.pool, d, &files, a->error, sizeof(a->error));
    if (err && !*a->error)
        snprintf(a->error, sizeof(a->error), "%s", strerror(-err));
    return err ? EXIT_INCOMPLETE : EXIT_GOOD;
}

/* ---- offers ---- */

static int price_offers(struct asked *a)
{
    struct offers_made *made = &a->offers;
    const struct offer_source from = {.benches = &a->benches,
                                      .dtype = a->parts.dtype,
                                      .over = a->options.over,
                                      .per_node = (double)a->options.per_node};
    struct document *d = document_new(&a->r.pool);
    size_t given = 0;

    if (a->options.swap)
        return fail(a, EXIT_USAGE, "--swap beside --price: each offer has its own `swap`");
    if (a->options.dp || opts_values(a->o, "nodes")->given)
        return fail(a, EXIT_USAGE, "--dp, --nodes beside --price: each offer has its own `nodes`");
    int err = offers_read(&a->r.pool, a->options.price, &made->offers, a->error, sizeof(a->error));
    if (!err)
        err = offers_make(made, &a->r.pool, &a->f, &from, a->error, sizeof(a->error));
    if (err)
        return err == -EBADMSG ? EXIT_DAMAGED : EXIT_USAGE;
    offers_show(&a->r.pool, d, made);
    for (size_t i = 0; i < made->offers.n; i++)
        given += forecast_is_given(&made->cases[i].point);
    err = put_out(a, d, "offers", "Offers", NULL);
    return err ? err : given ? EXIT_GOOD : EXIT_UNDECIDED;
}

static int work(struct asked *a)
{
    int status = load(a);

    if (!status) {
        set_job(a);
        status = check_job(a);
    }
    if (!status && a->options.swap) {
        status = forecast_swap_read(&a->r.pool, &a->parts, a->options.swap, &a->f.swap, a->error,
                                    sizeof(a->error))
                     ? EXIT_USAGE
                     : EXIT_GOOD;
        if (!status && a->f.swap.times[SWAP_PRODUCTS] > 0 && a->options.compute_ns)
            status = fail(a, EXIT_USAGE, "--swap products changes nothing beside --compute");
    }
    if (!status && a->options.price)
        return price_offers(a);
    if (!status)
        status = list_nodes(a);
    if (!status)
        status = add_asked(a);
    if (status)
        return status;
    if (forecast_make(&a->f, a->nodes, a->points, a->n))
        return fail(a, EXIT_USAGE, "this model cannot be divided so: fewer stages");
    /* The answer is of the asked number of ranks, which becomes a point of its own; else of the
     * most nodes that have one. */
    double ranks = (double)(a->options.dp * a->options.tp * a->options.pp);
    bool any = false;

    for (size_t i = 0; i < a->n; i++) {
        any |= forecast_is_given(&a->points[i]);
        if (ranks > 0 ? a->points[i].ranks <= ranks : forecast_is_given(&a->points[i]))
            a->answer = i;
    }
    struct document *d = document_new(&a->r.pool);

    forecast_show(&a->r.pool, d, &a->f, a->answer);
    status = put_out(a, d, "forecast", "Forecast", forecast_plot(&a->r.pool, &a->f));
    return status ? status : any ? EXIT_GOOD : EXIT_UNDECIDED;
}

static int check_and_work(const struct opts *o, void *context)
{
    struct asked *a = context;
    int status = EXIT_USAGE;

    a->o = o;
    if (!o->n_args)
        fail(a, 0, "which run? Name run folders; plumb run node and plumb run cluster make them");
    else if (o->n_args > REPORT_RUNS_MAX)
        fail(a, 0, "too many runs: at most 16");
    else if (!a->options.model)
        fail(a, 0, "which model? --model NAME, such as gpt2-xl: configs/models/ has them");
    else
        status = work(a);
    if (*a->error)
        fprintf(stderr, "plumb forecast: %s\n", a->error);
    offers_release(&a->offers);
    report_release(&a->r);
    bench_list_release(&a->benches);
    model_release(&a->model);
    return status;
}

int forecast_command(int argc, char **argv)
{
    static struct asked asked;
    const struct command command = {.name = "forecast",
                                    .table = table,
                                    .options = &asked.options,
                                    .help = &asked.options.help,
                                    .print_help = print_help,
                                    .run = check_and_work,
                                    .context = &asked};

    return command_run(&command, argc, argv);
}
