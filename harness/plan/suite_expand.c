/* SPDX-License-Identifier: Apache-2.0 */
/* Expansion of suites: see suite.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/option.h"
#include "core/units.h"
#include "harness/plan/suite.h"
#include "harness/text.h"

static void values_clear(struct opt_values *v)
{
    for (size_t i = 0; i < v->n; i++)
        free(v->texts[i]);
    free(v->texts);
    *v = (struct opt_values){0};
}

void case_draft_init(struct case_draft *draft)
{
    while (draft->bench->options[draft->n].name)
        draft->n++;
    draft->values = xcalloc(draft->n, sizeof(*draft->values));
    draft->every_gpu = xcalloc(draft->n, sizeof(*draft->every_gpu));
    draft->largest = xcalloc(draft->n, sizeof(*draft->largest));
    draft->general = xcalloc(draft->n, sizeof(*draft->general));
}

static void forget_all(struct case_draft *draft)
{
    for (size_t i = 0; draft->all && i < draft->n; i++)
        values_clear(&draft->all[i]);
    free(draft->all);
    draft->all = NULL;
}

void case_draft_release(struct case_draft *draft)
{
    for (size_t i = 0; i < draft->n; i++)
        values_clear(&draft->values[i]);
    forget_all(draft);
    free(draft->values);
    free(draft->general);
    free(draft->every_gpu);
    free(draft->largest);
    texts_free(draft->defaults);
    *draft = (struct case_draft){0};
}

int case_draft_set(struct case_draft *draft, size_t i, const char *text, char *error, size_t len)
{
    const struct opt *opt = &draft->bench->options[i];
    struct opt_values fresh = {0};
    int err = opt_values_read(opt, text, &fresh, error, len);

    for (size_t k = 0; !err && k < fresh.n; k++) {
        if (!*fresh.texts[k] || strpbrk(fresh.texts[k], " \t\r\n\"'")) {
            snprintf(error, len,
                     "option '--%s': '%s' is empty or holds a blank or a quote, which a plan "
                     "cannot hold",
                     opt->name, fresh.texts[k]);
            err = -EINVAL;
        }
    }
    if (err) {
        values_clear(&fresh);
        return err;
    }
    values_clear(&draft->values[i]);
    draft->values[i] = fresh;
    draft->values[i].given = true;
    return 0;
}

static const char *default_of(const struct case_draft *draft, size_t i)
{
    return draft->defaults ? draft->defaults[i] : draft->bench->defaults[i];
}

/* The two options that were given as `gpus`; false where there are not two. */
static bool find_pair(const struct case_draft *draft, size_t pair[2])
{
    size_t n = 0;

    for (size_t i = 0; i < draft->n && n < 2; i++)
        if (draft->every_gpu[i] && draft->values[i].given)
            pair[n++] = i;
    return n == 2;
}

static enum suite_stand_in stand_in_for(const struct case_draft *draft)
{
    size_t pair[2];

    if (draft->no_gpu)
        return STAND_IN_NO_GPU;
    return find_pair(draft, pair) && places_gpu_count(draft->bench) < 2 ? STAND_IN_NO_OTHER_GPU
                                                                        : STAND_IN_NOT;
}

/* The values of every option, as the benchmark will have them. */
static void note_all(struct case_draft *draft)
{
    char ignored[512];

    forget_all(draft);
    draft->all = xcalloc(draft->n, sizeof(*draft->all));
    for (size_t i = 0; i < draft->n; i++) {
        const struct opt_values *from = &draft->values[i];
        struct opt_values *to = &draft->all[i];
        const char *def = default_of(draft, i);
        if (from->given) {
            to->given = true;
            to->texts = xcalloc(from->n, sizeof(*to->texts));
            for (; to->n < from->n; to->n++)
                to->texts[to->n] = xstrdup(from->texts[to->n]);
        } else if (*def) {
            opt_values_read(&draft->bench->options[i], def, to, ignored, sizeof(ignored));
        }
    }
}

static bool speaks(const struct case_draft *draft, const size_t *pick, size_t i)
{
    return opt_speaks(draft->bench->options, draft->all, pick, i);
}

int case_draft_prune(struct case_draft *draft, char *error, size_t len)
{
    int err = 0;
    /* What stands for a pair where there is none has two ends all the same. */
    size_t pair[2];

    if (stand_in_for(draft) && find_pair(draft, pair)) {
        free(draft->values[pair[1]].texts[0]);
        draft->values[pair[1]].texts[0] = xstrdup(PLACES_NO_OTHER_GPU);
    }
    note_all(draft);
    for (size_t i = 0; !err && i < draft->n; i++) {
        const struct opt *opt = &draft->bench->options[i];
        if (!draft->values[i].given || opt_ever_speaks(draft->bench->options, draft->all, i))
            continue;
        if (draft->general[i] || draft->by_machine) {
            values_clear(&draft->values[i]);
            continue;
        }
        snprintf(error, len, "option '%s' does not apply here: it is for %s; leave it out",
                 opt->name, opt->scope->what);
        err = -EINVAL;
    }
    return err;
}

