/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/selftest/promise.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#define UNCLEAR 0.1

/* The terms themselves: the judge has its own way, by the beta function. */
double promise_chance(size_t k, size_t n, double share)
{
    double sum = 0;
    int sign;

    for (size_t i = k; i <= n; i++)
        sum += exp(lgamma_r((double)n + 1, &sign) - lgamma_r((double)i + 1, &sign) -
                   lgamma_r((double)(n - i) + 1, &sign) + (double)i * log(share) +
                   (double)(n - i) * log1p(-share));
    return sum;
}

bool promise_breaks(const struct promises *p, size_t wrong, size_t of, double share)
{
    if (!((double)wrong > share * (double)of + 1e-9))
        return false;
    return !p->brief || promise_chance(wrong, of, share) < CHANCE;
}

bool promise_is_clear(size_t wrong, size_t of, double share)
{
    return 1 - promise_chance(wrong + 1, of, share) < UNCLEAR;
}

bool promise_tell(struct promises *p, bool broken, const char *format, ...)
{
    va_list arguments;

    p->broken += broken;
    p->tests++;
    if (p->tap)
        printf("%sok %zu - ", broken ? "not " : "", p->tests);
    else if (broken)
        printf("BROKEN: ");
    if (p->tap || broken) {
        va_start(arguments, format);
        vprintf(format, arguments);
        va_end(arguments);
        putchar('\n');
    }
    return broken;
}

int promise_end(const struct promises *p, const char *program)
{
    if (p->tap)
        printf("1..%zu\n", p->tests);
    else
        printf("\n%s: %zu of %zu promises are broken\n", program, p->broken, p->tests);
    return p->broken ? 1 : 0;
}
