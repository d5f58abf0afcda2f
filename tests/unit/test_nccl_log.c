/* SPDX-License-Identifier: Apache-2.0 */
/* What is read out of NCCL's debug output, and what may be asked of it. */
#include "core/collective/nccl_log.h"
#include "core/row.h"
#include "tests/unit/unit.h"

#define LINE "node1:4711:4715 [0] NCCL INFO "

static struct nccl_log parse(const char *text)
{
    struct nccl_log s = {0};
    char *copy = strdup(text);

    assert_non_null(copy);
    nccl_log_parse(&s, copy);
    free(copy);
    return s;
}

/* By name or number; of the last call alone, not of the table of what it could take. Kernels on symmetric
 * windows, of 2.27 and 2.28: those with LDMC load what the switch adds. */
TEST(algorithms)
{
    static const struct {
        const char *text, *chose, *protocol;
        unsigned channels;
        bool members, switches;
    } cases[] = {
        {LINE "AllReduce: 1048576 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..3}\n", "ring",
         "simple", 4, true, false},
        {LINE "AllReduce: 8 Bytes -> Algo COLLNET_DIRECT proto LL128 channel{Lo..Hi}={2..2}\n",
         "collnet-direct", "ll128", 1, false, true},
        {LINE "1026048 Bytes -> Algo 1 proto 2 time 34.693867\n", "ring", "simple", 0, true, false},
        {LINE "1026048 Bytes -> Algo 0 proto 0 time 34.693867\n", "tree", "ll", 0, true, false},
        {LINE "   Latency/AlgBw |    Tree/    LL |    Ring/Simple |\n" LINE
              "AllReduce: 4 Bytes -> Algo TREE proto LL channel{Lo..Hi}={0..0}\n" LINE
              "AllReduce: 4096 Bytes -> Algo NVLS_TREE proto SIMPLE channel{Lo..Hi}={0..15}",
         "nvls-tree", "simple", 16, false, true},
        {LINE
         "AllReduce [Symmetric]: 1048576 Bytes -> Kernel AllReduce_RSxLDMC_AGxSTMC nchannels 16 "
         "nthreads 512\n",
         "symmetric", "AllReduce_RSxLDMC_AGxSTMC", 16, false, true},
        {LINE
         "AllReduce [Symmetric]: 8 Bytes -> Kernel AllReduce_AGxLLMC_R nchannels 1 nthreads 512 "
         "nWorks 1\n",
         "symmetric", "AllReduce_AGxLLMC_R", 1, true, false},
        {LINE "Init COMPLETE\n", "", "", 0, false, false},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct nccl_log s = parse(cases[i].text);
        assert_string_equal(s.chose, cases[i].chose);
        assert_string_equal(s.protocol, cases[i].protocol);
        assert_true(!strncmp(s.algorithm, s.chose, strlen(s.chose)));
        assert_int_equal(s.channels, cases[i].channels);
        assert_true(s.members_add == cases[i].members && s.switches_add == cases[i].switches);
    }
}

TEST(wires)
{
    static const struct {
        const char *text;
        unsigned carriers;
        bool network;
    } cases[] = {
        {LINE "Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read\n" LINE
              "Channel 00 : 1[1] -> 2[2] via SHM/direct/direct\n" LINE
              "Channel 00/0 : 3[3] -> 0[0] [receive] via NET/IB/0/GDRDMA\n",
         CARRIER_PEER | CARRIER_SHARED_MEMORY | CARRIER_RDMA, true},
        {LINE "Channel 00/0 : 3[3] -> 0[0] [send] via NET/Socket/0\n", CARRIER_SOCKETS, true},
        {LINE "Channel 00/0 : 3[3] -> 0[0] [send] via NET/AWS Libfabric/0\n", 0, true},
        {LINE "Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM\n", CARRIER_PEER, false},
        {LINE "-> Algo proto channel{Lo..Hi}={\n" LINE "Channel via \n", 0, false},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct nccl_log s = parse(cases[i].text);
        assert_int_equal(s.carriers, cases[i].carriers);
        assert_true(s.network == cases[i].network && s.heard);
    }
    assert_string_equal(parse(cases[0].text).wires, "P2P/CUMEM and SHM and NET/IB");
}

/* More names than there is room for: whole ones, and no more. */
TEST(networks)
{
    static const struct {
        const char *text;
        unsigned n;
        const char *devices;
    } cases[] = {
        {LINE "NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/IB [RO]; OOB eth0:10.0.0.1<0>\n", 2,
         "mlx5_0:1 mlx5_1:1"},
        {LINE "NET/Socket : Using [0]eth0:10.0.0.1<0>\n", 1, "eth0"},
        {LINE "NET/IB : Using [0]mlx5_00000000000:1/IB [1]mlx5_11111111111:1/IB "
              "[2]mlx5_22222222222:1/IB [3]mlx5_33333333333:1/IB [4]mlx5_44444444444:1/IB\n",
         3, "mlx5_00000000000:1 mlx5_11111111111:1 mlx5_22222222222:1"},
        {LINE "NET/IB : Using [0\n", 0, ""},
        {"", 0, ""},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct nccl_log s = parse(cases[i].text);
        assert_int_equal(s.n_devices, cases[i].n);
        assert_string_equal(s.devices, cases[i].devices);
        assert_true(s.heard == (*cases[i].text != 0));
    }
}

TEST(asked)
{
    static const char *const bad[] = {"rin", "ring/", "/ll"};
    const char *algorithm, *protocol;
    char why[256] = "";

    assert_int_equal(nccl_log_algorithm("ring", &algorithm, &protocol, why, sizeof(why)), 0);
    assert_string_equal(algorithm, "Ring");
    assert_null(protocol);
    assert_int_equal(nccl_log_algorithm("nvls-tree/ll128", &algorithm, &protocol, why, sizeof(why)),
                     0);
    assert_string_equal(algorithm, "NVLSTree");
    assert_string_equal(protocol, "LL128");
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(nccl_log_algorithm(bad[i], &algorithm, &protocol, why, sizeof(why)),
                         -EOPNOTSUPP);
}
