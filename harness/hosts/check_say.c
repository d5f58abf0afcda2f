/* SPDX-License-Identifier: Apache-2.0 */
/* Telling what hosts answered: see check.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/hosts/check.h"
#include "harness/hosts/host_launch.h"
#include "harness/hosts/stream.h"

#define NETWORKS_SHOWN 4

static void add_speed(const char *speed, char *text, size_t len)
{
    char *end;
    double number = strtod(speed, &end);

    if (end == speed || number <= 0)
        return;
    if (*end == 'G' || number >= 1000)
        snprintf(text, len, " %.4g Gb/s", *end == 'G' ? number : number / 1000);
    else
        snprintf(text, len, " %.4g Mb/s", number);
}

const char *check_network(const char *network, char *text, size_t len)
{
    size_t name = strcspn(network, "|");
    const char *speed = network[name] ? network + name + 1 : "";
    const char *bar = strchr(speed, '|'), *address = bar ? bar + 1 : "";
    char rate[40] = "";

    text[0] = 0;
    add_speed(speed, rate, sizeof(rate));
    size_t n = strcspn(address, " ");
    if (n || memchr(network, ':', name)) /* a port of an RDMA device has no address of its own */
        snprintf(text, len, "%.*s%s%.*s%s", (int)name, network, n ? " " : "", (int)n, address,
                 rate);
    return text;
}

static void networks_text(const struct host *h, char *text, size_t len)
{
    size_t shown = 0, more = 0;

    text[0] = 0;
    for (size_t i = 0; h->networks && h->networks[i]; i++) {
        char one[200];
        size_t at = strlen(text);
        if (!*check_network(h->networks[i], one, sizeof(one)))
            continue;
        if (shown == NETWORKS_SHOWN)
            more++;
        else
            snprintf(text + at, len - at, "%s%s", shown++ ? ", " : "", one);
    }
    if (more)
        snprintf(text + strlen(text), len - strlen(text), " and %zu more", more);
}

static void clock_text(const struct host *h, char *text, size_t len)
{
    if (isnan(h->offset_s))
        snprintf(text, len, "not known");
    else
        snprintf(text, len, "%+.2f s +-%.2f", fabs(h->offset_s) < 0.005 ? 0 : h->offset_s,
                 h->spread_s);
}

/* One build for all its programs, or that they differ. */
static void build_text(const struct host *h, char *text, size_t len)
{
    const char *version = NULL;
    bool bad = false;

    for (size_t i = 0; i < h->n_programs; i++) {
        bad |= h->programs[i].problem != NULL;
        version = h->programs[i].version ? h->programs[i].version : version;
    }
    if (!version)
        snprintf(text, len, "none");
    else
        host_build(version, text, len);
    if (bad && version)
        snprintf(text + strlen(text), len - strlen(text), " see below");
}

struct line {
    char slots[16], clock[40], build[STREAM_TEXT_MAX], networks[1000];
};

static void fill_line(const struct host *h, struct line *l)
{
    snprintf(l->slots, sizeof(l->slots), "%u", h->slots);
    networks_text(h, l->networks, sizeof(l->networks));
    clock_text(h, l->clock, sizeof(l->clock));
    build_text(h, l->build, sizeof(l->build));
    if (h->answered)
        return;
    snprintf(l->clock, sizeof(l->clock), "no answer");
    snprintf(l->build, sizeof(l->build), "see below");
}

static int wider(int width, const char *text)
{
    return (int)strlen(text) > width ? (int)strlen(text) : width;
}

static void print_table(const struct hosts_run *run)
{
    struct line *lines = calloc(run->hosts.n + 1, sizeof(*lines));
    int name = 4, clock = 5, build = 5;

    for (size_t i = 0; lines && i < run->hosts.n; i++) {
        fill_line(&run->hosts.all[i], &lines[i]);
        if (!run->hosts.all[i].asked)
            continue;
        name = wider(name, run->hosts.all[i].name);
        clock = wider(clock, lines[i].clock);
        build = wider(build, lines[i].build);
    }
    fprintf(stderr, "  %-*s  %5s  %-*s  %-*s  %s\n", name, "host", "slots", clock, "clock", build,
            "build", "networks");
    for (size_t i = 0; lines && i < run->hosts.n; i++)
        if (run->hosts.all[i].asked)
            fprintf(stderr, "  %-*s  %5s  %-*s  %-*s  %s\n", name, run->hosts.all[i].name,
                    lines[i].slots, clock, lines[i].clock, build, lines[i].build,
                    lines[i].networks);
    free(lines);
}

/* How many launches wait for this host, of one benchmark or (NULL) of any. */
static size_t waiting_for(const struct plan *plan, const struct host *h, const char *bench)
{
    size_t n = 0;

    for (size_t i = 0; i < plan->n; i++) {
        const struct launch *l = &plan->launches[i];
        n += l->state == LAUNCH_TODO && launch_needs_host(l, h->name) &&
             (!bench || !strcmp(l->bench, bench));
    }
    return n;
}

static void say_problem(const struct plan *plan, const struct host *h, const char *problem,
                        const char *bench)
{
    size_t n = waiting_for(plan, h, bench);

    fprintf(stderr, "plumb run: %s: %zu %s at once\n", problem, n,
            n == 1 ? "launch that needs it fails" : "launches that need it fail");
}

void check_say(const struct hosts_run *run, const struct plan *plan)
{
    char by[LAUNCHER_BY_SIZE];

    fprintf(stderr, "plumb run: asked %s:\n", launcher_by(run, by));
    print_table(run);
    for (size_t i = 0; i < run->hosts.n; i++) {
        const struct host *h = &run->hosts.all[i];
        if (h->problem)
            say_problem(plan, h, h->problem, NULL);
        for (size_t k = 0; !h->problem && k < h->n_programs; k++)
            if (h->programs[k].problem)
                say_problem(plan, h, h->programs[k].problem, h->programs[k].bench);
    }
    if (run->ranks)
        fprintf(stderr, "plumb run: all %u ranks on %zu %s see each other\n",
                hosts_slots(&run->hosts), run->hosts.n, run->hosts.n == 1 ? "host" : "hosts");
}
