/* SPDX-License-Identifier: Apache-2.0 */
/* Which comparisons there are, and which can be made here: see check.h. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "harness/crosscheck/check.h"
#include "harness/crosscheck/template.h"
#include "harness/plan/bench_info.h"

#define VERSION_NS 5000000000ull

static bool matches(const char *patterns, const struct witness *w)
{
    char *all = strdup(patterns), *save = all, *one;
    bool found = false;

    while (all && !found && (one = strsep(&save, ",")) != NULL)
        found = *one && (!fnmatch(one, w->name, 0) || !fnmatch(one, w->program, 0));
    free(all);
    return found;
}

/* What it says of its version, in text; as a number, or 0. */
static unsigned ask_version(const struct check *c, const struct witness *w, const char *path,
                            char *text, size_t len)
{
    const char *argv[] = {path, w->version, NULL};
    struct child_result r = {0};
    unsigned version = 0;

    text[0] = 0;
    if (!w->version)
        return 0;
    if (!child_run(
            &(struct child_spec){.argv = argv, .timeout_ns = VERSION_NS, .cancel = c->cancel},
            &r)) {
        version = witness_version(r.out.text, text, len);
        if (!version && !*text)
            version = witness_version(r.err.text, text, len);
    }
    child_result_release(&r);
    return version;
}

/* The first RDMA device by name, port 1, unless one is asked for. */
static void choose_device(struct check *c)
{
    struct dirent **names = NULL;
    int n;

    snprintf(c->device_port, sizeof(c->device_port), "1");
    if (c->options.device) {
        size_t name = strcspn(c->options.device, ":");
        snprintf(c->device, sizeof(c->device), "%.*s", (int)name, c->options.device);
        if (c->options.device[name])
            snprintf(c->device_port, sizeof(c->device_port), "%s", c->options.device + name + 1);
        return;
    }
    n = scandir("/sys/class/infiniband", &names, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        if (!*c->device && names[i]->d_name[0] != '.')
            snprintf(c->device, sizeof(c->device), "%.63s", names[i]->d_name);
        free(names[i]);
    }
    free(names);
}

/* NULL: the one that it takes is not here. */
static char *find_launcher(const struct witness *w)
{
    char name[32];

    if (!w->launcher)
        return strdup("");
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(w->launcher, " "), w->launcher);
    return template_find_program(name);
}

static void look(struct check *c, struct comparison *m)
{
    const struct witness *w = m->w;
    char *path = template_find_program(w->program), *ours = bench_find_program(w->bench);
    char *launcher = find_launcher(w);

    if (!path) {
        m->state = COMPARISON_ABSENT;
        snprintf(m->reason, sizeof(m->reason), "'%s' is not on PATH (%s%s)", w->program,
                 w->package ? "Debian: " : "no package of Debian: build it from ",
                 w->package ? w->package : w->source);
    } else if (!launcher) {
        m->state = COMPARISON_SKIPPED;
        snprintf(m->reason, sizeof(m->reason), "'%.*s' is not on PATH (Debian: openmpi-bin)",
                 (int)strcspn(w->launcher, " "), w->launcher);
    } else if (!ours) {
        m->state = COMPARISON_SKIPPED;
        snprintf(m->reason, sizeof(m->reason), "our own plumb-%s is not here", w->bench);
    } else if (w->rdma && !*c->device) {
        m->state = COMPARISON_SKIPPED;
        snprintf(m->reason, sizeof(m->reason), "this machine has no RDMA device");
    }
    free(path);
    free(ours);
    free(launcher);
}

/* Of two rows of one name that are for different versions, the one that fits. */
static bool fits(const struct check *c, const struct witness *w, char *version, size_t len)
{
    char *path = template_find_program(w->program);
    bool known = !path || witness_fits(w, ask_version(c, w, path, version, len));

    if (!path) /* absent: shown once */
        known = !w->from;
    free(path);
    return known;
}

int check_plan(struct check *c)
{
    size_t all = 0;

    choose_device(c);
    while (witness_table[all].name)
        all++;
    c->comparisons = calloc(all + 1, sizeof(*c->comparisons));
    if (!c->comparisons) {
        snprintf(c->error, sizeof(c->error), "out of memory");
        return -ENOMEM;
    }
    for (size_t i = 0; i < all; i++) {
        struct comparison *m = &c->comparisons[c->n];
        *m = (struct comparison){.w = &witness_table[i]};
        if ((c->options.only && !matches(c->options.only, m->w)) ||
            !fits(c, m->w, m->version, sizeof(m->version)))
            continue;
        look(c, m);
        c->n++;
    }
    if (c->n)
        return 0;
    snprintf(c->error, sizeof(c->error),
             "no witness is named as --only '%s' says; there are:", c->options.only);
    for (size_t i = 0; i < all; i++) {
        size_t at = strlen(c->error);
        if (!i || strcmp(witness_table[i].name, witness_table[i - 1].name) != 0)
            snprintf(c->error + at, sizeof(c->error) - at, " %s", witness_table[i].name);
    }
    return -ENOENT;
}

void check_release(struct check *c)
{
    for (size_t i = 0; i < c->n; i++) {
        free(c->comparisons[i].ours);
        free(c->comparisons[i].theirs);
        free(c->comparisons[i].printed);
    }
    free(c->comparisons);
    free(c->folder);
}
