// SPDX-License-Identifier: Apache-2.0
/* How much memory there is and in which pages it comes. */
#include "harness/probe/facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char thp[] = "sys/kernel/mm/transparent_hugepage";
static const char hugetlb[] = "sys/kernel/mm/hugepages";

/* "16384 kB", or 0 where it is no such text. */
static long long kib_number(char *field)
{
    size_t digits = strspn(field, "0123456789");

    if (!digits || digits > 15 || strcmp(field + digits, " kB") != 0)
        return 0;
    return atoll(field);
}

static void memory_total(struct probe *p, json_t *memory)
{
    char text[8192], field[64];
    int rc = tree_read(&p->tree, "proc/meminfo", text, sizeof(text), NULL);

    if (rc)
        fact_set_unknown(memory, "total_bytes", "/proc/meminfo: %s", fact_errno(rc));
    else if (!text_field(text, "MemTotal", field, sizeof(field)) || !kib_number(field))
        fact_set_unknown(memory, "total_bytes", "/proc/meminfo has no MemTotal");
    else
        fact_set_number(memory, "total_bytes", kib_number(field) * 1024);
}

/* The kernel marks the choice: "always [madvise] never". */
static void set_choice(struct probe *p, json_t *object, const char *key, const char *file)
{
    char line[TREE_LINE], *open;
    int rc = tree_line_at(&p->tree, thp, file, line, sizeof(line));

    open = rc ? NULL : strchr(line, '[');
    if (rc || !open || !strchr(open, ']')) {
        fact_set_unknown(object, key, "/%s/%s: %s", thp, file, rc ? fact_errno(rc) : "no choice");
        return;
    }
    *strchr(open, ']') = '\0';
    fact_set_text(object, key, open + 1);
}

static void memory_hugetlb(struct probe *p, json_t *memory)
{
    struct names names = {0};
    int rc = tree_list(&p->tree, hugetlb, &names);
    json_t *sizes;

    if (rc && !tree_absent(&p->tree, hugetlb)) {
        fact_set_unknown(memory, "hugetlb", "/%s: %s", hugetlb, fact_errno(rc));
        return;
    }
    sizes = fact_list(memory, "hugetlb");
    if (rc)
        fact_set_text(memory, "hugetlb_why", "this kernel has no pools of huge pages");
    for (size_t i = 0; i < names.count; i++) {
        struct path pool = tree_join(hugetlb, names.name[i]);
        unsigned long long kib;
        json_t *size;

        if (sscanf(names.name[i], "hugepages-%llukB", &kib) != 1 || kib > 1ULL << 40)
            continue;
        size = json_object();
        json_array_append_new(sizes, size);
        fact_set_number(size, "page_bytes", (long long)kib * 1024);
        fact_set_file_number(size, "pages", &p->tree, tree_join(pool.s, "nr_hugepages").s);
        fact_set_file_number(size, "free", &p->tree, tree_join(pool.s, "free_hugepages").s);
    }
    names_free(&names);
}

void probe_memory(struct probe *p)
{
    json_t *memory = fact_object(p->machine, "memory"), *pages;

    memory_total(p, memory);
    pages = fact_object(memory, "transparent_huge_pages");
    set_choice(p, pages, "enabled", "enabled");
    set_choice(p, pages, "defrag", "defrag");
    memory_hugetlb(p, memory);
    probe_dmi_memory(p, memory);
}
