/* SPDX-License-Identifier: Apache-2.0 */
/* Where options say something: conditions, whole sweeps, repetitions, and that values stand once. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/option.h"

static const struct opt_scope pairs = {"from=cuda:* to=cuda:* from!=@to", "pairs"};
static const struct opt_scope either = {"from=host,node* | to=host,node*", "copies with the host"};
static const struct opt_scope sweeps = {"from=cuda:* to=cuda:*", "sweeps over GPUs"};

enum { FROM, TO, OP, MEMORY, SAMPLE };

struct params {
    const char *from, *to, *memory;
    uint64_t op;
    bool sample;
};

#define AT(member) offsetof(struct params, member)

static const struct opt table[] = {
    {.name = "from", .type = OPT_STRING, .flags = OPT_LIST, .offset = AT(from), .def = "host"},
    {.name = "to", .type = OPT_STRING, .flags = OPT_LIST, .offset = AT(to), .def = "host"},
    {.name = "op",
     .type = OPT_U64,
     .flags = OPT_LIST,
     .offset = AT(op),
     .def = "3",
     .scope = &pairs},
    {.name = "memory",
     .type = OPT_STRING,
     .flags = OPT_LIST,
     .offset = AT(memory),
     .def = "small",
     .scope = &either},
    {.name = "sample",
     .type = OPT_FLAG,
     .flags = OPT_SWEEP,
     .offset = AT(sample),
     .def = "no",
     .scope = &sweeps},
    {.name = NULL},
};
static const struct opt *const tables[] = {table, NULL};

static void set(struct opts *o, const char *from, const char *to)
{
    assert_int_equal(opts_init(o, tables), 0);
    assert_int_equal(opts_set(o, "from", from), 0);
    assert_int_equal(opts_set(o, "to", to), 0);
}

static bool speaks(const char *from, const char *to, size_t option)
{
    struct opts o;

    set(&o, from, to);
    bool yes = opt_speaks(table, o.values, NULL, option);
    opts_release(&o);
    return yes;
}

static void test_conditions(void **state)
{
    (void)state;
    assert_true(speaks("cuda:0", "cuda:1", OP));
    assert_false(speaks("cuda:1", "cuda:1", OP));
    assert_false(speaks("cuda:0", "host", OP));
    assert_false(speaks("node0", "cuda:1", OP));
    assert_false(speaks("cuda:0", "cuda:1", MEMORY));
    assert_true(speaks("node3", "cuda:1", MEMORY));
    assert_true(speaks("cuda:1", "host", MEMORY));
    assert_true(speaks("anything", "else", FROM));
}

/* Lists are tried whole, in the options that the condition asks for. */
static void test_whole_sweeps(void **state)
{
    struct opts o;

    (void)state;
    set(&o, "host,cuda:0", "node1,cuda:0,cuda:1");
    assert_true(opt_ever_speaks(table, o.values, OP)); /* the very last combination */
    opts_release(&o);
    set(&o, "host,cuda:0", "node1,cuda:0");
    assert_false(opt_ever_speaks(table, o.values, OP));
    assert_true(opt_ever_speaks(table, o.values, MEMORY));
    assert_int_equal(opts_refuse_vain(&o), 0); /* by default it may say nothing */
    assert_int_equal(opts_default(&o, "op", "4"), 0);
    assert_int_equal(opts_refuse_vain(&o), 0);
    assert_int_equal(opts_set(&o, "op", "3"), 0); /* also where it is the default's value */
    assert_int_equal(opts_refuse_vain(&o), -EINVAL);
    assert_string_equal(o.error,
                        "option '--op' does not apply here: it is for pairs; leave it out");
    assert_int_equal(opts_set(&o, "op", "1,2"), 0);
    assert_int_equal(opts_refuse_vain(&o), -EINVAL);
    opts_release(&o);
}

static void test_repetitions(void **state)
{
    struct opts o;
    size_t to_gpu[] = {0, 1, 1, 0, 0}, first[] = {0, 0, 0, 0, 0}, later[] = {0, 0, 1, 0, 0},
           other[] = {0, 0, 0, 1, 0};

    (void)state;
    set(&o, "cuda:0", "host,cuda:1");
    assert_int_equal(opts_set(&o, "op", "1,2"), 0);
    assert_int_equal(opts_set(&o, "memory", "small,large"), 0);
    assert_false(opt_repeats(table, o.values, first));
    assert_true(opt_repeats(table, o.values, later));
    assert_false(opt_repeats(table, o.values, to_gpu));
    assert_false(opt_repeats(table, o.values, other)); /* the host's memory does say something */
    opts_release(&o);
}

