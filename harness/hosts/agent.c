/* SPDX-License-Identifier: Apache-2.0 */
/* The agent on a host: see agent.h. */
#include "harness/hosts/agent.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <jansson.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/group/notice.h"
#include "core/group/secret.h"
#include "core/hw/nic.h"
#include "core/hw/sys.h"
#include "core/program.h"
#include "harness/child.h"
#include "harness/hosts/end.h"
#include "harness/machine/fact.h"

#define VERSION_NS    300000000000ull /* who leads gives up earlier: --host-wait */
#define SLICE_MS      200
#define STOP_GRACE_NS 200000000ull /* for programs whose standard input has ended */
#define KILLED_S      7            /* that a killed rank of a job stays; see agent.h */

/* Who is there, and its clock. */
static json_t *greeting(const char *state)
{
    struct utsname name;
    struct timespec now;

    uname(&name);
    clock_gettime(CLOCK_REALTIME, &now);
    return json_pack("{s:s, s:o, s:f}", "state", state, "name", message_text(name.nodename),
                     "clock_s", (double)now.tv_sec + (double)now.tv_nsec * 1e-9);
}

/* ---- "check" ---- */

static json_t *network(const char *name, double gbps)
{
    return json_pack("{s:o, s:o, s:[]}", "name", message_text(name), "speed_mbps",
                     gbps > 0 ? json_real(1000 * gbps) : json_null(), "addresses");
}

/* Adds the address, as others could reach it, to its interface's. */
static void add_address(json_t *networks, const struct ifaddrs *a)
{
    const struct sockaddr_in6 *six = (const void *)a->ifa_addr;
    const struct sockaddr_in *four = (const void *)a->ifa_addr;
    int family = a->ifa_addr ? a->ifa_addr->sa_family : AF_UNSPEC;
    char text[INET6_ADDRSTRLEN];

    if (family != AF_INET && (family != AF_INET6 || IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr)))
        return;
    inet_ntop(family, family == AF_INET ? (const void *)&four->sin_addr : &six->sin6_addr, text,
              sizeof(text));
    FACT_EACH (networks, one)
        if (!strcmp(json_string_value(json_object_get(one, "name")), a->ifa_name))
            json_array_append_new(json_object_get(one, "addresses"), json_string(text));
}

static void add_ports(json_t *networks, const char *device)
{
    struct names ports = {0};

    sys_list(NULL, &ports, "sys/class/infiniband/%s/ports", device);
    for (size_t i = 0; i < ports.count; i++) {
        struct nic_port np;
        char name[NIC_NAME + 16];

        snprintf(name, sizeof(name), "%.*s:%.8s", NIC_NAME, device, ports.name[i]);
        if (!nic_read_port(NULL, device, (unsigned)atoi(ports.name[i]), &np))
            json_array_append_new(networks, network(name, np.line_gbps));
    }
    names_free(&ports);
}

/* The interfaces that are up, without loopback, and the ports of RDMA devices. */
static json_t *networks_here(void)
{
    json_t *networks = json_array();
    struct names devices = {0};
    struct ifaddrs *all = NULL;
    struct nic nic;

    if (getifaddrs(&all))
        all = NULL;
    for (const struct ifaddrs *a = all; a; a = a->ifa_next)
        if (a->ifa_addr && a->ifa_addr->sa_family == AF_PACKET && a->ifa_flags & IFF_RUNNING &&
            !(a->ifa_flags & IFF_LOOPBACK))
            json_array_append_new(
                networks,
                network(a->ifa_name, nic_read(NULL, a->ifa_name, &nic) ? 0 : nic.line_gbps));
    for (const struct ifaddrs *a = all; a; a = a->ifa_next)
        add_address(networks, a);
    freeifaddrs(all);
    sys_list(NULL, &devices, "sys/class/infiniband");
    for (size_t i = 0; i < devices.count; i++)
        add_ports(networks, devices.name[i]);
    names_free(&devices);
    return networks;
}

static int check(const json_t *order)
{
    json_t *programs = json_array();
    int err = message_send(STDOUT_FILENO, greeting("begin"));

    FACT_EACH (json_object_get(order, "arguments"), one) {
        char version[HOST_VERSION_MAX];
        int status = host_version(json_string_value(one), VERSION_NS, version);

        json_array_append_new(
            programs, json_pack("{s:i, s:o}", "status", status, "version", message_text(version)));
    }
    json_t *end = json_pack("{s:s, s:o, s:o}", "state", "end", "programs", programs, "networks",
                            networks_here());
    return message_send(STDOUT_FILENO, end) || err ? EXIT_INCOMPLETE : EXIT_GOOD;
}

/* ---- "start" ---- */

#define MARK_SIZE 32 /* of what stands before a line */

struct work {
    const char *program;
    const json_t *arguments;
    int first, n, group, job, secret;
    int watch; /* standard input is held open by who wants it */
    pid_t starter;
    const volatile int *signals;
    struct end *ends;
};

/* Is nobody there any more who wants what runs here? */
static bool is_deserted(const struct work *w)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    char ignored[256];

    if (*w->signals)
        return true;
    if (w->job)
        return getppid() != w->starter;
    return w->watch && poll(&input, 1, 0) > 0 && read(STDIN_FILENO, ignored, sizeof(ignored)) <= 0;
}

