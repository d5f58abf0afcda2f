/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checks of plumb doctor: why a machine is slow, what each cause costs, and the remedy.
 *
 * A check is a row of a table and one pure function. It reads a machine as the probe recorded it
 * (docs/probe.md), live, from a recorded tree, or out of a run's run.json, and nothing else. A fact
 * that a check needs is the probe's to learn. So runs, nights and hosts are examined alike. Where a
 * fact is null, the check is unknown, with the probe's reason.
 *
 * How to add a check:
 *  1. The probe learns the fact: a key of its object, listed in docs/probe.md.
 *  2. check_AREA.c gets a row in its table exam_AREA[], with a judge. A new area is a new file, and a
 *     line in exam_areas[] (exam.c).
 *  3. The judge of the machine, or of one of its devices, reads facts and adds what it finds. If it
 *     returns true without a result, that subject is fine; false: the question is not about it.
 *
 *        static bool judge_boost(struct exam *x)
 *        {
 *            bool boost;
 *
 *            if (!exam_flag(x, NULL, "cpu.clock.boost", &boost))
 *                return false;                // an unknown was added, with the reason
 *            if (!boost)
 *                exam_found(x, "boost clocks are switched off");
 *            return true;
 *        }
 *
 *     with the row's .subject = "processor", .judge = judge_boost, and .remedy = "echo 1 >...".
 *     Where one fact decides, the row says which, and no judge is needed: .fact, .bad and .found.
 *
 *  4. A machine of tests/machines with the fault, without it, and without the fact stands in
 *     tests/unit/exam_faults.txt: test_exam_faults.c fails without them.
 *
 * A finding costs speed, or can. What merely could be otherwise is none: no check may find anything
 * on a healthy machine (test_exam.c holds that for tests/machines). A sentence has at most 25 words
 * and does not name its subject, so that equal results are shown as one. Nothing reads it.
 */
#ifndef PLUMB_EXAM_H
#define PLUMB_EXAM_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "harness/machine/fact.h"

enum exam_state {
    EXAM_FINE,
    EXAM_FOUND,
    EXAM_UNKNOWN,        /* a fact is missing: `text` says which one and why */
    EXAM_NOT_APPLICABLE, /* the machine has nothing that the question is about */
};

enum exam_basis {
    EXAM_NOT_PRICED, /* no figure is known: sorted last */
    EXAM_CITED,      /* a figure of another machine: see `source`, `controlled` */
    EXAM_COMPUTED, /* a closed form of this machine's facts: share of a quota, framing of an MTU */
    EXAM_MEASURED, /* with and without, in turn, on this machine */
};

/*
 * low to high: the share of the rate that is lost, 0.25: a quarter of the bandwidth; or, of_time,
 * the share by which the time grows, 1.0: twice as long. They are the interval of what was
 * measured, the range that a source gives, 0 and the most that a formula allows, or twice the same
 * value.
 */
struct exam_cost {
    enum exam_basis basis;
    double low, high;
    bool of_time;
    bool controlled;    /* cited: the source tested with and without, all else equal */
    const char *of;     /* what is lost: "TCP bandwidth" */
    const char *source; /* cited: URL; computed: the formula; measured: the command */
};

/* Of exam_check.pipes: whatever several ranks do together; what the CPUs do; what goes over the PCI
 * bus, and by an adapter. */
#define EXAM_GROUP "Collectives|Gradients|Allreduce*|Training step"
#define EXAM_CPUS                                                                                  \
    "Matrix core|Memory|Caches|Latency|Copies|Between two processes|Network*|" EXAM_GROUP
#define EXAM_BUS   "GPU copies|GPU peers|PCIe|GPU memory by RDMA|Network*|" EXAM_GROUP
#define EXAM_LINES "Network*|GPU memory by RDMA|" EXAM_GROUP

struct exam;

/* Of what a check judges one after another. Subjects are their addresses or names; of a port
 * "mlx5_0:1". */
