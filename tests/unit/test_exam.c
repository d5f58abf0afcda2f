// SPDX-License-Identifier: Apache-2.0
/* The checks of plumb doctor, over machines that nobody here owns and over objects made here. */
#include "harness/exam/exam.h"
#include "harness/machine/fact.h"
#include "harness/probe/probe.h"
#include "tests/unit/machines.h"
#include "tests/unit/unit.h"

static json_t *machine(const char *name)
{
    char path[512];
    json_t *json;

    snprintf(path, sizeof(path), MACHINE("%s"), name);
    assert_int_equal(probe_machine(path, &json), 0);
    return json;
}

/* "check subject;check subject;" of all findings, costliest first; each has a remedy and evidence. */
static void assert_found(const json_t *json, const char *expected)
{
    struct exam *x = exam_new(json);
    char text[8192] = "";

    assert_non_null(x);
    for (const struct exam_result *r = exam_results(x); r; r = r->next)
        if (r->state == EXAM_FOUND) {
            snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s %s;", r->check->id,
                     r->subject);
            assert_true(*r->remedy && json_object_size(r->evidence) > 0);
        }
    assert_string_equal(text, expected);
    exam_free(x);
}

static const struct {
    const char *name, *found;
} machines[] = {
    /* Healthy: whoever finds something in everybody is not asked twice. */
    {"nvlink-8gpu", ""},
    {"kvm-virtio", ""},
    {"esxi-pvrdma", ""},
    {"firecracker", ""},
    {"arm64-server", "pcie-slot 0004:01:00.0;governor processor;"},
    {"docker-quota", "cpu-quota processor;"},
    {"kvm-sriov", "gpu-rdma gpus;numa-balancing memory;device-node 0000:00:05.0;"
                  "device-node 0000:00:06.0;"},
    {"downtrained",
     "acs 0000:67:00.0;acs 0000:68:00.0;pcie-link 0000:3b:00.0;pcie-link 0000:65:00.0;governor "
     "processor;gpu-rdma gpus;huge-pages memory;rdma-mtu rxe0:1;boost processor;clock-source "
     "clock;memory-sizes memory;iommu 0000:3b:00.0;iommu 0000:67:00.0;rdma-software rxe0;gpu-bar "
     "0000:3b:00.0;pcie-slot 0000:01:00.0;"},
};

static void look_at(const char *name, void *arg)
{
    size_t i = 0;

    (void)arg;
    while (i < sizeof(machines) / sizeof(*machines) && strcmp(machines[i].name, name) != 0)
        i++;
    if (i == sizeof(machines) / sizeof(*machines))
        fail_msg("what is to be found on \"%s\" is not listed", name);
    json_t *json = machine(name);
    // cppcheck-suppress arrayIndexOutOfBoundsCond ; fail_msg does not return
    assert_found(json, machines[i].found);
    json_decref(json);
}

TEST(test_lists_of_cpus)
{
    static const struct {
        const char *list;
        double n;
    } cases[] = {{"0-3,8", 5}, {"", 0},        {"0-3,8-", 0},
                 {"x", 0},     {"7,99999", 2}, {"0-2000000000", 0}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        if (fact_cpus(cases[i].list) != cases[i].n)
            fail_msg("'%s' names %g", cases[i].list, fact_cpus(cases[i].list));
}

TEST(test_machines)
{
    assert_int_equal(machines_each(look_at, NULL), sizeof(machines) / sizeof(*machines));
}

/* Without any fact nothing is found, nothing is fine, and what matters is unknown. */
TEST(test_no_facts)
{
    json_t *json = json_object();
    struct exam *x = exam_new(json);

    assert_int_equal(exam_count(x, EXAM_FOUND), 0);
    assert_int_equal(exam_count(x, EXAM_FINE), 0);
    assert_true(exam_results(x)->matters);
    exam_free(x);
    json_decref(json);
}

static json_t *parse(const char *text)
{
    json_error_t error;
    json_t *json = json_loads(text, 0, &error);

    if (!json)
        fail_msg("%s: %s", error.text, text);
    return json;
}

static const struct exam_result *result_of(struct exam *x, const char *check, const char *subject)
{
    for (const struct exam_result *r = exam_results(x); r; r = r->next)
        if (!strcmp(r->check->id, check) && (!subject || !strcmp(r->subject, subject)))
            return r;
    fail_msg("no result of %s for %s", check, subject ? subject : "anything");
    return NULL;
}

/* The reason of a null, on the way to the fact too, is the probe's. */
TEST(test_reasons)
{
    json_t *json = parse("{\"cpu\": {\"threads\": 4, \"clock\": {\"governors\": null,"
                         " \"governors_why\": \"not there\"}},"
                         " \"virtualization\": {\"limits\": null, \"limits_why\": \"no /proc\"}}");
    struct exam *x = exam_new(json);

    assert_non_null(strstr(result_of(x, "governor", NULL)->text, "not there"));
    assert_non_null(strstr(result_of(x, "cpu-quota", NULL)->text, "no /proc"));
    exam_free(x);
    json_decref(json);
}

/* What a file of somebody else holds in place of a fact: no crash, and nothing is found. */
TEST(test_other_types)
{
    static const char *const values[] = {"7", "\"x\"", "[7, null, {}]", "{\"x\": []}", "[[]]"};
    json_t *whole = machine("downtrained");
    const char *key;
    json_t *value;

    for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
        json_t *other = json_loads(values[i], JSON_DECODE_ANY, NULL);

        json_object_foreach (whole, key, value) {
            json_t *changed = json_copy(whole);
            struct exam *x;

            json_object_set(changed, key, other);
            x = exam_new(changed);
            assert_non_null(x);
            exam_free(x);
            json_decref(changed);
        }
        json_decref(other);
    }
    json_decref(whole);
}

