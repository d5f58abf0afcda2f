/* SPDX-License-Identifier: Apache-2.0 */
/* What differs between the machines, the programs and the suites of two runs: see pairs.h. */
#include <string.h>

#include "harness/compare/pairs.h"
#include "harness/report/show.h"

const char *differ_listed(const json_t *list, const char *text)
{
    return !*text && json_is_array(list) && !json_array_size(list) ? "none" : text;
}

static bool is_none(const char *text)
{
    return !strcmp(text, "off") || !strcmp(text, "0") || !strcmp(text, "none");
}

/* What one side does not tell is most likely what the other says is not there. */
static bool is_silence(const char *none, const char *other)
{
    return !*none && is_none(other);
}

/* A run that does not tell is no other than those that say it is not there. */
static void fill_silence(const char **texts, size_t n)
{
    const char *none = "";

    for (size_t i = 0; i < n; i++)
        none = is_none(texts[i]) ? texts[i] : none;
    for (size_t i = 0; i < n; i++)
        texts[i] = is_silence(texts[i], none) ? none : texts[i];
}

void differ_fact(struct differ *d, const char *what, differ_text_fn *text, const void *arg,
                 const char *pipes)
{
    const char **texts = pool_alloc(d->pool, d->n_runs, sizeof(*texts));
    bool mixed_a, mixed_b;

    for (size_t i = 0; i < d->n_runs; i++)
        texts[i] = text(d, d->runs[i], arg);
    fill_silence(texts, d->n_a);
    fill_silence(texts + d->n_a, d->n_runs - d->n_a);
    const char *a = shares_text(d->pool, texts, d->n_a, "runs", &mixed_a);
    const char *b = shares_text(d->pool, texts + d->n_a, d->n_runs - d->n_a, "runs", &mixed_b);
    if (mixed_a || mixed_b || (strcmp(a, b) != 0 && !is_silence(a, b) && !is_silence(b, a))) {
        if (d->n == d->room) {
            size_t room = d->room ? 2 * d->room : 32;
            struct machine_difference *grown = pool_alloc(d->pool, room, sizeof(*grown));
            if (d->n)
                memcpy(grown, d->all, d->n * sizeof(*grown));
            d->all = grown;
            d->room = room;
        }
        d->all[d->n++] = (struct machine_difference){what, a, b, pipes, !d->aside};
    }
}

static const char *list_text(struct pool *pool, const json_t *list)
{
    const char *text = "";
    const json_t *value;
    size_t i;

    json_array_foreach (list, i, value) {
        const char *one = differ_text(pool, value);
        bool known = false;

        for (size_t k = 0; k < i && !known; k++)
            known = json_equal(value, json_array_get(list, k));
        if (!known)
            text = show_joined(pool, text, one);
    }
    return text;
}

const char *differ_text(struct pool *pool, const json_t *value)
{
    if (json_is_string(value))
        return json_string_value(value);
    if (json_is_integer(value))
        return pool_text(pool, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    if (json_is_real(value))
        return pool_text(pool, "%.6g", json_real_value(value));
    if (json_is_boolean(value))
        return json_is_true(value) ? "on" : "off";
    return json_is_array(value) ? list_text(pool, value) : "";
}

const json_t *differ_find(const json_t *object, const char *path)
{
    while (*path) {
        size_t n = strcspn(path, ".");
        char key[64];

        snprintf(key, sizeof(key), "%.*s", (int)n, path);
        object = json_object_get(object, key);
        path += n + (path[n] == '.');
    }
    return object;
}

const char *differ_counted(struct pool *pool, const char *const *texts, size_t n)
{
    const char *text = "";

    for (size_t i = 0; i < n; i++) {
        size_t before = 0, same = 0;

        for (size_t k = 0; k < n; k++) {
            bool like = !strcmp(texts[k], texts[i]);
            same += like;
            before += like && k < i;
        }
        if (!before && *texts[i])
            text = pool_text(pool, "%s%s%s%s", text, *text ? "; " : "",
                             same > 1 ? pool_text(pool, "%zu x ", same) : "", texts[i]);
    }
    return text;
}

static const char *size_text(struct pool *pool, const json_t *value)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double bytes = json_number_value(value);
    size_t u = 0;

    if (!json_is_number(value))
        return "";
    for (; bytes >= 1023.5 && u < 4; u++) /* what is rounded to 1024 is 1 of the next unit */
        bytes /= 1024;
    return pool_text(pool, bytes < 100 ? "%.3g %s" : "%.0f %s", bytes, units[u]);
}

