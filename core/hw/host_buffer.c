/* SPDX-License-Identifier: Apache-2.0 */
/* The host's memory: see host_buffer.h. */
#include "core/hw/host_buffer.h"

#include <errno.h>
#include <hwloc.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/hw/topo.h"
#include "core/row.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

#define HUGE_BYTES      ((size_t)2 << 20) /* at least; the real size is read where it matters */
#define PAGES_LOOKED_AT 256

/* The number behind `key` in a file of "key: number kB" lines; 0 when it is not there. */
static uint64_t read_kb(const char *path, const char *key)
{
    FILE *f = fopen(path, "re");
    char line[256];
    uint64_t kb = 0;

    while (f && fgets(line, sizeof(line), f))
        if (!strncmp(line, key, strlen(key)))
            sscanf(line + strlen(key), ": %" SCNu64, &kb);
    if (f)
        fclose(f);
    return kb;
}

/* The limit of this process' control group (version 2), UINT64_MAX when there is none. */
static uint64_t cgroup_limit(void)
{
    char group[256] = "", path[320], line[288];
    uint64_t limit = UINT64_MAX;
    FILE *f = fopen("/proc/self/cgroup", "re");

    while (f && fgets(line, sizeof(line), f))
        sscanf(line, "0::%255[^\n]", group);
    if (f)
        fclose(f);
    snprintf(path, sizeof(path), "/sys/fs/cgroup%s/memory.max", group);
    f = fopen(path, "re");
    if (f && fscanf(f, "%" SCNu64, &limit) != 1)
        limit = UINT64_MAX;
    if (f)
        fclose(f);
    return limit;
}

uint64_t host_available(void)
{
    uint64_t kb = read_kb("/proc/meminfo", "MemAvailable"), limit = cgroup_limit();

    return kb && kb * 1024 < limit ? kb * 1024 : limit;
}

static size_t huge_bytes(enum host_pages memory)
{
    uint64_t kb = memory == HOST_PAGES_HUGETLB ? read_kb("/proc/meminfo", "Hugepagesize") : 0;

    return kb * 1024 > HUGE_BYTES ? kb * 1024 : HUGE_BYTES;
}

static int bind_to_node(const struct topo *topo, void *at, size_t bytes, int node, char *error,
                        size_t len)
{
    hwloc_bitmap_t one = hwloc_bitmap_alloc();
    int err = 0;

    hwloc_bitmap_only(one, (unsigned)node);
    if (hwloc_set_area_membind(topo_hwloc(topo), at, bytes, one, HWLOC_MEMBIND_BIND,
                               HWLOC_MEMBIND_BYNODESET | HWLOC_MEMBIND_STRICT)) {
        err = -errno;
        snprintf(error, len, "memory cannot be bound to node %d: %s%s", node, strerror(-err),
                 err == -EPERM ? "; in a container, add --cap-add SYS_NICE" : "");
        err = err == -ENOSYS || err == -EPERM ? -EOPNOTSUPP : err;
    }
    hwloc_bitmap_free(one);
    return err;
}

/* Address space with a huge page to spare, so that the buffer starts on one; what is around it
 * stays out of reach, which keeps the buffer a mapping of its own in /proc/self/smaps. */
