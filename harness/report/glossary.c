/* SPDX-License-Identifier: Apache-2.0 */
/* The words of the field, and our own, for who meets them first here: see glossary.h. */
#include "harness/report/glossary.h"

static const struct document_term terms[] = {
    {"launch",
     "One start of a benchmark's process. Each case is launched several times, because two "
     "launches differ more than the samples inside one."},
    {"case", "A benchmark with one set of parameters, and one metric of it."},
    {"value",
     "The median of a launch's samples. Over several launches: the geometric mean of their "
     "medians, as in comparisons and histories."},
    {"+/-",
     "Where the true value is with 95 % confidence. Of one launch: an interval of its median "
     "without an assumption on the distribution, which allows for correlation in time. Of "
     "several: Student's t on the logarithms of their medians. -30/+69 % is from 30 % below "
     "to 69 % above."},
    {"smallest detectable loss", "The loss that plumb compare would prove, four times in five, "
                                 "between this run and another one like it."},
    {"limit",
     "The most that is physically possible here. The column limit_source of each row names "
     "its source. Over several launches the highest counts."},
    {"ref.",
     "Not a limit, but the best of the same work on this machine: nothing is judged by it."},
    {"normal",
     "The whole interval lies above the share of the limit below which this test is low."},
    {"low", "The whole interval lies below that share."},
    {"slow", "One device or link is slower than others of its kind. The note names it."},
    {"undecided",
     "The interval reaches across that share, or there is none: more launches decide."},
    {"best of", "So many cases were measured, and this one is the best: chance alone puts it above "
                "what it gives the next time."},
    {"noisy", "The interval was wider than asked when the time was up."},
    {"alternates", "Samples, or launches, fall on two separate values. A median between them would "
                   "hide it."},
    {"steal", "Time in which a virtual CPU had work and the host gave its CPU to others."},
    {"throttled", "The device slowed itself, for heat or power."},
    {"triad", "A loop over three arrays, a = b + x * c: two reads and a write, as STREAM has it."},
    {"nt", "Non-temporal stores: they go to memory without a read of the line before."},
    {"page walk", "The look-up of an address in the tables of pages, when the TLB lacks it."},
    {"cma", "Cross-memory attach: the kernel copies from the memory of another process."},
    {"shm", "Memory that two processes share."},
    {"lo", "The loopback interface: packets that do not leave the machine."},
    {"rank", "One process of a collective operation."},
    {"Allreduce", "Each rank has a vector, and gets the sum of all of them."},
    {"busbw", "Bus bandwidth: the rate of a collective, times the share of the data that each link "
              "has to carry. It can be held against the link's rate."},
    {"ceilings", "The fastest that simple loops reach at this place: where no datasheet is known, "
                 "they are the limit."},
    {"GB/s", "1e9 bytes a second; Gb/s is 1e9 bits. Sizes are binary: 64K is 65536 bytes."},
    {"TFLOP/s", "1e12 operations a second. A dense product has 2mnk."},
};

void glossary_link(struct document *d)
{
    document_link_terms(d, terms, sizeof(terms) / sizeof(*terms));
}

void glossary_list(struct document *d)
{
    document_terms(d, terms, sizeof(terms) / sizeof(*terms));
}
