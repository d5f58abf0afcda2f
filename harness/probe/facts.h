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
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "core/hw/nvml.h"
#include "core/hw/pci.h"
#include "core/hw/sys.h"
#include "harness/machine/fact.h"

struct pci;

struct probe {
    const char *root; /* where sys_* read; NULL: the running machine, not a recording */
    json_t *absent;   /* a recording: what plumb/absent names are its keys; else NULL */
    json_t *machine;  /* the object under construction */
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

/*
 * Whether it is known that nothing is at the path; else what is missing was only not read. Running
 * machine: its folder, or the nearest one above that is there, is listed and has other entries.
 * Recording: plumb/absent, one path a line, names it or a folder above it.
 */
bool probe_absent(const struct probe *p, const char *format, ...) SYS_FORMAT(2);

/* Joins two parts, e.g. ("sys/class/net/eth0", "speed"). Cuts nothing: too long gives "". */
struct path {
    char s[SYS_PATH];
};
struct path path_join(const char *folder, const char *file);

/* A whole number of nothing but digits, or -1. */
long long digits_number(const char *text);

/* How many numbers a list of CPUs or nodes has as the kernel writes it, "0-3,8", each below 65536.
 * -EINVAL: no such list. */
int cpus_count(const char *list);

/* The text in printable ASCII ('?' for the rest); a new string. NULL gives JSON null. */
json_t *fact_text(const char *text);

void fact_set_text(json_t *object, const char *key, const char *text);
void fact_set_number(json_t *object, const char *key, long long value);
/* Rounded to three decimals: a fact is printed, not computed with. */
json_t *fact_real(double value);
void fact_set_real(json_t *object, const char *key, double value);
void fact_set_bool(json_t *object, const char *key, bool value);
/* key: the value, which the object takes; NULL: null, and key_why: the reason. Then several keys may
 * have '|' between. */
void fact_set(json_t *object, const char *key, json_t *value, const char *why, ...) SYS_FORMAT(4);
#define fact_set_unknown(object, key, ...) fact_set(object, key, NULL, __VA_ARGS__)
/* The same of a value that is given back where it is not known. */
json_t *fact_if(bool known, json_t *value);
#define fact_set_if(object, key, known, value, ...)                                                \
    fact_set(object, key, fact_if(known, value), __VA_ARGS__)
/* text, or null and why: a text that stands for nothing else is never left alone as null. */
static inline json_t *fact_some(const char *text)
{
    return text && *text ? fact_text(text) : NULL;
}
#define fact_set_text_or(object, key, text, ...) fact_set(object, key, fact_some(text), __VA_ARGS__)

/* How a file holds a fact: its first line is it ... */
enum fact_form {
    FACT_LINE,
    FACT_NUMBER,  /* a number that counts something, so none below 0 */
    FACT_BOOL,    /* a number that is not 0 */
    FACT_WORDS,   /* a list of words; none where it is empty */
    FACT_WORD,    /* the first of its words: "layer3+4 1" */
    FACT_BEHIND,  /* what is behind a colon: "4: ACTIVE" */
    FACT_CHOSEN,  /* what is marked: "always [madvise] never" */
    FACT_LARGEST, /* the last of three numbers: "4096 131072 6291456" */
};

/* key: what the file says, or null and why. Returns 0 or -errno. */
int fact_set_file(const struct probe *p, json_t *object, const char *key, enum fact_form form,
                  const char *format, ...) SYS_FORMAT(5);

struct fact_file {
    const char *key, *file;
    enum fact_form form;
};
/* The same of several files of a folder. */
void fact_set_files(const struct probe *p, json_t *object, const char *folder,
                    const struct fact_file *files, size_t n);
#define FACT_FILES(files) (files), sizeof(files) / sizeof(*(files))

/* Whether something is there: true, false where that is known (probe_absent), else null and why. */
void fact_set_there(const struct probe *p, json_t *object, const char *key, const char *format, ...)
    SYS_FORMAT(4);

/* Adds a sentence to a list, e.g. "because". */
void fact_say(json_t *list, const char *format, ...) SYS_FORMAT(2);

/* New, empty and already in object under key; borrowed. */
json_t *fact_object(json_t *object, const char *key);
json_t *fact_list(json_t *object, const char *key);
json_t *fact_append(json_t *list); /* an object, at the end of it */

const char *fact_string(const json_t *object, const char *path); /* NULL: there is none */

/* errno's text, in the words of someone who reads a table: "needs root", "not there". */
const char *fact_errno(int rc);

/* The start of /proc/cpuinfo, whole lines of it. Returns 0 or -errno. */
int read_cpuinfo(const struct probe *p, char *buf, size_t size);

/* The bytes of "key:  16384 kB" in /proc/meminfo; -1 where it is no such text. */
long long meminfo_bytes(const char *text, const char *key);

/* An object of numbers, one for each of these files (ends in NULL) of the folder. One that the
 * kernel is known not to have is left out. Keys "counters" and "hw_counters" change from call to
 * call. */
void fact_set_counters(const struct probe *p, json_t *object, const char *key,
                       const char *const *files, const char *folder);

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
void probe_tcp(struct probe *p);
void probe_load(struct probe *p);
void probe_rdma(struct probe *p);
void probe_gpus(struct probe *p);
void probe_proximity(struct probe *p);

/* Every PCI function of the machine, with the bridges above it and the link it has to them. */

/* A link as one of its ends shows it. 0: not read, or there is no link. */
struct pci_link {
    double now_gt_s, max_gt_s;
    int now_width, max_width;
    bool untrained; /* the files of what runs now were read, and there is no link */
};

extern const char pci_kind_unknown[];

enum { PCI_UNREAD = -1, PCI_ABSENT = -2 };

struct pci_device {
    char address[PCI_ADDRESS];                             /* "0000:3b:00.0" */
    char *path;                                            /* below the root, links followed */
    long vendor, device, subvendor, subdevice, class_code; /* -1: could not be read */
    long parent; /* index of the bridge above; -1 at the root, or where it is not in the list */
    bool orphan; /* there is a bridge above that is not in the list */
    struct pci_link link;
    const char *kind; /* "gpu", "ethernet", ..., pci_kind_unknown; NULL: not reported */
    char *driver;     /* NULL: none is known */
    bool may_be_vf;   /* neither known to be a virtual function nor known to be none */
    long physical;    /* index of the function whose virtual one this is by its links; -1 */
    int control;      /* device control register of PCI Express; -1: only root reads it */
    int acs_redirect; /* ports: 1 sends peer traffic to the root, 0 does not, -1 unknown */
    bool acs_direct;  /* but not what is translated already (DirectTrans) */
    long services;    /* control register of address translation services; or a PCI_ value */
    json_t *json;     /* borrowed; NULL where not reported */
};

struct pci {
    struct pci_device *device; /* sorted by address, as strcmp does */
    size_t count;
    char *ids; /* pci.ids; NULL: none */
};

static inline bool pci_is(const struct pci_device *d, const char *kind)
{
    return d->kind && !strcmp(d->kind, kind);
}

/* 0, or -errno with *pci NULL. */
int pci_load(const struct probe *p, struct pci **pci);
void pci_free(struct pci *pci);

struct pci_device *pci_find(const struct pci *pci, const char *address);

/* The function that a path below /sys/devices belongs to; NULL also where pci is NULL. */
struct pci_device *pci_of_path(const struct pci *pci, const char *path);

struct pci_device *pci_parent(const struct pci *pci, const struct pci_device *device);

/* Names from pci.ids; false where the list is not there or does not know. */
bool pci_vendor_name(const struct pci *pci, long vendor, char *buf, size_t size);
bool pci_device_name(const struct pci *pci, long vendor, long device, char *buf, size_t size);

/* What the device is where only guests have such, else NULL. *name: the hypervisor that makes it,
 * or NULL where several do. */
const char *pci_guest_mark(const struct pci_device *device, const char **name);

/* pci_nearness(); NULL where it does not show. Both must be reported ones. */
const char *pci_relation(const struct pci *pci, const struct pci_device *a,
                         const struct pci_device *b);

/* Adds "nature" and "because": physical, passthrough, sriov-vf, paravirtual, ... */
void pci_report_nature(struct probe *p, struct pci_device *device);

/* growth.c: reads the counters of the machine a second time, below a folder ("": as at first), and
 * adds how they grew, as probe_growth() does. */
void probe_again(const struct probe *p, const char *below, json_t *machine);

/* What only a running kernel tells of interfaces, a line each: "eth0 max_mtu 9000", "eth0 qdisc
 * tbf rate_gbits_per_s=1.0". A recording has such lines in plumb/net. */
void net_ask(FILE *out);

/* net_line.c: those of what an Ethernet line can do, and of pause frames. fd: any socket. */
void net_ask_rates(int fd, const char *name, FILE *out);
void net_ask_counts(int fd, const char *name, FILE *out);
/* A driver's name of a counter of pauses, "rx_prio3_pause", as all machines have it:
 * "rx_priority3_frames"; false: it is none. */
enum { NET_PAUSE_KEY = 32 };
bool net_pause_key(const char *name, char key[NET_PAUSE_KEY]);

/* Those lines, as an object of interfaces; a new one. Never NULL but without memory. below: "", or
 * the folder of a recording's second reading, "plumb/later/". */
json_t *net_asked(const struct probe *p, const char *below);
/* What an interface, and an RDMA port, counts; path: of its folder. */
void net_fill_counters(const struct probe *p, json_t *nic, const char *path, const json_t *asked);
void rdma_fill_counters(const struct probe *p, json_t *port, const char *path);
/* The errors that a PCI function counts, and the port above it (NULL: none); paths of both. */
void pci_fill_counters(const struct probe *p, json_t *device, const char *path, const char *port);
/* The time that CPUs wanted, and that was stolen; how often control groups were paused. below: "",
 * or the folder of a recording's second reading. */
void load_fill_steal(const struct probe *p, json_t *load, const char *below);
void limits_fill_counters(const struct probe *p, json_t *limits, const char *below);
/* MTU, queues, interrupts, shaping, pauses, rings, counters and members of a bond. path: of the
 * interface's folder. */
void net_fill_state(struct probe *p, json_t *nic, const char *path, const json_t *asked,
                    const char *interrupts);
/* /proc/interrupts whole; a new text, NULL where it could not be read. */
char *net_interrupts(const struct probe *p);

/* gpu_nvml.c */

/* Driver, highest CUDA version, confidential computing: into "gpus". */
void nvml_fill_system(const struct nvml *nvml, json_t *gpus);
/* PCI address of number `index`, "0000:3b:00.0". 0 or -ENODEV. */
int nvml_address(const struct nvml *nvml, unsigned index, char *buf, size_t size);
unsigned nvml_count(const struct nvml *nvml);
/* Everything that NVML knows about one GPU. */
void nvml_fill_gpu(const struct nvml *nvml, struct nvml_device *device, json_t *gpu);
/* "pcie", with the replays that it counts, and "counters". */
void nvml_fill_counters(const struct nvml *nvml, struct nvml_device *device, json_t *gpu);

/* "cuda": the module of this build, its toolkit, the devices it shows, matched by address with
 * those in "devices"; "toolkit_version": the one on this machine. */
void probe_cuda(struct probe *p, json_t *gpus);

/* gpu_link.c */

/* "nvlink": lanes and speed over all, and for each peer. */
void nvml_fill_links(const struct nvml *nvml, struct nvml_device *device, json_t *gpu);
/* "pairs": for every two GPUs how they reach one another. nvml may be NULL, then why says why. */
void probe_gpu_pairs(struct probe *p, json_t *gpus, const struct nvml *nvml, const char *why);

/* gpu.c */

/* A GPU that only a library shows, without its place on the PCI bus. */
json_t *gpu_add_unseen(json_t *list, const char *address, const char *source);

#endif
