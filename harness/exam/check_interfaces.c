/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of which interface programs and libraries take. See exam.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "harness/exam/exam.h"

/* So many times below the fastest, an interface is there for other things. */
#define SLOW 4

/* ---- What variables name */

/* How a list of names is written. */
enum syntax {
    PREFIXES, /* NCCL: "eth,ib" are beginnings, "=eth0" are names, "^eth" are those left out */
    NAMES,    /* "eth0,mlx5_0:1" */
    NETWORKS, /* Open MPI: names, or "10.0.0.0/8" */
};

static const struct chooser {
    const char *name;
    enum syntax syntax;
    bool interfaces, adapters; /* what it chooses among */
    const char *of;            /* what a slow choice costs: no other library reads the variable */
    const char *instead;       /* the data goes by this variable's choice, where it is set */
} choosers[] = {
    {"NCCL_SOCKET_IFNAME", PREFIXES, true, false, "bandwidth of NCCL", NULL},
    {"GLOO_SOCKET_IFNAME", NAMES, true, false, "bandwidth of Gloo", "NCCL_SOCKET_IFNAME"},
    {"OMPI_MCA_btl_tcp_if_include", NETWORKS, true, false, "TCP bandwidth of Open MPI", NULL},
    {"UCX_NET_DEVICES", NAMES, true, true, "bandwidth of UCX", NULL},
    {"NCCL_IB_HCA", PREFIXES, false, true, "bandwidth of NCCL", NULL},
};

/* What the list names, of this machine. */
struct chosen {
    size_t n, adapters, here; /* here: that lead to no other host */
    double gbits;             /* of the fastest; 0: not known */
};

/* By which no other host is reached: loopback, and bridges that containers and guests of this host
 * are on. */
static bool stays_here(const json_t *nic)
{
    return fact_is(nic, "kind", "loopback") ||
           (fact_is(nic, "kind", "bridge") &&
            fact_fits("docker*|br-????????????|podman*|cni*|lxcbr*|lxdbr*|virbr*",
                      fact_name(nic, "name")));
}

static bool names_it(const char *entry, bool exact, const json_t *one)
{
    const char *name = fact_name(one, "name");

    return exact ? !strcmp(name, entry) : !strncmp(name, entry, strlen(entry));
}

/* Adds what one entry of a list names. */
static void choose(const struct exam *x, const struct chooser *by, const char *entry, bool exact,
                   struct chosen *c)
{
    FACT_EACH (exam_peek(x, "network"), one)
        /* the kernel does not know the state of loopback and of tunnels, which carry what they get */
        if (by->interfaces && fact_fits("up|unknown", fact_name(one, "state")) &&
            names_it(entry, exact, one)) {
            c->n++;
            c->gbits = fmax(c->gbits, exam_nic_gbits(one));
            c->here += stays_here(one);
        }
    FACT_EACH (exam_peek(x, "rdma"), one)
        if (by->adapters && exam_port_gbits(one) > 0 && names_it(entry, exact, one)) {
            c->n++;
            c->gbits = fmax(c->gbits, exam_port_gbits(one));
            c->adapters++;
        }
}

/* False: none is named. Lists of what is left out, of networks, and "all" choose among all that
 * there are. */
static bool read_choice(const struct exam *x, const struct chooser *by, struct chosen *c)
{
    const char *list = exam_variable(x, by->name);
    bool exact = by->syntax != PREFIXES || *list == '=';
    char entry[64]; /* what is longer than a name is a name that nothing has */

    *c = (struct chosen){.n = 0};
    if (!*list || *list == '^' || !strcmp(list, "all") || strchr(list, '/') || strchr(list, '*'))
        return false;
    list += by->syntax == PREFIXES && *list == '=';
    while (*list) {
        size_t n = strcspn(list, ",");

        snprintf(entry, sizeof(entry), "%.*s", (int)n, list);
        entry[strcspn(entry, ":")] = '\0'; /* of "mlx5_0:1" the name */
        choose(x, by, entry, exact, c);
        list += n + (list[n] == ',');
    }
    return true;
}

/* Programs of NCCL use Gloo to start up, often by the network of management, as they should. */
static bool goes_elsewhere(const struct exam *x, const struct chooser *by)
{
    struct chosen c;

    for (size_t i = 0; by->instead && i < sizeof(choosers) / sizeof(*choosers); i++)
        if (!strcmp(choosers[i].name, by->instead) && read_choice(x, &choosers[i], &c))
            return c.gbits > 0 && exam_fastest_nic(x) < SLOW * c.gbits;
    return false;
}

static void judge_choice(struct exam *x, const struct chooser *by, const struct chosen *c)
{
    double ports = by->adapters ? exam_fastest_port(x) : 0,
           best = ports > 0 ? ports : exam_fastest_nic(x);
    const char *value = exam_variable(x, by->name);

    exam_about(x, by->name);
    if (!c->n) {
        exam_found(x, "with its value \"%.40s\", it names none that is up here", value);
        exam_remedy(x, "unset {}, or name one of: ip -br link; ibv_devices");
        return;
    }
    if (c->n == c->here) {
        exam_found(x, "with its value \"%.40s\", it names no way to another host", value);
        exam_remedy(x, "unset {}, or name one that leads to the other hosts: ip route");
        return;
    }
    /* Sockets only set connections up where adapters carry the data. */
    if ((!by->adapters && exam_has_adapter(x, NULL)) || goes_elsewhere(x, by))
        return;
    if (ports > 0 && !c->adapters)
        exam_found(x, "with its value \"%.40s\", it names no RDMA adapter: sockets", value);
    else if (c->gbits > 0 && best >= SLOW * c->gbits)
        exam_found(x, "with its value \"%.40s\", it names %.4g Gb/s; others have %.4g", value,
                   c->gbits, best);
    else if (c->gbits <= 0 && !c->adapters) {
        exam_unknown(x, "how fast what its value \"%.40s\" names is", value);
        return;
    } else
        return;
    if (c->gbits > 0 && c->gbits < best)
        exam_price_rest(x, c->gbits, best, by->of, "Gb/s");
}

