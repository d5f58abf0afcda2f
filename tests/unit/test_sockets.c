/* SPDX-License-Identifier: Apache-2.0 */
/* A library that took sockets where RDMA is up: what its node says, which settings choose sockets; and devices that are not there. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/collective/library.h"
#include "core/session/member.h"
#include "tests/unit/path_tree.h"

static const char *const names[] = {
    "UCX_TLS",  "UCX_NET_DEVICES",    "FI_PROVIDER",   "NCCL_IB_DISABLE",
    "NCCL_NET", "I_MPI_OFI_PROVIDER", "I_MPI_FABRICS", "MPIR_CVAR_OFI_USE_PROVIDER"};

static void unset_all(void)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        unsetenv(names[i]);
}

static void mpi_is(const char *pml, const char *btl, const char *said)
{
    struct mpi_settings set = {.pml = ""};
    char text[64];

    unset_all();
    snprintf(set.pml, sizeof(set.pml), "%s", pml);
    snprintf(set.btl, sizeof(set.btl), "%s", btl);
    assert_string_equal(sockets_of_mpi(&set, text, sizeof(text)), said);
}

/* With one variable set, and that pml. */
static void pml_is(const char *pml, const char *name, const char *value, const char *said)
{
    struct mpi_settings set = {.pml = ""};
    char text[64];

    unset_all();
    snprintf(set.pml, sizeof(set.pml), "%s", pml);
    if (!strcmp(name, "mtl_ofi_provider_include"))
        snprintf(set.providers, sizeof(set.providers), "%s", value);
    else
        setenv(name, value, 1);
    assert_string_equal(sockets_of_mpi(&set, text, sizeof(text)), said);
}

static void below_is(const char *name, const char *value, const char *said)
{
    pml_is("", name, value, said);
}

static void test_mpi(void **state)
{
    (void)state;
    below_is("UCX_TLS", "", "");
    below_is("UCX_TLS", "tcp,self,sm", "UCX_TLS=tcp,self,sm");
    below_is("UCX_TLS", "all", "");
    below_is("UCX_TLS", "tcp,rc_x", "");
    below_is("UCX_TLS", "tcp,dc", "");
    below_is("UCX_TLS", "ud_verbs,tcp", "");
    below_is("UCX_TLS", "rc", "");
    below_is("UCX_TLS", "sm,self", "");
    below_is("UCX_TLS", "^ib", "UCX_TLS=^ib");
    below_is("UCX_TLS", "^tcp", "");
    below_is("UCX_NET_DEVICES", "lo", "UCX_NET_DEVICES=lo");
    below_is("UCX_NET_DEVICES", "lo,nobody0", "");
    below_is("UCX_NET_DEVICES", "mlx5_0", ""); /* no interface: a port whose number was forgotten */
    below_is("UCX_NET_DEVICES", "all", "");
    below_is("UCX_NET_DEVICES", "mlx5_0:1,eth0", "");
    below_is("FI_PROVIDER", "tcp;ofi_rxm", "FI_PROVIDER=tcp;ofi_rxm");
    below_is("FI_PROVIDER", "udp", "FI_PROVIDER=udp");
    below_is("FI_PROVIDER", "verbs;ofi_rxm", "");
    below_is("FI_PROVIDER", "psm3", "");
    mpi_is("", "", "");
    mpi_is("", "tcp,self", "btl=tcp,self");
    mpi_is("", "^openib", ""); /* which as a rule only keeps that one silent */
    mpi_is("", "tcp,openib,self", "");
    mpi_is("", "vader,self", "");
    mpi_is("ob1", "", "pml=ob1");
    mpi_is("ob1", "openib,self", "");
    mpi_is("ucx", "", "");
}

/* A layer that is not taken chooses nothing. */
static void test_mpi_layers(void **state)
{
    (void)state;
    pml_is("ucx", "UCX_TLS", "tcp", "UCX_TLS=tcp");
    pml_is("ucx", "FI_PROVIDER", "tcp", "");
    pml_is("cm", "FI_PROVIDER", "tcp", "FI_PROVIDER=tcp");
    pml_is("cm", "UCX_TLS", "tcp", "");
    pml_is("cm", "UCX_NET_DEVICES", "lo", "");
    pml_is("ob1", "UCX_TLS", "rc", "pml=ob1");
    pml_is("^ucx", "FI_PROVIDER", "tcp", "FI_PROVIDER=tcp");
    pml_is("cm", "mtl_ofi_provider_include", "tcp", "mtl_ofi_provider_include=tcp");
    pml_is("", "mtl_ofi_provider_include", "tcp,verbs", "");
    pml_is("ucx", "mtl_ofi_provider_include", "tcp", "");
    mpi_is("ucx", "tcp,self", "");
    below_is("MPIR_CVAR_OFI_USE_PROVIDER", "sockets", "MPIR_CVAR_OFI_USE_PROVIDER=sockets");
    below_is("MPIR_CVAR_OFI_USE_PROVIDER", "verbs;ofi_rxm", "");
    below_is("I_MPI_FABRICS", "shm:tcp", "I_MPI_FABRICS=shm:tcp");
    below_is("I_MPI_FABRICS", "shm:ofi", "");
    below_is("I_MPI_FABRICS", "shm:dapl", "");
}

