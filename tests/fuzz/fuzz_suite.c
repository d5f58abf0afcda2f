/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: the suite parser. Whatever the text, it is refused with a message or gives cases that can be planned. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "harness/plan/plan.h"
#include "harness/plan/suite.h"
#include "tests/tools/fake_bench.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct suite suite;
    struct plan plan;
    char error[512] = "";

    /* Every custom text costs a process: leave them to the unit tests. */
    if (size > 4096 || memmem(data, size, "shape", 5))
        return 0;
    if (suite_parse("fuzz", (const char *)data, size, "/nonexistent", &fake_list, &suite, error,
                    sizeof(error))) {
        if (!error[0])
            abort(); /* refused without a word */
        return 0;
    }
    if (suite.n == 0)
        abort(); /* accepted, and nothing to do */
    if (suite.n < 2000 && !plan_make(&suite, 1, NULL, &plan))
        plan_release(&plan);
    suite_release(&suite);
    return 0;
}
