/* SPDX-License-Identifier: Apache-2.0 */
/* Is this the build with sanitizers? Every unit test runs in both builds. With sanitizers it is ten times as slow, and it is there to find memory that is
 * misused: a test that goes through many cases of the same code takes fewer of them there, and does not judge a share of them. The other build takes all. */
#ifndef TESTS_UNIT_SANITIZED_H
#define TESTS_UNIT_SANITIZED_H

#include <stdbool.h>

static inline bool sanitized(void)
{
#if defined(__SANITIZE_ADDRESS__)
    return true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
    return true;
#else
    return false;
#endif
#else
    return false;
#endif
}

#endif