/* A fact of run.json by its place. */
struct run_fact {
    const char *what, *path, *unit, *pipes; /* unit "B": a size */
};

static const struct run_fact limits[] = {
    {"CPU quota", "machine.virtualization.limits.cpu_quota", " CPUs", ""},
    {"memory allowed", "machine.virtualization.limits.memory_bytes", "B", ON_MEMORY},
};

static const struct run_fact facts[] = {
    {"CPUs allowed", "machine.virtualization.limits.allowed_cpus", "", ""},
    {"vendor", "machine.host.vendor", "", ""},
    {"product", "machine.host.product", "", ""},
    {"BIOS", "machine.host.bios", "", ""},
    {"architecture", "machine.host.architecture", "", ""},
    {"CPU model", "machine.cpu.model", "", ""},
    {"CPU stepping", "machine.cpu.stepping", "", ""},
    {"CPU microcode", "machine.cpu.microcode", "", ""},
    {"sockets", "machine.cpu.sockets", "", ""},
    {"cores", "machine.cpu.cores", "", ""},
    {"threads", "machine.cpu.threads", "", ""},
    {"SMT", "machine.cpu.smt.control", "", ""},
    {"CPU clock, highest", "machine.cpu.clock.max_mhz", " MHz", ""},
    {"CPU clock, base", "machine.cpu.clock.base_mhz", " MHz", ""},
    {"CPU governor", "machine.cpu.clock.governors", "", ""},
    {"CPU clock's driver", "machine.cpu.clock.drivers", "", ""},
    {"CPU energy preference", "machine.cpu.clock.energy_preferences", "", ""},
    {"CPU boost", "machine.cpu.clock.boost", "", ""},
    {"NUMA balancing", "machine.numa.balancing", "", ON_MEMORY},
    {"memory", "machine.memory.total_bytes", "B", ON_MEMORY},
    {"memory channels", "machine.memory.channels", "", ON_MEMORY},
    {"memory's peak rate", "machine.memory.peak_gbytes_per_s", " GB/s", ON_MEMORY},
    {"transparent huge pages", "machine.memory.transparent_huge_pages.enabled", "", ON_MEMORY},
    {"huge pages' defragmentation", "machine.memory.transparent_huge_pages.defrag", "", ON_MEMORY},
    {"kernel", "machine.host.kernel", "", ""},
    {"kernel options", "machine.host.kernel_options", "", ""},
    {"distribution", "machine.host.distro", "", ""},
    {"clock source", "machine.host.clocksource", "", "GPU launch, " ON_NETWORK},
    {"NVIDIA driver", "machine.gpus.driver_version", "", ON_GPU},
    {"NVIDIA driver's kind", "machine.gpus.driver_flavour", "", ON_GPU},
    {"CUDA of the driver", "machine.gpus.cuda_version", "", ON_GPU},
    {"CUDA runtime", "machine.gpus.cuda.toolkit_version", "", ON_GPU},
    {"CUDA toolkit", "machine.gpus.toolkit_version", "", ON_GPU},
    {"confidential computing", "machine.gpus.confidential_computing", "", ON_GPU},
    {"NVSwitches", "machine.gpus.nvswitches", "", "NVLink, Collectives"},
    {"GPUDirect by DMA-BUF", "machine.gpus.gpudirect.dma_buf", "", ON_NETWORK},
    {"peer memory module", "machine.gpus.peer_memory_module", "", ON_NETWORK},
    {"GDRCopy", "machine.gpus.gpudirect.gdrcopy", "", ON_NETWORK},
};

/* The program may be what is under test, and what was asked of it is no environment; the suite's
 * text is. */
static const struct run_fact own_facts[] = {
    {"plumb version", "version", "", ""},
    {"plumb commit", "commit", "", ""},
    {"compiler", "compiler", "", ""},
    {"compiler flags", "flags", "", ""},
    {"suite", "suite", "", ""},
    {"cases chosen (--only)", "only", "", ""},
    {"processes (--processes)", "processes", "", ""},
};
static const struct run_fact suite_text = {"suite's text, by its hash", "config_hash", "", ""};