/* By default both kinds are measured; what was given is for one of them. */
static void test_left_out(void **state)
{
    static const struct opt_scope bulk = {"kind=bulk", "bulk"};
    static const struct opt kinds[] = {
        {.name = "kind", .type = OPT_STRING, .flags = OPT_LIST, .def = "bulk,ping"},
        {.name = "lanes",
         .type = OPT_U64,
         .flags = OPT_LIST,
         .offset = 8,
         .def = "1",
         .scope = &bulk},
        {.name = NULL},
    };
    static const struct opt *const both[] = {kinds, NULL};
    const size_t of_bulk[] = {0, 0}, of_ping[] = {1, 0};
    struct opts o;

    (void)state;
    assert_int_equal(opts_init(&o, both), 0);
    assert_false(opt_left_out(kinds, o.values, of_ping)); /* nothing was given */
    assert_int_equal(opts_set(&o, "lanes", "4"), 0);
    assert_true(opt_left_out(kinds, o.values, of_ping));
    assert_false(opt_left_out(kinds, o.values, of_bulk));
    assert_int_equal(opts_set(&o, "kind", "bulk,ping"), 0); /* who asks for both is told */
    assert_false(opt_left_out(kinds, o.values, of_ping));
    opts_release(&o);
}

static void test_in_vain(void **state)
{
    struct opts o;
    size_t host[] = {0, 0, 0, 0, 0}, gpu[] = {0, 1, 0, 0, 0};

    (void)state;
    set(&o, "cuda:0", "host,cuda:1");
    assert_int_equal(opt_in_vain(table, o.values, host), SIZE_MAX);
    assert_int_equal(opts_set(&o, "op", "1,2"), 0);
    assert_int_equal(opt_in_vain(table, o.values, host), SIZE_MAX); /* of a list one is taken */
    assert_int_equal(opts_set(&o, "op", "2"), 0);
    assert_int_equal(opt_in_vain(table, o.values, host), OP);
    assert_int_equal(opt_in_vain(table, o.values, gpu), SIZE_MAX);
    assert_int_equal(opts_set(&o, "memory", "large"), 0);
    assert_int_equal(opt_in_vain(table, o.values, gpu), MEMORY);
    opts_release(&o);
    set(&o, "cuda:0", "host");
    assert_int_equal(opts_set(&o, "sample", "yes"), 0); /* of the sweep: no one point is refused */
    assert_int_equal(opt_in_vain(table, o.values, host), SIZE_MAX);
    assert_int_equal(opts_refuse_vain(&o), -EINVAL);
    opts_release(&o);
}

static void test_its_default_is_taken(void **state)
{
    static const struct opt several = {
        .name = "n", .type = OPT_U64, .flags = OPT_LIST, .offset = AT(op), .def = "11,12"};
    static const struct opt range = {
        .name = "n", .type = OPT_U64, .flags = OPT_LIST, .offset = AT(op), .def = "13..20"};
    struct params p = {.op = 7, .memory = "large"};
    struct opts o;

    (void)state;
    set(&o, "host", "host");
    assert_int_equal(opts_set(&o, "op", "9"), 0);
    assert_int_equal(opts_apply_default(&o, &table[OP], &p), 0);
    assert_int_equal(opts_apply_default(&o, &table[MEMORY], &p), 0);
    assert_int_equal(p.op, 3);
    assert_string_equal(p.memory, "small");
    assert_int_equal(opts_apply_default(&o, &several, &p), 0);
    assert_int_equal(p.op, 11);
    assert_int_equal(opts_apply_default(&o, &range, &p), 0);
    assert_int_equal(p.op, 13);
    opts_release(&o);
}

static void test_values_stand_once(void **state)
{
    static const char *const want[] = {"4", "1", "2", "3"};
    struct opts o;

    (void)state;
    set(&o, "b,a,b,a,b", "host");
    const struct opt_values *v = opts_values(&o, "from");
    assert_int_equal(v->n, 2);
    assert_string_equal(v->texts[0], "b");
    assert_string_equal(v->texts[1], "a");
    assert_int_equal(opts_set(&o, "op", "4,1..4+1,0x4,2"), -EINVAL);
    assert_int_equal(opts_set(&o, "op", "4,1..4+1,2,1"), 0);
    v = opts_values(&o, "op");
    assert_int_equal(v->n, 4);
    for (size_t i = 0; i < 4; i++)
        assert_string_equal(v->texts[i], want[i]);
    opts_release(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conditions),        cmocka_unit_test(test_whole_sweeps),
        cmocka_unit_test(test_repetitions),       cmocka_unit_test(test_in_vain),
        cmocka_unit_test(test_left_out),          cmocka_unit_test(test_its_default_is_taken),
        cmocka_unit_test(test_values_stand_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
