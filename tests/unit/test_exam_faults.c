// SPDX-License-Identifier: Apache-2.0
/*
 * Ground truth for each check of plumb doctor: a machine with the fault, the same one without it, and the same one
 * of which the fact was not recorded. A machine of tests/machines is changed by files of its tree (a path
 * with '/'), or, for what no tree holds, by facts of the probe's object (a path with '.').
 */
#include "harness/exam/exam.h"
#include "tests/unit/machines.h"
#include "tests/unit/probe_cases.h"
#include "tests/unit/unit.h"

#define METAL "nvlink-8gpu" /* where no other is named */
#define GUEST "machine=kvm-sriov|"
#define QUOTA "machine=docker-quota|"
#define GPU   "0000:18:00.0"
#define NIC   "0000:19:00.0"

#define GPU_ROOT "sys/devices/pci0000:15/0000:15:01.0/"
#define FIRST    GPU_ROOT "0000:16:00.0/"
#define SWITCH   FIRST "0000:17:00.0/"
#define IB       FIRST "0000:17:01.0/" NIC "/"

static change_words words[] = {
    {"later:", "plumb/later/"},
    {"cpu:", "sys/devices/system/cpu/"},
    {"gpu:", SWITCH GPU "/"},
    {"port:", IB "infiniband/mlx5_0/ports/1/"},
    {"switch:", SWITCH},
    {"eno1:", "sys/devices/pci0000:00/0000:00:1c.0/0000:02:00.0/net/eno1/"},
    {"vf:", "sys/devices/pci0000:00/0000:00:05.0/"},
    {"group:", "sys/fs/cgroup/user.slice/"},
    {"bond:", "sys/devices/virtual/net/bond0/"},
    {"dev:", "gpus.devices.0."},
    {"limits:", "virtualization.limits."},
    {"uptime", "proc/uptime"},
    {"ticks", "proc/stat"},
    {"tells", "plumb/net"},
    {"settings", "library_settings"},
    {NULL, NULL},
};

#define SIZE(list) (sizeof(list) / sizeof(*(list)))
#define LINE(own, partner, duplex)                                                                 \
    "eno1 line own_gbits_per_s=" own " offered_gbits_per_s=" own " partner_gbits_per_s=" partner   \
    " full_duplex=" duplex
#define ETHERNET(name, gbits)                                                                      \
    "{'name': '" name "', 'kind': 'ethernet', 'state': 'up', 'virtual': false,"                    \
    " 'speed_gbits_per_s': " gbits "}"
#define TWO_SPEEDS "[" ETHERNET("eno1", "1") ", " ETHERNET("eth1", "400") "]"

/* What stands for more words in exam_faults.txt. */
static const char *const shorts[][2] = {
    {"$KEPT", "gpus.nvml=true|dev:persistence_mode=true"},
    {"$LENT", "pci.3.driver='vfio-pci'|pci.4.driver='vfio-pci'|pci.4.acs_redirect=true"},
    {"$LAUNCHED", "launcher='OMPI_COMM_WORLD_SIZE'"},
    {"$GUEST", "machine=kvm-sriov"},
    {"$QUOTA", "machine=docker-quota"},
    {"$SPEEDS", TWO_SPEEDS},
    {"\\n", "\n"},
    {"\\t", "\t"},
};

/* A line of that file. Of other kinds than "fault" the change is `first`. */
static struct fault {
    const char *kind, *check, *subject, *first, *fault, *missing;
} lines[400];
static size_t n_lines;

