// SPDX-License-Identifier: Apache-2.0
// tier: long
/*
 * One property of the probe, over the machines of tests/machines: with any files taken away, each fact is what it
 * was, or null with a reason, or a weaker word for the same. Never none, 0, physical or another value;
 * no entry and no finding comes from nothing. Each file by itself, then sets of them by fixed seeds.
 */
#include "harness/probe/probe.h"
#include "tests/unit/machines.h"
#include "tests/unit/probe_cases.h"
#include "tests/unit/unit.h"

#include <ftw.h>

enum { FILES_MAX = 8192, SETS = 6, TAKEN_MAX = 24 };

static char *file[FILES_MAX];
static size_t n_files;

static int note_file(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st, (void)at;
    if ((type == FTW_F || type == FTW_SL) && n_files < FILES_MAX && !strstr(path, "/.keep"))
        file[n_files++] = strdup(path);
    return 0;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A copy of the machine to take files from; the files in the order of their names. */
static void copy_machine(const char *name, struct scratch *s)
{
    char command[512];

    scratch_open(s);
    snprintf(command, sizeof(command), "cp -aH " MACHINE("%s") " %s/root", name, s->root);
    assert_int_equal(system(command), 0);
    n_files = 0;
    snprintf(command, sizeof(command), "%s/root", s->root);
    nftw(command, note_file, 16, FTW_PHYS);
    qsort(file, n_files, sizeof(*file), by_text);
}

static void drop_copy(struct scratch *s)
{
    while (n_files)
        free(file[--n_files]);
    scratch_close(s);
}

/* ---- what may become of a fact ---- */

struct look {
    const char *machine, *taken; /* what is told when it does not hold */
    bool lists;                  /* a list's own entry was taken: the list may be shorter */
    size_t wrong;
};

static void say_wrong(struct look *l, const char *where, const char *what)
{
    if (l->wrong++ < 20)
        print_error("%s without %s: %s %s\n", l->machine, l->taken, where, what);
}

static bool ends(const char *text, const char *with)
{
    size_t n = strlen(text), m = strlen(with);

    return n >= m && !strcmp(text + n - m, with);
}

/* The engine or the family of a product, a container without its runtime's name, a name from pci.ids. */
static bool is_weaker(const char *where, const char *was, const char *is)
{
    static const char *const words[][3] = {{".hypervisor", "firecracker", "kvm"},
                                           {".hypervisor", "kvm", "qemu"},
                                           {".container", "docker", "unknown kind"}};

    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (ends(where, words[i][0]) && !strcmp(was, words[i][1]) && !strcmp(is, words[i][2]))
            return true;
    if (ends(where, ".gpus.devices.source"))
        return true;
    return (ends(where, ".nature") && !strcmp(is, "unknown")) ||
           (strstr(where, ".gpus.devices") && ends(where, ".name"));
}

static bool is_reason(const char *key)
{
    return ends(key, "_why") || ends(key, "because");
}

/* What makes an entry of a list the same entry: the first of these that both have. */
static bool same_entry(const json_t *a, const json_t *b)
{
    static const char *const keys[][2] = {
        {"address", NULL}, {"gpu", "nic"},     {"a", "b"},      {"level", "type"},
        {"node", NULL},    {"port", "device"}, {"index", NULL}, {"page_bytes", NULL},
        {"port", NULL},    {"locator", NULL},  {"name", NULL},  {"kind", NULL},
    };

    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
        const char *other = keys[i][1] ? keys[i][1] : keys[i][0];

        if (json_object_get(a, keys[i][0]) && json_object_get(a, other))
            return json_equal(json_object_get(a, keys[i][0]), json_object_get(b, keys[i][0])) &&
                   json_equal(json_object_get(a, other), json_object_get(b, other));
    }
    return false;
}

/* Of two GPUs, in the other order. */
static bool same_pair(const json_t *a, const json_t *b)
{
    return json_object_get(a, "a") &&
           json_equal(json_object_get(a, "a"), json_object_get(b, "b")) &&
           json_equal(json_object_get(a, "b"), json_object_get(b, "a"));
}

static const json_t *find_entry(const json_t *list, const json_t *like, size_t at)
{
    const json_t *entry;
    size_t i;

    if (!json_is_object(like))
        return json_array_get(list, at);
    json_array_foreach (list, i, entry)
        if (same_entry(entry, like) || same_pair(entry, like))
            return entry;
    return NULL;
}