/* A list of "tcp" and so on that ends in `last`, as long as room for so many bytes takes. */
static const char *list_to(char *text, size_t bytes, const char *last)
{
    size_t end = bytes - strlen(last);

    for (size_t i = 0; i < end; i++)
        text[i] = "tcp,"[i % 4];
    strcpy(text + end, last);
    return text;
}

/* What does not fit is cut: what the rest of it chooses is not known. */
static void test_cut(void **state)
{
    struct mpi_settings set;
    char list[2 * sizeof(set.btl)];
    size_t room = sizeof(set.btl);

    (void)state;
    mpi_is("", list_to(list, 100, ",openib"), ""); /* far behind, and there */
    mpi_is("ob1", list, "");
    mpi_is("", list_to(list, room - 2, ",self"), "btl=tcp,tcp,tcp,tcp,tcp,tcp,");
    mpi_is("", list_to(list, room - 1, ",self"), "");
    mpi_is("", list_to(list, room + 20, ",openib"), "");
    mpi_is("ob1", list, "");
    pml_is("cm", "mtl_ofi_provider_include", list, "");
    mpi_is(list, "tcp,self", "");
    pml_is("cm", "mtl_ofi_provider_include", list_to(list, room - 2, ",udp"),
           "mtl_ofi_provider_include=tcp,tcp,tcp,tcp,tcp,tcp,");
}

static void nccl_is(const char *name, const char *value, const char *said)
{
    char text[48];

    unset_all();
    setenv(name, value, 1);
    assert_string_equal(sockets_of_nccl(text, sizeof(text)), said);
}

static void test_nccl(void **state)
{
    (void)state;
    nccl_is("UCX_TLS", "tcp", "");
    nccl_is("NCCL_IB_DISABLE", "1", "NCCL_IB_DISABLE=1");
    nccl_is("NCCL_IB_DISABLE", "0", "");
    nccl_is("NCCL_NET", "socket", "NCCL_NET=socket");
    nccl_is("NCCL_NET", "IB", "");
}

static const char *refused(const char *device)
{
    static const struct collective_ops ops = {.name = "mpi"};
    static struct collective c;
    struct collective_point p = {0};

    snprintf(p.device, sizeof(p.device), "%s", device);
    c = (struct collective){.ops = &ops, .point = &p};
    int err = library_devices(&c);
    assert_int_equal(err, c.error[0] ? -ENODEV : 0);
    return c.error;
}

static void test_devices(void **state)
{
    (void)state;
    assert_string_equal(refused(""), "");
    assert_string_equal(refused("lo"), "");
    assert_string_equal(refused("lo+lo"), "");
    assert_non_null(strstr(refused("lo+nobody0"),
                           "mpi: no interface or RDMA device 'nobody0' here; there are lo"));
    assert_non_null(strstr(refused("lo+"), "no interface or RDMA device '' here"));
    assert_non_null(strstr(refused("+lo"), "no interface or RDMA device '' here"));
}

/* All of the names are claimed, however many. */
static void test_flow(void **state)
{
    struct collective_report told = {0};
    struct collective_claims claims = {0};
    char device[192];

    (void)state;
    memset(device, 'd', sizeof(device));
    device[sizeof(device) - 1] = 0;
    library_flow(&told, device, (struct library_least){1, 1}, 1);
    claims_add(&claims, &told);
    assert_string_equal(claims.claims[0].device, device);
}

/* Of a node's members the longest message counts, whoever comes last. */
static void test_longest_message(void **state)
{
    (void)state;
    for (int last = 0; last < 2; last++) {
        struct collective_claims claims = {0};
        for (int i = 0; i < 2; i++) {
            bool is_long = i == last;
            struct collective_report told = {.has_rail = 1};
            told.rail.mtu_bytes = is_long ? 9000 : 1500;
            library_flow(&told, "eth0", (struct library_least){10, 10}, is_long ? 4096 : 8);
            claims_add(&claims, &told);
        }
        assert_int_equal(claims.n, 1);
        assert_true(claims.claims[0].message_bytes == 4096);
        assert_true(claims.claims[0].mtu_bytes == 9000);
    }
}

