/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What drivers tell of an Ethernet line by ethtool's ioctl, without root: the rates of both ends, and
 * the pause frames. Lines as net_ask() writes them.
 */
#include <ctype.h>
#include <linux/ethtool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/hw/nic.h"
#include "harness/probe/facts.h"

/* ---- Rates */

/* Bits of ETHTOOL_LINK_MODE_*, from first to last, and their rate. Newer kernels than the headers of
 * this build know more, so they are numbers here. */
static const struct {
    unsigned first, last;
    double gbits;
} modes[] = {
    {0, 1, 0.01},    {2, 3, 0.1},     {4, 5, 1},       {12, 12, 10},    {15, 15, 2.5},
    {17, 17, 1},     {18, 20, 10},    {21, 22, 20},    {23, 26, 40},    {27, 30, 56},
    {31, 33, 25},    {34, 35, 50},    {36, 39, 100},   {40, 40, 50},    {41, 41, 1},
    {42, 46, 10},    {47, 47, 2.5},   {48, 48, 5},     {52, 56, 50},    {57, 61, 100},
    {62, 66, 200},   {67, 67, 0.1},   {68, 68, 1},     {69, 73, 400},   {75, 79, 100},
    {80, 84, 200},   {85, 89, 400},   {90, 91, 0.1},   {92, 92, 0.01},  {93, 98, 800},
    {99, 102, 0.01}, {103, 108, 200}, {109, 114, 400}, {115, 120, 800},
};

/* The fastest of a mask; 0: none, or none that is known. */
static double fastest(const uint32_t *mask, int words)
{
    double most = 0;

    for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++)
        for (unsigned bit = modes[i].first; bit <= modes[i].last && bit / 32 < (unsigned)words;
             bit++)
            if (mask[bit / 32] >> bit % 32 & 1 && modes[i].gbits > most)
                most = modes[i].gbits;
    return most;
}

static void print_rate(FILE *out, const char *key, double gbits)
{
    if (gbits > 0)
        fprintf(out, " %s=%.3f", key, gbits);
}

void net_ask_rates(int fd, const char *name, FILE *out)
{
    enum { WORDS = 127, AUTONEG_BIT = 6 }; /* without it, the other end told nothing */
    union {                                /* the masks follow the head */
        struct ethtool_link_settings head;
        uint32_t all[sizeof(struct ethtool_link_settings) / sizeof(uint32_t) + 3 * WORDS];
    } line = {.head = {.cmd = ETHTOOL_GLINKSETTINGS}};
    const uint32_t *masks = line.all + sizeof(line.head) / sizeof(uint32_t);
    double own;
    int words;

    /* Asked with none, it tells how many words a mask has. */
    if (nic_ask_driver(fd, name, &line) || line.head.link_mode_masks_nwords >= 0)
        return;
    words = -line.head.link_mode_masks_nwords;
    line.head = (struct ethtool_link_settings){.cmd = ETHTOOL_GLINKSETTINGS,
                                               .link_mode_masks_nwords = (int8_t)words};
    if (nic_ask_driver(fd, name, &line) || line.head.link_mode_masks_nwords != words)
        return;
    own = fastest(masks, words);
    if (own <= 0)
        return;
    fprintf(out, "%s line", name);
    print_rate(out, "own_gbits_per_s", own);
    print_rate(out, "offered_gbits_per_s", fastest(masks + words, words));
    if (line.head.autoneg == AUTONEG_ENABLE || masks[2 * words] >> AUTONEG_BIT & 1)
        print_rate(out, "partner_gbits_per_s", fastest(masks + 2 * words, words));
    if (line.head.duplex == DUPLEX_FULL || line.head.duplex == DUPLEX_HALF)
        fprintf(out, " full_duplex=%d", line.head.duplex == DUPLEX_FULL);
    fputc('\n', out);
}

/* ---- Pause frames */

enum { COUNTS_MAX = 1 << 16, SLACK = 1024 };

/* The name as the driver has it, without blanks at its end; false: it is no word. */
static bool take_name(char word[ETH_GSTRING_LEN + 1], const char *name)
{
    size_t n = strnlen(name, ETH_GSTRING_LEN);

    while (n && name[n - 1] == ' ')
        n--;
    for (size_t i = 0; i < n; i++)
        if (!isgraph((unsigned char)name[i]) || name[i] == '=')
            return false;
    snprintf(word, ETH_GSTRING_LEN + 1, "%.*s", (int)n, name);
    return n > 0;
}

