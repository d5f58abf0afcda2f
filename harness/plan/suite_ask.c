/* SPDX-License-Identifier: Apache-2.0 */
/* Asking a benchmark about a case: see suite_ask.h. */
#include "harness/plan/suite_ask.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "harness/child.h"
#include "harness/plan/places.h"
#include "harness/text.h"

#define ASK_TIMEOUT_NS 20000000000ull

/* Options as words of a command line, each ended by a NUL. */
struct words {
    struct buffer texts;
    size_t n;
};

static int add_option(struct words *w, const struct opt *opt, const struct opt_values *v)
{
    int err = buffer_add(&w->texts, "--", 2);

    err = err ? err : buffer_add(&w->texts, opt->name, strlen(opt->name));
    for (size_t k = 0; !err && k < v->n; k++) {
        err = buffer_add(&w->texts, k ? "," : "=", 1);
        err = err ? err : buffer_add(&w->texts, v->texts[k], strlen(v->texts[k]));
    }
    w->n++;
    return err ? err : buffer_add(&w->texts, "", 1);
}

/* Those that are given: all, or only the custom ones. */
static int add_options(struct words *w, const struct case_draft *draft, bool custom_only)
{
    int err = buffer_add(&w->texts, "", 0);

    for (size_t i = 0; !err && i < draft->n; i++) {
        const struct opt *opt = &draft->bench->options[i];
        if (draft->values[i].given && (opt->type == OPT_CUSTOM || !custom_only))
            err = add_option(w, opt, &draft->values[i]);
    }
    return err;
}

/* NULL-terminated, with room for one before and one behind. The texts are the words'. */
static const char **argv_of(const struct words *w, const char *first, const char *last)
{
    const char **argv = calloc(w->n + 3, sizeof(*argv)), *word = w->texts.text;

    if (!argv)
        return NULL;
    argv[0] = first;
    for (size_t i = 0; i < w->n; i++, word += strlen(word) + 1)
        argv[1 + i] = word;
    argv[1 + w->n] = last;
    return argv;
}

/* The benchmark reads its options before it says its version, and touches no device for that. */
static int ask_version(const struct case_draft *draft, const struct words *w, char *error,
                       size_t len)
{
    struct child_result result = {0};
    const char **argv = argv_of(w, draft->bench->path, "--version");

    if (!argv)
        return -ENOMEM;
    int err = child_run(&(struct child_spec){.argv = argv, .timeout_ns = ASK_TIMEOUT_NS}, &result);
    if (err)
        snprintf(error, len, "cannot ask '%s': %s", draft->bench->path, strerror(-err));
    else if (result.status) {
        err = -EINVAL;
        snprintf(error, len, "%.*s", (int)strcspn(result.err.text, "\n"), result.err.text);
    }
    child_result_release(&result);
    free(argv);
    return err;
}

int suite_ask_customs(const struct case_draft *draft, struct yaml_value map)
{
    struct words w = {0};
    char error[512] = "out of memory";
    int err = add_options(&w, draft, true);

    if (!err && w.n)
        err = ask_version(draft, &w, error, sizeof(error));
    buffer_release(&w.texts);
    return err ? yaml_fail(map, "%s", error) : 0;
}

static bool is_on_gpu(const struct case_draft *draft)
{
    for (size_t i = 0; i < draft->n; i++) {
        const struct opt_values *v = &draft->values[i];
        if (!v->given || !places_taken_by(&draft->bench->options[i]))
            continue;
        for (size_t k = 0; k < v->n; k++)
            if (places_gpu_number(draft->bench, v->texts[k]) != SIZE_MAX)
                return true;
    }
    return false;
}

static bool leaves_a_list(const struct case_draft *draft)
{
    for (size_t i = 0; i < draft->bench->n_own; i++)
        if (!draft->values[i].given && draft->bench->options[i].flags & OPT_LIST)
            return true;
    return false;
}

int suite_ask_defaults(struct case_draft *draft, struct yaml_value map)
{
    struct words w = {0};
    char error[512] = "out of memory";
    int err = 0;

    if (draft->no_gpu || !is_on_gpu(draft) || !leaves_a_list(draft))
        return 0;
    err = add_options(&w, draft, false);
    const char **argv = err ? NULL : argv_of(&w, "", NULL);
    if (argv)
        draft->defaults = bench_ask_defaults(draft->bench, argv + 1, error, sizeof(error));
    free(argv);
    buffer_release(&w.texts);
    return draft->defaults ? 0 : yaml_fail(map, "%s", error);
}
