/* SPDX-License-Identifier: Apache-2.0 */
/* Which cases of a suite --only keeps: see plan.h. */
#include <ctype.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "core/units.h"
#include "harness/plan/plan.h"
#include "harness/text.h"

#define MARK '\1' /* before a size that the pattern writes with a unit, in both texts */

/* A pattern's sizes as people write them, in bytes. */
struct sizes {
    uint64_t bytes[16];
    size_t n;
};

static bool holds(const char *pattern, const char *text)
{
    char *glob = NULL;
    bool match = asprintf(&glob, "*%s*", pattern) >= 0 && fnmatch(glob, text, 0) == 0;

    free(glob);
    return match;
}

bool plan_matches(const char *pattern, const char *bench, const char *arguments)
{
    char *text = NULL;
    bool match = !pattern;

    if (pattern && asprintf(&text, "%s %s", bench, arguments) >= 0) {
        match = holds(pattern, text);
        free(text);
    }
    return match;
}

static size_t word_length(const char *at)
{
    size_t n = 0;

    while (isalnum((unsigned char)at[n]) || at[n] == '.')
        n++;
    return n;
}

/* Is this word a number with a unit of size? A number alone is matched as it stands. */
static bool is_size(const char *word, size_t n, uint64_t *bytes)
{
    char text[32];

    if (n < 2 || n >= sizeof(text) || !isdigit((unsigned char)word[0]) ||
        !isalpha((unsigned char)word[n - 1]))
        return false;
    memcpy(text, word, n);
    text[n] = 0;
    return units_parse_size(text, bytes) == 0;
}

static int add_bytes(struct buffer *out, uint64_t bytes)
{
    char text[32];
    int n = snprintf(text, sizeof(text), "%c%llu", MARK, (unsigned long long)bytes);

    return buffer_add(out, text, (size_t)n);
}

/* The pattern with its sizes in bytes, marked. */
static int read_sizes(const char *pattern, struct buffer *out, struct sizes *sizes)
{
    int err = buffer_add(out, "", 0);

    for (size_t n; !err && *pattern; pattern += n) {
        uint64_t bytes;

        n = word_length(pattern);
        if (sizes->n < 16 && is_size(pattern, n, &bytes)) {
            sizes->bytes[sizes->n++] = bytes;
            err = add_bytes(out, bytes);
            continue;
        }
        n = n ? n : 1;
        err = buffer_add(out, pattern, n);
    }
    return err;
}

static bool is_among(const struct sizes *sizes, const char *word, size_t n)
{
    for (size_t i = 0; i < sizes->n; i++) {
        char text[32];
        size_t len =
            (size_t)snprintf(text, sizeof(text), "%llu", (unsigned long long)sizes->bytes[i]);
        if (len == n && !memcmp(text, word, n))
            return true;
    }
    return false;
}

static bool takes_size(const struct bench_info *b, const char *word, size_t n)
{
    for (const struct opt *o = b->options; n > 2 && o && o->name; o++)
        if (!memcmp(word, "--", 2) && strlen(o->name) == n - 2 && !memcmp(o->name, word + 2, n - 2))
            return o->type == OPT_SIZE;
    return false;
}

/* "BENCH ARGUMENTS", where the values of options of sizes that are among the pattern's are marked. */
static int mark_sizes(const struct bench_info *b, const char *arguments, const struct sizes *sizes,
                      struct buffer *out)
{
    bool size = false;
    int err = buffer_add(out, b->name, strlen(b->name));

    for (size_t n; !err && *arguments; arguments += n + strspn(arguments + n, " ")) {
        n = strcspn(arguments, " ");
        err = buffer_add(out, " ", 1);
        if (!err && size && is_among(sizes, arguments, n))
            err = buffer_add(out, (const char[]){MARK}, 1);
        if (!err)
            err = buffer_add(out, arguments, n);
        size = takes_size(b, arguments, n);
    }
    return err;
}

/* Where the pattern writes sizes as people do. */
static bool matches_sizes(const struct bench_info *b, const char *pattern, const char *arguments)
{
    struct buffer glob = {0}, text = {0};
    struct sizes sizes = {0};
    bool match = false;

    if (!read_sizes(pattern, &glob, &sizes) && sizes.n && !mark_sizes(b, arguments, &sizes, &text))
        match = holds(glob.text, text.text);
    buffer_release(&glob);
    buffer_release(&text);
    return match;
}

static bool keeps(const struct bench_list *benches, const char *pattern, const char *bench,
                  const char *arguments)
{
    const struct bench_info *b = benches ? bench_list_find(benches, bench) : NULL;

    if (benches && bench_list_find(benches, pattern))
        return !strcmp(pattern, bench);
    return plan_matches(pattern, bench, arguments) || (b && matches_sizes(b, pattern, arguments));
}

bool plan_keeps(const struct bench_list *benches, const char *only, const char *bench,
                const char *arguments)
{
    char *patterns = only ? strdup(only) : NULL, *rest = patterns, *one;
    bool keep = !only;

    while (!keep && (one = strsep(&rest, "|")) != NULL)
        keep = keeps(benches, one, bench, arguments);
    free(patterns);
    return keep;
}
