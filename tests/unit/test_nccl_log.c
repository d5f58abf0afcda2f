/* SPDX-License-Identifier: Apache-2.0 */
/* What is read out of NCCL's debug output, and what may be asked of it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/collective/nccl_module.h"
#include "core/row.h"

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

static void algorithm_by_name(void **state)
{
    struct nccl_log s =
        parse(LINE "AllReduce: 1048576 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..3}\n");

    (void)state;
    assert_string_equal(s.algorithm, "ring/simple, channels 0-3");
    assert_string_equal(s.chose, "ring");
    assert_string_equal(s.protocol, "simple");
    assert_int_equal(s.channels, 4);
    assert_true(s.members_add && !s.switches_add);
    s = parse(LINE
              "AllReduce: 8 Bytes -> Algo COLLNET_DIRECT proto LL128 channel{Lo..Hi}={2..2}\n");
    assert_string_equal(s.algorithm, "collnet-direct/ll128, channels 2-2");
    assert_false(s.members_add);
}

static void algorithm_by_number(void **state)
{
    struct nccl_log s = parse(LINE "1026048 Bytes -> Algo 1 proto 2 time 34.693867\n");

    (void)state;
    assert_string_equal(s.algorithm, "ring/simple");
    assert_int_equal(s.channels, 0); /* not said */
    s = parse(LINE "1026048 Bytes -> Algo 0 proto 0 time 34.693867\n");
    assert_string_equal(s.algorithm, "tree/ll");
}

/* The table of what it could take, and the call before, are not the call. */
static void algorithm_of_the_last_call(void **state)
{
    struct nccl_log s =
        parse(LINE "   Latency/AlgBw |    Tree/    LL |    Ring/Simple |\n" LINE
                   "AllReduce: 4 Bytes -> Algo TREE proto LL channel{Lo..Hi}={0..0}\n" LINE
                   "AllReduce: 4096 Bytes -> Algo NVLS_TREE proto SIMPLE channel{Lo..Hi}={0..15}");

    (void)state;
    assert_string_equal(s.algorithm, "nvls-tree/simple, channels 0-15");
    assert_false(s.members_add);
}

/* Kernels on symmetric windows, of 2.27 and 2.28: those with LDMC load what the switch adds. */
static void kernels_on_windows(void **state)
{
    struct nccl_log s = parse(LINE "AllReduce [Symmetric]: 1048576 Bytes -> Kernel "
                                   "AllReduce_RSxLDMC_AGxSTMC nchannels 16 nthreads 512\n");

    (void)state;
    assert_string_equal(s.algorithm, "symmetric/AllReduce_RSxLDMC_AGxSTMC");
    assert_string_equal(s.chose, "symmetric");
    assert_string_equal(s.protocol, "AllReduce_RSxLDMC_AGxSTMC");
    assert_int_equal(s.channels, 16);
    assert_true(s.switches_add && !s.members_add);
    s = parse(LINE
              "AllReduce [Symmetric]: 8 Bytes -> Kernel AllReduce_AGxLLMC_R nchannels 1 nthreads "
              "512 nWorks 1\n");
    assert_true(s.members_add && !s.switches_add);
    assert_int_equal(s.channels, 1);
    s = parse(LINE "Init COMPLETE\n");
    assert_true(!s.chose[0] && !s.protocol[0] && !s.channels && !s.members_add && !s.switches_add);
}

static void wires(void **state)
{
    struct nccl_log s = parse(LINE "Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read\n" LINE
                                   "Channel 01/0 : 0[0] -> 1[1] via P2P/CUMEM/read\n" LINE
                                   "Channel 00 : 1[1] -> 2[2] via SHM/direct/direct\n" LINE
                                   "Channel 00/0 : 3[3] -> 0[0] [receive] via NET/IB/0/GDRDMA\n");

    (void)state;
    assert_string_equal(s.wires, "P2P/CUMEM and SHM and NET/IB");
    assert_int_equal(s.carriers, CARRIER_PEER | CARRIER_SHARED_MEMORY | CARRIER_RDMA);
    assert_true(s.network);
    s = parse(LINE "Channel 00/0 : 3[3] -> 0[0] [send] via NET/Socket/0\n");
    assert_int_equal(s.carriers, CARRIER_SOCKETS);
    s = parse(LINE "Channel 00/0 : 3[3] -> 0[0] [send] via NET/AWS Libfabric/0\n");
    assert_true(s.network && !s.carriers);
    s = parse(LINE "Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM\n");
    assert_false(s.network);
    assert_true(s.heard);
}

static void networks(void **state)
{
    struct nccl_log s =
        parse(LINE "NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/IB [RO]; OOB eth0:10.0.0.1<0>\n");

    (void)state;
    assert_string_equal(s.devices, "mlx5_0:1 mlx5_1:1");
    assert_int_equal(s.n_devices, 2);
    s = parse(LINE "NET/Socket : Using [0]eth0:10.0.0.1<0>\n");
    assert_string_equal(s.devices, "eth0");
    assert_int_equal(s.n_devices, 1);
}

static void nothing_said(void **state)
{
    struct nccl_log s = parse("");

    (void)state;
    assert_false(s.heard);
    assert_string_equal(s.algorithm, "");
    assert_string_equal(s.wires, "");
    s = parse(LINE "-> Algo proto channel{Lo..Hi}={\n" LINE "Channel via \n" LINE
                   "NET/IB : Using [0\n" LINE " -> Algo  proto \n");
    assert_string_equal(s.wires, "");
    assert_int_equal(s.n_devices, 0);
}

/* More names than there is room for: whole ones, and no more. */
static void many_networks(void **state)
{
    struct nccl_log s =
        parse(LINE "NET/IB : Using [0]mlx5_00000000000:1/IB [1]mlx5_11111111111:1/IB "
                   "[2]mlx5_22222222222:1/IB [3]mlx5_33333333333:1/IB [4]mlx5_44444444444:1/IB\n");

    (void)state;
    assert_int_equal(s.n_devices, 3);
    assert_string_equal(s.devices, "mlx5_00000000000:1 mlx5_11111111111:1 mlx5_22222222222:1");
}

static void asked(void **state)
{
    const char *algorithm, *protocol;
    char why[256] = "";

    (void)state;
    assert_int_equal(nccl_log_algorithm("ring", &algorithm, &protocol, why, sizeof(why)), 0);
    assert_string_equal(algorithm, "Ring");
    assert_null(protocol);
    assert_int_equal(nccl_log_algorithm("nvls-tree/ll128", &algorithm, &protocol, why, sizeof(why)),
                     0);
    assert_string_equal(algorithm, "NVLSTree");
    assert_string_equal(protocol, "LL128");
    assert_int_equal(nccl_log_algorithm("rin", &algorithm, &protocol, why, sizeof(why)),
                     -EOPNOTSUPP);
    assert_non_null(strstr(why, "'rin'; there are tree, ring"));
    assert_int_equal(nccl_log_algorithm("ring/", &algorithm, &protocol, why, sizeof(why)),
                     -EOPNOTSUPP);
    assert_int_equal(nccl_log_algorithm("/ll", &algorithm, &protocol, why, sizeof(why)),
                     -EOPNOTSUPP);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(algorithm_by_name),
                                       cmocka_unit_test(algorithm_by_number),
                                       cmocka_unit_test(algorithm_of_the_last_call),
                                       cmocka_unit_test(kernels_on_windows),
                                       cmocka_unit_test(wires),
                                       cmocka_unit_test(networks),
                                       cmocka_unit_test(nothing_said),
                                       cmocka_unit_test(many_networks),
                                       cmocka_unit_test(asked)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
