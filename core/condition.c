/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions: see condition.h. */
#include "core/condition.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#define PATTERN_MAX 256

struct part {
    const char *at;
    size_t len;
};

struct term {
    struct part name, patterns;
    bool unless;
};

struct values {
    condition_value_fn *value;
    const void *arg;
};

/* Takes what stands before the next of `ends` off *rest; false when nothing is left. */
static bool next_part(struct part *rest, const char *ends, struct part *part)
{
    while (rest->len && strchr(ends, *rest->at))
        rest->at++, rest->len--;
    *part = (struct part){rest->at, 0};
    while (rest->len && !strchr(ends, *rest->at))
        rest->at++, rest->len--, part->len++;
    return part->len != 0;
}

static struct term read_term(struct part text)
{
    struct term t = {.patterns = text};

    next_part(&t.patterns, "!=", &t.name);
    t.unless = t.patterns.len && *t.patterns.at == '!';
    size_t skip = t.unless ? 2 : 1;
    skip = skip < t.patterns.len ? skip : t.patterns.len;
    t.patterns.at += skip;
    t.patterns.len -= skip;
    return t;
}

static bool pattern_fits(const struct values *v, struct part pattern, const char *text)
{
    char own[PATTERN_MAX];

    if (pattern.len && *pattern.at == '@') {
        const char *other = v->value(v->arg, pattern.at + 1, pattern.len - 1);
        return !other || !strcmp(other, text);
    }
    if (pattern.len >= sizeof(own))
        return false;
    memcpy(own, pattern.at, pattern.len);
    own[pattern.len] = 0;
    return !fnmatch(own, text, 0);
}

static bool any_fits(const struct values *v, struct part patterns, const char *text)
{
    const char *comma;

    while ((comma = memchr(patterns.at, ',', patterns.len)) != NULL) {
        size_t n = (size_t)(comma - patterns.at);

        if (pattern_fits(v, (struct part){patterns.at, n}, text))
            return true;
        patterns = (struct part){comma + 1, patterns.len - n - 1};
    }
    return pattern_fits(v, patterns, text);
}

static bool clause_holds(const struct values *v, struct part clause)
{
    struct part text;

    while (next_part(&clause, " ", &text)) {
        struct term t = read_term(text);
        const char *is = v->value(v->arg, t.name.at, t.name.len);

        if (is && any_fits(v, t.patterns, is) == t.unless)
            return false;
    }
    return true;
}

bool condition_holds(const char *condition, condition_value_fn *value, const void *arg)
{
    const struct values v = {value, arg};
    struct part rest = {condition, strlen(condition)}, clause;

    if (!rest.len)
        return true;
    while (next_part(&rest, "|", &clause))
        if (clause_holds(&v, clause))
            return true;
    return false;
}

bool condition_names(const char *condition, bool (*name)(void *arg, const char *name, size_t len),
                     void *arg)
{
    struct part rest = {condition, strlen(condition)}, text, one;

    while (next_part(&rest, " |", &text)) {
        struct term t = read_term(text);

        if (name(arg, t.name.at, t.name.len))
            return true;
        while (next_part(&t.patterns, ",", &one))
            if (*one.at == '@' && name(arg, one.at + 1, one.len - 1))
                return true;
    }
    return false;
}

bool word_in(const char *words, const char *word)
{
    size_t len = strlen(word);

    while (words && len && *words) {
        size_t n = strcspn(words, " ");

        if (n == len && !memcmp(words, word, n))
            return true;
        words += n + (words[n] == ' ');
    }
    return false;
}