enum exam_each {
    EXAM_WHOLE, /* the machine, once */
    EXAM_GPUS,
    EXAM_NVIDIA,  /* GPUs that this driver runs */
    EXAM_DEVICES, /* on the PCI bus */
    EXAM_NICS,
    EXAM_RDMA,
    EXAM_PORTS,       /* of RDMA devices */
    EXAM_KNOWN_PORTS, /* the same, and an unknown for a device of which they are not known */
};

/* A member without a value is NULL, false, or EXAM_NOT_PRICED. A table ends with an id of NULL. */
struct exam_check {
    const char *id;       /* "mtu": stable, in JSON and documents; small letters, digits, '-' */
    const char *question; /* for people: "Does each interface use jumbo frames?" */
    const char *seen;     /* how it is seen without root: files, calls */
    const char *more;     /* which right would tell more: "root: the ports' ACS control"; NULL */
    const char *pipes;    /* which components of a report it can explain (bench_headline.pipe,
                             bench_pipe.pipe): patterns, with '|' between; NULL: none */
    /* A cause of --measure with the same id prices what is found of subjects that fit this extended
     * pattern: both sides of it can be had on a machine with the finding. NULL: none does. */
    const char *measured;
    bool matters;          /* unknown here is exit status 3 */
    bool counts;           /* by counters that are its evidence: two records show how they grew */
    struct exam_cost cost; /* of a finding that the judge does not price */
    const char *remedy;    /* of a finding to which the judge gives none: as of exam_fill() */
    bool metal;            /* only for machines that are known to be no guests */
    bool (*when)(struct exam *x); /* only for such machines; NULL: for all */
    /* Either: */
    const char *subject;
    bool (*judge)(struct exam *x);
    /* or: */
    enum exam_each each;
    bool (*which)(const json_t *one); /* NULL: all */
    bool (*judge_one)(struct exam *x, const json_t *one);
    const struct exam_event *events; /* or */
    /* or one fact, of what is judged or of the machine: */
    const char *fact;
    const char *bad, *good; /* patterns, with '|' between, that it fits, or none of which it fits:
                               "never"; "true" and "false" are a flag's */
    double below;           /* or a number that is less */
    const char *found;      /* then the sentence, as of exam_fill() */
};

struct exam_area {
    const char *name; /* "processor" */
    const struct exam_check *checks;
};

/* processor.. guest: each in check_NAME.c. The table ends with a name of NULL. */
extern const struct exam_area exam_areas[];
extern const struct exam_check exam_processor[], exam_load[], exam_limits[], exam_memory[];
extern const struct exam_check exam_bus[], exam_pcie[], exam_network[], exam_interfaces[],
    exam_lines[], exam_rdma[], exam_ports[];
extern const struct exam_check exam_gpu[], exam_gpu_counters[], exam_libraries[], exam_ranks[],
    exam_guests[];

struct exam_result {
    struct exam_result *next;
    const struct exam_check *check;
    const char *area;
    enum exam_state state;
    const char *subject; /* "eth0", "0000:3b:00.0", "machine" */
    const char *text;    /* of a finding and an unknown; else "" */
    const char *remedy;  /* one command, names filled in; "" */
    bool matters;        /* as the check's; a judge may clear it */
    bool keeps_price; /* it covers more than --measure sees: what is measured does not replace it */
    bool aside;       /* of a disk, which no benchmark here measures: sorted last */
    struct exam_cost cost;
    json_t *evidence; /* {path: value}: the facts that were read */
};

/* ---- Examining */

/* All checks over one machine, which must outlive the exam. */
struct exam *exam_new(const json_t *machine);
void exam_free(struct exam *x);

/* Findings first, by what they cost (exam_loss()), unpriced ones and then those on disks last; then
 * what is unknown, fine, not applicable. In the order of the tables where equal. */
struct exam_result *exam_results(struct exam *x);
/* Again in that order: after costs were changed, as --measure does. */
void exam_sort(struct exam *x);
/* Does a stand before b there? They may be of two exams. */
bool exam_before(const struct exam_result *a, const struct exam_result *b);
size_t exam_count(const struct exam *x, enum exam_state state);

/* Has it NVIDIA GPUs that could not be asked for anything? Then what they alone know matters. */
bool exam_lacks_gpus(const struct exam *x);

