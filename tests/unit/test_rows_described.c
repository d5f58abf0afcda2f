/* SPDX-License-Identifier: Apache-2.0 */
/* What benchmarks say of their rows: their tables name columns that there are, what is written is read, and what is damaged is
 * refused. */
#include "core/condition.h"
#include "harness/plan/bench_info.h"
#include "harness/text.h"
#include "tests/unit/built_benches.h"
#include "tests/unit/unit.h"

struct checking {
    const struct bench_info *b;
    const char *where; /* in which text it stands */
};

static bool is_column(const struct bench_info *b, const char *name, size_t len)
{
    for (const struct bench_column *c = b->rows.columns; c->name; c++)
        if (strlen(c->name) == len && !memcmp(c->name, name, len))
            return true;
    return false;
}

static bool check_name(void *arg, const char *name, size_t len)
{
    /* the harness adds the hosts between which it was */
    static const char others[] = "metric unit from to";
    const struct checking *c = arg;
    char text[64];

    snprintf(text, sizeof(text), "%.*s", (int)len, name);
    if (!is_column(c->b, name, len) && !word_in(others, text))
        fail_msg("%s has no column '%s': '%s'", c->b->name, text, c->where);
    return false;
}

static void check_condition(const struct bench_info *b, const char *where)
{
    if (where)
        condition_names(where, check_name, &(struct checking){b, where});
}

static void check_words(const struct bench_info *b, const char *words)
{
    for (const char *at = words; at && *at; at += strspn(at, " +-")) {
        size_t n = strcspn(at, " +-=");

        if (n)
            check_name(&(struct checking){b, words}, at, n);
        at += at[n] == '=' ? strcspn(at, " ") : n;
    }
}

/* Each NAME, or WORD=NAME. */
static void check_named(const struct bench_info *b, const char *words)
{
    for (const char *at = words; at && *at; at += strspn(at, " ")) {
        size_t n = strcspn(at, " "), word = strcspn(at, "= ");
        size_t skip = word < n ? word + 1 : 0;

        check_name(&(struct checking){b, words}, at + skip, n - skip);
        at += n;
    }
}

static bool check_fact(void *arg, const char *name, size_t len)
{
    static const char facts[] =
        "cpus nodes gpus rdma rdma_mtu huge_pages congestion quota guest peer";
    char text[64];

    snprintf(text, sizeof(text), "%.*s", (int)len, name);
    if (!word_in(facts, text))
        fail_msg("no fact of a machine: '%s', in '%s'", text, (const char *)arg);
    return false;
}

/* Its benchmark takes these options, as they are and not as others. */
static void check_options(const struct bench_info *b, const char *both, const char *options)
{
    struct argv words = {NULL};
    char error[512] = "";

    argv_split(&words, both ? both : "");
    argv_split(&words, options ? options : "");
    char **defaults = bench_ask_defaults(b, (const char *const *)words.all, error, sizeof(error));
    if (!defaults)
        fail_msg("%s refuses '%s' '%s': %s", b->name, both ? both : "", options, error);
    texts_free(defaults);
    argv_release(&words);
}

static void check_experiment(const struct bench_info *b, const struct bench_experiment *e)
{
    const struct bench_metric *m = b->rows.metrics;
    const struct bench_pipe *p = b->rows.pipes;

    check_condition(b, e->where);
    while (m->name && strcmp(m->name, e->metric) != 0)
        m++;
    while (p->pipe && strcmp(p->pipe, e->pipe) != 0)
        p++;
    if (!m->name || !p->pipe)
        fail_msg("%s: no such metric or pipe: '%s', '%s'", e->check, e->metric, e->pipe);
    for (m = b->rows.metrics; e->counts && m->name && strcmp(m->name, e->counts) != 0; m++)
        ;
    /* conditions go with their reasons */
    if (!m->name || !e->machine != !e->lacks || !e->counts != !e->absent ||
        (!strcmp(e->with, e->without) && !e->unset))
        fail_msg("%s", e->check);
    if (e->machine)
        condition_names(e->machine, check_fact, (void *)e->machine);
    check_options(b, e->both, e->with);
    check_options(b, e->both, e->without);
}

static void check_jobs(const struct bench_info *b)
{
    for (const struct bench_job *j = b->rows.jobs; j->label; j++) {
        check_condition(b, j->where);
        check_words(b, j->by);
        check_words(b, j->at);
        check_words(b, j->on);
        if (!j->on != !j->thing || !(j->gain > 0 && j->gain < 100))
            fail_msg("%s: what is counted, and a gain: '%s'", b->name, j->label);
    }
    for (const struct bench_bound *bound = b->rows.bounds; bound->where; bound++) {
        check_condition(b, bound->where);
        if (!strstr(bound->says, "%s"))
            fail_msg("%s: no place for the share: '%s'", b->name, bound->says);
    }
    for (const struct bench_advice *a = b->rows.advice; a->column; a++) {
        check_words(b, a->column);
        check_condition(b, a->where);
        if (!strstr(a->says, "%s"))
            fail_msg("%s: no place for the value: '%s'", b->name, a->says);
        check_options(b, NULL, a->measure);
    }
}