/* The last default value; of "512M" 4 times: "2G". */
static int set_largest(struct case_draft *draft, size_t i, char *error, size_t len)
{
    const char *all = default_of(draft, i), *comma = strrchr(all, ','),
               *last = comma ? comma + 1 : all;
    unsigned times = draft->largest[i];
    uint64_t bytes;
    char text[24];

    if (times > 1 && !units_parse_size(last, &bytes) && bytes <= UINT64_MAX / times)
        last = units_format_size(bytes * times, text, sizeof(text));
    return case_draft_set(draft, i, last, error, len);
}

/* A list option of the benchmark that is not named takes its default values, so that each is a case
 * and none is hidden in another's launch. A case that stands for what is missing needs none of
 * them. */
static int fill_default_lists(struct case_draft *draft, char *error, size_t len)
{
    int err = 0;

    for (size_t i = 0; !err && i < draft->n; i++)
        if (draft->largest[i])
            err = set_largest(draft, i, error, len);
    for (size_t i = 0; !err && i < draft->bench->n_own; i++) {
        const char *def = default_of(draft, i);
        if (draft->values[i].given || !(draft->bench->options[i].flags & OPT_LIST) || !*def ||
            draft->no_gpu || suite_option_is_left(draft->bench, i))
            continue;
        err = case_draft_set(draft, i, def, error, len);
        draft->values[i].given =
            draft->values[i].n > 1; /* one value: the benchmark knows it itself */
    }
    return err;
}

static int count(const struct case_draft *draft, size_t *total, char *error, size_t len)
{
    *total = 1;
    for (size_t i = 0; i < draft->n; i++) {
        if (!draft->values[i].given)
            continue;
        *total *= draft->values[i].n;
        if (*total > SUITE_CASES_MAX) {
            snprintf(error, len, "over %d cases: shorten a list", SUITE_CASES_MAX);
            return -EINVAL;
        }
    }
    return 0;
}

/* What combination number `index` takes of each option; the last option varies fastest. */
static void pick_values(const struct case_draft *draft, size_t index, size_t *pick)
{
    for (size_t i = draft->n; i-- > 0;) {
        if (!draft->values[i].given)
            continue;
        pick[i] = index % draft->values[i].n;
        index /= draft->values[i].n;
    }
}

/* What tells it from other measurements: every option, also those by default, and between which
 * hosts. New text. */
static char *meaning_of(const struct case_draft *draft, const size_t *pick)
{
    const struct bench_info *b = draft->bench;
    struct buffer text = {0};

    buffer_text(&text, "");
    for (size_t i = 0; i < draft->n; i++) {
        const struct opt_values *v = &draft->all[i];
        if (!v->n || !speaks(draft, pick, i))
            continue;
        buffer_text(&text, b->options[i].name);
        buffer_text(&text, " ");
        buffer_text(&text, v->texts[pick[i]]);
        buffer_text(&text, " ");
    }
    if (bench_needs(b, "peer") || bench_needs(b, "group") ||
        (bench_needs(b, "peer-if-asked") && draft->between != BETWEEN_NONE))
        buffer_text(&text, suite_betweens[draft->between]);
    return text.text;
}

static bool has_stand_in(const struct suite *suite, const struct case_draft *draft,
                         enum suite_stand_in kind)
{
    for (size_t i = 0; i < suite->n; i++)
        if (suite->cases[i].bench == draft->bench && suite->cases[i].stand_in == kind)
            return true;
    return false;
}

static struct suite_case *add_case(struct suite *suite, const struct case_draft *draft,
                                   const size_t *pick)
{
    struct suite_case *c = ARRAY_ADD(suite->cases, suite->n);
    /* As arguments. New text. */
    struct buffer text = {0};

    buffer_text(&text, "");
    for (size_t i = 0; i < draft->n; i++) {
        const struct opt *opt = &draft->bench->options[i];
        if (!draft->values[i].given || !speaks(draft, pick, i))
            continue;
        buffer_text(&text, text.size ? " --" : "--");
        buffer_text(&text, opt->name);
        buffer_text(&text, opt->type == OPT_FLAG ? "=" : " ");
        buffer_text(&text, draft->values[i].texts[pick[i]]);
    }
    *c = (struct suite_case){.bench = draft->bench,
                             .arguments = text.text,
                             .meaning = meaning_of(draft, pick),
                             .repeats = draft->repeats,
                             .timeout_ns = draft->timeout_ns,
                             .margin = draft->margin,
                             .line = draft->line,
                             .between = draft->between};
    return c;
}