/* The share of the rate that is lost, in the middle of the cost's range; -1 where not priced. */
double exam_loss(const struct exam_cost *cost);

/* Results of one check with the same sentence are shown once. Is an equal one before r? */
bool exam_repeats(struct exam *x, const struct exam_result *r);
/* "GPU NVIDIA A10 (0000:3b:00.0)"; what has no better name keeps its own. */
const char *exam_subject(struct exam *x, const struct exam_result *r);
/* "each of GPU NVIDIA A10 (0000:3b:00.0) and 6 more: the link ...": r, and equal ones after it. */
const char *exam_sentence(struct exam *x, const struct exam_result *r);

/* "50 %", and "50 % of the PCIe bandwidth (computed: 1 - 15.75/31.51 GB/s)". */
void exam_share_text(const struct exam_cost *cost, char *text, size_t len);
void exam_cost_text(const struct exam_cost *cost, char *text, size_t len);
/* A share in percent with so many digits, and never an exponent: "-1.3", "520". Returns text. */
const char *exam_percent(double share, int digits, char text[32]);

/* Can plumb doctor --measure price such a finding on the machine itself? subject NULL: any. */
bool exam_measurable(const struct exam_check *check, const char *subject);

/* Can the finding explain a low value of this component? By its check, and by its subject: the link of
 * an adapter is none of copies to a GPU, and a variable of one library slows no other. */
bool exam_explains(const struct exam *x, const struct exam_result *r, const char *pipe);

/* NULL: there is no such check. area may be NULL. */
const struct exam_check *exam_find(const char *id, const char **area);

/* The names in JSON: "fine" "found" "unknown" "not applicable". */
const char *exam_state_name(enum exam_state state);

/* The result as an object of docs/doctor.md. New. */
json_t *exam_result_json(const struct exam_result *r);

/* ---- For checks: reading facts. `object` NULL is the whole machine; a path: "cpu.clock.boost".
 * Each fact that is read becomes evidence: those of the machine for all results of the check, those
 * of an object for the next result. */

const json_t *exam_get(struct exam *x, const json_t *object, const char *path);
double exam_value(struct exam *x, const json_t *object, const char *path, double other);
/* The same, but null, absent or of another type adds an unknown with the reason: NULL, or false. */
const json_t *exam_fact(struct exam *x, const json_t *object, const char *path);
/* The same of a fact that NVML alone knows: where there is no NVML, that is the reason. */
const json_t *exam_nvml(struct exam *x, const json_t *gpu, const char *path);
const char *exam_text(struct exam *x, const json_t *object, const char *path);
bool exam_number(struct exam *x, const json_t *object, const char *path, double *value);
bool exam_flag(struct exam *x, const json_t *object, const char *path, bool *value);
/* The sum of those of an object's counters (keys ends in NULL) that the kernel has; false: one is
 * null, or all are, and an unknown was added. */
bool exam_sum(struct exam *x, const json_t *object, const char *counters, const char *const *keys,
              double *total);
/* A list of the machine; null adds an unknown for "machine" and is an empty list. Not evidence. */
const json_t *exam_list(struct exam *x, const char *path);
/* The subject of what is added now, and another one for what follows. */
const char *exam_judged(const struct exam *x);
void exam_about(struct exam *x, const char *subject);
/* The RDMA device of the port that is judged. */
const json_t *exam_adapter(const struct exam *x);

/* The machine itself, for what is no fact of its own: the devices near a device. Not evidence. */
const json_t *exam_machine(const struct exam *x);
/* What is there in it, or in any object; NULL: absent. Not evidence. */
const json_t *exam_peek(const struct exam *x, const char *path);
/* Has this check a result for the subject already? */
bool exam_has(const struct exam *x, const char *subject);

/* The PCI function at that address; NULL: not in the list. Not evidence. */
const json_t *exam_device(const struct exam *x, const char *address);

/* Is it known that this is a guest; that it is none? */
bool exam_guest(const struct exam *x);
bool exam_metal(const struct exam *x);

/* ---- For checks: results for what is judged. Texts are copied. What is returned, the latest result,
 * may be changed; it is never NULL. */

