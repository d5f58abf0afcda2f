/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a rank's plan: a backend of the session that is made of several, one for each part of the
 * plan. The session opens it, runs it and checks it as it does any other; the point says by which
 * backend the parts move their bytes, and what is beside the point (struct step_spec and its
 * layers) are the session's extra bytes.
 */
#ifndef PLUMB_BENCHES_STEP_RUN_H
#define PLUMB_BENCHES_STEP_RUN_H

#include "benches/step/plan.h"
#include "core/collective/collective.h"

/* collective.own_ns: of all steps since it was zeroed, of this rank. */
enum step_count {
    STEP_NS_COMPUTE, /* in pieces of compute */
    STEP_NS_SUMS,    /* compute waited for sums, gathers and exchanges */
    STEP_NS_PIPE,    /* compute waited for another stage */
    STEP_NS_TAIL,    /* after the last piece, until the last call had ended */
    STEP_NS_CALLS,   /* in calls, of all lanes */
    STEP_NS_UPDATE,  /* of compute: in the update of parameters */
    STEP_COUNTS
};

/* For struct session_service and session_find(): the backend of that name, of whose kind the parts
 * are. NULL: there is none. */
const struct collective_ops *step_find(const char *name);

#endif
