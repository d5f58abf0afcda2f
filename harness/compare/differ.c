/* SPDX-License-Identifier: Apache-2.0 */
/* What differs between the machines, the programs and the suites of two runs: see pairs.h. */
#include <string.h>

#include "harness/compare/differ_parts.h"
#include "harness/report/show.h"

/* What one side does not tell is most likely what the other says is not there. */
static bool is_silence(const char *none, const char *other)
{
    return !*none && (!strcmp(other, "off") || !strcmp(other, "0") || !strcmp(other, "none"));
}

void differ_add(struct differ *d, const char *what, const char *a, const char *b, const char *pipes)
{
    if (!strcmp(a, b) || is_silence(a, b) || is_silence(b, a))
        return;
    if (d->n == d->room) {
        size_t room = d->room ? 2 * d->room : 32;
        struct machine_difference *grown = pool_alloc(d->pool, room, sizeof(*grown));
        if (!grown)
            return;
        if (d->n)
            memcpy(grown, d->all, d->n * sizeof(*grown));
        d->all = grown;
        d->room = room;
    }
    d->all[d->n++] = (struct machine_difference){what, a, b, pipes};
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
    for (; bytes >= 1024 && u < 4; u++)
        bytes /= 1024;
    return pool_text(pool, "%.3g %s", bytes, units[u]);
}

/* A fact of run.json by its place. */
static const struct fact {
    const char *what, *path, *unit, *pipes; /* unit "B": a size */
} facts[] = {
    {"CPU quota", "machine.virtualization.limits.cpu_quota", " CPUs", ""},
    {"CPUs allowed", "machine.virtualization.limits.allowed_cpus", "", ""},
    {"memory allowed", "machine.virtualization.limits.memory_bytes", "B", ON_MEMORY},
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
    {"plumb version", "version", "", ""},
    {"plumb commit", "commit", "", ""},
    {"compiler", "compiler", "", ""},
    {"compiler flags", "flags", "", ""},
    {"suite", "suite", "", ""},
    {"suite's text, by its hash", "config_hash", "", ""},
    {"cases chosen (--only)", "only", "", ""},
};

static const char *fact_text(struct pool *pool, const json_t *meta, const struct fact *f)
{
    const json_t *value = differ_find(meta, f->path);
    const char *text = strcmp(f->unit, "B") ? differ_text(pool, value) : size_text(pool, value);

    return *text && *f->unit && strcmp(f->unit, "B") ? pool_text(pool, "%s%s", text, f->unit)
                                                     : text;
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

static const char *nature_text(struct pool *pool, const json_t *meta)
{
    const json_t *value = differ_find(meta, "machine.virtualization.hypervisor");
    const char *name = differ_text(pool, value);

    if (!strcmp(name, "none"))
        return "bare metal";
    return *name ? pool_text(pool, "%s guest", hypervisor_name(name)) : "";
}

static const char *container_text(struct pool *pool, const json_t *meta)
{
    const char *name = differ_text(pool, differ_find(meta, "machine.virtualization.container"));

    return strcmp(name, "none") ? name : "no container";
}

static const char *nodes_text(struct pool *pool, const json_t *meta)
{
    const json_t *nodes = differ_find(meta, "machine.numa.nodes");

    return json_is_array(nodes) ? pool_text(pool, "%zu", json_array_size(nodes)) : "";
}

static const char *caches_text(struct pool *pool, const json_t *meta)
{
    const json_t *list = differ_find(meta, "machine.caches"), *cache;
    const char *text = "";
    size_t i;

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

static const char *pages_text(struct pool *pool, const json_t *meta)
{
    const json_t *list = differ_find(meta, "machine.memory.hugetlb"), *one;
    const char *text = "";
    size_t i;

    json_array_foreach (list, i, one) {
        const char *pages = differ_text(pool, json_object_get(one, "pages"));

        if (*pages && strcmp(pages, "0") != 0)
            text = show_joined(pool, text,
                               pool_text(pool, "%s of %s", pages,
                                         size_text(pool, json_object_get(one, "page_bytes"))));
    }
    return *text || !json_is_array(list) ? text : "none";
}

/* A feature that one side has and the other has not; where a side does not tell, nothing. */
static const char *only_features(struct pool *pool, const json_t *own, const json_t *other)
{
    const json_t *has;
    const char *name, *text = "";

    json_object_foreach ((json_t *)own, name, has)
        if (json_is_true(has) && json_is_false(json_object_get(other, name)))
            text = show_joined(pool, text, name);
    return text;
}

static void add_features(struct differ *d, const json_t *a, const json_t *b)
{
    const json_t *has_a = differ_find(a, "machine.cpu.features"),
                 *has_b = differ_find(b, "machine.cpu.features");
    const char *only_a = only_features(d->pool, has_a, has_b),
               *only_b = only_features(d->pool, has_b, has_a);

    differ_add(d, "CPU features of one alone", only_a, only_b, "Matrix core, Memory");
}

/* "retbleed Vulnerable; mds Not affected": those on which the other side says another word. */
static const char *mitigations_text(struct pool *pool, const json_t *own, const json_t *other)
{
    const json_t *value;
    const char *name, *text = "";

    json_object_foreach ((json_t *)own, name, value)
        if (*differ_text(pool, value) && !json_equal(value, json_object_get(other, name)))
            text = pool_text(pool, "%s%s%s: %s", text, *text ? "; " : "", name,
                             differ_text(pool, value));
    return text;
}

static void add_mitigations(struct differ *d, const json_t *a, const json_t *b)
{
    const json_t *of_a = differ_find(a, "machine.host.mitigations"),
                 *of_b = differ_find(b, "machine.host.mitigations");

    differ_add(d, "CPU mitigations", mitigations_text(d->pool, of_a, of_b),
               mitigations_text(d->pool, of_b, of_a), "Copies, GPU launch, " ON_NETWORK);
}

size_t pairs_machine_differences(struct pairs *p, struct machine_difference **all)
{
    struct differ d = {.pool = &p->report.pool};
    const json_t *a = p->report.runs[0].meta, *b = p->report.runs[p->n_a].meta;

    differ_add(&d, "virtualisation", nature_text(d.pool, a), nature_text(d.pool, b), "");
    differ_add(&d, "container", container_text(d.pool, a), container_text(d.pool, b), "");
    differ_add(&d, "NUMA nodes", nodes_text(d.pool, a), nodes_text(d.pool, b),
               ON_MEMORY ", " ON_PCIE);
    differ_add(&d, "caches", caches_text(d.pool, a), caches_text(d.pool, b),
               "Matrix core, " ON_MEMORY);
    add_features(&d, a, b);
    for (size_t i = 0; i < sizeof(facts) / sizeof(*facts); i++)
        differ_add(&d, facts[i].what, fact_text(d.pool, a, &facts[i]),
                   fact_text(d.pool, b, &facts[i]), facts[i].pipes);
    differ_add(&d, "huge pages reserved", pages_text(d.pool, a), pages_text(d.pool, b), ON_MEMORY);
    add_mitigations(&d, a, b);
    differ_devices(&d, json_object_get(a, "machine"), json_object_get(b, "machine"));
    *all = d.all;
    return d.n;
}