static void read_line(char *line)
{
    const char **columns[] = {&lines[n_lines].kind,    &lines[n_lines].check,
                              &lines[n_lines].subject, &lines[n_lines].first,
                              &lines[n_lines].fault,   &lines[n_lines].missing};
    bool is_fault = !strncmp(line, "fault", 5);
    size_t n = 0;

    for (char *at; n < SIZE(columns) && (at = strsep(&line, ";")); n++) {
        char *text = calloc(1, 4096);

        at += strspn(at, " ");
        at[strcspn(at, "\n")] = 0;
        for (size_t end = strlen(at); end && at[end - 1] == ' '; end--)
            at[end - 1] = 0;
        for (char *out = text; *at;) {
            size_t k = 0;

            while (k < SIZE(shorts) && strncmp(at, shorts[k][0], strlen(shorts[k][0])))
                k++;
            *out = *at;
            if (k < SIZE(shorts))
                strcpy(out, shorts[k][1]);
            at += k < SIZE(shorts) ? strlen(shorts[k][0]) : 1;
            out += strlen(out);
        }
        *columns[n + (n == 2 && !is_fault)] = text;
    }
    assert_true(is_fault ? n >= 5 : n == 3);
    n_lines++;
}

static int read_lines(void **state)
{
    char line[4096];
    FILE *f = fopen("tests/unit/exam_faults.txt", "r");

    (void)state;
    assert_non_null(f);
    while (fgets(line, sizeof(line), f))
        if (*line != '#') {
            assert_in_range(n_lines, 0, SIZE(lines) - 1);
            read_line(line);
        }
    fclose(f);
    return 0;
}

/* ---- changing a machine */

/* Copies of the machines, each made once; what is changed is put back. */
static struct copy {
    char machine[32];
    struct scratch s;
    json_t *as_it_is; /* what a probe tells of it while nothing is changed; NULL: none has yet */
} copies[16];         /* more than there are machines: the last has no name */