static const char *fact_text(const struct differ *d, const json_t *meta, const void *fact)
{
    const struct run_fact *f = fact;
    const json_t *value = differ_find(meta, f->path);
    const char *text =
        strcmp(f->unit, "B") ? differ_text(d->pool, value) : size_text(d->pool, value);

    /* "none" has no unit */
    return json_is_number(value) && *f->unit && strcmp(f->unit, "B")
               ? pool_text(d->pool, "%s%s", text, f->unit)
               : differ_listed(value, text);
}

/* As their makers write them. */
static const char *hypervisor_name(const char *name)
{
    static const char *const known[][2] = {{"kvm", "KVM"},
                                           {"qemu", "QEMU"},
                                           {"qemu-tcg", "QEMU (TCG)"},
                                           {"xen", "Xen"},
                                           {"vmware", "VMware"},
                                           {"virtualbox", "VirtualBox"},
                                           {"hyper-v", "Hyper-V"},
                                           {"nitro", "Nitro"},
                                           {"firecracker", "Firecracker"},
                                           {"parallels", "Parallels"}};

    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (!strcmp(known[i][0], name))
            return known[i][1];
    return name;
}

static const char *nature_text(const struct differ *d, const json_t *meta, const void *arg)
{
    struct pool *pool = d->pool;
    const json_t *value = differ_find(meta, "machine.virtualization.hypervisor");
    const char *name = differ_text(pool, value);

    (void)arg;
    if (!strcmp(name, "none"))
        return "bare metal";
    return *name ? pool_text(pool, "%s guest", hypervisor_name(name)) : "";
}

static const char *container_text(const struct differ *d, const json_t *meta, const void *arg)
{
    struct pool *pool = d->pool;
    const char *name = differ_text(pool, differ_find(meta, "machine.virtualization.container"));

    (void)arg;
    return strcmp(name, "none") ? name : "no container";
}

static const char *nodes_text(const struct differ *d, const json_t *meta, const void *arg)
{
    struct pool *pool = d->pool;
    const json_t *nodes = differ_find(meta, "machine.numa.nodes");

    (void)arg;
    return json_is_array(nodes) ? pool_text(pool, "%zu", json_array_size(nodes)) : "";
}

static const char *caches_text(const struct differ *d, const json_t *meta, const void *arg)
{
    struct pool *pool = d->pool;
    const json_t *list = differ_find(meta, "machine.caches"), *cache;
    const char *text = "";
    size_t i;

    (void)arg;
    json_array_foreach (list, i, cache) {
        const char *size = size_text(pool, json_object_get(cache, "size_bytes"));
        const char *level = differ_text(pool, json_object_get(cache, "level"));
        const char *count = differ_text(pool, json_object_get(cache, "count"));

        if (*size && *level)
            text = show_joined(
                pool, text, pool_text(pool, "L%s %s%s%s", level, count, *count ? " x " : "", size));
    }
    return text;
}

static const char *pages_text(const struct differ *d, const json_t *meta, const void *arg)
{
    struct pool *pool = d->pool;
    const json_t *list = differ_find(meta, "machine.memory.hugetlb"), *one;
    const char *text = "";
    size_t i;

    (void)arg;
    json_array_foreach (list, i, one) {
        const char *pages = differ_text(pool, json_object_get(one, "pages"));

        if (*pages && strcmp(pages, "0") != 0)
            text = show_joined(pool, text,
                               pool_text(pool, "%s of %s", pages,
                                         size_text(pool, json_object_get(one, "page_bytes"))));
    }
    return *text || !json_is_array(list) ? text : "none";
}

static const char *processor_text(const struct differ *d, const json_t *meta, const void *arg)
{
    (void)arg;
    return differ_processor(d->pool, differ_find(meta, "machine.cpu"));
}

/* Those that this run has and another, of whichever side, has not; where a run does not tell,
 * nothing. */
static const char *features_text(const struct differ *d, const json_t *meta, const void *arg)
{
    const json_t *own = differ_find(meta, "machine.cpu.features"), *has;
    const char *name, *text = "";

    (void)arg;
    json_object_foreach ((json_t *)own, name, has) {
        bool lacking = false;

        for (size_t i = 0; i < d->n_runs && !lacking; i++)
            lacking = json_is_false(
                json_object_get(differ_find(d->runs[i], "machine.cpu.features"), name));
        if (json_is_true(has) && lacking)
            text = show_joined(d->pool, text, name);
    }
    return !*text && json_is_object(own) ? "none" : text;
}

