/* SPDX-License-Identifier: Apache-2.0 */
/* Measured steps beside their forecasts, as a document: see forecast.h. */
#include <math.h>
#include <string.h>

#include "harness/forecast/forecast.h"

static const char *add_words(struct pool *pool, const char *words, const char *more)
{
    return pool_text(pool, "%s%s%s", words, *words ? ", " : "", more);
}

static const char *add_count(struct pool *pool, const char *words, const char *format, double n)
{
    return n > 1 ? add_words(pool, words, pool_text(pool, format, n)) : words;
}

static double ratio_of(const struct forecast_check *c)
{
    return c->point.time.step_s / c->step->s;
}

static bool is_near(const struct forecast_check *c)
{
    return fabs(ratio_of(c) - 1) <= CHECK_NEAR;
}

static bool is_inside(const struct forecast_check *c)
{
    return c->point.low_s <= c->step->s && c->step->s <= c->point.high_s;
}

void forecast_answer_checks(struct pool *pool, struct document *d, const struct forecast *f)
{
    struct forecast_check *checks = pool_alloc(pool, f->parts->n_steps, sizeof(*checks));
    size_t n = forecast_checks(f, checks), made = 0, near = 0, inside = 0;
    double least = HUGE_VAL, most = 0;

    for (; made < n && checks[made].left == CHECK_MADE; made++) {
        least = fmin(least, ratio_of(&checks[made]));
        most = fmax(most, ratio_of(&checks[made]));
        near += is_near(&checks[made]);
        inside += is_inside(&checks[made]);
    }
    if (made == 1)
        document_answer(
            d, "Check", "", inside ? TONE_NONE : TONE_LOW,
            pool_text(pool,
                      "the forecast of the one measured step is %.0f %% of its measured "
                      "time, which is %s the interval",
                      100 * least, inside ? "in" : "outside of"));
    else if (made)
        document_answer(d, "Check", "", inside == made ? TONE_NONE : TONE_LOW,
                        pool_text(pool,
                                  "forecasts of %zu measured steps are %.0f to %.0f %% of their "
                                  "measured times: %zu within %.0f %%, %zu in their interval",
                                  made, 100 * least, 100 * most, near, 100 * CHECK_NEAR, inside));
    else if (n)
        document_answer(d, "Check", "", TONE_LOW,
                        pool_text(pool, "no measured step has a forecast: %s",
                                  forecast_check_why(pool, f, &checks[0])));
    if (made && n > made)
        document_answer_more(
            d, pool_text(pool, "%zu more are left out: see Measured steps", n - made), "");
}

static const struct document_column columns[] = {
    {.name = "Ranks", .number = true},
    {.name = "Step"},
    {.name = "Measured ms", .number = true},
    {.name = "Forecast ms", .number = true},
    {.name = "+/-"},
    {.name = "Forecast / measured", .number = true},
    {.name = "Word"},
};

static void add_row(struct pool *pool, struct document *d, const struct forecast *f,
                    struct document_table *t, const struct forecast_check *c)
{
    struct cell *row = document_row(t);
    const struct forecast_point *p = &c->point;

    row[0] = cell_text(pool_text(pool, "%.0f", c->step->ranks));
    /* "ZeRO 1, 2 stages": what of a measured step is not the default. */
    const char *words = pool_text(pool, "buckets of %.4g MB", c->step->bucket / 1e6);

    if (!c->step->overlap)
        words = add_words(pool, words, "no overlap");
    if (c->step->zero > 0)
        words = add_words(pool, words, pool_text(pool, "ZeRO %.0f", c->step->zero));
    words = add_count(pool, words, "tensor parallel %.0f", c->step->tp);
    words = add_count(pool, words, "%.0f stages", c->step->pp);
    words = add_count(pool, words, "%.0f micro-batches", c->step->micro);
    words = add_count(pool, words, "experts over %.0f", c->step->ep);
    if (c->step->servers > 0)
        words = add_words(pool, words, pool_text(pool, "servers: %.0f", c->step->servers));
    if (*c->step->update && strcmp(c->step->update, "none") != 0)
        words = add_words(pool, words, c->step->update);
    row[1] = cell_text(words);
    row[2] = cell_value(1e3 * c->step->s, "");
    if (c->left != CHECK_MADE) {
        row[6] = cell_word("left out", TONE_NONE);
        cell_note(&row[6], document_note(d, forecast_check_why(pool, f, c)));
        return;
    }
    row[3] = cell_value(1e3 * p->time.step_s, "");
    row[4] = cell_interval(p->time.step_s, p->low_s, p->high_s);
    row[5] = cell_text(document_percent(pool, 100 * ratio_of(c)));
    row[6] = is_near(c)     ? cell_word("agrees", TONE_NONE)
             : is_inside(c) ? cell_word("in the interval", TONE_NONE)
                            : cell_word("disagrees", TONE_LOW);
}

void forecast_show_checks(struct pool *pool, struct document *d, const struct forecast *f)
{
    struct forecast_check *checks = pool_alloc(pool, f->parts->n_steps, sizeof(*checks));
    size_t n = forecast_checks(f, checks);

    if (!n)
        return;
    document_heading(d, 2, "Measured steps", "measured-steps");
    struct document_table *t = document_table(d, columns, sizeof(columns) / sizeof(*columns));
    for (size_t i = 0; i < n; i++)
        add_row(pool, d, f, t, &checks[i]);
    document_notes(d);
}
