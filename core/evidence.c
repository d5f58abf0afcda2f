/* SPDX-License-Identifier: Apache-2.0 */
/* Evidence: see evidence.h. */
#include "core/evidence.h"

#include <inttypes.h>
#include <math.h>
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

double evidence_huge_share(const struct host_where *where)
{
    if (!where->huge_known || !where->resident_bytes)
        return NAN;
    return (double)where->huge_bytes / (double)where->resident_bytes;
}

static void print_nodes(const struct host_where *where, char *text, size_t len)
{
    if (!where->nodes_known)
        evidence_add(text, len, "node unknown (move_pages refused)");
    for (int i = 0; i < HOST_NODES_MAX; i++)
        if (where->on_node[i])
            evidence_add(text, len, "node%d %" PRIu64 "/%" PRIu64 " pages looked at", i,
                         where->on_node[i], where->looked_at);
    if (where->elsewhere)
        evidence_add(text, len, "other nodes %" PRIu64 "/%" PRIu64, where->elsewhere,
                     where->looked_at);
}

const char *evidence_pages(const struct host_where *where, char *text, size_t len)
{
    double share = evidence_huge_share(where);

    text[0] = 0;
    print_nodes(where, text, len);
    if (isnan(share))
        evidence_add(text, len, "page size unknown (no smaps)");
    else
        evidence_add(text, len, "%.3g %% on huge pages", 100 * share);
    return text;
}
