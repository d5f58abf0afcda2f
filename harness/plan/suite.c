/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a suite: see suite.h. Its expansion into cases is in suite_expand.c. */
#include "harness/plan/suite.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/units.h"
#include "harness/child.h"
#include "harness/plan/shapes.h"
#include "harness/plan/suite_expand.h"
#include "harness/plan/yaml.h"
#include "harness/text.h"

#define DEFAULT_REPEATS    3
#define DEFAULT_TIMEOUT_NS 120000000000ull
#define ASK_TIMEOUT_NS     20000000000ull

/* Keys of a case that are the harness' own. */
static const char *const own_keys[] = {"bench", "repeat", "timeout", "margin", "shapes", NULL};

/* Options that all benchmarks have but a suite may not set, since the harness does. */
static const char *const kept_options[] = {"csv",  "output",  "samples",  "describe", "help",
                                           "seed", "version", "no-color", NULL};

static bool among(const char *text, const char *const *names)
{
    for (; *names; names++)
        if (!strcmp(text, *names))
            return true;
    return false;
}

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

/* The keys that are the harness' own, from defaults or a case. */
static void read_own(struct yaml_value map, struct case_draft *draft)
{
    int64_t repeats = draft->repeats;

    yaml_int(yaml_get(map, "repeat"), 1, SUITE_REPEAT_MAX, &repeats);
    draft->repeats = (unsigned)repeats;
    read_duration(yaml_get(map, "timeout"), &draft->timeout_ns);
    read_margin(yaml_get(map, "margin"), &draft->margin);
}

/* "a, b" of a list, or the text of a scalar, as the command line would have it. New text. */
static char *value_text(struct yaml_value v)
{
    struct buffer joined = {0};
    const char *text = NULL;

    if (yaml_kind(v) != YAML_KIND_LIST)
        return yaml_text(v, &text) || !text ? NULL : strdup(text);
    if (!yaml_count(v))
        yaml_fail(v, "the list is empty: name at least one value, or leave the key out");
    for (size_t i = 0; i < yaml_count(v); i++) {
        if (yaml_text(yaml_item(v, i), &text) || buffer_add(&joined, ",", i ? 1 : 0) ||
            buffer_add(&joined, text, strlen(text))) {
            buffer_release(&joined);
            return NULL;
        }
    }
    return joined.text;
}

static size_t option_index(const struct bench_info *b, const char *key)
{
    size_t i = 0;

    while (b->options[i].name && strcmp(b->options[i].name, key))
        i++;
    return b->options[i].name && !among(key, kept_options) ? i : SIZE_MAX;
}

static int unknown_key(const struct bench_info *b, struct yaml_value key, const char *name)
{
    const char *names[256];
    struct buffer all = {0};
    size_t n = 0;

    for (size_t i = 0; own_keys[i]; i++)
        names[n++] = own_keys[i];
    for (size_t i = 0; b->options[i].name && n < 255; i++)
        if (!among(b->options[i].name, kept_options) && !among(b->options[i].name, own_keys))
            names[n++] = b->options[i].name;
    names[n] = NULL;
    for (size_t i = 0; i < n; i++) {
        buffer_add(&all, ", ", i ? 2 : 0);
        buffer_add(&all, names[i], strlen(names[i]));
    }
    const char *near = opts_nearest(name, names);
    int err = yaml_fail(key, "benchmark '%s' has no option '%s'%s%s%s; it has %s", b->name, name,
                        near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "",
                        all.text ? all.text : "");
    buffer_release(&all);
    return err;
}

static int read_option(struct case_draft *draft, struct yaml_value key, const char *name,
                       struct yaml_value value)
{
    const struct bench_info *b = draft->bench;
    size_t i = option_index(b, name);
    char error[512];

    if (i == SIZE_MAX)
        return unknown_key(b, key, name);
    char *text = value_text(value);
    if (!text)
        return -EINVAL; /* the document holds the error */
    if (!strcmp(text, "largest") && b->options[i].flags & OPT_LIST && *b->defaults[i]) {
        const char *comma = strrchr(b->defaults[i], ',');
        free(text);
        text = strdup(comma ? comma + 1 : b->defaults[i]);
        if (!text)
            return -ENOMEM;
    }
    int err = case_draft_set(draft, i, text, error, sizeof(error));
    free(text);
    return err ? yaml_fail(value, "%s", error) : 0;
}

/* `shapes: NAME` stands for the option --shape with every shape of configs/shapes/NAME.yaml. */
static int read_shapes(struct case_draft *draft, struct yaml_value value, const char *configs)
{
    struct buffer list = {0};
    struct shape_set set = {0};
    const char *name = NULL;
    char path[4096], error[512];
    size_t i = option_index(draft->bench, "shape");

    if (yaml_text(value, &name) || !name)
        return -EINVAL;
    if (i == SIZE_MAX)
        return yaml_fail(value, "benchmark '%s' takes no shapes", draft->bench->name);
    snprintf(path, sizeof(path), "%s/shapes/%s.yaml", configs ? configs : "configs", name);
    int err = shapes_load(path, &set, error, sizeof(error));
    if (err)
        return yaml_fail(value, "no shape set '%s': %s", name, error);
    for (size_t k = 0; k < set.count; k++) {
        char text[96];
        shape_text(&set.shapes[k], text, sizeof(text));
        buffer_add(&list, ",", k ? 1 : 0);
        buffer_add(&list, text, strlen(text));
    }
    err = case_draft_set(draft, i, list.text, error, sizeof(error));
    shapes_free(&set);
    buffer_release(&list);
    return err ? yaml_fail(value, "%s", error) : 0;
}

