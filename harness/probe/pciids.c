// SPDX-License-Identifier: Apache-2.0
/* Names of PCI vendors and devices, from the machine's own pci.ids, indexed once. */
#include "harness/probe/pci.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IDS_MAX = 8 << 20, IDS_STEP = 1024 };

struct entry {
    uint64_t key;     /* the vendor, and below it 1 + the device, or 0 for the vendor itself */
    const char *name; /* up to the end of its line */
};

struct pci_ids {
    char *text;
    struct entry *entry; /* sorted by key */
    size_t count;
};

static uint64_t key_of(long vendor, long device)
{
    return (uint64_t)vendor << 32 | (uint64_t)(device + 1);
}

/* "10de  NVIDIA Corporation": four hexadecimal digits and two blanks. -1 where it is no such text. */
static long take_id(const char *line)
{
    char digits[5] = "";

    for (int i = 0; i < 4; i++) {
        if (!isxdigit((unsigned char)line[i]))
            return -1;
        digits[i] = line[i];
    }
    return line[4] == ' ' && line[5] == ' ' ? strtol(digits, NULL, 16) : -1;
}

static bool add_entry(struct pci_ids *ids, uint64_t key, const char *name)
{
    if (ids->count % IDS_STEP == 0) {
        struct entry *more = realloc(ids->entry, (ids->count + IDS_STEP) * sizeof(*more));

        if (!more)
            return false;
        ids->entry = more;
    }
    ids->entry[ids->count++] = (struct entry){key, name};
    return true;
}

static int by_key(const void *a, const void *b)
{
    const struct entry *one = a, *other = b;

    return one->key < other->key ? -1 : one->key > other->key;
}

/* A vendor's devices follow it, a tab before each; the classes at the end belong to no vendor. */
static void index_lines(struct pci_ids *ids)
{
    long vendor = -1, id;
    bool room = true;

    for (const char *line = ids->text; room && *line;) {
        if (*line == '\t' && vendor >= 0 && (id = take_id(line + 1)) >= 0)
            room = add_entry(ids, key_of(vendor, id), line + 5);
        else if (*line != '\t' && *line != '#') {
            vendor = take_id(line);
            if (vendor >= 0)
                room = add_entry(ids, key_of(vendor, -1), line + 4);
        }
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    if (ids->count)
        qsort(ids->entry, ids->count, sizeof(*ids->entry), by_key);
}

struct pci_ids *pci_ids_load(const struct tree *tree)
{
    static const char *const files[] = {"usr/share/misc/pci.ids", "usr/share/hwdata/pci.ids",
                                        "usr/share/pci.ids"};
    struct pci_ids *ids = calloc(1, sizeof(*ids));
    char *text = malloc(IDS_MAX), *fit;
    size_t length = 0;

    for (size_t i = 0; text && !length && i < sizeof(files) / sizeof(*files); i++)
        if (tree_read(tree, files[i], text, IDS_MAX, &length))
            length = 0;
    if (!ids || !length) {
        free(text);
        free(ids);
        return NULL;
    }
    fit = realloc(text, length + 1);
    ids->text = fit ? fit : text;
    index_lines(ids);
    return ids;
}

void pci_ids_free(struct pci_ids *ids)
{
    if (!ids)
        return;
    free(ids->entry);
    free(ids->text);
    free(ids);
}

static bool find_name(const struct pci_ids *ids, uint64_t key, char *buf, size_t size)
{
    struct entry wanted = {.key = key}, *found = NULL;
    const char *name;

    if (ids && ids->count)
        found = bsearch(&wanted, ids->entry, ids->count, sizeof(wanted), by_key);
    if (!found)
        return false;
    name = found->name + strspn(found->name, " \t");
    snprintf(buf, size, "%.*s", (int)strcspn(name, "\n"), name);
    return buf[0] != '\0';
}

bool pci_vendor_name(const struct pci *pci, long vendor, char *buf, size_t size)
{
    return vendor >= 0 && find_name(pci->ids, key_of(vendor, -1), buf, size);
}

bool pci_device_name(const struct pci *pci, long vendor, long device, char *buf, size_t size)
{
    return vendor >= 0 && device >= 0 && find_name(pci->ids, key_of(vendor, device), buf, size);
}