static void hold(struct look *l, const char *where, const json_t *was, const json_t *is, bool told);

static void hold_list(struct look *l, const char *where, const json_t *was, const json_t *is,
                      bool told)
{
    const json_t *entry, *before;
    size_t i;

    if (json_array_size(is) < json_array_size(was) && !l->lists && !told)
        say_wrong(l, where, "is shorter");
    json_array_foreach (is, i, entry) {
        before = find_entry(was, entry, i);
        if (before)
            hold(l, where, before, entry, false);
        else if (!json_is_null(json_object_get(entry, "kind"))) /* it may be of any */
            say_wrong(l, where, "has an entry more");
    }
}

/* What two readings show stands only where both could be read; it is never another value. */
static bool is_growth(const char *path)
{
    return strstr(path, ".grown") || ends(path, ".watched_seconds");
}

static void hold_object(struct look *l, const char *where, const json_t *was, const json_t *is)
{
    const json_t *value;
    const char *key;
    char path[512], why[128];

    json_object_foreach ((json_t *)was, key, value) {
        snprintf(path, sizeof(path), "%s.%s", where, key);
        snprintf(why, sizeof(why), "%s_why", key);
        if (is_reason(key) || json_is_null(value))
            continue;
        if (json_object_get(is, key))
            hold(l, path, value, json_object_get(is, key),
                 json_object_get(is, why) && !json_object_get(was, why));
        else if (!l->lists && !is_growth(path))
            say_wrong(l, path, "is gone without a word");
    }
    json_object_foreach ((json_t *)is, key, value) {
        const json_t *before = json_object_get(was, key);

        snprintf(path, sizeof(path), "%s.%s", where, key);
        if (is_reason(key) || json_is_null(value) || (before && !json_is_null(before)))
            continue;
        say_wrong(l, path, "was not known before");
    }
}

/* told: a reason stands beside it. */
static void hold(struct look *l, const char *where, const json_t *was, const json_t *is, bool told)
{
    char text[512], *a, *b;

    if (json_is_null(is))
        return;
    if (json_is_object(was) && json_is_object(is)) {
        hold_object(l, where, was, is);
    } else if (json_is_array(was) && json_is_array(is)) {
        hold_list(l, where, was, is, told);
    } else if (!json_equal(was, is) && !(l->lists && ends(where, ".nvswitches")) &&
               !((ends(where, ".a") || ends(where, ".b")) && strstr(where, ".pairs")) &&
               !(json_is_string(was) && json_is_string(is) &&
                 is_weaker(where, json_string_value(was), json_string_value(is)))) {
        a = json_dumps(was, JSON_ENCODE_ANY);
        b = json_dumps(is, JSON_ENCODE_ANY);
        snprintf(text, sizeof(text), "was %.200s, is %.200s", a, b);
        say_wrong(l, where, text);
        free(a);
        free(b);
    }
}

/* Every null has its reason beside it. */
static void reasons(struct look *l, const char *where, const json_t *value)
{
    const json_t *one;
    const char *key;
    char path[512], why[128];
    size_t i;

    json_array_foreach (value, i, one)
        reasons(l, where, one);
    json_object_foreach ((json_t *)value, key, one) {
        snprintf(path, sizeof(path), "%s.%s", where, key);
        snprintf(why, sizeof(why), "%s_why", key);
        if (json_is_null(one) && !json_is_string(json_object_get(value, why)))
            say_wrong(l, path, "is null without a reason");
        reasons(l, path, one);
    }
}

static bool has_finding(struct exam *x, const struct exam_result *finding)
{
    for (const struct exam_result *r = exam_results(x); r; r = r->next)
        if (r->state == EXAM_FOUND && r->check == finding->check)
            return true;
    return false;
}

/* A check that finds something now and did not before: one from less evidence. */
static void hold_findings(struct look *l, const json_t *was, const json_t *is)
{
    struct exam *before = exam_new(was), *now = exam_new(is);

    for (const struct exam_result *r = exam_results(now); r; r = r->next)
        if (r->state == EXAM_FOUND && !has_finding(before, r))
            say_wrong(l, "finding", r->text);
    exam_free(before);
    exam_free(now);
}

/* ---- taking files ---- */

struct copy {
    struct scratch s;
    const char *machine;
    json_t *whole;
    size_t probes, wrong;
};