/* Options among the suite's defaults are meant for the benchmarks that have them. */
static int read_default_options(struct case_draft *draft, struct yaml_value defaults)
{
    int err = 0;

    for (size_t i = 0; !err && i < yaml_count(defaults); i++) {
        const char *key = yaml_key(defaults, i);
        if (!among(key, own_keys) && option_index(draft->bench, key) != SIZE_MAX)
            err = read_option(draft, yaml_key_value(defaults, i), key, yaml_item(defaults, i));
    }
    return err;
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
    struct buffer all = {0};
    for (; n < benches->n && n < 127; n++) {
        names[n] = benches->benches[n].name;
        buffer_add(&all, ", ", n ? 2 : 0);
        buffer_add(&all, names[n], strlen(names[n]));
    }
    names[n] = NULL;
    const char *near = opts_nearest(name, names);
    int err = yaml_fail(value, "no benchmark '%s'%s%s%s; there are %s", name,
                        near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "",
                        all.text ? all.text : "none");
    buffer_release(&all);
    return err;
}

/* Only the benchmark can judge its custom texts: it is asked to describe itself with them, which reads its options and measures nothing. */
static int ask_bench(const struct case_draft *draft, size_t i, char *error, size_t len)
{
    struct buffer option = {0};
    struct child_result result = {0};
    const struct opt_values *v = &draft->values[i];

    buffer_add(&option, "--", 2);
    buffer_add(&option, draft->bench->options[i].name, strlen(draft->bench->options[i].name));
    for (size_t k = 0; k < v->n; k++) {
        buffer_add(&option, k ? "," : "=", 1);
        buffer_add(&option, v->texts[k], strlen(v->texts[k]));
    }
    const char *argv[] = {draft->bench->path, option.text, "--describe", NULL};
    int err = child_run(&(struct child_spec){.argv = argv, .timeout_ns = ASK_TIMEOUT_NS}, &result);
    if (err)
        snprintf(error, len, "cannot ask '%s': %s", draft->bench->path, strerror(-err));
    else if (result.status) {
        err = -EINVAL;
        snprintf(error, len, "%.*s", (int)strcspn(result.err.text, "\n"), result.err.text);
    }
    child_result_release(&result);
    buffer_release(&option);
    return err;
}

static int check_custom(struct case_draft *draft, struct yaml_value map)
{
    char error[512];

    for (size_t i = 0; i < draft->n; i++)
        if (draft->bench->options[i].type == OPT_CUSTOM && draft->values[i].given &&
            ask_bench(draft, i, error, sizeof(error)))
            return yaml_fail(map, "%s", error);
    return 0;
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
    char error[512];

    if (yaml_kind(map) != YAML_KIND_MAP)
        return yaml_fail(map, "a case is a map such as {bench: memory, op: triad}");
    int err = find_bench(yaml_need(map, "bench"), r->benches, &draft.bench);
    if (!err)
        err = case_draft_init(&draft);
    if (err)
        return err;
    read_own(r->defaults, &draft);
    read_own(map, &draft);
    err = read_default_options(&draft, r->defaults);
    for (size_t i = 0; !err && i < yaml_count(map); i++) {
        const char *key = yaml_key(map, i);
        if (!strcmp(key, "shapes"))
            err = read_shapes(&draft, yaml_item(map, i), r->configs);
        else if (!among(key, own_keys))
            err = read_option(&draft, yaml_key_value(map, i), key, yaml_item(map, i));
    }
    if (!err && !yaml_doc_status(map.doc))
        err = check_custom(&draft, map);
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
        bool known = among(key, own_keys);
        for (size_t k = 0; !known && k < r->benches->n; k++)
            known = option_index(&r->benches->benches[k], key) != SIZE_MAX;
        if (!known)
            return yaml_fail(yaml_key_value(r->defaults, i), "no benchmark has an option '%s'",
                             key);
    }
    return 0;
}

static void read_suite(struct yaml_doc *doc, struct reader *r)
{
    static const char *const keys[] = {"suite", "about", "defaults", "cases", NULL};
    struct yaml_value root = yaml_doc_root(doc);
    const char *name = NULL, *about = "";

    yaml_keys(root, keys);
    yaml_text(yaml_need(root, "suite"), &name);
    yaml_text(yaml_get(root, "about"), &about);
    r->defaults = yaml_get(root, "defaults");
    yaml_want(r->defaults, YAML_KIND_MAP);
    struct yaml_value cases = yaml_need(root, "cases");
    yaml_want(cases, YAML_KIND_LIST);
    if (yaml_doc_status(doc) || check_defaults(r))
        return;
    r->suite->name = strdup(name);
    r->suite->about = strdup(about);
    for (size_t i = 0; i < yaml_count(cases) && !yaml_doc_status(doc); i++)
        if (read_case(r, yaml_item(cases, i)))
            break;
    if (!r->suite->n)
        yaml_fail(cases, "the suite has no cases");
}

static int finish(struct yaml_doc *doc, struct suite *suite, char *error, size_t len)
{
    int err = yaml_doc_status(doc);

    if (err) {
        snprintf(error, len, "%s", yaml_doc_error(doc) ? yaml_doc_error(doc) : strerror(-err));
        suite_release(suite);
    }
    yaml_doc_free(doc);
    return err;
}

int suite_parse(const char *name, const char *text, size_t size, const char *configs,
                const struct bench_list *benches, struct suite *suite, char *error, size_t len)
{
    struct reader r = {.benches = benches, .configs = configs, .suite = suite};
    struct yaml_doc *doc = yaml_doc_load_buffer(name, text, size);

    *suite = (struct suite){0};
    if (!yaml_doc_status(doc))
        read_suite(doc, &r);
    return finish(doc, suite, error, len);
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
        free(suite->cases[i].arguments);
    free(suite->cases);
    free(suite->name);
    free(suite->about);
    *suite = (struct suite){0};
}
