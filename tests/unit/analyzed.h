/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For the analyzer alone, which reads it before each file of this folder (.clang-tidy): a failed assertion of cmocka does
 * not return. Its own declarations do not say so, and what an assertion excludes would be followed.
 */
#if __has_include(<cmocka.h>)
// cmocka.h wants these before it
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
// clang-format on

#undef assert_true
#define assert_true(c) ((c) ? (void)0 : abort())
#undef assert_false
#define assert_false(c) ((c) ? abort() : (void)0)
#undef assert_non_null
#define assert_non_null(c) ((c) ? (void)0 : abort())
#undef assert_null
#define assert_null(c) ((c) ? abort() : (void)0)
#undef fail
#define fail() abort()
#undef fail_msg
#define fail_msg(...) (printf(__VA_ARGS__), abort())
#undef skip
#define skip() abort()
#endif
