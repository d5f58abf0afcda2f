/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long an operation between ranks takes, at numbers of ranks that were not measured: honest or
 * silent. Pure functions. The time is that of scaling.h's model, t = A(n) a + B(n) S b, fitted to
 * the LAW_SIZES measured sizes nearest to S.
 *
 * What is said of n ranks, d doublings beyond the largest that was measured, or below the smallest,
 * has an interval of
 *
 *   1. one more measurement, by the fit's spread (fit_predict()),
 *   2. the error of what was held out: the fit without the largest number of ranks, against what
 *      was measured there, as a rate for each doubling; or how far it may be off by the spread,
 *      where that is more: little is known from few points,
 *   3. for each doubling LAW_UNSEEN at least: what no measurement of fewer ranks shows. Upwards also
 *      LAW_CORE, where nobody knows whether the core of the network carries what its edges do: all
 *      at once, since one rank behind another switch is enough. Of another network than the measured
 *      one also at measured numbers of ranks, beyond two,
 *   4. downwards the messages that another algorithm would save, whose number grows with log2 n,
 *   5. of a vector that is smaller than all measured ones: from what its bytes alone take to what the
 *      smallest measured one takes at most. Its messages are lost in the noise of large ones.
 *
 * Where other groups load the network at the same time, ranks of all groups count for LAW_CORE.
 *
 * All but the first grow with d. Refused, each with its own reason: fewer numbers of ranks
 * than two; a fit that does not describe its points, or would without one of them alone, or whose
 * points of one number of ranks, or what was held out, lie apart (another regime); more than
 * LAW_DOUBLINGS doublings; more bytes than LAW_BEYOND times the largest measured vector.
 */
#ifndef PLUMB_FORECAST_LAW_H
#define PLUMB_FORECAST_LAW_H

#include "harness/report/scaling.h"

#define LAW_DOUBLINGS 3.0
#define LAW_SIZES     3
#define LAW_BEYOND    8.0
#define LAW_UNSEEN    0.04   /* of the logarithm of the time, for each doubling */
#define LAW_CORE      0.6931 /* of a core with half the rate */
/* Of the logarithm of measured / predicted, where the noise does not explain it. */
#define LAW_REGIME 0.20

struct law {
    const struct bench_terms *terms;
    const struct fit_point *points; /* all that were measured */
    size_t n;
    bool core_known; /* it was said that the core of the network carries all that its edges do */
    bool core_other; /* the points are of another network, so that they show nothing of this core */
    double
        crowd; /* ranks that load the network at once, in several groups; 0: those that are asked for */
};

enum law_refusal {
    LAW_GIVEN,   /* a time is given */
    LAW_NOTHING, /* nothing was measured, or its terms are not known */
    LAW_ONE,     /* at one number of ranks alone */
    LAW_FEW,     /* too few points, or they do not tell messages from bytes */
    LAW_SHAPE,   /* the points do not have the model's shape */
    LAW_POINT,   /* all but one have it: that one was disturbed, or they all mislead */
    LAW_BREAK,   /* another regime at some number of ranks */
    LAW_FAR,     /* too many doublings */
    LAW_BYTES,   /* too many bytes */
    LAW_NODE,    /* inside one node and not between nodes, or the other way round: forecast.c */
    LAW_GROUPS,  /* of groups inside nodes, and of groups that share a node's link: forecast.c */
    LAW_MICRO,   /* of gradients that are scattered in each micro-batch of a pipeline: forecast.c */
    LAW_PLACED,  /* of ranks that are on nodes in another way than measured: forecast.c */
    LAW_MESSAGES, /* how much of the time are messages, which another network leaves: forecast.c */
    LAW_MEMORY,   /* the model does not fit into the memory of a rank's device: forecast.c */
    LAW_DIVIDED,  /* of ranks that the job's groups do not divide: forecast.c */
    LAW_REFUSALS
};

struct law_value {
    enum law_refusal refused;
    double us, low_us, high_us; /* NaN: refused */
    /* What messages take of it, by the same fit, with 95 %. 0: the fit is best without; NaN: not known. */
    double messages_us, messages_low_us, messages_high_us;
    double ranks;              /* that were asked for */
    double most_ranks;         /* the largest number that was measured */
    double doublings;          /* beyond it, or below the smallest; 0: within */
    double held_out;           /* predicted / measured at most_ranks, from fewer ranks; NaN: none */
    double held_from;          /* the largest number of those */
    double at_ranks;           /* LAW_BREAK, LAW_SHAPE, LAW_POINT: where */
    double at_bytes, at_ratio; /* LAW_POINT: measured / what the others say */
};

struct law_value law_at(const struct law *law, double ranks, double bytes);

#endif