static void tell_setting(struct collective *c, struct collective_report *told)
{
    snprintf(told->sockets, sizeof(told->sockets), "%s", (const char *)c->state);
}

/* What a node says whose interface carried all, though its port is up. */
static struct collective_proof prove(const struct scratch *s, const char *device, char *setting,
                                     bool claims)
{
    static const struct collective_ops ops = {.name = "fake", .tell = tell_setting};
    struct collective_claims asked = {
        .n = claims,
        .claims = {{.device = "eth0", .out_bytes = 8 * GB, .in_bytes = 8 * GB, .at_least = true}},
        .least_out_bytes = 8 * GB,
        .least_in_bytes = 8 * GB};
    struct collective_proof proof;
    struct member *m = calloc(1, sizeof(*m));

    assert_non_null(m);
    m->c.ops = &ops;
    m->c.state = setting;
    snprintf(m->point.device, sizeof(m->point.device), "%s", device);
    INTERFACES(s, {"eth0", 0, 0});
    m->path = begin(s);
    INTERFACES(s, {"eth0", 9 * GB, 9 * GB});
    member_prove(m, &asked, &proof);
    path_close(m->path);
    free(m);
    return proof;
}
#define PROVES(device, setting, claims, is, fell, said)                                            \
    do {                                                                                           \
        struct collective_proof p = prove(&s, device, setting, claims);                            \
        assert_string_equal(p.proof.text, said);                                                   \
        assert_int_equal(p.proof.verdict, is);                                                     \
        assert_int_equal(p.wire.fallen, fell);                                                     \
    } while (0)
#define FELL  "sockets of eth0 carried the bytes (18 GB), not RDMA, though mlx5_0:1 is up"
#define MEANT " (--device eth0 would say that they are meant)"
#define MOVED "; eth0 sent 9 GB, received 9 GB"

/* Which is told, and a fall-back unless somebody said that sockets are meant. */
static void test_prove(void **state)
{
    SCRATCH(s);
    put_adapter(&s, "mlx5_0", "mlx5_core", "InfiniBand", NULL);
    put_port(&s, "mlx5_0", 0, 0);
    scratch_put(&s, "sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
    PROVES("", "", false, PATH_UNKNOWN, FALLEN_INFINIBAND, FELL MEANT MOVED);
    /* What a library says that it took is no proof that it was meant to. */
    PROVES("", "", true, PATH_PROVED, FALLEN_INFINIBAND, FELL MEANT MOVED ", 100 % of the bytes");
    PROVES("eth0", "", true, PATH_PROVED, FALLEN_NOT,
           FELL ", as --device eth0 asks" MOVED ", 100 % of the bytes");
    PROVES("eth0+mlx5_0:1", "", false, PATH_UNKNOWN, FALLEN_INFINIBAND, FELL MEANT MOVED);
    PROVES("", "NCCL_IB_DISABLE=1", false, PATH_UNKNOWN, FALLEN_NOT,
           FELL ", as NCCL_IB_DISABLE=1 asks" MOVED);
    scratch_put(&s, "sys/class/infiniband/mlx5_0/ports/1/state", "1: DOWN\n");
    PROVES("", "", false, PATH_UNKNOWN, FALLEN_NOT, "eth0 sent 9 GB, received 9 GB");
    scratch_close(&s);
}

/* An Ethernet port: in a guest it is up with its cable, and only told. */
static void test_guest(void **state)
{
    SCRATCH(s);
    put_adapter(&s, "mlx5_0", "mlx5_core", "Ethernet", "eth0");
    put_port(&s, "mlx5_0", 0, 0);
    scratch_put(&s, "sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
    PROVES("", "", false, PATH_UNKNOWN, FALLEN_ETHERNET, FELL MEANT MOVED);
    scratch_put(&s, "proc/cpuinfo",
                "processor : 0\nflags\t\t: fpu tsc_known_freq hypervisor lahf_lm\n");
    PROVES("", "", false, PATH_UNKNOWN, FALLEN_NOT, FELL MEANT MOVED);
    scratch_put(&s, "proc/cpuinfo", "processor : 0\nflags\t\t: fpu tsc_known_freq lahf_lm\n");
    PROVES("", "", false, PATH_UNKNOWN, FALLEN_ETHERNET, FELL MEANT MOVED);
    scratch_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mpi),   cmocka_unit_test(test_mpi_layers),
        cmocka_unit_test(test_nccl),  cmocka_unit_test(test_devices),
        cmocka_unit_test(test_flow),  cmocka_unit_test(test_longest_message),
        cmocka_unit_test(test_prove), cmocka_unit_test(test_guest),
        cmocka_unit_test(test_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