static void shell(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void shell(const char *format, ...)
{
    char command[2048];
    va_list args;

    va_start(args, format);
    vsnprintf(command, sizeof(command), format, args);
    va_end(args);
    assert_int_equal(system(command), 0);
}

static struct copy *copy_of(const char *machine)
{
    struct copy *c = copies;

    while (c->machine[0] && strcmp(c->machine, machine) != 0)
        c++;
    if (!c->machine[0]) {
        snprintf(c->machine, sizeof(c->machine), "%s", machine);
        scratch_open(&c->s);
        shell("cp -aH " MACHINE("%s") " %s/root", machine, c->s.root);
    }
    return c;
}

/* What is put there to stay makes it another machine. */
static void has_changed(struct copy *c)
{
    json_decref(c->as_it_is);
    c->as_it_is = NULL;
}

static int drop_copies(void **state)
{
    (void)state;
    for (struct copy *c = copies; c->machine[0]; c++) {
        has_changed(c);
        scratch_close(&c->s);
    }
    return 0;
}

static bool is_file(const struct change *c)
{
    return strchr(c->path, '/') != NULL;
}

/* The file as it is goes to a stash, and comes back from there. */
static void change_file(const struct scratch *s, const struct change *c, size_t number, bool back)
{
    char path[1024], stash[128];

    snprintf(stash, sizeof(stash), "%s/stash%zu", s->root, number);
    snprintf(path, sizeof(path), "root/%s", c->path);
    if (back) {
        unlink(scratch_path(s, path));
        rename(stash, scratch_path(s, path));
        return;
    }
    rename(scratch_path(s, path), stash);
    if (c->known)
        scratch_put(s, path, c->value);
}

static void change_fact(json_t *machine, const struct change *c)
{
    char above[512], why[80];
    const char *dot = strrchr(c->path, '.'), *key = dot ? dot + 1 : c->path;

    snprintf(above, sizeof(above), "%.*s", dot ? (int)(dot - c->path) : 0, c->path);
    json_t *object = (json_t *)at_path(machine, above);
    if (!json_is_object(object))
        fail_msg("no object holds \"%s\"", c->path);
    snprintf(why, sizeof(why), "%.70s_why", key);
    json_object_del(object, why);
    json_object_set_new(object, key,
                        c->known ? json_loads(c->value, JSON_DECODE_ANY, NULL) : json_null());
    assert_non_null(json_object_get(object, key));
    if (!c->known)
        json_object_set_new(object, why, json_string("taken away"));
}

static json_t *probed(const struct copy *c)
{
    char root[128];
    json_t *machine;

    snprintf(root, sizeof(root), "%s/root", c->s.root);
    assert_int_equal(probe_machine(root, &machine), 0);
    return machine;
}

/* The machine, with `first` and then `then` changed: files before it is probed, facts after it. */
static json_t *changed(const char *first, const char *then)
{
    static struct change all[16];
    struct copy *c = copy_of(METAL);
    json_t *machine;
    size_t n = 0, files = 0;

    while (next_change(&first, &all[n], words) || next_change(&then, &all[n], words))
        if (!strcmp(all[n].path, "machine"))
            c = copy_of(all[n].value);
        else
            assert_in_range(++n, 1, SIZE(all) - 1);
    for (size_t i = 0; i < n; i++)
        if (is_file(&all[i])) {
            strcat(all[i].value, "\n");
            change_file(&c->s, &all[i], i, false);
            files++;
        }
    if (files) {
        machine = probed(c);
    } else {
        c->as_it_is = c->as_it_is ? c->as_it_is : probed(c);
        machine = json_deep_copy(c->as_it_is);
        assert_non_null(machine);
    }
    for (size_t i = n; i-- > 0;)
        if (is_file(&all[i]))
            change_file(&c->s, &all[i], i, true);
    for (size_t i = 0; i < n; i++)
        if (!is_file(&all[i]))
            change_fact(machine, &all[i]);
    return machine;
}

/* ---- what the check says */

/* The state of its worst result for the subject, or for the machine, of which a list was not
 * recorded (NULL: any): found, then unknown, then fine. */
static enum exam_state worst_of(struct exam *x, const char *check, const char *subject)
{
    enum exam_state worst = EXAM_NOT_APPLICABLE;

    for (const struct exam_result *r = exam_results(x); r; r = r->next) {
        if (strcmp(r->check->id, check) != 0 ||
            (subject && *subject != '*' && strcmp(r->subject, subject) != 0 &&
             strcmp(r->subject, "machine") != 0))
            continue;
        if (r->state == EXAM_FOUND || (r->state == EXAM_UNKNOWN && worst != EXAM_FOUND) ||
            worst == EXAM_NOT_APPLICABLE)
            worst = r->state;
    }
    return worst;
}

enum { NOT_FOUND = -1 };

static size_t expect(const struct fault *f, const char *what, const char *then, int expected)
{
    json_t *machine = changed(f->first, then);
    struct exam *x = exam_new(machine);
    enum exam_state state = worst_of(x, f->check, f->subject);
    bool wrong = expected == NOT_FOUND ? state == EXAM_FOUND : (int)state != expected;

    if (wrong)
        print_error("%s %s: %s\n", f->check, what, exam_state_name(state));
    exam_free(x);
    json_decref(machine);
    return wrong;
}

TEST(test_each_fault_is_found)
{
    size_t wrong = 0;

    for (const struct fault *f = lines; f < lines + n_lines; f++) {
        char first[256];

        if (strcmp(f->kind, "fault") != 0)
            continue;
        snprintf(first, sizeof(first), "%.*s", (int)strcspn(f->fault, "=|"), f->fault);
        wrong += expect(f, "without the fault", "", EXAM_FINE);
        wrong += expect(f, "with the fault", f->fault, EXAM_FOUND);
        if (f->missing)
            wrong += expect(f, "without the fact", strcmp(f->missing, "-") ? f->missing : first,
                            EXAM_UNKNOWN);
    }
    assert_int_equal(wrong, 0);
}

static bool has_cases(const char *id)
{
    for (const struct fault *f = lines; f < lines + n_lines; f++)
        if (!strcmp(f->check, id) && f->missing)
            return true;
    return false;
}

TEST(test_each_check_has_its_cases)
{
    for (const struct exam_area *area = exam_areas; area->name; area++)
        for (const struct exam_check *c = area->checks; c->id; c++)
            if (!has_cases(c->id))
                fail_msg("check \"%s\" lacks a machine with its fault, or without its fact", c->id);
}

/* ---- ports of a switch, by the bytes of their configuration */

static void put_control(struct copy *c, const char *folder, unsigned control)
{
    unsigned char config[264] = {[0x100] = 0x0d, [0x102] = 1, [0x104] = 0x1f};
    char path[512];

    config[0x106] = (unsigned char)control;
    snprintf(path, sizeof(path), "root/%sconfig", folder);
    scratch_bytes(&c->s, path, config, sizeof(config));
    has_changed(c);
}

/* Access control: 04 and 08 send requests and completions to the root, 40 lets pass what is
 * translated. 1d is what Linux sets, and 5d with the remedy of peer-translation. */
TEST(test_traffic_turns_at_the_switch)
{
    static const struct {
        unsigned root, gpu, adapter; /* of the root's port, and of those above both */
        enum exam_state acs, peers;  /* of the adapter, its own, and lent */
    } cases[] = {
        {0x1d, 0x00, 0x00, EXAM_FINE, EXAM_FINE},   {0x1d, 0x1d, 0x1d, EXAM_FOUND, EXAM_FOUND},
        {0x00, 0x1d, 0x1d, EXAM_FOUND, EXAM_FOUND}, {0x1d, 0x5d, 0x5d, EXAM_FOUND, EXAM_FINE},
        {0x5d, 0x1d, 0x1d, EXAM_FOUND, EXAM_FOUND}, {0x00, 0x00, 0x00, EXAM_FINE, EXAM_FINE},
    };
    const struct fault acs = {.check = "acs", .subject = NIC, .first = ""},
                       peers = {.check = "peer-translation", .subject = NIC, .first = ""};
    struct copy *metal = copy_of(METAL);
    size_t wrong = 0;

    for (size_t i = 0; i < SIZE(cases); i++) {
        put_control(metal, GPU_ROOT, cases[i].root);
        put_control(metal, SWITCH, cases[i].gpu);
        put_control(metal, FIRST "0000:17:01.0/", cases[i].adapter);
        wrong += expect(&acs, "at the switch", "", cases[i].acs);
        wrong += expect(&peers, "at the switch", "pci.3.driver='vfio-pci'|pci.4.driver='vfio-pci'",
                        cases[i].peers);
    }
    assert_int_equal(wrong, 0);
}

/* A second switch, of ports 21:00.0 and 21:01.0, below port 17:02.0 of the first one: the GPU 1a:00.0
 * below the one, an adapter below the other. */
#define OUTER  FIRST "0000:17:02.0/"
#define SECOND OUTER "0000:20:00.0/"
#define INNER  SECOND "0000:21:00.0/"
#define BESIDE SECOND "0000:21:01.0/"

/* Copies the plain files of a function's folder, and lists it on the bus. */
static void put_function(const struct scratch *s, const char *from, const char *to)
{
    shell("cd %s/root && mkdir -p %s && find %s -maxdepth 1 -type f -exec cp -t %s {} + && "
          "ln -sfn ../../../../%.*s sys/bus/pci/devices/",
          s->root, to, from, to, (int)strlen(to) - 1, to);
}

/* ---- costs by a closed form */

#define BOND(mode, policy, a, b)                                                                   \
    "network=[{'name': 'bond0', 'kind': 'bond', 'state': 'up', 'bond': {'mode': '" mode            \
    "', 'hash_policy': '" policy "', 'members': ['eth0', 'eth1']}}, {'name': 'eth0', 'state': '" a \
    "'}, {'name': 'eth1', 'state': '" b "'}]"
#define RANKS(n) "rank={'local': 0, 'local_size': " n ", 'peers': ['0', '1']}"
#define NODE(n)  "{'node': " n ", 'cpus': '" n "0-" n "9'}"
#define EIGHT_NODES                                                                                \
    "gpus.devices=[]|numa.nodes=[{'node': 0, 'cpus': '0-9'}," NODE("1") "," NODE("2") "," NODE(    \
        "3") "," NODE("4") "," NODE("5") "," NODE("6") "," NODE("7") "]"

#define LOST(share)    share, share
#define AT_MOST(share) 0, share
static const struct price {
    const char *check, *first, *fault;
    double least, most;
    const char *of; /* NULL: not asked */
} prices[] = {
    /* Payload of full frames: MTU - 52 of MTU + 38 bytes; at 9000: 8948 of 9038. A slow interface
     * is asked for 1500 bytes, a fast one for 9000. */
    {"mtu", "", "eno1:mtu=1400", LOST(1 - (1348. / 1438) / (1448. / 1538)), NULL},
    {"mtu", "", "eno1:speed=25000", LOST(1 - (1448. / 1538) / (8948. / 9038)), NULL},
    {"cpu-quota", "", "group:cpu.max=200000 100000", LOST(1 - 2. / 32), NULL},
    {"cpu-set", "", "proc/self/status=Cpus_allowed_list:\t0-7", LOST(1 - 8. / 32), NULL},
    /* Of eight CPUs of twelve, the time of two and a half: one loss; of six: the set's alone. */
    {"cpu-quota", QUOTA, "limits:cpu_quota=2.5", LOST(1 - 2.5 / 12), NULL},
    {"cpu-set", QUOTA, "limits:cpu_quota=9", LOST(1 - 8. / 12), NULL},
    {"shaping", "", "tells=eno1 qdisc tbf rate_gbits_per_s=1.0", LOST(0.9), NULL},
    /* 16 lanes of 5 GT/s in 8b/10b, of 32 GT/s in 128b/130b. */
    {"pcie-slot", "", "switch:max_link_speed=5.0 GT/s PCIe",
     LOST(1 - (5. * 8 / 10) / (32. * 128 / 130)), NULL},
    /* Between two hosts, addresses do not differ: one of two members takes all. */
    {"bond", "machine=downtrained|", BOND("802.3ad", "layer2+3", "up", "up"), LOST(0.5), NULL},
    {"bond", "machine=downtrained|", BOND("802.3ad", "layer3+4", "lowerlayerdown", "up"), LOST(0.5),
     NULL},
    {"rdma-rate", "", "port:rate=100 Gb/sec (1X NDR)", LOST(0.75), NULL},
    {"rdma-rate", "", "port:rate=200 Gb/sec (4X HDR)", LOST(0.5), NULL},
    /* A message of 1 MiB: 1024 packets of 1024 and 82 bytes, or 256 of 4096 and 82; RETH 16 once. */
    {"rdma-mtu", GUEST, "vf:net/ens5/mtu=1500",
     LOST(1 - (256 * (4096. + 82) + 16) / (1024 * (1024. + 82) + 16)), NULL},
    /* On eight nodes two ranks use two at best, and sixteen ranks all. */
    {"rank-map", EIGHT_NODES, RANKS("2"), AT_MOST(0.5), "memory"},
    {"rank-map", EIGHT_NODES, RANKS("16"), AT_MOST(0.875), "memory"},
    {"chosen-interface", "rdma=[]|network=" TWO_SPEEDS, "settings={'GLOO_SOCKET_IFNAME': 'eno1'}",
     LOST(1 - 1. / 400), "Gloo"},
    /* Both slow: NCCL's is first. */
    {"chosen-interface", "rdma=[]|network=" TWO_SPEEDS,
     "settings={'GLOO_SOCKET_IFNAME': 'eno1', 'NCCL_SOCKET_IFNAME': 'eno1'}", LOST(1 - 1. / 400),
     "NCCL"},
    {"line-rate", "eno1:speed=100000", "tells=" LINE("200", "200", "1"), LOST(0.5), "network"},
    {"pause-frames", "tells=eno1 counts rx_prio3_pause_duration=9",
     "later:tells=eno1 counts rx_prio3_pause_duration=500009", AT_MOST(0.25), "priority 3"},
    {"pause-frames", "tells=eno1 counts tx_global_pause_duration=0",
     "later:tells=eno1 counts tx_global_pause_duration=400000", AT_MOST(0.2), "receives"},
    /* Of 400 s that were wanted between the readings, 380 were stolen; or since a boot of today. */
    {"steal",
     GUEST "uptime=1000000|later:uptime=1000002|ticks=cpu 40000 0 10000 950000 0 0 0 100 0 0",
     "later:ticks=cpu 42000 0 10000 950000 0 0 0 38100 0 0", LOST(0.95), "CPU time"},
    {"steal", GUEST "uptime=36000", "ticks=cpu 4000 0 1000 9900000 0 0 0 95000 0 0", LOST(0.95),
     "CPU time"},
};

/* Of the first finding; `of`, where it is not NULL, is in what is lost. */
static struct exam_cost cost_of(const char *check, const char *first, const char *fault,
                                const char *of)
{
    json_t *machine = changed(first, fault);
    struct exam *x = exam_new(machine);
    const struct exam_result *r = exam_results(x);

    while (r && (r->state != EXAM_FOUND || strcmp(r->check->id, check) != 0))
        r = r->next;
    assert_non_null(r);
    struct exam_cost cost = r->cost;
    if (of)
        assert_non_null(strstr(cost.of, of));
    exam_free(x);
    json_decref(machine);
    return cost;
}

TEST(test_prices)
{
    for (size_t i = 0; i < SIZE(prices); i++) {
        const struct price *p = &prices[i];
        struct exam_cost cost = cost_of(p->check, p->first, p->fault, p->of);

        assert_int_equal(cost.basis, EXAM_COMPUTED);
        if (fabs(cost.high - p->most) > 1e-4 || fabs(cost.low - p->least) > 1e-4)
            fail_msg("%s: a loss of %.5f to %.5f", p->check, cost.low, cost.high);
    }
}

/* Where the facts give no closed form no figure is shown, and a cited one only where it holds: that of the IOMMU is
 * one of an adapter of 200 Gb/s. */
TEST(test_costs_without_a_closed_form)
{
    static const struct {
        const char *check, *change;
        enum exam_basis basis;
    } cases[] = {
        {"other-load", "proc/loadavg=8.00 1.00 1.00 9/400 4711", EXAM_NOT_PRICED},
        {"numa-balancing", "proc/sys/kernel/numa_balancing=1", EXAM_NOT_PRICED},
        {"bond", "machine=downtrained|" BOND("active-backup", "layer2", "up", "down"),
         EXAM_NOT_PRICED},
        {"iommu", "sys/kernel/iommu_groups/25/type=DMA", EXAM_CITED},
        {"iommu",
         "sys/kernel/iommu_groups/25/type=DMA|port:rate=200 Gb/sec (4X HDR)|"
         "network.1.speed_gbits_per_s=200.0",
         EXAM_CITED},
        {"iommu",
         "sys/kernel/iommu_groups/25/type=DMA|port:rate=100 Gb/sec (4X EDR)|"
         "network.1.speed_gbits_per_s=100.0",
         EXAM_NOT_PRICED},
        {"iommu", "sys/kernel/iommu_groups/24/type=DMA", EXAM_NOT_PRICED},
    };

    for (size_t i = 0; i < SIZE(cases); i++)
        assert_int_equal(cost_of(cases[i].check, "", cases[i].change, NULL).basis, cases[i].basis);
}

/* ---- what is common and costs nothing, and counts of which nobody knows when they came */

/* Of the subject whose counter was changed. */
static const char *subject_of(const char *check)
{
    static const char *const subjects[][2] = {
        {"link-flaps", "eno1"}, {"packet-loss", "eno1"}, {"pause-frames", "eno1"},
        {"line-rate", "eno1"},  {"shaping", "eno1"},     {"peer-translation", "0000:00:05.0"},
        {"rdma-", "mlx5_0:1"},  {"gpu-", GPU},           {"pcie-", GPU},
    };

    for (size_t i = 0; i < SIZE(subjects); i++)
        if (!strncmp(check, subjects[i][0], strlen(subjects[i][0])))
            return subjects[i][1];
    return NULL;
}

TEST(test_what_is_no_fault)
{
    static const struct {
        const char *kind;
        int state;
    } kinds[] = {
        {"calm", NOT_FOUND}, {"undated", EXAM_UNKNOWN}, {"few", EXAM_FINE}, {"found", EXAM_FOUND}};
    size_t wrong = 0, seen = 0;

    for (struct fault *f = lines; f < lines + n_lines; f++)
        for (size_t k = 0; k < SIZE(kinds); k++)
            if (!strcmp(f->kind, kinds[k].kind)) {
                f->subject = k ? subject_of(f->check) : NULL;
                wrong += expect(f, f->first, "", kinds[k].state);
                seen++;
            }
    assert_int_equal(wrong, 0);
    assert_in_range(seen, 100, n_lines);
}

/* Traffic of that GPU turns at the second switch to the adapter beside it, and at the first one to the
 * others. The port between the switches counts only where something is below the first one, too. */
TEST(test_traffic_turns_at_two_levels)
{
    static const struct {
        unsigned outer, inner, beside, first; /* first: of the ports right below the first switch */
        bool alone;                           /* nothing else is below the first switch */
        enum exam_state gpu, adapter, other; /* other: of an adapter right below the first switch */
    } cases[] = {
        {0x00, 0x00, 0x00, 0x00, false, EXAM_FINE, EXAM_FINE, EXAM_FINE},
        {0x1d, 0x00, 0x00, 0x00, false, EXAM_FOUND, EXAM_FOUND, EXAM_FINE},
        {0x00, 0x1d, 0x00, 0x00, false, EXAM_FOUND, EXAM_FINE, EXAM_FINE},
        {0x00, 0x00, 0x1d, 0x00, false, EXAM_FINE, EXAM_FOUND, EXAM_FINE},
        {0x00, 0x00, 0x00, 0x1d, false, EXAM_FINE, EXAM_FINE, EXAM_FOUND},
        {0x1d, 0x00, 0x00, 0x00, true, EXAM_FINE, EXAM_FINE, EXAM_NOT_APPLICABLE},
        {0x00, 0x1d, 0x00, 0x00, true, EXAM_FOUND, EXAM_FINE, EXAM_NOT_APPLICABLE},
    };
    struct copy *metal = copy_of(METAL);
    const struct scratch *s = &metal->s;
    size_t wrong = 0;

    put_function(s, FIRST, SECOND);
    put_function(s, SWITCH, INNER);
    put_function(s, SWITCH, BESIDE);
    put_function(s, OUTER "0000:1a:00.0/", INNER "0000:1a:00.0/");
    put_function(s, IB, BESIDE "0000:23:00.0/");
    shell("rm -r %s/root/" OUTER "0000:1a:00.0", s->root);
    for (size_t i = 0; i < SIZE(cases); i++) {
        const struct {
            const char *subject;
            enum exam_state state;
        } want[] = {{"0000:1a:00.0", cases[i].gpu},
                    {"0000:23:00.0", cases[i].adapter},
                    {NIC, cases[i].other}};

        put_control(metal, OUTER, cases[i].outer);
        put_control(metal, INNER, cases[i].inner);
        put_control(metal, BESIDE, cases[i].beside);
        put_control(metal, SWITCH, cases[i].first);
        put_control(metal, FIRST "0000:17:01.0/", cases[i].first);
        for (int k = 0; cases[i].alone && k < 2; k++)
            shell("rm -rf %s/root/" FIRST "0000:17:0%d.0 %s/root/sys/bus/pci/devices/0000:1%d:00.0",
                  s->root, k, s->root, 8 + k);
        for (size_t k = 0; k < SIZE(want) - cases[i].alone; k++) {
            const struct fault acs = {.check = "acs", .subject = want[k].subject, .first = ""};

            wrong += expect(&acs, want[k].subject, "", (int)want[k].state);
        }
    }
    assert_int_equal(wrong, 0);
}

TESTS_WITH(read_lines, drop_copies);