static bool judge_chosen(struct exam *x)
{
    struct chosen c;

    if (!exam_fact(x, NULL, "library_settings") || !exam_list(x, "network"))
        return false;
    for (size_t i = 0; i < sizeof(choosers) / sizeof(*choosers); i++)
        if (read_choice(x, &choosers[i], &c))
            judge_choice(x, &choosers[i], &c);
    exam_about(x, "environment");
    return true;
}

/* ---- Without variables */

/* Programs that are not told otherwise take the interface of the default route. Where adapters do
 * RDMA, collectives do not. */
static bool judge_default(struct exam *x)
{
    const json_t *names, *first;
    double rate, best = exam_fastest_nic(x);

    if (exam_has_adapter(x, NULL) || best <= 0)
        return false;
    names = exam_fact(x, NULL, "tcp.default_interfaces");
    first = exam_nic(x, fact_word(json_array_get(names, 0)));
    if (!first)
        return false;
    rate = exam_nic_speed(x, first);
    if (rate <= 0)
        return exam_unknown(x, "the default route is by %s, whose speed is not known",
                            fact_name(first, "name"));
    for (size_t i = 0; i < sizeof(choosers) / sizeof(*choosers); i++)
        if (choosers[i].interfaces && *exam_variable(x, choosers[i].name))
            return true; /* chosen-interface looks at what they name */
    if (best >= SLOW * rate) {
        exam_found(x, "the default route is by %s, %.4g Gb/s; the fastest has %.4g",
                   fact_name(first, "name"), rate, best);
        exam_price_rest(x, rate, best, "bandwidth of programs that are not told an interface",
                        "Gb/s");
    }
    return true;
}

/* ---- Several in one network */

/* One that carries packets of its own network: no tunnel, and no wireless line beside a cable. */
static bool takes_part(const json_t *nic)
{
    return (exam_nic_is_real(nic) && !fact_is(nic, "kind", "wifi")) ||
           (fact_is(nic, "kind", "bond") && fact_is(nic, "state", "up"));
}

/* Beside RDMA, IP over InfiniBand sets connections up, and carries no data. */
static bool is_ipoib(const json_t *nic)
{
    return fact_is(nic, "kind", "infiniband");
}

/* Linux answers for all its addresses on each interface, and sends by the first: who set arp_ignore
 * has thought of it, and routes by the address of the sender. */
static void judge_subnet(struct exam *x, const json_t *names)
{
    const json_t *nic, *first = NULL, *second = NULL;
    double own, best = 0, arp = 0;

    FACT_EACH (names, name) {
        nic = exam_nic(x, fact_word(name));
        if (!nic || !takes_part(nic))
            continue;
        if (first && !second)
            second = nic;
        first = first ? first : nic;
        best = fmax(best, exam_nic_gbits(nic));
    }
    if (!second)
        return;
    exam_about(x, fact_name(first, "name"));
    if (is_ipoib(first) && is_ipoib(second) && exam_has_adapter(x, NULL)) {
        exam_fine(x);
        return;
    }
    if (!exam_number(x, first, "arp_ignore", &arp))
        return;
    if (arp > 0) {
        exam_fine(x);
        return;
    }
    if (!exam_metal(x)) {
        exam_unknown(x, "%s is in its network, too: whether the hypervisor keeps them apart",
                     fact_name(second, "name"));
        return;
    }
    exam_found(x, "%s is in its network, too: packets leave by one and may come by either",
               fact_name(second, "name"));
    own = exam_nic_gbits(first);
    if (own > 0 && own < best)
        exam_price_rest(x, own, best, "bandwidth within that network", "Gb/s: the first sends");
}

static bool judge_subnets(struct exam *x)
{
    const json_t *lists = exam_list(x, "tcp.shared_subnets");

    FACT_EACH (lists, names)
        judge_subnet(x, names);
    FACT_EACH (exam_peek(x, "network"), nic) {
        exam_about(x, fact_name(nic, "name"));
        if (lists && takes_part(nic) && !exam_has(x, fact_name(nic, "name")))
            exam_fine(x);
    }
    return false;
}

const struct exam_check exam_interfaces[] = {
    {.id = "default-interface",
     .question = "Does the default route go by a fast interface?",
     .seen = "/proc/net/route, speed of each interface",
     .pipes = "Network*|" EXAM_GROUP,
     .remedy = "name the interface: NCCL_SOCKET_IFNAME, OMPI_MCA_btl_tcp_if_include",
     .subject = "network",
     .judge = judge_default},
    {.id = "chosen-interface",
     .question = "Do variables name interfaces and adapters that are here, and fast?",
     .seen = "variables: NCCL_SOCKET_IFNAME, NCCL_IB_HCA, UCX_NET_DEVICES, GLOO_SOCKET_IFNAME, "
             "OMPI_MCA_btl_tcp_if_include",
     .pipes = "Network*|" EXAM_GROUP,
     .remedy = "unset {}, or name the fastest",
     .subject = "environment",
     .judge = judge_chosen},
    {.id = "shared-subnet",
     .question = "Is each network reached by one interface?",
     .seen = "/proc/net/route, /proc/sys/net/ipv4/conf/*/arp_ignore",
     .pipes = "Network*|" EXAM_GROUP,
     .remedy = "give each a network of its own; or sudo sysctl "
               "net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2, and ip rule",
     .subject = "network",
     .judge = judge_subnets},
    {.id = NULL},
};
