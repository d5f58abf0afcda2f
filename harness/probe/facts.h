/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of the probe share: the context that is passed down, the small language in which
 * facts are written (set a value, or null and why), and the parts themselves, in the order in which
 * probe_machine() calls them. Each part adds its own keys to p->machine and never fails for what it
 * cannot learn: it writes null and why.
 */
#ifndef PLUMB_PROBE_FACTS_H
#define PLUMB_PROBE_FACTS_H

#include <jansson.h>

#include "harness/probe/tree.h"

struct pci; /* pci.h */

struct probe {
    struct tree tree;
    json_t *machine;  /* the object under construction */
    json_t *findings; /* its "findings" array, borrowed */
    struct pci *pci;  /* every PCI function, the ones that are not reported too; NULL: not read */
    int pci_rc;       /* 0, or why it was not read */
    bool guest;       /* a hypervisor was found, and we are not its control domain */
    bool guest_known; /* false: could not be told, so nothing may be concluded from guest */
};

/* Known to be the machine itself: its devices and its PCI tree are real. */
static inline bool probe_on_metal(const struct probe *p)
{
    return p->guest_known && !p->guest;
}

#define FACTS_PRINTF(text, args) __attribute__((format(printf, text, args)))

/* The text in printable ASCII ('?' for the rest); a new string. NULL gives JSON null. */
json_t *fact_text(const char *text);

void fact_set_text(json_t *object, const char *key, const char *text);
void fact_set_number(json_t *object, const char *key, long long value);
/* Rounded to three decimals: a fact is printed, not computed with. */
void fact_set_real(json_t *object, const char *key, double value);
void fact_set_bool(json_t *object, const char *key, bool value);
/* key: null, key_why: the reason. */
void fact_set_unknown(json_t *object, const char *key, const char *format, ...) FACTS_PRINTF(3, 4);
/* text, or null and why: a text that stands for nothing else is never left alone as null. */
void fact_set_text_or(json_t *object, const char *key, const char *text, const char *format, ...)
    FACTS_PRINTF(4, 5);
/* The file's first line, or the number that it is and that counts something, so none below 0; null
 * and why where it cannot be read. Returns 0 or -errno. */
int fact_set_line(json_t *object, const char *key, const struct tree *tree, const char *path);
int fact_set_file_number(json_t *object, const char *key, const struct tree *tree,
                         const char *path);
/* Whether something is there: true, false where that is known (tree_absent), else null and why. */
void fact_set_there(json_t *object, const char *key, const struct tree *tree, const char *path);

/* Adds a sentence to a list, e.g. "because". */
void fact_say(json_t *list, const char *format, ...) FACTS_PRINTF(2, 3);

/* New, empty and already in object under key; borrowed. */
json_t *fact_object(json_t *object, const char *key);
json_t *fact_list(json_t *object, const char *key);

/* Readers that stand a missing key: NULL, or other. */
const char *fact_string(const json_t *object, const char *key);
long long fact_integer(const json_t *object, const char *key, long long other);
double fact_number(const json_t *object, const char *key, double other);
bool fact_true(const json_t *object, const char *key);

enum severity { SEVERITY_INFO, SEVERITY_WARN };
/* Adds to findings. subject is the device or area that the sentence is about. */
void fact_find(struct probe *p, enum severity severity, const char *subject, const char *format,
               ...) FACTS_PRINTF(4, 5);

/* errno's text, in the words of someone who reads a table: "needs root", "not there". */
const char *fact_errno(int rc);

/* The start of /proc/cpuinfo, whole lines of it. Returns 0 or -errno. */
int read_cpuinfo(const struct tree *tree, char *buf, size_t size);

/* The value of the first "key : value" in text such as /proc/cpuinfo. */
bool text_field(const char *text, const char *key, char *buf, size_t size);
/* Whether a list of words separated by white space has the word. */
bool text_word(const char *words, const char *word);

void probe_cpu(struct probe *p);
void probe_topology(struct probe *p); /* adds to "cpu"; "caches", "numa" */
void probe_numa(struct probe *p);     /* "numa", by the kernel's files: hwloc changes some of it */
void probe_memory(struct probe *p);
void probe_dmi_memory(struct probe *p, json_t *memory);
void probe_virtualization(struct probe *p);
void probe_container(struct probe *p, json_t *virtualization);
void probe_pci(struct probe *p);
/* Whether a network driver's devices are made by hypervisors. */
bool net_guest_driver(const char *driver);
void probe_network(struct probe *p);
void probe_rdma(struct probe *p);
void probe_gpus(struct probe *p);
void probe_proximity(struct probe *p);
void probe_findings(struct probe *p);

#endif
