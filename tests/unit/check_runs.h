/* SPDX-License-Identifier: Apache-2.0 */
/* Small run folders for tests of the history and the gate. */
#ifndef PLUMB_TESTS_CHECK_RUNS_H
#define PLUMB_TESTS_CHECK_RUNS_H

#include "fake_run.h"

#define CHECK_CASES 3

struct check_run {
    const char *name, *host, *suite, *started_utc;
    double values[CHECK_CASES]; /* GB/s; 0: skipped */
    unsigned launches;
};

/* In the folder f/NAME; launch l of a case has its value times 1 + l/1000. */
static inline void check_run_write(const struct fake_run *f, const struct check_run *r, char *path,
                                   size_t len)
{
    struct fake_run in;
    unsigned order = 0;

    if ((size_t)snprintf(in.path, sizeof(in.path), "%s/%s", f->path, r->name) >= sizeof(in.path))
        abort();
    snprintf(path, len, "%s", in.path);
    mkdir(in.path, 0755);
    FILE *meta = fake_run_open(&in, "run.json", "w");
    fprintf(meta,
            "{\"schema\": 3, \"run\": \"%s\", \"suite\": \"%s\", \"version\": \"1.2\","
            " \"commit\": \"abc\", \"started_utc\": \"%s\", \"state\": \"complete\","
            " \"machine\": {\"host\": {\"hostname\": \"%s\"}}}\n",
            r->name, r->suite, r->started_utc, r->host);
    fclose(meta);
    FILE *plan = fake_run_open(&in, "plan.csv", "w"), *rows = fake_run_open(&in, "memory.csv", "w");
    fputs(FAKE_PLAN_HEADER, plan);
    fputs("op,metric,unit,value,ci_low,ci_high,confidence,samples,limit,stop,origin,status,reason,"
          "run,case,repeat,host,time_utc\n",
          rows);
    for (unsigned c = 0; c < CHECK_CASES; c++)
        for (unsigned l = 0; l < r->launches; l++) {
            double value = r->values[c] * (1 + l * 0.001);

            fprintf(plan, "%s,1,%u,c%u,%u,memory,--op op%u,60\n", value > 0 ? "done" : "skip",
                    order++, c, l, c);
            fprintf(rows, "op%u,bandwidth,GB/s,", c);
            if (value > 0)
                fprintf(rows, "%.17g,%.17g,%.17g,0.95,10,,converged,measured,ok,", value,
                        0.99 * value, 1.01 * value);
            else
                fputs(",,,,,,,measured,skipped,no such thing", rows);
            fprintf(rows, ",%s,c%u,%u,%s,%s\n", r->name, c, l, r->host, r->started_utc);
        }
    fclose(plan);
    fclose(rows);
}

#endif
