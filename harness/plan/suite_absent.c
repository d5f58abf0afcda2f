/* SPDX-License-Identifier: Apache-2.0 */
/* Cases on a device that is not there: see suite_expand.h. */
#include <stdlib.h>
#include <string.h>

#include "harness/plan/suite_expand.h"

/* Is one of the words the name of this backend? */
static bool names_it(const char *arguments, const char *name)
{
    size_t n = strlen(name);

    for (const char *at = arguments; n && (at = strstr(at, name)) != NULL; at++)
        if ((at == arguments || at[-1] == ' ') && (!at[n] || at[n] == ' '))
            return true;
    return false;
}

/* The backend that the case asks for and that is absent here; NULL: there is none. */
static const struct bench_backend *absent(const struct suite_case *c)
{
    for (size_t i = 0; i < c->bench->n_backends; i++) {
        const struct bench_backend *b = &c->bench->backends[i];
        if (b->state == BACKEND_ABSENT && names_it(c->arguments, b->name))
            return b;
    }
    return NULL;
}

static bool was_before(const struct suite *suite, size_t n, const struct suite_case *c,
                       const struct bench_backend *missing)
{
    for (size_t i = 0; i < n; i++)
        if (suite->cases[i].bench == c->bench && absent(&suite->cases[i]) == missing)
            return true;
    return false;
}

void suite_unite_absent(struct suite *suite, bool has_hosts)
{
    size_t kept = 0;

    for (size_t i = 0; i < suite->n; i++) {
        struct suite_case c = suite->cases[i];
        bool elsewhere = has_hosts && c.between != BETWEEN_NONE;
        bool others = bench_needs(c.bench, "peer") || bench_needs(c.bench, "group");
        const struct bench_backend *missing = others && !elsewhere ? absent(&c) : NULL;
        if (missing && was_before(suite, kept, &c, missing)) {
            suite_case_release(&c);
            continue;
        }
        if (missing)
            c.repeats = 1;
        suite->cases[kept++] = c;
    }
    suite->n = kept;
}
