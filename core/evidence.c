/* SPDX-License-Identifier: Apache-2.0 */
/* Evidence: see evidence.h. */
#include "core/evidence.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *const carriers[] = {"rdma", "sockets", "loopback", "shm", "peer", NULL};

const char *carriers_print(unsigned kinds, char text[CARRIERS_BYTES])
{
    size_t at = 0;

    text[0] = 0;
    for (size_t i = 0; carriers[i]; i++)
        if (kinds & 1u << i)
            at += (size_t)snprintf(text + at, CARRIERS_BYTES - at, "%s%s", at ? "+" : "",
                                   carriers[i]);
    return text;
}

static unsigned carrier_of(const char *word, size_t len)
{
    for (size_t i = 0; carriers[i]; i++)
        if (strlen(carriers[i]) == len && !memcmp(carriers[i], word, len))
            return 1u << i;
    return 0;
}

unsigned carriers_read(const char *text)
{
    unsigned kinds = 0;

    for (; *text; text += *text == '+') {
        size_t n = strcspn(text, "+");
        unsigned one = carrier_of(text, n);
        if (!one)
            return 0;
        kinds |= one;
        text += n;
    }
    return kinds;
}

void evidence_add(char *text, size_t len, const char *format, ...)
{
    size_t at = strlen(text);
    va_list args;

    if (at && at + 3 < len) {
        memcpy(text + at, ", ", 3);
        at += 2;
    }
    va_start(args, format);
    vsnprintf(text + at, len - at, format, args);
    va_end(args);
}
