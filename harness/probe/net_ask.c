/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the running kernel alone tells of network interfaces, by rtnetlink and ethtool's ioctl; none
 * of it needs root. A line for each fact, as a recording keeps them in plumb/net (net_state.c).
 */
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/hw/nic.h"
#include "harness/probe/facts.h"

enum { ANSWER = 1 << 16, WAIT_S = 1 };

typedef void message_fn(const struct nlmsghdr *message, FILE *out);

struct request {
    struct nlmsghdr header;
    union {
        struct ifinfomsg link;
        struct tcmsg qdisc;
    } body;
};

static const struct rtattr *find_attribute(const struct rtattr *a, int left, int type)
{
    for (; RTA_OK(a, left); a = RTA_NEXT(a, left))
        if ((a->rta_type & NLA_TYPE_MASK) == type)
            return a;
    return NULL;
}

/* The attribute's number of that many bytes; 0 where it is not there or shorter. */
static uint64_t attribute_number(const struct rtattr *a, size_t bytes)
{
    uint64_t value = 0;

    if (a && RTA_PAYLOAD(a) >= bytes)
        memcpy(&value, RTA_DATA(a), bytes);
    return value;
}

static void link_line(const struct nlmsghdr *message, FILE *out)
{
    const struct rtattr *first = IFLA_RTA((struct ifinfomsg *)NLMSG_DATA(message));
    int left = (int)IFLA_PAYLOAD(message);
    const struct rtattr *name = find_attribute(first, left, IFLA_IFNAME);
    uint64_t most = attribute_number(find_attribute(first, left, IFLA_MAX_MTU), 4);

    if (name && most)
        fprintf(out, "%.*s max_mtu %llu\n", (int)strnlen(RTA_DATA(name), RTA_PAYLOAD(name)),
                (const char *)RTA_DATA(name), (unsigned long long)most);
}

/* Emulated delay in ns, and the share of packets that are dropped, in 1 / (2^32 - 1). */
static void netem_words(const struct rtattr *options, FILE *out)
{
    struct tc_netem_qopt q;
    const char *data = RTA_DATA(options);
    int left = (int)RTA_PAYLOAD(options) - (int)RTA_ALIGN(sizeof(q));
    const struct rtattr *first;
    uint64_t ns, rate;

    if (left < 0)
        return;
    memcpy(&q, data, sizeof(q));
    first = (const struct rtattr *)(const void *)(data + RTA_ALIGN(sizeof(q)));
    ns = attribute_number(find_attribute(first, left, TCA_NETEM_LATENCY64), 8);
    rate = attribute_number(find_attribute(first, left, TCA_NETEM_RATE64), 8);
    if (!rate) /* from 34 Gb/s on, it is full and the longer one counts */
        rate = attribute_number(find_attribute(first, left, TCA_NETEM_RATE), 4);
    fprintf(out, " delay_us=%.3f loss_percent=%.4f", (double)ns / 1e3,
            100.0 * q.loss / (double)UINT32_MAX);
    if (rate)
        fprintf(out, " rate_gbits_per_s=%.6f", (double)rate * 8 / 1e9);
}

static void tbf_words(const struct rtattr *options, FILE *out)
{
    int left = (int)RTA_PAYLOAD(options);
    const struct rtattr *parameters = find_attribute(RTA_DATA(options), left, TCA_TBF_PARMS);
    uint64_t rate = attribute_number(find_attribute(RTA_DATA(options), left, TCA_TBF_RATE64), 8);
    struct tc_tbf_qopt q;

    if (!rate && parameters && RTA_PAYLOAD(parameters) >= sizeof(q)) {
        memcpy(&q, RTA_DATA(parameters), sizeof(q));
        rate = q.rate.rate;
    }
    if (rate)
        fprintf(out, " rate_gbits_per_s=%.6f", (double)rate * 8 / 1e9);
}

static void qdisc_line(const struct nlmsghdr *message, FILE *out)
{
    const struct tcmsg *tc = NLMSG_DATA(message);
    const struct rtattr *first = TCA_RTA((struct tcmsg *)NLMSG_DATA(message));
    int left = (int)TCA_PAYLOAD(message);
    const struct rtattr *kind = find_attribute(first, left, TCA_KIND);
    const struct rtattr *options = find_attribute(first, left, TCA_OPTIONS);
    char name[IF_NAMESIZE], word[32];

    if (!kind || !if_indextoname((unsigned)tc->tcm_ifindex, name))
        return;
    snprintf(word, sizeof(word), "%.*s", (int)RTA_PAYLOAD(kind), (const char *)RTA_DATA(kind));
    fprintf(out, "%s qdisc %s", name, word);
    if (options && !strcmp(word, "netem"))
        netem_words(options, out);
    if (options && !strcmp(word, "tbf"))
        tbf_words(options, out);
    fputc('\n', out);
}

/* Each message of an answer; false after its last. */
static bool take_answer(char *answer, size_t n, unsigned short type, message_fn *each, FILE *out)
{
    const struct nlmsghdr *h = (const struct nlmsghdr *)(const void *)answer;

    for (; NLMSG_OK(h, n); h = NLMSG_NEXT(h, n)) {
        if (h->nlmsg_type == NLMSG_DONE || h->nlmsg_type == NLMSG_ERROR)
            return false;
        if (h->nlmsg_type == type)
            each(h, out);
    }
    return true;
}

static void dump(unsigned short ask, unsigned short type, size_t body, message_fn *each, FILE *out)
{
    char *answer = xrealloc(NULL, ANSWER);
    struct request q = {.header = {.nlmsg_len = NLMSG_LENGTH((unsigned)body),
                                   .nlmsg_type = ask,
                                   .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP}};
    struct timeval wait = {.tv_sec = WAIT_S};
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    ssize_t n;

    if (fd >= 0)
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
    n = fd >= 0 ? send(fd, &q, q.header.nlmsg_len, 0) : -1;
    while (n > 0 && (n = recv(fd, answer, ANSWER, 0)) > 0)
        if (!take_answer(answer, (size_t)n, type, each, out))
            break;
    if (fd >= 0)
        close(fd);
    free(answer);
}

static void driver_lines(int fd, const char *name, FILE *out)
{
    struct ethtool_pauseparam pause = {.cmd = ETHTOOL_GPAUSEPARAM};
    struct ethtool_ringparam ring = {.cmd = ETHTOOL_GRINGPARAM};

    if (!nic_ask_driver(fd, name, &pause))
        fprintf(out, "%s pause rx=%d tx=%d\n", name, pause.rx_pause != 0, pause.tx_pause != 0);
    if (!nic_ask_driver(fd, name, &ring))
        fprintf(out, "%s rings rx=%u rx_max=%u tx=%u tx_max=%u\n", name, ring.rx_pending,
                ring.rx_max_pending, ring.tx_pending, ring.tx_max_pending);
    net_ask_rates(fd, name, out);
    net_ask_counts(fd, name, out);
}

void net_ask(FILE *out)
{
    struct if_nameindex *all = if_nameindex();
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    dump(RTM_GETLINK, RTM_NEWLINK, sizeof(struct ifinfomsg), link_line, out);
    dump(RTM_GETQDISC, RTM_NEWQDISC, sizeof(struct tcmsg), qdisc_line, out);
    for (const struct if_nameindex *i = all; i && fd >= 0 && i->if_index; i++)
        driver_lines(fd, i->if_name, out);
    if (all)
        if_freenameindex(all);
    if (fd >= 0)
        close(fd);
}