/* Starts process i. 0 or -errno. */
static int start_one(struct work *w, int i, char (*marks)[MARK_SIZE], const char *secret)
{
    struct end *e = &w->ends[i];
    int rank = w->first + i;

    *e = (struct end){END_NONE, .mark = marks[i], .has_samples = true};
    if (w->group)
        snprintf(marks[i], MARK_SIZE, "plumb-rank %d ", rank);
    argv_add(&e->command, w->program);
    FACT_EACH (w->arguments, word)
        argv_add(&e->command, json_string_value(word));
    if (w->group && !w->job && rank) {
        argv_add(&e->command, "--rank");
        argv_addf(&e->command, "%d", rank);
    }
    int err = end_start(e);
    end_tell(e, secret);
    end_hang_up(e);
    return err;
}

static bool all_over(const struct work *w)
{
    for (int i = 0; i < w->n; i++)
        if (!end_is_over(&w->ends[i]))
            return false;
    return true;
}

/* Runs all, and sends what rank 0 has. Returns the exit status. */
static int run_all(struct work *w)
{
    int status = 0;

    while (!all_over(w)) {
        if (ends_attend(w->ends, (unsigned)w->n, SLICE_MS) || is_deserted(w))
            return 128 + SIGTERM;
    }
    for (int i = 0; i < w->n; i++)
        status = status ? status : w->ends[i].p.status;
    if (w->first == 0) {
        const struct end *e = &w->ends[0];
        json_t *end = json_pack("{s:s, s:i, s:o, s:o}", "state", "end", "status", status, "rows",
                                message_text(e->p.texts[PIPE_OUT].text), "samples",
                                message_text(e->p.texts[PIPE_SAMPLES].text));

        return message_send(STDOUT_FILENO, end) ? EXIT_INCOMPLETE : EXIT_GOOD;
    }
    if (!w->job)
        return status;
    for (int i = 0; status > 128 && i < KILLED_S * 1000 / SLICE_MS && !is_deserted(w); i++)
        poll(NULL, 0, SLICE_MS);
    return status > 128 ? status : EXIT_GOOD;
}

static int start(struct work *w, const char *host)
{
    char version[HOST_VERSION_MAX], secret[128] = "";
    int missing = host_version(w->program, VERSION_NS, version);
    json_t *hello = greeting(missing ? "missing" : "begin");

    if (w->job) {
        static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"};
        const char *rank = NULL;
        for (size_t i = 0; i < sizeof(names) / sizeof(*names) && !rank; i++)
            rank = getenv(names[i]);
        w->first = rank ? atoi(rank) : 0;
        w->n = 1;
    }
    json_object_set_new(hello, missing ? "why" : "version", message_text(version));
    json_object_set_new(hello, "rank", json_integer(w->first));
    if (message_send(STDOUT_FILENO, hello) || missing)
        return 127;
    setenv(NOTICE_LAUNCHED, "1", 1);
    if (host)
        setenv(NOTICE_HOST, host, 1);
    if (w->secret) { /* the first line of standard input, with its end */
        size_t n = 0;
        while (n + 1 < sizeof(secret) && read(STDIN_FILENO, secret + n, 1) == 1 &&
               secret[n++] != '\n')
            continue;
        secret[n] = 0;
    }
    w->ends = xcalloc((size_t)w->n, sizeof(*w->ends));
    char(*marks)[MARK_SIZE] = xcalloc((size_t)w->n, sizeof(*marks));
    int err = 0, status = EXIT_INCOMPLETE;

    ends_allow((unsigned)w->n);
    for (int i = 0; i < w->n; i++)
        w->ends[i] = (struct end){END_NONE};
    for (int i = 0; !err && i < w->n; i++)
        err = start_one(w, i, marks, secret);
    secret_wipe(secret, sizeof(secret));
    if (err)
        fprintf(stderr, "plumb agent: cannot start '%s': %s\n", w->program, strerror(-err));
    else
        status = run_all(w);
    ends_stop(w->ends, (unsigned)w->n, STOP_GRACE_NS);
    free(w->ends);
    free(marks);
    return status;
}

int host_agent(const char *text)
{
    struct work w = {.starter = getppid(), .signals = cancel_on_signals()};
    json_t *order = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    const char *ask = NULL, *host = NULL;
    int protocol = 0, status = EXIT_USAGE;

    signal(SIGPIPE, SIG_IGN); /* who reads this may be gone: what runs here is ended all the same */
    json_unpack(order, "{s:i, s:s, s?s, s?s, s:o, s:i, s:i, s:b, s:b, s:b, s:b}", "protocol",
                &protocol, "ask", &ask, "host", &host, "program", &w.program, "arguments",
                &w.arguments, "first", &w.first, "n", &w.n, "group", &w.group, "job", &w.job,
                "secret", &w.secret, "watch", &w.watch);
    if (protocol != AGENT_PROTOCOL)
        message_send(STDOUT_FILENO,
                     json_pack("{s:s}", "error",
                               "this plumb speaks another protocol than the one that leads: use "
                               "the same version on both sides"));
    else if (ask && !strcmp(ask, "check"))
        status = check(order);
    else if (ask && !strcmp(ask, "start") && w.program && w.n > 0)
        status = start(&w, host);
    json_decref(order);
    return status;
}
