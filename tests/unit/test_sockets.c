/* SPDX-License-Identifier: Apache-2.0 */
/* A library that took sockets where RDMA is up: what its node says, which settings choose sockets; and devices that are not there. */
#include "core/collective/library.h"
#include "core/session/member.h"
#include "tests/unit/path_tree.h"
#include "tests/unit/unit.h"

static const char *const names[] = {
    "UCX_TLS",  "UCX_NET_DEVICES",    "FI_PROVIDER",   "NCCL_IB_DISABLE",
    "NCCL_NET", "I_MPI_OFI_PROVIDER", "I_MPI_FABRICS", "MPIR_CVAR_OFI_USE_PROVIDER"};

static void unset_all(void)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        unsetenv(names[i]);
}

/* Which settings choose sockets: what is said of them; "": nothing, so that RDMA is to be taken. */
struct setting {
    const char *pml, *btl, *name, *value, *said; /* of Open MPI; a variable; NULL: as it was set */
};

static void is_said(const struct setting *k)
{
    struct mpi_settings set = {.pml = ""};
    char text[64], own[128];

    unset_all();
    snprintf(set.pml, sizeof(set.pml), "%s", k->pml);
    snprintf(set.btl, sizeof(set.btl), "%s", k->btl);
    if (!strcmp(k->name, "mtl_ofi_provider_include"))
        snprintf(set.providers, sizeof(set.providers), "%s", k->value);
    else if (*k->name)
        setenv(k->name, k->value, 1);
    snprintf(own, sizeof(own), "%.30s=%.30s", k->name, k->value);
    const char *said = strncmp(k->name, "NCCL", 4) ? sockets_of_mpi(&set, text, sizeof(text))
                                                   : sockets_of_nccl(text, sizeof(text));
    assert_string_equal(said, k->said ? k->said : own);
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

TEST(test_mpi)
{
    static const struct setting settings[] = {
        {"", "", "UCX_TLS", "", ""},
        {"", "", "UCX_TLS", "tcp,self,sm", NULL},
        {"", "", "UCX_TLS", "all", ""},
        {"", "", "UCX_TLS", "tcp,rc_x", ""},
        {"", "", "UCX_TLS", "tcp,dc", ""},
        {"", "", "UCX_TLS", "ud_verbs,tcp", ""},
        {"", "", "UCX_TLS", "sm,self", ""},
        {"", "", "UCX_TLS", "^ib", NULL},
        {"", "", "UCX_TLS", "^tcp", ""},
        {"", "", "UCX_NET_DEVICES", "lo", NULL},
        {"", "", "UCX_NET_DEVICES", "lo,nobody0", ""},
        {"", "", "UCX_NET_DEVICES", "mlx5_0", ""}, /* a port whose number was forgotten */
        {"", "", "UCX_NET_DEVICES", "all", ""},
        {"", "", "UCX_NET_DEVICES", "mlx5_0:1,eth0", ""},
        {"", "", "FI_PROVIDER", "tcp;ofi_rxm", NULL},
        {"", "", "FI_PROVIDER", "udp", NULL},
        {"", "", "FI_PROVIDER", "verbs;ofi_rxm", ""},
        {"", "", "FI_PROVIDER", "psm3", ""},
        {"", "", "", "", ""},
        {"", "tcp,self", "", "", "btl=tcp,self"},
        {"", "^openib", "", "", ""}, /* which as a rule only keeps that one silent */
        {"", "tcp,openib,self", "", "", ""},
        {"", "vader,self", "", "", ""},
        {"ob1", "", "", "", "pml=ob1"},
        {"ob1", "openib,self", "", "", ""},
        {"ucx", "", "", "", ""},
        /* a layer that is not taken chooses nothing */
        {"ucx", "", "UCX_TLS", "tcp", NULL},
        {"ucx", "", "FI_PROVIDER", "tcp", ""},
        {"cm", "", "FI_PROVIDER", "tcp", NULL},
        {"cm", "", "UCX_TLS", "tcp", ""},
        {"cm", "", "UCX_NET_DEVICES", "lo", ""},
        {"ob1", "", "UCX_TLS", "rc", "pml=ob1"},
        {"^ucx", "", "FI_PROVIDER", "tcp", NULL},
        {"cm", "", "mtl_ofi_provider_include", "tcp", NULL},
        {"", "", "mtl_ofi_provider_include", "tcp,verbs", ""},
        {"ucx", "", "mtl_ofi_provider_include", "tcp", ""},
        {"ucx", "tcp,self", "", "", ""},
        {"", "", "MPIR_CVAR_OFI_USE_PROVIDER", "sockets", NULL},
        {"", "", "MPIR_CVAR_OFI_USE_PROVIDER", "verbs;ofi_rxm", ""},
        {"", "", "I_MPI_FABRICS", "shm:tcp", NULL},
        {"", "", "I_MPI_FABRICS", "shm:ofi", ""},
        {"", "", "NCCL_IB_DISABLE", "1", NULL},
        {"", "", "NCCL_IB_DISABLE", "0", ""},
        {"", "", "NCCL_NET", "socket", NULL},
        {"", "", "NCCL_NET", "IB", ""},
    };
    char list[2 * sizeof(((struct mpi_settings *)NULL)->btl)];
    const size_t room = sizeof(list) / 2;

    for (size_t i = 0; i < sizeof(settings) / sizeof(*settings); i++)
        is_said(&settings[i]);
    /* What does not fit is cut: what the rest of it chooses is not known. */
    is_said(&(struct setting){"", list_to(list, 100, ",openib"), "", "", ""});
    is_said(&(struct setting){"", list_to(list, room - 2, ",self"), "", "",
                              "btl=tcp,tcp,tcp,tcp,tcp,tcp,"});
    is_said(&(struct setting){"", list_to(list, room - 1, ",self"), "", "", ""});
    list_to(list, room + 20, ",openib");
    is_said(&(struct setting){"", list, "", "", ""});
    is_said(&(struct setting){"ob1", list, "", "", ""});
    is_said(&(struct setting){"cm", "", "mtl_ofi_provider_include", list, ""});
    is_said(&(struct setting){list, "tcp,self", "", "", ""});
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

TEST(test_devices)
{
    assert_string_equal(refused(""), "");
    assert_string_equal(refused("lo+lo"), "");
    assert_non_null(strstr(refused("lo+nobody0"), "'nobody0'"));
    assert_non_null(strstr(refused("lo+"), "''"));
    assert_non_null(strstr(refused("+lo"), "''"));
}

/* All of the names are claimed, however many. */
TEST(test_flow)
{
    struct collective_report told = {0};
    struct collective_claims claims = {0};
    char device[192];

    memset(device, 'd', sizeof(device));
    device[sizeof(device) - 1] = 0;
    library_flow(&told, device, (struct collective_load){1, 1});
    claims_add(&claims, &told);
    assert_string_equal(claims.claims[0].device, device);
}

/* What comes from a rank of this node is counted where it comes in by a port, and by lo where it is sent. */
TEST(test_claims_of_one_node)
{
    static const char *const devices[] = {"mlx5_0:1", "lo"};

    for (int i = 0; i < 2; i++) {
        struct collective_report told = {.n_flows = 1};
        struct collective_claims claims = {0};

        snprintf(told.flows[0].device, sizeof(told.flows[0].device), "%s", devices[i]);
        told.flows[0].out_bytes = 3;
        told.flows[0].in_bytes = 5;
        claims_add(&claims, &told);
        assert_true(claims.claims[0].out_bytes == 3);
        assert_true(claims.claims[0].in_bytes == (i ? 0 : 5));
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
        .claims = {{.device = "eth0", .out_bytes = 8 * GB, .in_bytes = 8 * GB}},
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

/* Bytes over sockets though a port is up are a fall-back, unless somebody said that sockets are meant; an Ethernet port is up with its cable in a guest. */
TEST(test_prove)
{
    static const struct {
        const char *layer, *state, *device, *setting;
        bool claims;
        const char *flags;
        int verdict, fallen;
        const char *said;
    } cases[] = {
        {"InfiniBand", "4: ACTIVE\n", "", "", false, "", PATH_UNKNOWN, FALLEN_INFINIBAND,
         "mlx5_0:1"},
        /* What a library says that it took is no proof that it was meant to. */
        {"InfiniBand", "4: ACTIVE\n", "", "", true, "", PATH_PROVED, FALLEN_INFINIBAND, "mlx5_0:1"},
        {"InfiniBand", "4: ACTIVE\n", "eth0", "", true, "", PATH_PROVED, FALLEN_NOT,
         "--device eth0"},
        {"InfiniBand", "4: ACTIVE\n", "eth0+mlx5_0:1", "", false, "", PATH_UNKNOWN,
         FALLEN_INFINIBAND, "eth0"},
        {"InfiniBand", "4: ACTIVE\n", "", "NCCL_IB_DISABLE=1", false, "", PATH_UNKNOWN, FALLEN_NOT,
         "NCCL_IB_DISABLE=1"},
        {"InfiniBand", "1: DOWN\n", "", "", false, "", PATH_UNKNOWN, FALLEN_NOT, "eth0 sent 9 GB"},
        {"Ethernet", "4: ACTIVE\n", "", "", false, "", PATH_UNKNOWN, FALLEN_ETHERNET, "mlx5_0:1"},
        {"Ethernet", "4: ACTIVE\n", "", "", false, "hypervisor ", PATH_UNKNOWN, FALLEN_NOT,
         "mlx5_0:1"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char cpuinfo[128], setting[32];
        SCRATCH(s);
        put_adapter(&s, "mlx5_0", "mlx5_core", cases[i].layer,
                    *cases[i].layer == 'E' ? "eth0" : NULL);
        put_port(&s, "mlx5_0", 0, 0);
        scratch_put(&s, "sys/class/infiniband/mlx5_0/ports/1/state", cases[i].state);
        snprintf(cpuinfo, sizeof(cpuinfo),
                 "processor : 0\nflags\t\t: fpu tsc_known_freq %slahf_lm\n", cases[i].flags);
        scratch_put(&s, "proc/cpuinfo", cpuinfo);
        snprintf(setting, sizeof(setting), "%s", cases[i].setting);
        struct collective_proof p = prove(&s, cases[i].device, setting, cases[i].claims);
        assert_int_equal(p.proof.verdict, cases[i].verdict);
        assert_int_equal(p.wire.fallen, cases[i].fallen);
        assert_non_null(strstr(p.proof.text, cases[i].said));
        scratch_close(&s);
    }
}

/* The lists of backends, of which conditions of options are made, and what each says of itself. */
TEST(test_backends)
{
    unsigned n = 0;

#define BACKEND(symbol, word, is_own, has_batch)                                                   \
    assert_ptr_equal(collective_find(word), &collective_##symbol);                                 \
    assert_string_equal(collective_names[n++], word);                                              \
    assert_int_equal(collective_##symbol.own, is_own);                                             \
    assert_int_equal(collective_##symbol.run_batch != NULL, has_batch)
#define OWN(symbol, word)     BACKEND(symbol, word, true, false);
#define CALLED(symbol, word)  BACKEND(symbol, word, false, false);
#define BATCHED(symbol, word) BACKEND(symbol, word, false, true);
    COLLECTIVE_OWN(OWN, OWN)
    COLLECTIVE_CALLED(CALLED, CALLED)
    COLLECTIVE_BATCHED(BATCHED, BATCHED)
    assert_int_equal(n, COLLECTIVE_BACKEND_COUNT);
    assert_string_equal(COLLECTIVE_LIBRARY_WORDS, "mpi,mpi-cuda,nccl");
}
