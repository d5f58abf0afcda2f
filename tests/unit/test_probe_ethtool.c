// SPDX-License-Identifier: Apache-2.0
/* What a driver tells by ethtool's ioctl, which here is one of our own for the loopback interface: it
 * answers as linux/net/ethtool/ioctl.c does. */
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "harness/probe/facts.h"
#include "tests/unit/probe_cases.h"
#include "tests/unit/unit.h"

enum { WORDS = 4 };

static struct driver {
    uint32_t masks[3][WORDS]; /* supported, advertised, the partner's */
    uint8_t duplex;
    const char *names[8];
    uint64_t values[8];
    uint32_t n;
} driver;

static int answer_settings(struct ethtool_link_settings *s)
{
    const __s8 asked = s->link_mode_masks_nwords;

    memset(s, 0, sizeof(*s));
    s->cmd = ETHTOOL_GLINKSETTINGS;
    if (asked != WORDS) {
        s->link_mode_masks_nwords = -WORDS;
        return 0;
    }
    s->link_mode_masks_nwords = WORDS;
    s->duplex = driver.duplex;
    memcpy((char *)s + sizeof(*s), driver.masks, sizeof(driver.masks));
    return 0;
}

static int answer(void *data)
{
    uint32_t cmd;

    memcpy(&cmd, data, sizeof(cmd));
    if (cmd == ETHTOOL_GLINKSETTINGS)
        return answer_settings(data);
    if (cmd == ETHTOOL_GSSET_INFO) {
        struct ethtool_sset_info *info = data;

        if (driver.n)
            memcpy((char *)data + sizeof(*info), &driver.n, sizeof(driver.n));
        info->sset_mask = driver.n ? info->sset_mask : 0;
    } else if (cmd == ETHTOOL_GSTRINGS) {
        struct ethtool_gstrings *names = data;

        for (uint32_t i = 0; i < driver.n; i++)
            memcpy((char *)data + sizeof(*names) + (size_t)i * ETH_GSTRING_LEN, driver.names[i],
                   strlen(driver.names[i]));
        names->len = driver.n;
    } else if (cmd == ETHTOOL_GSTATS) {
        struct ethtool_stats *values = data;

        memcpy((char *)data + sizeof(*values), driver.values, driver.n * sizeof(uint64_t));
        values->n_stats = driver.n;
    } else {
        errno = EOPNOTSUPP;
        return -1;
    }
    return 0;
}

int ioctl(int fd, unsigned long request, ...)
{
    va_list args;
    void *data;
    struct ifreq *ask;

    va_start(args, request);
    data = va_arg(args, void *);
    va_end(args);
    ask = data;
    if (request == SIOCETHTOOL)
        return strcmp(ask->ifr_name, "lo") ? -1 : answer(ask->ifr_data);
    return (int)syscall(SYS_ioctl, fd, request, data);
}

/* The lines of the loopback interface on what only a driver tells. */
static void ask(char *text, size_t len)
{
    char *all = NULL, *save = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&all, &size);

    net_ask(out);
    fclose(out);
    text[0] = 0;
    for (char *line = strtok_r(all, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
        if (!strncmp(line, "lo line", 7) || !strncmp(line, "lo counts", 9))
            snprintf(text + strlen(text), len - strlen(text), "%s\n", line);
    free(all);
}

static void set_mode(int mask, unsigned bit)
{
    driver.masks[mask][bit / 32] |= 1u << bit % 32;
}

#define MODE(name)                                                                                 \
    {                                                                                              \
        ETHTOOL_LINK_MODE_##name##_BIT, #name                                                      \
    }
static const struct {
    unsigned bit;
    const char *name; /* begins with its rate in Mb/s */
} modes[] = {
    MODE(10baseT_Half),       MODE(10baseT_Full),       MODE(100baseT_Full),
    MODE(1000baseT_Half),     MODE(1000baseT_Full),     MODE(10000baseT_Full),
    MODE(2500baseX_Full),     MODE(1000baseKX_Full),    MODE(10000baseKX4_Full),
    MODE(10000baseKR_Full),   MODE(20000baseMLD2_Full), MODE(20000baseKR2_Full),
    MODE(40000baseKR4_Full),  MODE(40000baseCR4_Full),  MODE(40000baseLR4_Full),
    MODE(56000baseKR4_Full),  MODE(56000baseLR4_Full),  MODE(25000baseCR_Full),
    MODE(25000baseSR_Full),   MODE(50000baseCR2_Full),  MODE(50000baseKR2_Full),
    MODE(100000baseKR4_Full), MODE(100000baseSR4_Full), MODE(100000baseLR4_ER4_Full),
    MODE(50000baseSR2_Full),  MODE(1000baseX_Full),     MODE(10000baseCR_Full),
    MODE(10000baseER_Full),   MODE(2500baseT_Full),     MODE(5000baseT_Full),
    MODE(50000baseKR_Full),   MODE(50000baseDR_Full),   MODE(100000baseKR2_Full),
    MODE(100000baseDR2_Full), MODE(200000baseKR4_Full), MODE(200000baseCR4_Full),
    MODE(100baseT1_Full),     MODE(1000baseT1_Full),    MODE(400000baseKR8_Full),
    MODE(400000baseCR8_Full), MODE(100000baseKR_Full),  MODE(100000baseDR_Full),
    MODE(200000baseKR2_Full), MODE(200000baseCR2_Full), MODE(400000baseKR4_Full),
    MODE(400000baseCR4_Full),
};

/* Each mode by itself: its rate is its name's. */
TEST(test_rates_by_name)
{
    char text[512], expected[64];

    for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
        driver = (struct driver){.duplex = DUPLEX_UNKNOWN};
        set_mode(0, modes[i].bit);
        ask(text, sizeof(text));
        snprintf(expected, sizeof(expected), "lo line own_gbits_per_s=%.3f\n",
                 atof(modes[i].name) / 1000);
        if (strcmp(text, expected) != 0)
            fail_msg("%s: %s", modes[i].name, text);
    }
}