static void print_counts(FILE *out, const char *name, const char *names, const uint64_t *values,
                         uint32_t n)
{
    char word[ETH_GSTRING_LEN + 1], key[NET_PAUSE_KEY];
    bool any = false;

    for (uint32_t i = 0; i < n; i++) {
        if (!take_name(word, names + (size_t)i * ETH_GSTRING_LEN) || !net_pause_key(word, key))
            continue;
        if (!any)
            fprintf(out, "%s counts", name);
        fprintf(out, " %s=%llu", word, (unsigned long long)values[i]);
        any = true;
    }
    if (any)
        fputc('\n', out);
}

/* The kernel writes as many as the driver has by then: there is room for some more. */
void net_ask_counts(int fd, const char *name, FILE *out)
{
    union { /* the number of counters follows the head */
        struct ethtool_sset_info head;
        uint32_t all[sizeof(struct ethtool_sset_info) / sizeof(uint32_t) + 1];
    } ask = {.head = {.cmd = ETHTOOL_GSSET_INFO, .sset_mask = 1ULL << ETH_SS_STATS}};
    struct ethtool_gstrings *names;
    struct ethtool_stats *values;

    if (nic_ask_driver(fd, name, &ask) || !ask.head.sset_mask)
        return;
    uint32_t n = ask.all[sizeof(ask.head) / sizeof(uint32_t)];
    size_t room = (size_t)n + SLACK;
    if (!n || n > COUNTS_MAX)
        return;
    names = xcalloc(1, sizeof(*names) + room * ETH_GSTRING_LEN);
    values = xcalloc(1, sizeof(*values) + room * sizeof(uint64_t));
    names->cmd = ETHTOOL_GSTRINGS;
    names->string_set = ETH_SS_STATS;
    names->len = n;
    values->cmd = ETHTOOL_GSTATS;
    values->n_stats = n;
    if (!nic_ask_driver(fd, name, names) && !nic_ask_driver(fd, name, values) && names->len == n &&
        values->n_stats == n)
        print_counts(out, name, (const char *)names->data, (const uint64_t *)values->data, n);
    free(names);
    free(values);
}

/* Names that drivers give them: '@' stands for r or t, '#' for a priority. From the sources of mlx5,
 * mlx4, bnxt_en, ice, i40e, ixgbe and other drivers of Intel, cxgb4, qede, hns3 and hinic. Of Intel's
 * the frames that stop count, and not those that go on. */
static const struct {
    const char *name, *key;
} pauses[] = {
    {"@x_prio#_pause", "@x_priority#_frames"},
    {"@x_prio#_pause_duration", "@x_priority#_microseconds"},
    {"@x_global_pause", "@x_frames"},
    {"@x_global_pause_duration", "@x_microseconds"},
    {"@x_pause_ctrl_phy", "@x_frames"},
    {"@x_pause", "@x_frames"},
    {"@x_pause_prio_#", "@x_priority#_frames"},
    {"@x_pause_frames", "@x_frames"},
    {"@x_pfc_ena_frames_pri#", "@x_priority#_frames"},
    {"pfc_pri#_@x_duration_us", "@x_priority#_microseconds"},
    {"@x_ppp#_frames", "@x_priority#_frames"},
    {"link_xoff_@x.nic", "@x_frames"},
    {"@x_priority_#_xoff.nic", "@x_priority#_frames"},
    {"port.link_xoff_@x", "@x_frames"},
    {"port.@x_priority_#_xoff", "@x_priority#_frames"},
    {"port.@x_priority_#_xoff_@x", "@x_priority#_frames"},
    {"@x_flow_control_xoff", "@x_frames"},
    {"@x_pb_#_pxoff", "@x_priority#_frames"},
    {"mac_@x_mac_pause_num", "@x_frames"},
    {"mac_@x_pause_num", "@x_frames"},
    {"mac_@x_pfc_pri#_pkt_num", "@x_priority#_frames"},
};

/* Is the name of that pattern? way, digit: what '@' and '#' stand for. */
static bool fits(const char *pattern, const char *name, char *way, char *digit)
{
    for (; *pattern && *name; pattern++, name++) {
        if (*pattern == '@' && (*name == 'r' || *name == 't'))
            *way = *name;
        else if (*pattern == '#' && *name >= '0' && *name <= '7')
            *digit = *name;
        else if (*pattern != *name)
            return false;
    }
    return !*pattern && !*name;
}

bool net_pause_key(const char *name, char key[NET_PAUSE_KEY])
{
    char way = 'r', digit = '0';
    size_t i = 0;

    while (i < sizeof(pauses) / sizeof(*pauses) && !fits(pauses[i].name, name, &way, &digit))
        i++;
    if (i == sizeof(pauses) / sizeof(*pauses))
        return false;
    snprintf(key, NET_PAUSE_KEY, "%s", pauses[i].key);
    for (char *c = key; *c; c++)
        *c = (char)(*c == '@' ? way : *c == '#' ? digit : *c);
    return true;
}
