/* SPDX-License-Identifier: Apache-2.0 */
/* Decisions in words. */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "harness/decide/decide.h"

#define DIGITS_MAX 6

struct sentence {
    char *text;
    size_t len, used;
};

__attribute__((format(printf, 2, 3))) static void say(struct sentence *w, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    int n = vsnprintf(w->used < w->len ? w->text + w->used : NULL,
                      w->used < w->len ? w->len - w->used : 0, format, arguments);
    va_end(arguments);
    w->used += n > 0 ? (size_t)n : 0;
}

double decide_detectable_percent(double share)
{
    double percent = 100 * share, step = pow(10, floor(log10(percent)) - 1);

    return ceil(percent / step - 1e-6) * step;
}

const char *decision_name(enum decision decision)
{
    static const char *const names[] = {
        [DECISION_EQUIVALENT] = "equivalent",
        [DECISION_BETTER] = "better",
        [DECISION_WORSE] = "worse",
        [DECISION_INCONCLUSIVE] = "inconclusive",
    };

    return names[decision];
}

const char *decide_obstacle_name(enum decide_obstacle obstacle)
{
    static const char *const names[] = {
        [OBSTACLE_NONE] = "",
        [OBSTACLE_NO_VALUE] = "no value",
        [OBSTACLE_BAD_VALUE] = "bad value",
        [OBSTACLE_ONE_LAUNCH] = "one repetition",
        [OBSTACLE_FEW] = "few repetitions",
        [OBSTACLE_RUNS] = "runs unknown",
        [OBSTACLE_TOGETHER] = "together",
        [OBSTACLE_STRANGE] = "outlier",
        [OBSTACLE_SHAPE] = "few runs",
    };

    return names[obstacle];
}

const char *decide_figure_name(enum decide_figure figure)
{
    return figure == DECIDE_BY_SUSTAINED ? "sustained" : "medians";
}

static double change(double ratio)
{
    return 100 * (ratio - 1);
}

/* "-6.2 % (-7.4 to -5.0)" */
static void say_change(struct sentence *w, double ratio, double low, double high)
{
    /* One digit below 10 %, and as many as it takes until the ends of the interval read
     * differently. */
    int digits = fabs(change(low)) < 9.95 && fabs(change(high)) < 9.95;

    while (high > low && digits < DIGITS_MAX &&
           fabs(change(high) - change(low)) < 2 * pow(10, -digits))
        digits++;

    if (change(high) >= 1e4)
        say(w, "%+.3g %% (%+.3g to %+.3g)", change(ratio), change(low), change(high));
    else
        say(w, "%+.*f %% (%+.*f to %+.*f)", digits, change(ratio), digits, change(low), digits,
            change(high));
}

/* Which figure decides, and what the other one shows. */
static void say_figure(struct sentence *w, const struct decide_case *c)
{
    if (c->judged_by == DECIDE_BY_MEDIAN)
        return;
    say(w, " by the sustained rate; the medians alone: ");
    say_change(w, c->median_ratio, c->median_low, c->median_high);
}

static const char *doubt_of(const struct decide_case *c)
{
    switch (c->obstacle) {
    case OBSTACLE_FEW:
        return c->by_runs
                   ? ", with fewer than 5 runs in turn, which may all have met one of two modes"
                   : ", with fewer than 5 repetitions, which may all have met one of two modes";
    case OBSTACLE_TOGETHER:
        return ", together with many other cases, as when a whole run is slower";
    case OBSTACLE_STRANGE:
        return ", which is where one outlier among the baselines was";
    case OBSTACLE_SHAPE:
        return ", a likely change, but too few runs are known to tell how far a run can stray";
    default:
        return c->new_boot ? ", in a boot that no baseline is from, and how boots differ is unknown"
                           : "";
    }
}

static void say_inconclusive(struct sentence *w, const struct decide_case *c)
{
    say(w, "inconclusive: ");
    say_change(w, c->ratio, c->low, c->high);
    say_figure(w, c);
    say(w, "%s", doubt_of(c));
    if (c->obstacle == OBSTACLE_STRANGE || c->obstacle == OBSTACLE_TOGETHER)
        return;
    const char *what = c->more_of_a ? "baseline" : c->by_runs ? "run" : "repetition";

    if (c->more_launches)
        say(w, "; %zu more %s%s%s would decide", c->more_launches, what,
            c->more_launches == 1 ? "" : "s", c->more_of_a ? "" : " on each side");
    else
        say(w, "; more %ss would hardly decide", what);
    say(w, "; smallest detectable slowdown %.3g %%", decide_detectable_percent(c->detectable));
}

static void say_obstacle(struct sentence *w, const struct decide_case *c)
{
    switch (c->obstacle) {
    case OBSTACLE_NO_VALUE:
        say(w, "inconclusive: a side has no value");
        break;
    case OBSTACLE_BAD_VALUE:
        say(w, "inconclusive: a value is not a number above 0, so there is no ratio");
        break;
    case OBSTACLE_RUNS:
        if (c->new_boot)
            say(w,
                "inconclusive: %+.1f %%, in a boot that no baseline is from, and so few cases do "
                "not show how boots differ",
                change(c->ratio));
        else
            say(w,
                "inconclusive: %+.1f %%, but one run against one does not show how runs differ: "
                "add 2 baselines",
                change(c->ratio));
        break;
    default:
        say(w, "inconclusive: %+.1f %%, but one repetition shows no spread: measure at least %d",
            change(c->ratio), DECIDE_FEW_LAUNCHES);
    }
}

int decide_sentence(const struct decide_case *c, char *text, size_t len)
{
    struct sentence w = {.text = text, .len = len};

    if (len == 0)
        return -ENOSPC;
    text[0] = '\0';
    if (isnan(c->error) || c->obstacle == OBSTACLE_RUNS)
        say_obstacle(&w, c);
    else if (c->slipped) {
        say(&w, "worse: ");
        say_change(&w, c->anchor_ratio, c->anchor_low, c->anchor_high);
        say(&w,
            " against the first baselines, a drift in steps too small to show against the last");
        say_figure(&w, c);
    } else if (c->decision == DECISION_INCONCLUSIVE)
        say_inconclusive(&w, c);
    else {
        say(&w, "%s: ", decision_name(c->decision));
        say_change(&w, c->ratio, c->low, c->high);
        say_figure(&w, c);
        if (c->decision == DECISION_EQUIVALENT)
            say(&w, ", within the margin of %.3g %%%s", 100 * c->margin,
                c->proven ? ", though the change is proven" : "");
    }
    return w.used < len ? 0 : -ENOSPC;
}
