/* SPDX-License-Identifier: Apache-2.0 */
/* Expansion of suites: see suite_expand.h. */
#include "harness/plan/suite_expand.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/option_value.h"
#include "harness/text.h"

static void values_clear(struct opt_values *v)
{
    for (size_t i = 0; i < v->n; i++)
        free(v->texts[i]);
    free(v->texts);
    *v = (struct opt_values){0};
}

int case_draft_init(struct case_draft *draft)
{
    while (draft->bench->options[draft->n].name)
        draft->n++;
    draft->values = calloc(draft->n + 1, sizeof(*draft->values));
    return draft->values ? 0 : -ENOMEM;
}

void case_draft_release(struct case_draft *draft)
{
    for (size_t i = 0; draft->values && i < draft->n; i++)
        values_clear(&draft->values[i]);
    free(draft->values);
    draft->values = NULL;
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

/* A list option of the benchmark that is not named takes its default values, so that each is a case
 * and none is hidden in another's launch. */
static int fill_default_lists(struct case_draft *draft, char *error, size_t len)
{
    for (size_t i = 0; i < draft->bench->n_own; i++) {
        const char *def = draft->bench->defaults[i];
        if (draft->values[i].given || !(draft->bench->options[i].flags & OPT_LIST) || !*def)
            continue;
        int err = case_draft_set(draft, i, def, error, len);
        if (err)
            return err;
        draft->values[i].given =
            draft->values[i].n > 1; /* one value: the benchmark knows it itself */
    }
    return 0;
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

/* Combination number `index` as arguments; the last option varies fastest. New text. */
static char *arguments_of(const struct case_draft *draft, size_t index)
{
    size_t *pick = calloc(draft->n + 1, sizeof(*pick));
    struct buffer text = {0};
    int err = pick ? buffer_add(&text, "", 0) : -ENOMEM;

    for (size_t i = draft->n; !err && i-- > 0;) {
        if (draft->values[i].given) {
            pick[i] = index % draft->values[i].n;
            index /= draft->values[i].n;
        }
    }
    for (size_t i = 0; !err && i < draft->n; i++) {
        char one[512];
        if (!draft->values[i].given)
            continue;
        const char *value = draft->values[i].texts[pick[i]];
        int n = draft->bench->options[i].type == OPT_FLAG
                    ? snprintf(one, sizeof(one), "%s--%s=%s", text.size ? " " : "",
                               draft->bench->options[i].name, value)
                    : snprintf(one, sizeof(one), "%s--%s %s", text.size ? " " : "",
                               draft->bench->options[i].name, value);
        err = (size_t)n < sizeof(one) ? buffer_add(&text, one, (size_t)n) : -EINVAL;
    }
    free(pick);
    if (err)
        buffer_release(&text);
    return text.text;
}

int case_draft_expand(struct case_draft *draft, struct suite *suite, char *error, size_t len)
{
    size_t total;
    int err = fill_default_lists(draft, error, len);

    if (err || (err = count(draft, &total, error, len)))
        return err;
    if (suite->n + total > SUITE_CASES_MAX) {
        snprintf(error, len, "the suite has over %d cases: shorten a list", SUITE_CASES_MAX);
        return -EINVAL;
    }
    struct suite_case *grown = realloc(suite->cases, (suite->n + total) * sizeof(*grown));
    if (!grown)
        return -ENOMEM;
    suite->cases = grown;
    for (size_t i = 0; i < total; i++) {
        char *arguments = arguments_of(draft, i);
        if (!arguments) {
            snprintf(error, len, "the values of a case are too long, or memory is short");
            return -EINVAL;
        }
        grown[suite->n++] = (struct suite_case){.bench = draft->bench,
                                                .arguments = arguments,
                                                .repeats = draft->repeats,
                                                .timeout_ns = draft->timeout_ns,
                                                .margin = draft->margin,
                                                .line = draft->line};
    }
    return 0;
}
