/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a suite: see suite.h. Its expansion into cases is in suite_expand.c. */
#include "harness/plan/suite.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/option.h"
#include "core/units.h"
#include "harness/child.h"
#include "harness/plan/yaml.h"
#include "harness/text.h"

/* ---- Asking a benchmark about a case ---- */

#define ASK_TIMEOUT_NS 20000000000ull

/* Those that are given: all, or only the custom ones. */
static void add_options(struct argv *words, const struct case_draft *draft, bool custom_only)
{
    for (size_t i = 0; i < draft->n; i++) {
        const struct opt *opt = &draft->bench->options[i];
        const struct opt_values *v = &draft->values[i];
        struct buffer text = {0};

        if (!v->given || (opt->type != OPT_CUSTOM && custom_only))
            continue;
        for (size_t k = 0; k < v->n; k++) {
            buffer_text(&text, k ? "," : "");
            buffer_text(&text, v->texts[k]);
        }
        argv_addf(words, "--%s=%s", opt->name, text.text);
        buffer_release(&text);
    }
}

/* Are the texts right that only it can judge? `map` is where the case stands. 0, or -errno with the
 * error in the document. */
static int suite_ask_customs(const struct case_draft *draft, struct yaml_value map)
{
    struct argv w = {0};
    char error[512] = "";
    int err = 0;

    argv_add(&w, draft->bench->path);
    add_options(&w, draft, true);
    if (w.n > 1) {
        /* The benchmark reads its options before it says its version, and touches no device for
         * that. */
        struct child_result result = {0};

        argv_add(&w, "--version");
        err = child_run(
            &(struct child_spec){.argv = (const char **)w.all, .timeout_ns = ASK_TIMEOUT_NS},
            &result);
        if (err)
            snprintf(error, sizeof(error), "cannot ask '%s': %s", draft->bench->path,
                     strerror(-err));
        else if (result.status) {
            err = -EINVAL;
            snprintf(error, sizeof(error), "%.*s", (int)strcspn(result.err.text, "\n"),
                     result.err.text);
        }
        child_result_release(&result);
    }
    argv_release(&w);
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

/* Sets draft->defaults where a case on a GPU leaves a list to its default values, which may be
 * others there than on the host. 0, or -errno with the error in the document. */
static int suite_ask_defaults(struct case_draft *draft, struct yaml_value map)
{
    struct argv w = {0};
    char error[512] = "";

    bool leaves = false;

    for (size_t i = 0; i < draft->bench->n_own; i++)
        leaves |= !draft->values[i].given && draft->bench->options[i].flags & OPT_LIST;
    if (draft->no_gpu || !is_on_gpu(draft) || !leaves)
        return 0;
    add_options(&w, draft, false);
    draft->defaults =
        bench_ask_defaults(draft->bench, (const char *const *)w.all, error, sizeof(error));
    argv_release(&w);
    return draft->defaults ? 0 : yaml_fail(map, "%s", error);
}

#define DEFAULT_REPEATS    5 /* fewer do not tell a loss from two levels: docs/deciding.md */
#define DEFAULT_TIMEOUT_NS 120000000000ull

static int read_duration(struct yaml_value v, uint64_t *ns)
{
    const char *text = NULL;

    if (yaml_text(v, &text) || !text)
        return 0;
    if (units_parse_duration(text, ns) || !*ns)
        return yaml_fail(v, "'%s' is not a time such as 60s, 500ms or 2m", text);
    return 0;
}

static int read_margin(struct yaml_value v, double *margin)
{
    const char *text = NULL;

    if (yaml_text(v, &text) || !text)
        return 0;
    if (units_parse_fraction(text, margin) || !(*margin > 0 && *margin < 1))
        return yaml_fail(v, "'%s' is not a margin such as 5%%", text);
    return 0;
}

/* What the key may say of this benchmark: pairs of hosts are nothing to one that needs a group, and
 * one that takes a peer if asked is asked by the case itself. NULL: it may. */
static const char *refuse_between(const struct bench_info *b, bool general,
                                  enum suite_between between)
{
    if (bench_needs(b, "peer") || (bench_needs(b, "peer-if-asked") && !general) ||
        (bench_needs(b, "group") && between == BETWEEN_NONE))
        return NULL;
    return bench_needs(b, "group") ? "is run over all hosts at once: 'between' may only be none"
                                   : "needs no peer, so it is not run between hosts";
}

const char *const suite_betweens[] = {
    [BETWEEN_RING] = "ring",     [BETWEEN_FIRST] = "first", [BETWEEN_ALL] = "all",
    [BETWEEN_SAMPLE] = "sample", [BETWEEN_NONE] = "none",   [BETWEEN_NONE + 1] = NULL,
};

static int read_between(struct yaml_value map, bool general, struct case_draft *draft)
{
    struct yaml_value v = yaml_get(map, "between");
    int i = -1;

    if (yaml_choice(v, suite_betweens, &i) || i < 0)
        return 0;
    const char *why = refuse_between(draft->bench, general, (enum suite_between)i);
    if (!why)
        draft->between = (enum suite_between)i;
    return why && !general ? yaml_fail(v, "'%s' %s", draft->bench->name, why) : 0;
}

/* The keys that are the harness' own, from defaults or a case. */
static void read_own(struct yaml_value map, bool general, struct case_draft *draft)
{
    int64_t repeats = draft->repeats;

    yaml_int(yaml_get(map, "repeat"), 1, SUITE_REPEAT_MAX, &repeats);
    draft->repeats = (unsigned)repeats;
    read_duration(yaml_get(map, "timeout"), &draft->timeout_ns);
    read_margin(yaml_get(map, "margin"), &draft->margin);
    read_between(map, general, draft);
}

static int find_bench(struct yaml_value value, const struct bench_list *benches,
                      const struct bench_info **bench)
{
    const char *names[128], *name = NULL;
    size_t n = 0;

    if (yaml_text(value, &name) || !name)
        return -EINVAL;
    *bench = bench_list_find(benches, name);
    if (*bench)
        return 0;
    for (; n < benches->n && n < 127; n++)
        names[n] = benches->benches[n].name;
    names[n] = NULL;
    return yaml_unknown(value, "benchmark", name, names);
}

struct reader {
    const struct bench_list *benches;
    const char *configs;
    struct yaml_value defaults;
    struct suite *suite;
};

static int read_case(struct reader *r, struct yaml_value map)
{
    struct case_draft draft = {.repeats = DEFAULT_REPEATS,
                               .timeout_ns = DEFAULT_TIMEOUT_NS,
                               .margin = NAN,
                               .line = yaml_line(map)};
    char error[512] = "";

    if (yaml_kind(map) != YAML_KIND_MAP)
        return yaml_fail(map, "a case is a map such as {bench: memory, op: triad}");
    int err = find_bench(yaml_need(map, "bench"), r->benches, &draft.bench);
    if (err)
        return err;
    case_draft_init(&draft);
    draft.between = bench_needs(draft.bench, "peer-if-asked") ? BETWEEN_NONE : BETWEEN_RING;
    read_own(r->defaults, true, &draft);
    read_own(map, false, &draft);
    /* Options among the suite's defaults are meant for the benchmarks that have them. */
    err = 0;

    for (size_t i = 0; !err && i < yaml_count(r->defaults); i++) {
        const char *key = yaml_key(r->defaults, i);
        if (!suite_key_is_own(key) && suite_option_index(draft.bench, key) != SIZE_MAX)
            err = suite_option_read(&draft, yaml_key_value(r->defaults, i), key,
                                    yaml_item(r->defaults, i));
    }
    for (size_t i = 0; i < draft.n; i++)
        draft.general[i] = draft.values[i].given;
    for (size_t i = 0; !err && i < yaml_count(map); i++) {
        const char *key = yaml_key(map, i);
        if (!strcmp(key, "shapes"))
            err = suite_shapes_read(&draft, yaml_item(map, i), r->configs);
        else if (!suite_key_is_own(key))
            err = suite_option_read(&draft, yaml_key_value(map, i), key, yaml_item(map, i));
    }
    if (!err && !yaml_doc_status(map.doc)) {
        err = case_draft_prune(&draft, error, sizeof(error));
        if (err)
            yaml_fail(map, "%s", error);
    }
    if (!err && !yaml_doc_status(map.doc))
        err = suite_ask_customs(&draft, map);
    if (!err && !yaml_doc_status(map.doc))
        err = suite_ask_defaults(&draft, map);
    if (!err && !yaml_doc_status(map.doc)) {
        err = case_draft_expand(&draft, r->suite, error, sizeof(error));
        if (err)
            yaml_fail(map, "%s", error);
    }
    case_draft_release(&draft);
    return err;
}

/* A default must be an option of some benchmark of this suite, else it is a typo that nobody would
 * notice. */
static int check_defaults(const struct reader *r)
{
    for (size_t i = 0; i < yaml_count(r->defaults); i++) {
        const char *key = yaml_key(r->defaults, i);
        bool known = suite_key_is_own(key);
        for (size_t k = 0; !known && k < r->benches->n; k++)
            known = suite_option_index(&r->benches->benches[k], key) != SIZE_MAX;
        if (!known)
            return yaml_fail(yaml_key_value(r->defaults, i), "no benchmark has an option '%s'",
                             key);
    }
    return 0;
}

static void read_suite(struct yaml_doc *doc, struct reader *r)
{
    static const char *const keys[] = {"suite", "about", "again", "defaults", "cases", NULL};
    struct yaml_value root = yaml_doc_root(doc);
    const char *name = NULL, *about = "";

    yaml_keys(root, keys);
    yaml_text(yaml_need(root, "suite"), &name);
    yaml_text(yaml_get(root, "about"), &about);
    read_duration(yaml_get(root, "again"), &r->suite->again_ns);
    r->defaults = yaml_get(root, "defaults");
    yaml_want(r->defaults, YAML_KIND_MAP);
    struct yaml_value cases = yaml_need(root, "cases");
    yaml_want(cases, YAML_KIND_LIST);
    if (yaml_doc_status(doc) || check_defaults(r))
        return;
    r->suite->name = xstrdup(name);
    r->suite->about = xstrdup(about);
    for (size_t i = 0; i < yaml_count(cases) && !yaml_doc_status(doc); i++)
        if (read_case(r, yaml_item(cases, i)))
            break;
    suite_unite(r->suite);
    if (!r->suite->n)
        yaml_fail(cases, "the suite has no cases");
}

int suite_parse(const char *name, const char *text, size_t size, const char *configs,
                const struct bench_list *benches, struct suite *suite, char *error, size_t len)
{
    struct reader r = {.benches = benches, .configs = configs, .suite = suite};
    struct yaml_doc *doc = yaml_doc_load_buffer(name, text, size);

    *suite = (struct suite){.benches = benches};
    if (!yaml_doc_status(doc))
        read_suite(doc, &r);
    int err = yaml_doc_status(doc);

    if (err) {
        snprintf(error, len, "%s", yaml_doc_error(doc));
        suite_release(suite);
    }
    yaml_doc_free(doc);
    return err;
}

int suite_load(const char *path, const char *configs, const struct bench_list *benches,
               struct suite *suite, char *error, size_t len)
{
    struct buffer text = {0};
    int err = file_read(path, YAML_BYTES_MAX, &text);

    if (err)
        snprintf(error, len, "%s: cannot be read: %s", path, strerror(-err));
    else
        err = suite_parse(path, text.text, text.size, configs, benches, suite, error, len);
    buffer_release(&text);
    return err;
}

void suite_release(struct suite *suite)
{
    for (size_t i = 0; i < suite->n; i++)
        suite_case_release(&suite->cases[i]);
    free(suite->cases);
    free(suite->name);
    free(suite->about);
    *suite = (struct suite){0};
}

/* ---- Where suites are ---- */

#define SUITES_MAX 64 /* among which a mistyped name is looked for */

char *suite_configs_folder(void)
{
    char own[4000] = "", path[4200];
    const char *places[4], *env = getenv("PLUMB_CONFIGS");
    size_t n = 0;

    if (env && *env)
        return xstrdup(env);
    program_folder(own, sizeof(own));
    places[n++] = "configs";
    places[n++] = "/../../configs";
    places[n++] = "/../share/plumbline/configs";
    places[n++] = "/../configs";
    for (size_t i = 0; i < n; i++) {
        snprintf(path, sizeof(path), "%s%s", i ? own : "", places[i]);
        if (!access(path, R_OK | X_OK))
            return xstrdup(path);
    }
    return NULL;
}

static int is_suite(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');

    return dot && dot != entry->d_name && !strcmp(dot, ".yaml");
}

char *suite_find(const char *name, char *error, size_t len)
{
    char *path = NULL;

    if (strchr(name, '/') || strstr(name, ".yaml"))
        return xstrdup(name);
    char *configs = suite_configs_folder();
    if (!configs)
        snprintf(error, len,
                 "no folder 'configs' here or beside the program: set PLUMB_CONFIGS, or give the "
                 "suite's file");
    else
        path = xasprintf("%s/%s.yaml", configs, name);
    if (path && access(path, R_OK)) {
        /* Says that there is no such suite, and which one may have been meant. */
        const char *names[SUITES_MAX + 1] = {NULL};
        struct dirent **entries = NULL;
        int n = scandir(configs, &entries, is_suite, alphasort);

        for (int i = 0; i < n && i < SUITES_MAX; i++) {
            *strrchr(entries[i]->d_name, '.') = 0;
            names[i] = entries[i]->d_name;
        }
        const char *near = opts_nearest(name, names);
        snprintf(error, len, "no suite '%s' in '%s'%s%s%s; `plumb list` shows the suites", name,
                 configs, near ? ": did you mean '" : "", near ? near : "", near ? "'?" : "");
        for (int i = 0; i < n; i++)
            free(entries[i]);
        free(entries);
        free(path);
        path = NULL;
    }
    free(configs);
    return path;
}
