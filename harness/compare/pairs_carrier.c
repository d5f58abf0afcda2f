/* SPDX-License-Identifier: Apache-2.0 */
/* Which kind of path carried the bytes, by words with a fixed meaning (docs/schema.md): see pairs_parts.h. */
#include <ctype.h>
#include <string.h>

#include "harness/compare/pairs_parts.h"

static const char *const kinds[] = {"RDMA", "sockets", "loopback", "shared memory", "peer access"};

/* What a library says that it connected, in `detail`. */
static const struct {
    const char *word;
    unsigned kind;
} wires[] = {
    {"NET/IB", CARRIER_RDMA}, {"NET/Socket", CARRIER_SOCKETS}, {"P2P/", CARRIER_PEER},
    {"P2P ", CARRIER_PEER},   {"SHM", CARRIER_SHARED_MEMORY},
};

static bool is_word_end(char c)
{
    return !c || c == ' ' || c == ',' || c == ';' || c == '/';
}

unsigned carriers_of_detail(const char *detail)
{
    const char *via = strstr(detail, "via ");
    unsigned found = 0;

    for (size_t i = 0; via && i < sizeof(wires) / sizeof(*wires); i++) {
        const char *at = strstr(via, wires[i].word);

        if (at && (strchr("/ ", wires[i].word[strlen(wires[i].word) - 1]) ||
                   is_word_end(at[strlen(wires[i].word)])))
            found |= wires[i].kind;
    }
    return found;
}

/* mlx5_0:1 is a port of an RDMA device. */
static unsigned kind_of_device(const char *name, size_t len)
{
    const char *colon = memchr(name, ':', len);

    if (colon)
        return colon + 1 < name + len && isdigit((unsigned char)colon[1]) ? CARRIER_RDMA : 0;
    return len == 2 && !memcmp(name, "lo", 2) ? CARRIER_LOOPBACK : CARRIER_SOCKETS;
}

static bool is_verb(const char *word, size_t len)
{
    static const char *const verbs[] = {"sent", "received", "moved", "over"};

    for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++)
        if (strlen(verbs[i]) == len && !memcmp(word, verbs[i], len))
            return true;
    return false;
}

/* The first device of a node's words that moved something: "eth0 sent 12.4 GB, ...". Amounts end in a
 * comma, and "together" names no device. */
static unsigned kind_of_node(const char *text, size_t len)
{
    const char *end = text + len, *last = NULL;
    size_t last_len = 0;

    while (text < end) {
        size_t n = 0;

        while (text + n < end && text[n] != ' ')
            n++;
        if (last && is_verb(text, n))
            return kind_of_device(last, last_len);
        last = n && !strchr(",;)", text[n - 1]) && isalpha((unsigned char)*text) &&
                       !(n == 8 && !memcmp(text, "together", 8))
                   ? text
                   : NULL;
        last_len = n;
        text += n + (text + n < end);
    }
    return 0;
}

/* The words of each node stand behind its name and a colon. */
unsigned carriers_of_evidence(const char *evidence)
{
    static const char shared[] = "shared memory";
    unsigned found = 0;

    while (*evidence) {
        const char *next = strstr(evidence, ": ");
        size_t len = next ? (size_t)(next - evidence) : strlen(evidence);

        if (!strncmp(evidence, shared, sizeof(shared) - 1))
            found |= CARRIER_SHARED_MEMORY;
        else
            found |= kind_of_node(evidence, len);
        evidence += len + (next ? 2 : 0);
    }
    return found;
}

const char *carriers_text(struct pool *pool, unsigned carriers)
{
    const char *text = "";

    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        if (carriers & 1u << i)
            text = pool_text(pool, "%s%s%s", text, *text ? " and " : "", kinds[i]);
    return text;
}