static bool is_entry(const char *path)
{
    return strstr(path, "/sys/bus/pci/devices/") || strstr(path, "/sys/class/net/") ||
           strstr(path, "/sys/class/infiniband/") || strstr(path, "/proc/driver/nvidia/gpus/") ||
           strstr(path, "/cpu/vulnerabilities/");
}

/* All that tells of a slot of addresses: with its own file its type is taken, too. */
static bool takes_slot(const size_t *taken, size_t n)
{
    char type[1024];

    for (size_t i = 0; i < n; i++) {
        const char *slot = strstr(file[taken[i]], "/gids/");

        if (!slot)
            continue;
        snprintf(type, sizeof(type), "%.*s/gid_attrs/types/%s", (int)(slot - file[taken[i]]),
                 file[taken[i]], slot + strlen("/gids/"));
        for (size_t k = 0; k < n; k++)
            if (!strcmp(file[taken[k]], type))
                return true;
    }
    return false;
}

/* A folder is there only for what is in it: git keeps no empty ones. */
static void check_without(struct copy *c, const size_t *taken, size_t n)
{
    struct look l = {c->machine, file[taken[0]] + strlen(c->s.root) + 6, false, 0};
    char root[128], stash[160];
    json_t *machine = NULL;

    for (size_t i = 0; i < n; i++) {
        snprintf(stash, sizeof(stash), "%s/stash%zu", c->s.root, i);
        assert_int_equal(rename(file[taken[i]], stash), 0);
        l.lists = l.lists || is_entry(file[taken[i]]);
    }
    l.lists = l.lists || takes_slot(taken, n);
    snprintf(root, sizeof(root), "%s/root", c->s.root);
    assert_int_equal(probe_machine(root, &machine), 0);
    hold(&l, "", c->whole, machine, false);
    reasons(&l, "", machine);
    hold_findings(&l, c->whole, machine);
    json_decref(machine);
    for (size_t i = 0; i < n; i++) {
        snprintf(stash, sizeof(stash), "%s/stash%zu", c->s.root, i);
        assert_int_equal(rename(stash, file[taken[i]]), 0);
    }
    c->probes++;
    c->wrong += l.wrong;
}

static bool same_but_digits(const char *a, const char *b)
{
    for (;;) {
        a += strspn(a, "0123456789");
        b += strspn(b, "0123456789");
        if (*a != *b)
            return false;
        if (!*a)
            return true;
        a++, b++;
    }
}

/* The second and later ones of files that are alike but for numbers, as those of all CPUs are. */
static bool is_like_another(size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (same_but_digits(file[k], file[i]))
            return true;
    return false;
}

static unsigned next_number(unsigned long long *seed)
{
    *seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
    return (unsigned)(*seed >> 33);
}

static size_t take_set(unsigned long long *seed, size_t *taken)
{
    size_t n = 2 + next_number(seed) % (TAKEN_MAX - 2), kept = 0;

    for (size_t i = 0; i < n; i++) {
        size_t one = next_number(seed) % n_files, k = 0;

        while (k < kept && taken[k] != one)
            k++;
        if (k == kept)
            taken[kept++] = one;
    }
    return kept;
}

struct total {
    size_t probes, wrong;
};

static void check_machine(const char *name, void *arg)
{
    struct total *total = arg;
    struct copy c = {.machine = name};
    unsigned long long seed = 1;
    size_t taken[TAKEN_MAX];
    struct look l = {name, "nothing", false, 0};
    char root[128];

    copy_machine(name, &c.s);
    snprintf(root, sizeof(root), "%s/root", c.s.root);
    assert_int_equal(probe_machine(root, &c.whole), 0);
    reasons(&l, "", c.whole);
    for (size_t i = 0; i < n_files; i++)
        if (!is_like_another(i))
            check_without(&c, &i, 1);
    for (int i = 0; i < SETS; i++)
        check_without(&c, taken, take_set(&seed, taken));
    json_decref(c.whole);
    drop_copy(&c.s);
    total->probes += c.probes;
    total->wrong += c.wrong + l.wrong;
}

TEST(test_a_fact_without_its_file_is_unknown)
{
    struct total total = {0};

    assert_true(machines_each(check_machine, &total) >= 8);
    assert_true(total.probes > 500);
    assert_int_equal(total.wrong, 0);
}
