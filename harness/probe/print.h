// SPDX-License-Identifier: Apache-2.0
/* The parts of probe_print(). Each reads one part of the object and prints it, with its heading. */
#ifndef PLUMB_PROBE_PRINT_H
#define PLUMB_PROBE_PRINT_H

#include <jansson.h>
#include <stdio.h>

/* The text under key, or "?". */
const char *print_text(const json_t *object, const char *key);

/* The number under key, or "?". */
const char *print_integer(const json_t *object, const char *key, char buf[24]);

/* Bytes as "32 KiB", "23.5 GiB". */
const char *print_bytes(double bytes, char buf[32]);

/* The line of a section: two blanks, the label in a column of its own, the text. */
void print_line(FILE *out, const char *label, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

void print_machine(FILE *out, const json_t *machine);
void print_processor(FILE *out, const json_t *machine);
void print_memory(FILE *out, const json_t *machine);
void print_pci(FILE *out, const json_t *machine);
void print_network(FILE *out, const json_t *machine);
void print_rdma(FILE *out, const json_t *machine);
void print_gpus(FILE *out, const json_t *machine);
void print_gpu_links(FILE *out, const json_t *machine, const json_t *gpus);
void print_gpu_pairs(FILE *out, const json_t *gpus);
void print_findings(FILE *out, const json_t *machine);

#endif
