/* SPDX-License-Identifier: Apache-2.0 */
/* Which cases --only keeps: see plan.h. */
#include <ctype.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
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
    char *glob = xasprintf("*%s*", pattern);
    bool match = fnmatch(glob, text, 0) == 0;

    free(glob);
    return match;
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

/* The pattern with its sizes in bytes, marked. */
static void read_sizes(const char *pattern, struct buffer *out, struct sizes *sizes)
{
    buffer_text(out, "");
    for (size_t n; *pattern; pattern += n) {
        uint64_t bytes;

        n = 0;

        while (isalnum((unsigned char)pattern[n]) || pattern[n] == '.')
            n++;
        if (sizes->n < 16 && is_size(pattern, n, &bytes)) {
            char text[32];
            snprintf(text, sizeof(text), "%c%llu", MARK, (unsigned long long)bytes);
            sizes->bytes[sizes->n++] = bytes;
            buffer_text(out, text);
            continue;
        }
        n = n ? n : 1;
        buffer_add(out, pattern, n);
    }
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

/* Unknown benchmarks' options may all be sizes. */
static bool takes_size(const struct bench_info *b, const char *word, size_t n)
{
    for (const struct opt *o = b ? b->options : NULL; n > 2 && o && o->name; o++)
        if (!memcmp(word, "--", 2) && strlen(o->name) == n - 2 && !memcmp(o->name, word + 2, n - 2))
            return o->type == OPT_SIZE;
    return !b && n > 2 && !memcmp(word, "--", 2);
}

/* The command line; values of sizes that are among the pattern's are marked. */
static void mark_sizes(const struct bench_info *b, const char *command, const struct sizes *sizes,
                       struct buffer *out)
{
    bool size = false;

    for (size_t n; *command; command += n + strspn(command + n, " ")) {
        n = strcspn(command, " ");
        buffer_text(out, out->size ? " " : "");
        if (size && is_among(sizes, command, n))
            buffer_add(out, (const char[]){MARK}, 1);
        buffer_add(out, command, n);
        size = takes_size(b, command, n);
    }
}

/* A name as the other text has it. */
static void add_name(struct buffer *out, const char *name, size_t n, char from, char to)
{
    for (size_t i = 0; i < n; i++)
        buffer_add(out, name[i] == from ? &to : &name[i], 1);
}

static bool is_bench(const struct only_case *c, const char *name)
{
    if (c->benches)
        return bench_list_find(c->benches, name) != NULL;
    char *path = bench_find_program(name);
    free(path);
    return path != NULL;
}

/* The texts of a case. */
struct texts {
    const struct only_case *c;
    char bench[64];
    const char *command, *key;
};

static bool keeps(const struct texts *t, const char *pattern)
{
    const struct only_case *c = t->c;
    const struct bench_info *b = c->benches ? bench_list_find(c->benches, t->bench) : NULL;

    if (!strcmp(pattern, t->bench))
        return true;
    bool match = holds(pattern, t->command) || holds(pattern, t->key) ||
                 (c->label && holds(pattern, c->label));
    if (!match) { /* where the pattern writes sizes as people do */
        struct buffer glob = {0}, text = {0};
        struct sizes sizes = {0};

        read_sizes(pattern, &glob, &sizes);
        mark_sizes(b, t->command, &sizes, &text);
        match = sizes.n && holds(glob.text, text.text);
        buffer_release(&glob);
        buffer_release(&text);
    }
    return match && !is_bench(c, pattern);
}

bool only_keeps(const char *const *only, const struct only_case *c)
{
    struct buffer made = {0};
    struct texts t = {.c = c, .key = c->key};
    bool keep = !only || !*only;

    if (keep)
        return true;
    if (c->bench) {
        snprintf(t.bench, sizeof(t.bench), "%s", c->bench);
        /* "memory|op=triad" of "memory", "--op triad": in the order of the command line. */
        const char *arguments = c->arguments;
        buffer_text(&made, c->bench);
        for (size_t n; *arguments; arguments += n + strspn(arguments + n, " ")) {
            n = strcspn(arguments, " ");
            if (n > 2 && !memcmp(arguments, "--", 2)) {
                buffer_text(&made, "|");
                add_name(&made, arguments + 2, n - 2, '-', '_');
            } else {
                buffer_text(&made, "=");
                buffer_add(&made, arguments, n);
            }
        }
    } else {
        snprintf(t.bench, sizeof(t.bench), "%.*s", (int)strcspn(c->key, "|"), c->key);
        /* "memory --op triad" of "memory|op=triad|bandwidth|GB/s". */
        const char *key = c->key;
        size_t n = strcspn(key, "|");

        buffer_add(&made, key, n);
        for (key += n; *key; key += n) {
            key += *key == '|';
            n = strcspn(key, "|");
            size_t name = strcspn(key, "=|");
            if (name == n)
                continue;
            buffer_text(&made, " --");
            add_name(&made, key, name, '_', '-');
            buffer_text(&made, " ");
            buffer_add(&made, key + name + 1, n - name - 1);
        }
    }
    char *command = c->bench ? xasprintf("%s %s", c->bench, c->arguments) : NULL;
    t.command = command ? command : made.text;
    t.key = c->bench ? made.text : c->key;
    for (; !keep && *only; only++) {
        const char *pattern = *only;
        char *patterns = strchr(pattern, '=') ? NULL : xstrdup(pattern), *rest = patterns, *one;
        keep = !patterns && keeps(&t, pattern);

        while (!keep && rest && (one = strsep(&rest, "|")) != NULL)
            keep = (*one || !*pattern) && keeps(&t, one);
        free(patterns);
    }
    free(command);
    buffer_release(&made);
    return keep;
}

bool plan_keeps(const struct bench_list *benches, const char *only, const char *bench,
                const char *arguments)
{
    const char *const patterns[] = {only, NULL};

    return only_keeps(
        patterns, &(struct only_case){.bench = bench, .arguments = arguments, .benches = benches});
}