#define EXAM_PRINTF(text, args) __attribute__((format(printf, text, args)))

struct exam_result *exam_fine(struct exam *x); /* where the subject was changed */
struct exam_result *exam_found(struct exam *x, const char *format, ...) EXAM_PRINTF(2, 3);
struct exam_result *exam_unknown(struct exam *x, const char *format, ...) EXAM_PRINTF(2, 3);
/* Only where there is a reason worth showing. */
struct exam_result *exam_not_applicable(struct exam *x, const char *format, ...) EXAM_PRINTF(2, 3);
/* Of the latest result, with what stands in braces as of exam_fill(). */
struct exam_result *exam_remedy(struct exam *x, const char *format, ...) EXAM_PRINTF(2, 3);
/* A cost that was computed: `share` of the rate is lost, by `formula`. of: a literal. */
struct exam_result *exam_price(struct exam *x, double share, const char *of, const char *formula,
                               ...) EXAM_PRINTF(4, 5);
/* The same of a part that is left of the whole: "1 - 10/25 Gb/s". */
struct exam_result *exam_price_rest(struct exam *x, double rest, double whole, const char *of,
                                    const char *unit);
struct exam_span;
/* The text with what stands in braces: "{}" is the subject, "{link.port}" a fact of what is judged,
 * or of the machine, "{rings.rx_max|4096}" one that may be missing; of a span, unless it is NULL,
 * "{bad}", "{all}", "{percent}" and "{when}". */
const char *exam_fill(struct exam *x, const char *text, const struct exam_span *span);

/* ---- For checks: counters since boot, and how they grew between two readings of them, with which
 * the machine was recorded, or that two records of one boot are */

/* Days since boot, to judge a counter by. False: not known, or so few minutes that most of what was
 * counted is of the boot itself; an unknown was added. */
bool exam_days(struct exam *x, double *days);
/* Of so many events in these days, too many to be chance and too few for a fault: they may have come
 * slowly, or all last night. Adds the unknown. what: "PCIe errors in"; "replays in at most". */
void exam_undated(struct exam *x, double count, const char *what, double days);
/* Seconds between the readings; 0: there was one. */
double exam_watched(struct exam *x);
/* How the sum of those of an object's counters that it has grew (keys ends in NULL). False: it was
 * read once, or one of them began anew. */
bool exam_grown(struct exam *x, const json_t *object, const char *counters, const char *const *keys,
                double *total);

/* Of all packets, how many bad ones are a fault: more than `least`, and a larger share than `limit`,
 * where there are so many packets that one of them would be within the limit.
 * bad, all: keys of counters (bad_in, all_in), each ends in NULL. */
struct exam_share {
    const char *bad_in, *const *bad;
    const char *all_in, *const *all;
    double limit, least;
};

enum exam_when {
    EXAM_FEW,      /* no fault, whenever they came */
    EXAM_NOW,      /* a fault, between the readings, or since a boot of today */
    EXAM_UNDATED,  /* a fault if they came lately, which is not known, or went on like that */
    EXAM_NOT_READ, /* an unknown was added */
};

/* What decided: so many, and the time, "within 2 s" or "in 0.4 days since boot". */
struct exam_span {
    double bad, all;
    const char *text;
    bool brief; /* undated: above the limit between the readings, and no more than `least` */
};

enum exam_when exam_share_when(struct exam *x, const json_t *object, const struct exam_share *share,
                               struct exam_span *span);
/* Events of which a sound machine has few: `most`, whenever they came, and `per_day` in the long run.
 * Above that rate, more than `at_once` between two readings of one day are a fault. */
struct exam_rate {
    const char *in, *const *keys; /* as exam_grown() */
    double per_day, most, at_once;
};

enum exam_when exam_rate_when(struct exam *x, const json_t *object, const struct exam_rate *rate,
                              struct exam_span *span);

/* What counters may say of an object: either a rate, or a share of traffic, or what `when` finds of
 * it. A table of them ends without any. */