static int map_aligned(struct host_buffer *b, size_t rounded, size_t huge)
{
    b->map_bytes = rounded + 2 * huge;
    b->map =
        mmap(NULL, b->map_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (b->map == MAP_FAILED) {
        b->map = NULL;
        return -errno;
    }
    b->at = (void *)(((uintptr_t)b->map + huge) / huge * huge);
    if (b->memory != HOST_PAGES_HUGETLB)
        return mprotect(b->at, rounded, PROT_READ | PROT_WRITE) ? -errno : 0;
    void *at = mmap(b->at, rounded, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_FIXED, -1, 0);
    return at == MAP_FAILED ? -errno : 0;
}

/* Takes the pages now: a later fault on an empty pool would kill the process. A kernel that does
 * not know this advice reserved them at mmap. */
static int populate(const struct host_buffer *b, size_t rounded)
{
    if (!madvise(b->at, rounded, MADV_POPULATE_WRITE) || errno == EINVAL)
        return 0;
    return -ENOMEM;
}

void host_free(struct host_buffer *b)
{
    if (b->map)
        munmap(b->map, b->map_bytes);
    *b = (struct host_buffer){0};
}

static int explain_hugetlb(int err, size_t rounded, size_t huge, char *error, size_t len)
{
    if (err == -ENOMEM)
        snprintf(error, len,
                 "the pool of reserved huge pages has no %zu of %zu MiB for this: as root, sysctl "
                 "vm.nr_hugepages=N",
                 rounded / huge, huge >> 20);
    else
        snprintf(error, len, "no huge pages of %zu MiB: %s", huge >> 20, strerror(-err));
    return err == -ENOMEM || err == -EPERM ? -EOPNOTSUPP : err;
}

int host_alloc(struct host_buffer *b, const struct topo *topo, size_t bytes, enum host_pages memory,
               int node, char *error, size_t len)
{
    size_t huge = huge_bytes(memory), rounded = (bytes + huge - 1) / huge * huge;

    *b = (struct host_buffer){.bytes = bytes, .memory = memory};
    int err = map_aligned(b, rounded, huge);
    if (err && memory == HOST_PAGES_HUGETLB && b->map) /* there is address space for them */
        err = explain_hugetlb(err, rounded, huge, error, len);
    else if (err)
        snprintf(error, len, "no %zu bytes of memory: %s", bytes, strerror(-err));
    if (!err &&
        memory != HOST_PAGES_HUGETLB) /* refused by a kernel without them: where() will tell */
        madvise(b->at, rounded, memory == HOST_PAGES_THP ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    if (!err && node >= 0)
        err = bind_to_node(topo, b->at, rounded, node, error, len);
    if (!err && memory == HOST_PAGES_HUGETLB && (err = populate(b, rounded)))
        err = explain_hugetlb(err, rounded, huge, error, len);
    if (err)
        host_free(b);
    return err;
}

static bool in_buffers(uintptr_t at, const struct host_buffer *buffers, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (at >= (uintptr_t)buffers[i].at && at < (uintptr_t)buffers[i].at + buffers[i].bytes)
            return true;
    return false;
}

static void look_at_sizes(const struct host_buffer *buffers, size_t n, struct host_where *w)
{
    FILE *f = fopen("/proc/self/smaps", "re");
    char line[512];
    bool mine = false;

    while (f && fgets(line, sizeof(line), f)) {
        uint64_t begin, end, kb;
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " ", &begin, &end) == 2) {
            mine = in_buffers(begin, buffers, n);
        } else if (mine && sscanf(line, "Rss: %" SCNu64, &kb) == 1) {
            w->resident_bytes += kb * 1024;
            w->huge_known = true;
        } else if (mine && sscanf(line, "AnonHugePages: %" SCNu64, &kb) == 1) {
            w->huge_bytes += kb * 1024;
        } else if (mine && sscanf(line, "Private_Hugetlb: %" SCNu64, &kb) == 1) {
            w->huge_bytes += kb * 1024;
            w->resident_bytes += kb * 1024; /* not part of Rss */
        }
    }
    if (f)
        fclose(f);
}

static void look_at_nodes(const struct host_buffer *b, size_t pages, struct host_where *w)
{
    void *at[PAGES_LOOKED_AT];
    int node[PAGES_LOOKED_AT];
    size_t page = (size_t)sysconf(_SC_PAGESIZE), all = (b->bytes + page - 1) / page;

    pages = pages < 1 ? 1 : pages;
    pages = pages > all ? all : pages;
    for (size_t i = 0; i < pages; i++)
        at[i] = (char *)b->at + (all * i / pages) * page;
    if (syscall(SYS_move_pages, 0, pages, at, NULL, node, 0))
        return;
    w->nodes_known = true;
    for (size_t i = 0; i < pages; i++) {
        if (node[i] < 0)
            continue;
        w->looked_at++;
        if (node[i] < HOST_NODES_MAX)
            w->on_node[node[i]]++;
        else
            w->elsewhere++;
    }
}

void host_where(const struct host_buffer *buffers, size_t n, struct host_where *w)
{
    *w = (struct host_where){0};
    look_at_sizes(buffers, n, w);
    for (size_t i = 0; i < n; i++)
        look_at_nodes(&buffers[i], PAGES_LOOKED_AT / n, w);
}

double host_huge_share(const struct host_where *where)
{
    if (!where->huge_known || !where->resident_bytes)
        return NAN;
    return (double)where->huge_bytes / (double)where->resident_bytes;
}

static void print_nodes(const struct host_where *where, char *text, size_t len)
{
    if (!where->nodes_known)
        evidence_add(text, len, "node unknown (move_pages refused)");
    for (int i = 0; i < HOST_NODES_MAX; i++)
        if (where->on_node[i])
            evidence_add(text, len, "node%d %" PRIu64 "/%" PRIu64 " pages looked at", i,
                         where->on_node[i], where->looked_at);
    if (where->elsewhere)
        evidence_add(text, len, "other nodes %" PRIu64 "/%" PRIu64, where->elsewhere,
                     where->looked_at);
}

const char *host_where_text(const struct host_where *where, char *text, size_t len)
{
    double share = host_huge_share(where);

    text[0] = 0;
    print_nodes(where, text, len);
    if (isnan(share))
        evidence_add(text, len, "page size unknown (no smaps)");
    else
        evidence_add(text, len, "%.3g %% on huge pages", 100 * share);
    return text;
}
