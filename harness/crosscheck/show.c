/* SPDX-License-Identifier: Apache-2.0 */
/* The table for people: see check.h. */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "core/stats.h"
#include "core/text.h"
#include "core/units.h"
#include "harness/crosscheck/check.h"

const char *show_state(const struct comparison *m)
{
    static const char *const states[] = {"interrupted", "done", "absent", "skipped", "failed"};

    return states[m->state];
}

/* Of a rate or a time ours is faster or slower, of a cost cheaper or dearer. */
const char *show_verdict(const struct comparison *m)
{
    static const char *const speed[] = {"agree", "ours faster", "ours slower", "undecided"};
    static const char *const cost[] = {"agree", "ours cheaper", "ours dearer", "undecided"};

    if (m->state != COMPARISON_DONE)
        return "";
    return (strcmp(m->w->unit, "s/GB") != 0 ? speed : cost)[m->judgement.verdict];
}

double show_printed(const struct comparison *m)
{
    return stats_median(m->printed, m->pairs);
}

double show_printed_ratio(const struct comparison *m)
{
    return m->judgement.ratio * m->w->factor / m->w->as_printed;
}

void show_begin(FILE *out, const struct check *c)
{
    fprintf(
        out,
        "# ours against outside programs on this machine: %llu pair%s of %llu s each way, in "
        "turn; ratio = ours / theirs,\n#   both in the same unit and definition, with its 95 %% "
        "interval\n",
        (unsigned long long)c->options.pairs, c->options.pairs == 1 ? "" : "s",
        (unsigned long long)c->options.seconds);
    fprintf(out, "%-17s %9s %7s %11s %11s %-5s %7s %15s  %s\n", "witness", "size", "streams",
            "ours", "theirs", "unit", "ratio", "interval", "verdict");
}

static void note(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void note(FILE *out, const char *format, ...)
{
    va_list args;
    char *text = NULL;

    va_start(args, format);
    if (vasprintf(&text, format, args) >= 0)
        wrap_print(out, text, 4, 100);
    va_end(args);
    free(text);
}

static void interval_text(const struct judgement *j, char *text, size_t len)
{
    if (isnan(j->low) || isnan(j->high))
        snprintf(text, len, "not known");
    else
        snprintf(text, len, "%.3f to %.3f", j->low, j->high);
}

static void say_undecided(FILE *out, const struct judgement *j, double margin)
{
    if (isnan(j->low) || isnan(j->high))
        note(out, "undecided: an interval takes %d pairs or more", JUDGE_PAIRS_MIN);
    else if (j->pairs_wanted)
        note(out,
             "undecided: no difference is proven, nor that it is below %g %%; about %zu pairs "
             "would decide",
             100 * margin, j->pairs_wanted);
    else
        note(out, "undecided: no difference is proven, nor that it is below %g %%", 100 * margin);
}

static void say_difference(FILE *out, const struct comparison *m)
{
    if (m->judgement.suspect)
        note(out, "the ratio is that of %s: is its definition another one in this version",
             m->judgement.suspect);
    if (m->w->notes)
        note(out, "what differs all the same: %s", m->w->notes);
}

static void say_definition(FILE *out, const struct comparison *m)
{
    double printed_ratio = show_printed_ratio(m);

    if (m->w->factor != m->w->as_printed)
        note(out, "as printed (%.6g %s) the ratio would be %.3f", show_printed(m),
             m->w->printed_unit, printed_ratio);
    if (m->w->converted)
        note(out, "converted: %s", m->w->converted);
}

static void show_done(FILE *out, const struct comparison *m)
{
    const struct judgement *j = &m->judgement;
    char size[32], interval[48];

    units_format_bytes(m->w->size, size, sizeof(size));
    interval_text(j, interval, sizeof(interval));
    fprintf(out, "%-17s %9s %7llu %11.5g %11.5g %-5s %7.3f %15s  %s\n", m->w->name, size,
            (unsigned long long)m->w->streams, j->ours, j->theirs, m->w->unit, j->ratio, interval,
            show_verdict(m));
    note(out, "%s %s; CPUs %s; %s", m->w->program, *m->version ? m->version : "(no version)",
         *m->last.cpus ? m->last.cpus : "any", m->last.detail);
    say_definition(out, m);
    if (j->verdict == VERDICT_UNDECIDED)
        say_undecided(out, j, m->w->margin);
    else if (j->verdict != VERDICT_AGREE)
        say_difference(out, m);
}

void show_comparison(FILE *out, const struct check *c, const struct comparison *m)
{
    (void)c;
    if (m->state == COMPARISON_DONE)
        show_done(out, m);
    else
        fprintf(out, "%-17s %s%s%s\n", m->w->name, show_state(m), *m->reason ? ": " : "",
                m->reason);
    fflush(out);
}

void show_end(FILE *out, const struct check *c)
{
    fprintf(out, "\n%s/: crosscheck.csv, pairs.csv, log/\n", c->folder);
}