static void check_rows(const struct bench_info *b)
{
    for (const struct bench_column *c = b->rows.columns; c->name; c++)
        check_words(b, c->sought_by);
    for (const struct bench_metric *m = b->rows.metrics; m->name; m++)
        check_condition(b, m->where);
    for (const struct bench_headline *h = b->rows.headlines; h->pipe; h++) {
        check_condition(b, h->where);
        check_words(b, h->by);
        check_words(b, h->at);
    }
    for (const struct bench_sibling *c = b->rows.siblings; c->title; c++) {
        check_condition(b, c->where);
        check_condition(b, c->against);
        check_condition(b, c->refused);
        check_words(b, c->column);
        check_words(b, c->but);
        check_named(b, c->named);
    }
    for (const struct bench_contrast *c = b->rows.contrasts; c->title; c++) {
        check_condition(b, c->where);
        check_condition(b, c->other);
        check_words(b, c->column);
        check_words(b, c->by);
    }
    for (const struct bench_plot *p = b->rows.plots; p->x; p++) {
        check_words(b, p->x);
        check_words(b, p->lines);
        check_words(b, p->ignore);
        check_words(b, p->square);
        check_condition(b, p->elsewhere);
    }
    for (const struct bench_terms *t = b->rows.terms; t->where; t++)
        check_condition(b, t->where);
    for (const struct bench_pipe *p = b->rows.pipes; p->pipe; p++)
        check_condition(b, p->where);
    for (const struct bench_limit *l = b->rows.limits; l->where; l++)
        check_condition(b, l->where);
    for (const struct bench_experiment *e = b->rows.experiments; e->check; e++)
        check_experiment(b, e);
    for (const struct bench_start *s = b->rows.starts; s->what; s++)
        check_condition(b, s->where);
    check_jobs(b);
}

/* A word that names no column never fits, and nobody would see it. */
TEST(test_tables_name_columns_that_there_are)
{
    struct bench_list benches = built_benches();

    for (size_t i = 0; i < benches.n; i++)
        check_rows(&benches.benches[i]);
    bench_list_release(&benches);
}

static int read_text(const char *text, struct bench_rows *rows, json_t **json)
{
    char error[200] = "";

    *json = json_loads(text, 0, NULL);
    assert_non_null(*json);
    return rows_described_read(*json, rows, error, sizeof(error));
}

TEST(test_what_is_written_is_read)
{
    struct bench_rows rows;
    json_t *json;

    assert_int_equal(
        read_text("{\"stage\": \"copy\", \"columns\": [{\"name\": \"a\"}, {\"name\": \"b\","
                  " \"bytes\": true, \"outcome\": true, \"used\": true}],"
                  " \"headlines\": [{\"pipe\": \"P\", \"label\": \"l\", \"where\": \"a=1\","
                  " \"low_below\": 70, \"gpu\": true, \"later\": [1]}],"
                  " \"experiments\": [{\"check\": \"far\", \"cause\": \"far memory\","
                  " \"lost\": \"time\", \"with\": \"--far 1\", \"without\": \"--far 0\","
                  " \"metric\": \"rate\", \"pipe\": \"P\", \"machine\": \"nodes!=1\"}],"
                  " \"starts\": [{\"what\": \"driver\"}],"
                  " \"limits\": [{\"where\": \"\", \"of\": \"peer link\"}], \"later\": {}}",
                  &rows, &json),
        0);
    assert_int_equal(rows.stage, STAGE_COPY);
    assert_int_equal(rows.columns[1].flags, COLUMN_BYTES | COLUMN_OUTCOME | COLUMN_USED);
    assert_null(rows.columns[2].name);
    assert_true(rows.headlines[0].low_below == 70);
    assert_int_equal(rows.headlines[0].flags, HEADLINE_GPU);
    assert_int_equal(rows.limits[0].of, LIMIT_PEER_LINK);
    assert_string_equal(rows.experiments[0].without, "--far 0");
    assert_string_equal(rows.experiments[0].machine, "nodes!=1");
    assert_null(rows.experiments[0].both);
    assert_null(rows.experiments[1].check);
    assert_null(rows.plots[0].x);
    assert_string_equal(rows.starts[0].what, "driver");
    assert_null(rows.starts[0].where);
    rows_described_release(&rows);
    json_decref(json);
}

TEST(test_what_is_damaged_is_refused)
{
    static const char *const damaged[] = {
        "[]",
        "{\"stage\": \"nowhere\"}",
        "{\"stage\": 3}",
        "{\"columns\": [{}]}",
        "{\"columns\": [3]}",
        "{\"columns\": [{\"name\": 3}]}",
        "{\"columns\": [{\"name\": \"a\", \"bytes\": \"yes\"}]}",
        "{\"headlines\": [{\"pipe\": \"P\", \"label\": \"l\"}]}",
        "{\"headlines\": [{\"pipe\": \"P\", \"label\": \"l\", \"where\": \"\", \"low_below\": "
        "\"x\"}]}",
        "{\"limits\": [{\"where\": \"\", \"of\": \"a\"}]}",
        "{\"experiments\": [{\"check\": \"far\"}]}",
    };

    for (size_t i = 0; i < sizeof(damaged) / sizeof(*damaged); i++) {
        struct bench_rows rows;
        json_t *json;

        if (read_text(damaged[i], &rows, &json) != -EBADMSG)
            fail_msg("taken: %s", damaged[i]);
        assert_null(rows.columns);
        json_decref(json);
    }
}