/* Facts of a file go to a terminal: no character of theirs may steer it. */
TEST(test_control_characters)
{
    json_t *json = parse("{\"host\": {\"clocksource\": \"\\u001b[2Jtsc\\n\"}}");
    struct exam *x = exam_new(json);
    const struct exam_result *r = result_of(x, "clock-source", NULL);

    assert_int_equal(r->state, EXAM_FOUND);
    assert_null(strpbrk(r->text, "\033\n"));
    exam_free(x);
    json_decref(json);
}

/* A share of the rate; of the time, twice as long is half the rate. */
TEST(test_costs)
{
    struct exam_cost cost = {.basis = EXAM_MEASURED, .low = 0.5, .high = 1, .of_time = true};

    assert_float_equal(exam_loss(&cost), 0.75 / 1.75, 1e-9);
    cost.of_time = false;
    assert_float_equal(exam_loss(&cost), 0.75, 1e-9);
    cost.basis = EXAM_NOT_PRICED;
    assert_true(exam_loss(&cost) < 0);
}

#define GPU_PAIR(gpu, nic)                                                                         \
    "{\"virtualization\": {\"guest\": false}, \"pci\": ["                                          \
    "{\"address\": \"a\", \"kind\": \"gpu\", \"nature\": \"physical\", " gpu "},"                  \
    "{\"address\": \"b\", \"kind\": \"infiniband\", \"nature\": \"physical\", " nic "}],"          \
    "\"proximity\": [{\"gpu\": \"a\", \"nic\": \"b\", \"relation\": \"PIX\"}]}"
#define BY_ROOT "\"acs_redirect\": null, \"acs_redirect_why\": \"root only\", "

/* Without root, one IOMMU group for both shows that the switch does not redirect. */
TEST(test_acs_by_groups)
{
    static const struct {
        const char *text;
        enum exam_state state;
        bool matters;
    } cases[] = {
        {GPU_PAIR("\"acs_redirect\": true", "\"acs_redirect\": true"), EXAM_FOUND, true},
        {GPU_PAIR("\"acs_redirect\": false", "\"acs_redirect\": false"), EXAM_FINE, true},
        {GPU_PAIR(BY_ROOT "\"iommu_group\": 7", BY_ROOT "\"iommu_group\": 7"), EXAM_FINE, true},
        {GPU_PAIR(BY_ROOT "\"iommu_group\": 7", BY_ROOT "\"iommu_group\": 8"), EXAM_UNKNOWN, true},
        {GPU_PAIR(BY_ROOT "\"iommu_group\": null", BY_ROOT "\"iommu_group\": null"), EXAM_UNKNOWN,
         false},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        json_t *json = parse(cases[i].text);
        struct exam *x = exam_new(json);

        for (int k = 0; k < 2; k++) {
            const struct exam_result *r = result_of(x, "acs", k ? "b" : "a");

            assert_int_equal(r->state, cases[i].state);
            assert_int_equal(r->matters, cases[i].matters);
        }
        exam_free(x);
        json_decref(json);
    }
}

/* Ports of 25 GB/s, each a function of one adapter, share one link. */
#define PORT_OF(function)                                                                          \
    "{\"address\": \"0000:19:00." function "\", \"kind\": \"infiniband\", "                        \
    "\"nature\": \"physical\", \"link\": {\"device\": \"0000:19:00." function "\", "               \
    "\"now_gbytes_per_s\": 31.5, \"best_gbytes_per_s\": 63, \"now_width\": 8, \"best_width\": "    \
    "16, "                                                                                         \
    "\"max_width\": 16, \"now_gt_s\": 32, \"best_gt_s\": 32, \"max_gt_s\": 32, "                   \
    "\"downtrained\": true}}"
