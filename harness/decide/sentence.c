/* SPDX-License-Identifier: Apache-2.0 */
/* Decisions in words. */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "harness/decide/decide.h"

#define MORE_DIGITS_MAX 6
#define RUNS_TO_TELL    2 /* baselines beside one, so that three tell how runs differ */

struct words {
    char *text;
    size_t len, used;
};

__attribute__((format(printf, 2, 3))) static void say(struct words *w, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    int n = vsnprintf(w->used < w->len ? w->text + w->used : NULL,
                      w->used < w->len ? w->len - w->used : 0, format, arguments);
    va_end(arguments);
    w->used += n > 0 ? (size_t)n : 0;
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
        [OBSTACLE_ONE_LAUNCH] = "one launch",
        [OBSTACLE_FEW] = "few launches",
        [OBSTACLE_RUNS] = "runs unknown",
        [OBSTACLE_TOGETHER] = "together",
        [OBSTACLE_STRANGE] = "strange run",
        [OBSTACLE_SHAPE] = "few runs",
    };

    return names[obstacle];
}

const char *decide_figure_name(enum decide_figure figure)
{
    static const char *const names[] = {
        [DECIDE_BY_MEDIAN] = "medians", [DECIDE_BY_SUSTAINED] = "sustained"};

    return names[figure];
}

/* Two digits of what is below 10 %, and no false ones above. */
static double percent(double ratio, int *digits)
{
    double p = 100 * fabs(ratio - 1);

    *digits = p < 0.095 ? 2 : p < 9.95 ? 1 : 0;
    return p;
}

/* "a loss of 4.9 %"; `more` digits than are usual. */
static void say_change(struct words *w, double ratio, int more)
{
    int digits;
    double p = percent(ratio, &digits);

    if (p < (more ? 0.5 * pow(10, -digits - more) : 0.005))
        say(w, "no change");
    else if (p >= 1e4)
        say(w, "a %s of %.*g %%", ratio < 1 ? "loss" : "gain", 2 + more, p);
    else
        say(w, "a %s of %.*f %%", ratio < 1 ? "loss" : "gain", digits + more, p);
}

static bool reads_alike(double x, double y, int more)
{
    char texts[2][96];

    for (int i = 0; i < 2; i++) {
        struct words w = {.text = texts[i], .len = sizeof(texts[i])};

        say_change(&w, i ? y : x, more);
    }
    return !strcmp(texts[0], texts[1]);
}

/* Digits until the ends of the interval read differently; those of one value never do. */
static int more_digits(const struct decide_case *c)
{
    for (int more = 0; more <= MORE_DIGITS_MAX; more++)
        if (!reads_alike(c->low, c->high, more))
            return more;
    return 0;
}

static void say_range(struct words *w, const struct decide_case *c)
{
    int more = more_digits(c);

    say(w, "between ");
    say_change(w, c->low, more);
    say(w, " and ");
    say_change(w, c->high, more);
}

static void say_margin(struct words *w, const struct decide_case *c)
{
    say(w, "the margin of %.3g %%", 100 * c->margin);
}

static void say_equivalent(struct words *w, const struct decide_case *c)
{
    say(w, "equivalent: ");
    say_range(w, c);
    say(w, ", within ");
    say_margin(w, c);
    if (c->proven) {
        say(w, "; ");
        say_change(w, c->ratio, more_digits(c));
        say(w, " is proven all the same");
    }
}

/* Which figure proves it, and what the other one shows. */
static void say_figure(struct words *w, const struct decide_case *c)
{
    struct decide_case median = *c;

    if (c->judged_by == DECIDE_BY_MEDIAN)
        return;
    median.low = c->median_low;
    median.high = c->median_high;
    say(w, "; by all work over all time (sustained). The medians show ");
    say_change(w, c->median_ratio, 0);
    say(w, ", ");
    say_range(w, &median);
}

static void say_changed(struct words *w, const struct decide_case *c)
{
    say(w, "%s: ", decision_name(c->decision));
    say_change(w, c->ratio, more_digits(c));
    say(w, " is proven, ");
    say_range(w, c);
    if (c->beyond) {
        say(w, ": all of it beyond ");
        say_margin(w, c);
    }
    say_figure(w, c);
}

