/* SPDX-License-Identifier: Apache-2.0 */
/* Build facts: the one file that is compiled again when the commit changes. */
#include "build_values.h" /* written by the Makefile: BUILD_COMMIT, BUILD_FLAGS */
#include "core/program.h"

#define TEXT_OF(x) #x
#define TEXT(x)    TEXT_OF(x)

const char *build_commit(void)
{
    return BUILD_COMMIT;
}

const char *build_compiler(void)
{
#if defined(__clang__)
    return "clang " TEXT(__clang_major__) "." TEXT(__clang_minor__) "." TEXT(__clang_patchlevel__);
#elif defined(__GNUC__)
    return "gcc " TEXT(__GNUC__) "." TEXT(__GNUC_MINOR__) "." TEXT(__GNUC_PATCHLEVEL__);
#else
    return __VERSION__;
#endif
}

const char *build_flags(void)
{
    return BUILD_FLAGS;
}