#define RATE_OF(function)                                                                          \
    "{\"nature\": \"physical\", \"pci\": \"0000:19:00." function "\", "                            \
    "\"ports\": [{\"state\": \"ACTIVE\", \"rate_gbits_per_s\": 200}]}"
#define ADAPTER(ports, rates)                                                                      \
    "{\"virtualization\": {\"guest\": false}, \"pci\": [" ports "], \"rdma\": [" rates "]}"

TEST(test_ports_share_a_link)
{
    json_t *one = parse(ADAPTER(PORT_OF("0"), RATE_OF("0"))),
           *two = parse(ADAPTER(PORT_OF("0") ", " PORT_OF("1"), RATE_OF("0") ", " RATE_OF("1")));
    struct exam *x = exam_new(two);
    const struct exam_result *r = result_of(x, "pcie-link", "0000:19:00.0");

    assert_found(one, "");
    assert_int_equal(r->state, EXAM_FOUND);
    assert_float_equal(r->cost.low, 1 - 31.5 / 50, 1e-9);
    exam_free(x);
    json_decref(one);
    json_decref(two);
}

/* Which low values a finding can explain: by what the cause does, not by how the table says it. */
TEST(test_what_a_finding_explains)
{
    static const struct {
        const char *check, *subject, *pipe;
        bool explains;
    } cases[] = {
        {"pcie-link", "0000:18:00.0", "PCIe", true},
        {"pcie-link", "0000:18:00.0", "GPU memory by RDMA", true},
        {"pcie-link", "0000:18:00.0", "Copies", false}, /* between processes: no link is crossed */
        {"pcie-link", "0000:19:00.0", "Network", true},
        {"pcie-link", "0000:19:00.0", "GPU copies", false}, /* the link of an adapter */
        {"pcie-link", "0000:01:00.0", "Network", false},    /* of a disk */
        {"acs", "0000:19:00.0", "GPU memory by RDMA", true},
        {"acs", "0000:19:00.0", "Network", false}, /* host memory is above the switch anyway */
        {"gpu-rdma", "gpus", "GPU memory by RDMA", true},
        {"gpu-adapter", "0000:18:00.0", "GPU memory by RDMA", true},
        {"gpu-storage", "gpus", "GPU copies", false}, /* files alone */
        {"cpu-quota", "processor", "Training step", true},
        {"mtu", "eno1", "Training step", true},
        {"mtu", "eno1", "Network latency", false}, /* a message of 8 bytes has one frame */
        {"shaping", "eno1", "Network latency", true},
        {"settings", "NCCL_P2P_DISABLE", "Allreduce", true},
        {"settings", "NCCL_P2P_DISABLE", "Matrix core", false},
        {"settings", "OPENBLAS_CORETYPE", "Matrix core", true},
        {"settings", "OPENBLAS_CORETYPE", "Allreduce", false},
        {"sockets", "NCCL_IB_DISABLE", "Network", false}, /* its own program asks no NCCL */
        {"sockets", "process", "Network", true},
    };
    json_t *json = parse("{\"pci\": [{\"address\": \"0000:18:00.0\", \"kind\": \"gpu\"},"
                         " {\"address\": \"0000:19:00.0\", \"kind\": \"infiniband\"},"
                         " {\"address\": \"0000:01:00.0\", \"kind\": \"nvme\"}]}");
    struct exam *x = exam_new(json);

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const struct exam_result r = {.check = exam_find(cases[i].check, NULL),
                                      .subject = cases[i].subject};

        assert_non_null(r.check);
        if (exam_explains(x, &r, cases[i].pipe) != cases[i].explains)
            fail_msg("%s of %s, %s", cases[i].check, cases[i].subject, cases[i].pipe);
    }
    exam_free(x);
    json_decref(json);
}

static bool is_id(const char *id)
{
    return id[strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789-")] == 0;
}

/* The table itself: each id once, no cost without a source. */
TEST(test_table)
{
    for (const struct exam_area *area = exam_areas; area->name; area++)
        for (const struct exam_check *c = area->checks; c->id; c++) {
            const char *found_in;

            assert_true(is_id(c->id));
            assert_ptr_equal(exam_find(c->id, &found_in), c);
            assert_string_equal(found_in, area->name);
            assert_non_null(c->question);
            assert_non_null(c->seen);
            assert_int_equal(c->cost.basis, c->cost.source ? EXAM_CITED : EXAM_NOT_PRICED);
            if (c->cost.source)
                assert_true(c->cost.of && c->cost.low >= 0 && c->cost.high > 0 &&
                            c->cost.high >= c->cost.low && !strncmp(c->cost.source, "https://", 8));
        }
}