int case_draft_expand(struct case_draft *draft, struct suite *suite, char *error, size_t len)
{
    size_t total, pair[2];
    int err = fill_default_lists(draft, error, len);

    if (err)
        return err;
    note_all(draft);
    if ((err = count(draft, &total, error, len)))
        return err;
    if (suite->n + total > SUITE_CASES_MAX) {
        snprintf(error, len, "the suite has over %d cases: shorten a list", SUITE_CASES_MAX);
        return -EINVAL;
    }
    enum suite_stand_in kind = stand_in_for(draft);
    bool pairs = find_pair(draft, pair);
    size_t *pick = xcalloc(draft->n, sizeof(*pick));
    if (kind && !has_stand_in(suite, draft, kind)) {
        /* The first combination alone, and once is enough. */
        pick_values(draft, 0, pick);
        struct suite_case *c = add_case(suite, draft, pick);
        c->stand_in = kind;
        c->repeats = 1;
    }
    for (size_t i = 0; !kind && i < total; i++) {
        pick_values(draft, i, pick);
        if (pairs) {
            /* A combination of two GPUs; a GPU with itself is no pair. */
            const struct bench_info *b = draft->bench;
            const char *ends[2];

            for (int k = 0; k < 2; k++)
                ends[k] = draft->values[pair[k]].texts[pick[pair[k]]];
            size_t from = places_gpu_number(b, ends[0]), to = places_gpu_number(b, ends[1]);
            if (from != to) {
                struct suite_case *c = add_case(suite, draft, pick);
                if (from != SIZE_MAX && to != SIZE_MAX) {
                    c->pair_gpus = (unsigned)places_gpu_count(b);
                    c->pair[0] = (unsigned)places_gpu_rank(b, from);
                    c->pair[1] = (unsigned)places_gpu_rank(b, to);
                }
            }
        } else
            add_case(suite, draft, pick);
    }
    free(pick);
    return 0;
}

/* ---- Cases of a suite that measure the same ---- */

void suite_case_release(struct suite_case *c)
{
    free(c->arguments);
    free(c->from);
    free(c->to);
    free(c->hosts);
    free(c->meaning);
    c->arguments = c->meaning = NULL;
}

/* Those that measure the same stand together, the first of the suite in front. */
static int by_meaning(const void *a, const void *b)
{
    const struct suite_case *x = *(struct suite_case *const *)a;
    const struct suite_case *y = *(struct suite_case *const *)b;
    int order = strcmp(x->bench->name, y->bench->name);

    if (!order)
        order = strcmp(x->meaning, y->meaning);
    return order ? order : (x > y) - (x < y);
}

static bool same(const struct suite_case *x, const struct suite_case *y)
{
    return x->bench == y->bench && !strcmp(x->meaning, y->meaning);
}

void suite_unite(struct suite *suite)
{
    struct suite_case **sorted = xcalloc(suite->n + 1, sizeof(struct suite_case *)), *first;
    size_t kept = 0;

    for (size_t i = 0; i < suite->n; i++)
        sorted[i] = &suite->cases[i];
    qsort(sorted, suite->n, sizeof(struct suite_case *), by_meaning);
    first = sorted[0];
    for (size_t i = 1; i < suite->n; i++) {
        if (!same(first, sorted[i])) {
            first = sorted[i];
            continue;
        }
        if (sorted[i]->repeats > first->repeats)
            first->repeats = sorted[i]->repeats;
        sorted[i]->repeats = 0;
    }
    for (size_t i = 0; i < suite->n; i++) {
        struct suite_case *c = &suite->cases[i];
        free(c->meaning);
        c->meaning = NULL;
        if (c->repeats)
            suite->cases[kept++] = *c;
        else
            suite_case_release(c);
    }
    suite->n = kept;
    free(sorted);
}

/* ---- Cases on a device that is not there ---- */

/* Is one of the words the name of this backend? */
static bool names_it(const char *arguments, const char *name)
{
    size_t n = strlen(name);

    for (const char *at = arguments; n && (at = strstr(at, name)) != NULL; at++)
        if ((at == arguments || at[-1] == ' ') && (!at[n] || at[n] == ' '))
            return true;
    return false;
}

/* The backend that the case asks for and that is absent here; NULL: there is none. */
static const struct bench_backend *absent(const struct suite_case *c)
{
    for (size_t i = 0; i < c->bench->n_backends; i++) {
        const struct bench_backend *b = &c->bench->backends[i];
        if (b->state == BACKEND_ABSENT && names_it(c->arguments, b->name))
            return b;
    }
    return NULL;
}

static bool was_before(const struct suite *suite, size_t n, const struct suite_case *c,
                       const struct bench_backend *missing)
{
    for (size_t i = 0; i < n; i++)
        if (suite->cases[i].bench == c->bench && absent(&suite->cases[i]) == missing)
            return true;
    return false;
}

void suite_unite_absent(struct suite *suite, bool has_hosts)
{
    size_t kept = 0;

    for (size_t i = 0; i < suite->n; i++) {
        struct suite_case c = suite->cases[i];
        bool elsewhere = has_hosts && c.between != BETWEEN_NONE;
        bool others = bench_needs(c.bench, "peer") || bench_needs(c.bench, "group");
        const struct bench_backend *missing = others && !elsewhere ? absent(&c) : NULL;
        if (missing && was_before(suite, kept, &c, missing)) {
            suite_case_release(&c);
            continue;
        }
        if (missing)
            c.repeats = 1;
        suite->cases[kept++] = c;
    }
    suite->n = kept;
}