struct exam_event {
    const struct exam_rate *rate;
    const struct exam_share *share;
    enum exam_when (*when)(struct exam *x, const json_t *object, struct exam_span *span);
    const char *found;   /* "its line went up or down {bad} times {when}": see exam_fill() */
    const char *undated; /* "changes of its line in", as of exam_undated() */
    const char *remedy;  /* NULL: that of the check */
};

/* Adds what is found of the first that is a fault, else the unknown of the first that may be one,
 * and returns which of them there was. */
enum exam_when exam_events(struct exam *x, const json_t *object, const struct exam_event *events);

/* A part of a time, or of periods: more than `limit` is a fault. Between two readings it takes
 * `enough` of the whole, or a share of `sure`; and `least` of the part in any case. */
struct exam_part {
    const char *bad, *all; /* keys of an object's "grown" */
    double limit, sure, least, enough;
};

/* bad, all: since boot. Never EXAM_NOT_READ. */
enum exam_when exam_part_when(struct exam *x, const json_t *object, const struct exam_part *part,
                              double bad, double all, struct exam_span *span);

/* Adds the unknown of EXAM_UNDATED. what: as of exam_undated(). */
void exam_share_undated(struct exam *x, const struct exam_span *span, const char *what);

/* ---- What judges of several areas ask */

/* What a variable that steers libraries is set to; "" where it is not. Not evidence. */
const char *exam_variable(const struct exam *x, const char *name);
/* CPUs that the process may run on; 0: not known. */
double exam_allowed(struct exam *x);
/* Is the process one of several that a launcher started? */
bool exam_launched(struct exam *x);
/* Those that all ranks of the host may use, of which this one may use `own`; `own`, where it has no
 * launcher. NULL: those of the others are not known. */
const char *exam_job_cpus(struct exam *x, const char *own);
/* The interface of that name; NULL: not in the list. Not evidence, as the others of interfaces. */
const json_t *exam_nic(const struct exam *x, const char *name);
/* Is the PCI function an adapter; a GPU? */
bool exam_is_nic(const json_t *device);
bool exam_is_gpu(const json_t *device);
/* Are both functions known to be of one board? One device id is sold as boards of several rates. */
bool exam_same_board(const json_t *a, const json_t *b);
/* Is a device, or its interface, in hardware: "physical", "passthrough" or "sriov-vf"? */
bool exam_is_hardware(const json_t *device);
bool exam_is_active(const json_t *port);
/* The rate of an RDMA device's fastest active port; 0: none is known. */
double exam_port_gbits(const json_t *device);
/* How many GPUs the NVIDIA driver runs. */
size_t exam_nvidia_gpus(const struct exam *x);
bool exam_has_nvidia(struct exam *x);
/* How many NUMA nodes have CPUs: those of memory alone (of a GPU, CXL) have none. */
size_t exam_cpu_nodes(const struct exam *x);
/* Is it up, and neither loopback nor made of software? */
bool exam_nic_is_real(const json_t *nic);
/* Its rate; bonds have that of their members. 0: not known, or of other software, which makes it up. */
double exam_nic_gbits(const json_t *nic);
double exam_nic_speed(struct exam *x, const json_t *nic); /* the same, as evidence */
/* The fastest of the machine, interface, or port that is active and does RDMA, or either; 0: none is
 * known. */
double exam_fastest_nic(const struct exam *x);
double exam_fastest_port(const struct exam *x);
double exam_fastest(const struct exam *x);
/* May programs do RDMA between hosts by this device? Not by one of software, nor by the Ethernet
 * function of Hyper-V and Azure that is the fast way of an interface of hv_netvsc: that network
 * carries no RDMA. */
bool exam_does_rdma(const struct exam *x, const json_t *device);
/* Is there such a device? which: of them; NULL: any. */
bool exam_has_adapter(const struct exam *x, bool (*which)(const json_t *device));
/* Is it known that the process runs in a container? /sys then shows devices that it was not given. */
bool exam_contained(const struct exam *x);
/* Are these NUMA nodes one, or of one socket? */
bool exam_near(const struct exam *x, double node, double other);
/* A copy in the exam's memory. */
const char *exam_format(struct exam *x, const char *format, ...) EXAM_PRINTF(2, 3);

#endif