/* What is no rate: autonegotiation, pauses, kinds of plugs, error correction. */
TEST(test_no_rates)
{
    static const unsigned bits[] = {ETHTOOL_LINK_MODE_Autoneg_BIT,  ETHTOOL_LINK_MODE_TP_BIT,
                                    ETHTOOL_LINK_MODE_FIBRE_BIT,    ETHTOOL_LINK_MODE_Pause_BIT,
                                    ETHTOOL_LINK_MODE_FEC_NONE_BIT, ETHTOOL_LINK_MODE_FEC_RS_BIT,
                                    ETHTOOL_LINK_MODE_FEC_LLRS_BIT};
    char text[512];

    driver = (struct driver){.duplex = DUPLEX_FULL};
    for (size_t i = 0; i < sizeof(bits) / sizeof(*bits); i++)
        set_mode(0, bits[i]);
    ask(text, sizeof(text));
    assert_string_equal(text, "");
}

TEST(test_both_ends)
{
    char text[512];

    driver = (struct driver){.duplex = DUPLEX_HALF};
    set_mode(0, ETHTOOL_LINK_MODE_100000baseCR4_Full_BIT);
    set_mode(0, ETHTOOL_LINK_MODE_25000baseCR_Full_BIT);
    set_mode(1, ETHTOOL_LINK_MODE_25000baseCR_Full_BIT);
    set_mode(2, ETHTOOL_LINK_MODE_50000baseCR2_Full_BIT);
    ask(text, sizeof(text));
    /* Without autonegotiation, the other end told nothing. */
    assert_string_equal(text, "lo line own_gbits_per_s=100.000 offered_gbits_per_s=25.000 "
                              "full_duplex=0\n");
    set_mode(2, ETHTOOL_LINK_MODE_Autoneg_BIT);
    ask(text, sizeof(text));
    assert_string_equal(text, "lo line own_gbits_per_s=100.000 offered_gbits_per_s=25.000 "
                              "partner_gbits_per_s=50.000 full_duplex=0\n");
}

/* Names that end in blanks, and those that are no word; other counters are left out. */
TEST(test_counts)
{
    char text[512];

    driver = (struct driver){.names = {"rx_packets", "rx_prio3_pause", "[0]: rx pause",
                                       "rx_pause_frames       ", "tx_prio3_pause_duration",
                                       "rx_prio3_pause_transition"},
                             .values = {1, 22, 3, 44, 55, 66},
                             .n = 6};
    ask(text, sizeof(text));
    assert_string_equal(
        text, "lo counts rx_prio3_pause=22 rx_pause_frames=44 tx_prio3_pause_duration=55\n");
    driver = (struct driver){.n = 0};
    ask(text, sizeof(text));
    assert_string_equal(text, "");
}

/* As the drivers' sources have them. */
TEST(test_names)
{
    static const char *const names[][2] = {
        {"rx_prio0_pause", "rx_priority0_frames"}, /* mlx5 */
        {"tx_prio7_pause_duration", "tx_priority7_microseconds"},
        {"rx_global_pause", "rx_frames"},
        {"tx_global_pause_duration", "tx_microseconds"},
        {"rx_pause_ctrl_phy", "rx_frames"},
        {"tx_pause_prio_3", "tx_priority3_frames"},        /* mlx4 */
        {"rx_pfc_ena_frames_pri5", "rx_priority5_frames"}, /* bnxt_en */
        {"pfc_pri2_tx_duration_us", "tx_priority2_microseconds"},
        {"rx_pause_frames", "rx_frames"},
        {"link_xoff_rx.nic", "rx_frames"}, /* ice */
        {"tx_priority_4_xoff.nic", "tx_priority4_frames"},
        {"port.rx_priority_1_xoff", "rx_priority1_frames"}, /* i40e */
        {"port.tx_priority_1_xoff_tx", "tx_priority1_frames"},
        {"port.link_xoff_tx", "tx_frames"},
        {"rx_flow_control_xoff", "rx_frames"}, /* ixgbe, igb, igc, e1000e */
        {"tx_pb_6_pxoff", "tx_priority6_frames"},
        {"rx_ppp0_frames", "rx_priority0_frames"},          /* cxgb4 */
        {"mac_rx_pfc_pri7_pkt_num", "rx_priority7_frames"}, /* hns3 */
        {"rx_flow_control_xon", NULL},                      /* these let it go on */
        {"rx_priority_4_xon.nic", NULL},
        {"port.rx_priority_1_xon_2_xoff", NULL},
        {"rx_prio3_pause_transition", NULL},
        {"rx_prio8_pause", NULL},
        {"rx_prio3_packets", NULL},
        {"rx_pause_frames_x", NULL},
        {"", NULL},
    };
    char key[NET_PAUSE_KEY];

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        bool known = net_pause_key(names[i][0], key);

        if (known != (names[i][1] != NULL) || (known && strcmp(key, names[i][1]) != 0))
            fail_msg("%s: %s", names[i][0], known ? key : "none");
    }
}