/* An object of which what is told is where another run says another word. */
static const struct otherwise {
    const char *path, *is, *between;
} mitigations = {"machine.host.mitigations", ": ", "; "}, settings = {"library_settings", "=", " "};

/* "retbleed: Vulnerable; mds: Not affected". */
static const char *otherwise_text(const struct differ *d, const json_t *meta, const void *arg)
{
    const struct otherwise *o = arg;
    const json_t *own = differ_find(meta, o->path), *value;
    const char *name, *text = "";

    json_object_foreach ((json_t *)own, name, value) {
        bool other = false;

        for (size_t i = 0; i < d->n_runs && !other; i++)
            other = !json_equal(value, json_object_get(differ_find(d->runs[i], o->path), name));
        if (other && *differ_text(d->pool, value))
            text = pool_text(d->pool, "%s%s%s%s%s", text, *text ? o->between : "", name, o->is,
                             differ_text(d->pool, value));
    }
    /* Of settings an object without any says that none was set. */
    return o == &settings && !*text && json_is_object(own) ? "none" : text;
}

static void add_facts(struct differ *d, const struct run_fact *from, size_t n, differ_text_fn *text)
{
    for (size_t i = 0; i < n; i++)
        differ_fact(d, from[i].what, text, &from[i], from[i].pipes);
}

#define N_OF(array) (sizeof(array) / sizeof(*(array)))

/* Where rows were imported, nothing is known of the machine: that is one difference, not thirty. */
static size_t tell_imported(struct pairs *p, struct machine_difference **all)
{
    bool imported[2] = {false, false};

    for (size_t i = 0; i < p->report.n_runs; i++)
        imported[i >= p->n_a] |=
            json_array_size(json_object_get(p->report.runs[i].meta, "imported")) > 0;
    if (!imported[0] && !imported[1])
        return 0;
    *all = pool_alloc(&p->report.pool, 1, sizeof(**all));
    **all = (struct machine_difference){.what = "machine",
                                        .a = imported[0] ? "not known: imported" : "measured",
                                        .b = imported[1] ? "not known: imported" : "measured",
                                        .pipes = ""};
    return 1;
}

size_t pairs_machine_differences(struct pairs *p, struct machine_difference **all)
{
    struct differ d = {.pool = &p->report.pool};
    size_t imported = tell_imported(p, all);

    if (imported)
        return imported;

    d.runs = pool_alloc(d.pool, p->report.n_runs, sizeof(*d.runs));
    for (size_t i = 0; i < p->report.n_runs; i++) {
        if (!pairs_is_level(p, i))
            continue;
        d.runs[d.n_runs++] = p->report.runs[i].meta;
        d.n_a += i < p->n_a;
    }
    differ_fact(&d, "virtualisation", nature_text, NULL, "");
    differ_fact(&d, "container", container_text, NULL, "");
    differ_fact(&d, "NUMA nodes", nodes_text, NULL, ON_MEMORY ", " ON_PCIE);
    differ_fact(&d, "processor", processor_text, NULL, "Matrix core, " ON_MEMORY ", " ON_NETWORK);
    differ_fact(&d, "caches", caches_text, NULL, "Matrix core, " ON_MEMORY);
    differ_fact(&d, "CPU features of one alone", features_text, NULL, "Matrix core, Memory");
    add_facts(&d, limits, N_OF(limits), fact_text);
    add_facts(&d, facts, N_OF(facts), fact_text);
    differ_fact(&d, "library settings", otherwise_text, &settings, "");
    d.aside = true;
    add_facts(&d, own_facts, N_OF(own_facts), fact_text);
    d.aside = false;
    add_facts(&d, &suite_text, 1, fact_text);
    differ_fact(&d, "huge pages reserved", pages_text, NULL, ON_MEMORY);
    differ_fact(&d, "CPU mitigations", otherwise_text, &mitigations,
                "Copies, GPU launch, " ON_NETWORK);
    differ_devices(&d);
    *all = d.all;
    return d.n;
}
