/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Offers to buy: how many samples each gives for money and for energy. docs/forecast.md has the
 * format of the file, each formula, and an example by hand.
 *
 *   offers_read()   a file of offers
 *   offers_make()   a forecast of each
 *   offers_show()   one table; offers_print_json() the same as JSON
 *
 * Money, energy and time are of all nodes of an offer over the whole time that they are used. The
 * ratio of an offer to the first has an interval by pairs: an error of a measured part that both
 * offers stand on is at the same end in both, and mostly cancels. What each buys anew (how its
 * slowest host turns out, what the core of its network carries) is its own.
 */
#ifndef PLUMB_FORECAST_OFFER_H
#define PLUMB_FORECAST_OFFER_H

#include "harness/forecast/forecast.h"

#define OFFERS_MAX     8
#define OFFER_RUNS_MAX 8
#define OFFER_YEAR_S   (365.25 * 24 * 3600)
#define OFFER_KWH_J    3.6e6

struct offer {
    const char *name;
    const char *swap;                 /* as --swap; NULL: none */
    const char *runs[OFFER_RUNS_MAX]; /* n_runs; 0: those of the command line */
    size_t n_runs;
    double nodes;
    double per_node;   /* ranks of a node; 0: as measured */
    double compute_s;  /* as --compute; NaN: as of the command line */
    double node_price; /* of each */
    double node_watts; /* while a job runs */
};

struct offers {
    const char *path, *currency;
    double energy_price; /* of 1 kWh */
    double years;        /* that nodes are used */
    double use;          /* share of them in which a job runs */
    struct offer all[OFFERS_MAX];
    size_t n;
};

/* 0; -EINVAL with error "file:line: what"; other -errno. Texts are of the pool. */
int offers_read(struct pool *pool, const char *path, struct offers *offers, char *error,
                size_t len);

struct offer_bill {
    double money;        /* all of it */
    double energy_money; /* of that, for energy */
    double joules;
    double working_s; /* in which a job runs */
};

struct offer_bill offer_bill(const struct offers *terms, const struct offer *offer);

/* An offer with its forecast. */
struct offer_case {
    const struct offer *offer;
    struct forecast f;
    struct forecast_point point; /* of the offer's nodes */
};

enum offer_measure { OFFER_MONEY, OFFER_ENERGY, OFFER_MEASURES };

/* Samples for a unit of money, or for a joule; or that of an offer / that of the first. */
struct offer_value {
    double value, low, high; /* NaN: no forecast */
};

struct offer_value offer_value(const struct offers *terms, const struct offer_case *c,
                               enum offer_measure measure);
struct offer_value offer_ratio(const struct offers *terms, const struct offer_case *c,
                               const struct offer_case *first, enum offer_measure measure);

/* ---- all of them ---- */

struct offers_made {
    struct offers offers;
    struct offer_case cases[OFFERS_MAX];
    struct parts parts[OFFERS_MAX]; /* of those that name runs */
    struct report *reports[OFFERS_MAX];
};

/* How runs of an offer are read: as those of the command line. All offers are of one job, so their
 * products are of one data type. */
struct offer_source {
    const struct bench_list *benches;
    const char *dtype; /* of the base's products; NULL: it has none */
    const char *over;
    double per_node; /* 0: as sums were measured */
};

/* made->offers was read. `base` is a forecast of the command line's runs. 0, or -errno with error
 * set. */
int offers_make(struct offers_made *made, struct pool *pool, const struct forecast *base,
                const struct offer_source *from, char *error, size_t len);
void offers_release(struct offers_made *made);

void offers_show(struct pool *pool, struct document *d, const struct offers_made *made);
int offers_print_json(FILE *out, const struct offers_made *made); /* 0 or -EIO */

#endif