static void say_more(struct words *w, const struct decide_case *c)
{
    const char *what = c->more_of_a ? "baseline" : c->by_runs ? "run" : "launch";
    const char *plural = c->by_runs ? "s" : "es";

    if (c->more_launches)
        say(w, "; %zu more %s%s%s would decide, if nothing else changes", c->more_launches, what,
            c->more_launches == 1 ? "" : plural, c->more_of_a ? "" : " a side");
    else
        say(w, "; more %s%s of this spread would hardly decide", what, plural);
}

/* Why nothing is proven; false: by the spread alone. */
static bool say_doubt(struct words *w, const struct decide_case *c)
{
    switch (c->obstacle) {
    case OBSTACLE_FEW:
        say(w,
            c->by_runs && c->by_pairs ? ", seen in fewer than %d runs a side, which two levels "
                                        "between runs would look like, too"
                                      : ", seen in fewer than %d launches a side, which two levels "
                                        "between launches would look "
                                        "like, too",
            DECIDE_FEW_LAUNCHES);
        return true;
    case OBSTACLE_TOGETHER:
        say(w, ", together with many others, as where a run comes up slower in all");
        return true;
    case OBSTACLE_STRANGE:
        say(w, ", likely, not proven: a run of the baseline that is apart from the others was as "
               "far off");
        return true;
    case OBSTACLE_SHAPE:
        say(w, ", likely, not proven: too few runs are known to tell how far off one can be");
        return true;
    default:
        return false;
    }
}

static void say_inconclusive(struct words *w, const struct decide_case *c)
{
    int digits;
    double detectable = percent(1 - c->detectable, &digits);

    say(w, "inconclusive: ");
    say_range(w, c);
    if (!say_doubt(w, c))
        say(w, ", neither a change nor equivalence within %.3g %%", 100 * c->margin);
    say_more(w, c);
    say(w, "; a loss below %.*f %% may go unseen", digits, detectable);
}

/* By the launches alone it is no verdict. */
static void say_runs_unknown(struct words *w, const struct decide_case *c)
{
    say(w, "inconclusive: ");
    say_change(w, c->ratio, more_digits(c));
    say(w, " in one run against one, which does not show how runs differ: add %d baselines",
        RUNS_TO_TELL);
}

static void say_slipped(struct words *w, const struct decide_case *c)
{
    int digits;
    double low = percent(c->anchor_low, &digits), high = percent(c->anchor_high, &digits);

    say(w, "worse: slipped, ");
    say_change(w, c->anchor_ratio, 0);
    say(w, " since the first baselines (%.1f to %.1f %%, all of it beyond ", high, low);
    say_margin(w, c);
    say(w, "), in steps too small to show against the last ones");
    say_figure(w, c);
}

static void say_obstacle(struct words *w, const struct decide_case *c)
{
    switch (c->obstacle) {
    case OBSTACLE_NO_VALUE:
        say(w, "inconclusive: a side has no value");
        break;
    case OBSTACLE_BAD_VALUE:
        say(w, "inconclusive: a value is not a number above 0, and cannot be compared");
        break;
    default:
        say(w, "inconclusive: ");
        say_change(w, c->ratio, 0);
        say(w, " in one launch on a side, which shows no spread: measure at least %d launches",
            DECIDE_FEW_LAUNCHES);
    }
}

int decide_sentence(const struct decide_case *c, char *text, size_t len)
{
    struct words w = {.text = text, .len = len};

    if (len == 0)
        return -ENOSPC;
    text[0] = '\0';
    if (isnan(c->error))
        say_obstacle(&w, c);
    else if (c->obstacle == OBSTACLE_RUNS)
        say_runs_unknown(&w, c);
    else if (c->slipped)
        say_slipped(&w, c);
    else if (c->decision == DECISION_EQUIVALENT)
        say_equivalent(&w, c);
    else if (c->decision == DECISION_INCONCLUSIVE)
        say_inconclusive(&w, c);
    else
        say_changed(&w, c);
    return w.used < len ? 0 : -ENOSPC;
}
