/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What leader and agent say to each other: one JSON object a line, on the agent's standard input and output.
 *
 *   leader  {"ask": "plan", "protocol": 2, "suite": ..., "config": ..., "seed": ..., "only": ...}
 *   agent   {"protocol": 2, "meta": run.json, "launches": [LAUNCH]}
 *   leader  {"ask": "launch", LAUNCH, "run"}
 *   agent   {"state": "done", "n_rows", "header", "rows", "samples", "log", "wrong", "summary", "elapsed_ns"}
 *   leader  {"ask": "keep", LAUNCH, "rows"}: when a run goes on, what a launch gave, header and rows (harness/run/kept.h)
 *   agent   {"kept": true}
 *
 * LAUNCH is "case", "repeat", "bench", "arguments", "timeout_ns" and, where the suite says one, "margin" (0.01: 1 %).
 *
 * An answer that is {"error": ...} instead says why there is none.
 */
#ifndef PLUMB_AGAINST_WIRE_H
#define PLUMB_AGAINST_WIRE_H

#include <jansson.h>

#include "harness/plan/plan.h"

/* 1 had no margins: taken for "the suite says none", cases would be judged by a wider one than it says. */
#define WIRE_PROTOCOL 2

/* Text of any bytes: those that are no UTF-8 become '?'. */
json_t *wire_text(const char *text);

/* Takes the message over. 0 or -errno. */
int wire_send(int fd, json_t *message);

json_t *wire_launch(const struct launch *l);
/* The other way; *l is released with its plan. 0, -EBADMSG: it lacks something, -ENOMEM. */
int wire_take_launch(const json_t *message, struct launch *l);

#endif
