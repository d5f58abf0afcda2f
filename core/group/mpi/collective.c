/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives of MPI among some of the ranks: see core/collective/library.h. */
#include <errno.h>
#include <inttypes.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/group/mpi/mpi_check.h"

/* ---- The library's own variables, by MPI's tool interface: which algorithm is forced, and forcing
 * one ---- */

#define NAME_BYTES 128
#define TEXT_BYTES 4096 /* Open MPI's texts are as long as 2048 */

struct control {
    int index, scope, count;
    MPI_Datatype type;
    MPI_T_enum names;
    MPI_T_cvar_handle handle;
};

static const char *const tuned[COLLECTIVE_OPS] = {
    "coll_tuned_allreduce_algorithm", "coll_tuned_reduce_scatter_block_algorithm",
    "coll_tuned_allgather_algorithm", "coll_tuned_bcast_algorithm",
    "coll_tuned_alltoall_algorithm",  NULL,
    "coll_tuned_reduce_algorithm",    "coll_tuned_gather_algorithm",
    "coll_tuned_scatter_algorithm",
};
static const char *const mpich[COLLECTIVE_OPS] = {
    "MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM", "MPIR_CVAR_REDUCE_SCATTER_BLOCK_INTRA_ALGORITHM",
    "MPIR_CVAR_ALLGATHER_INTRA_ALGORITHM", "MPIR_CVAR_BCAST_INTRA_ALGORITHM",
    "MPIR_CVAR_ALLTOALL_INTRA_ALGORITHM",  NULL,
    "MPIR_CVAR_REDUCE_INTRA_ALGORITHM",    "MPIR_CVAR_GATHER_INTRA_ALGORITHM",
    "MPIR_CVAR_SCATTER_INTRA_ALGORITHM",
};

/* Open MPI looks at a forced algorithm only where this is on, and it cannot be switched on later.
 * With nothing forced and no file of rules the library's choice is the same. */
int mpi_control_prepare(char *error, size_t len)
{
    int level;

    setenv("OMPI_MCA_coll_tuned_use_dynamic_rules", "1", 0);
    int code = MPI_T_init_thread(MPI_THREAD_SERIALIZED, &level);
    if (code == MPI_SUCCESS)
        return 0;
    /* MPICH would go on to MPI_Init, and crash there. There is no text to be had of an error
     * yet. */
    snprintf(error, len,
             "MPI does not take its settings (MPI_T_init_thread: error %d): has a variable of the "
             "environment, MPIR_CVAR_... or OMPI_MCA_..., a value that this MPI does not know?",
             code);
    return -EIO;
}

static int open_control(struct control *c, const char *name)
{
    char text[NAME_BYTES];
    int n = sizeof(text), none = 0, verbosity, bind;

    if (!name || MPI_T_cvar_get_index(name, &c->index) != MPI_SUCCESS ||
        MPI_T_cvar_get_info(c->index, text, &n, &verbosity, &c->type, &c->names, NULL, &none, &bind,
                            &c->scope) != MPI_SUCCESS ||
        MPI_T_cvar_handle_alloc(c->index, NULL, &c->handle, &c->count) != MPI_SUCCESS)
        return -ENOENT;
    return 0;
}

static void close_control(struct control *c)
{
    MPI_T_cvar_handle_free(&c->handle);
}

static bool is_int(const struct control *c)
{
    return c->count == 1 && (c->type == MPI_INT || c->type == MPI_UNSIGNED);
}

/* The name that a number has, as we write it: with '-'. */
static bool name_of(const struct control *c, int value, char *text, size_t len)
{
    int items = 0, number;

    if (c->names == MPI_T_ENUM_NULL ||
        MPI_T_enum_get_info(c->names, &items, text, &(int){(int)len}) != MPI_SUCCESS)
        return false;
    for (int i = 0; i < items; i++) {
        int n = (int)len;
        if (MPI_T_enum_get_item(c->names, i, &number, text, &n) != MPI_SUCCESS || number != value)
            continue;
        for (char *p = text; (p = strchr(p, '_')); p++)
            *p = '-';
        return true;
    }
    return false;
}

static void text_of(const struct control *c, char *text, size_t len)
{
    char chars[TEXT_BYTES] = "";
    int number = 0;

    text[0] = 0;
    if (is_int(c) && MPI_T_cvar_read(c->handle, &number) == MPI_SUCCESS) {
        if (!name_of(c, number, text, len))
            snprintf(text, len, "%d", number);
    } else if (c->type == MPI_CHAR && c->count < (int)sizeof(chars) &&
               MPI_T_cvar_read(c->handle, chars) == MPI_SUCCESS) {
        snprintf(text, len, "%s", chars);
    } else if (c->count == 1 && c->type == MPI_C_BOOL) {
        bool set = false;
        if (MPI_T_cvar_read(c->handle, &set) == MPI_SUCCESS)
            snprintf(text, len, "%s", set ? "yes" : "no");
    }
}

const char *mpi_control_text(const char *name, char *text, size_t len)
{
    struct control c;

    text[0] = 0;
    if (open_control(&c, name))
        return text;
    text_of(&c, text, len);
    close_control(&c);
    return text;
}

static long number(const char *name, long otherwise)
{
    char text[TEXT_BYTES];

    mpi_control_text(name, text, sizeof(text));
    return text[0] ? strtol(text, NULL, 10) : otherwise;
}

/* A component of Open MPI that comes before the one whose algorithms can be chosen; NULL: none. */
static const char *before_tuned(void)
{
    static const char *const others[] = {"han", "acoll", "adapt", "sm", "xhc", "hcoll", "ucc"};
    long own = number("coll_tuned_priority", 0);
    char name[NAME_BYTES];

    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
        snprintf(name, sizeof(name), "coll_%s_priority", others[i]);
        if (number(name, -1) > own)
            return others[i];
    }
    return NULL;
}

static bool dynamic(void)
{
    char text[TEXT_BYTES];

    return !strcmp(mpi_control_text("coll_tuned_use_dynamic_rules", text, sizeof(text)), "yes");
}

/* Why no algorithm can be chosen for this op; 0: one can. */
static int may_choose(enum collective_op op, const char *op_name, char *error, size_t len)
{
    char text[TEXT_BYTES];
    const char *first = before_tuned();
    int err = -EOPNOTSUPP;

    if (!tuned[op])
        snprintf(error, len, "MPI has no algorithms for %s to choose from", op_name);
    else if (*mpi_control_text(mpich[op], text, sizeof(text)))
        snprintf(
            error, len,
            "this MPI takes its algorithm from the environment: leave --algorithm out and set %s",
            mpich[op]);
    else if (!*mpi_control_text(tuned[op], text, sizeof(text)))
        snprintf(error, len,
                 "this MPI does not let its algorithm be chosen: leave --algorithm out");
    else if (!dynamic())
        snprintf(error, len,
                 "coll_tuned_use_dynamic_rules is off in this job's settings: give mpirun --mca "
                 "coll_tuned_use_dynamic_rules 1");
    else if (first)
        snprintf(error, len,
                 "Open MPI's component '%s' comes before 'tuned', whose algorithms can be chosen: "
                 "give mpirun --mca coll_tuned_priority 100",
                 first);
    else
        err = 0;
    return err;
}

static int value_of(const struct control *c, const char *algorithm)
{
    char text[NAME_BYTES];

    for (int i = 1; name_of(c, i, text, sizeof(text)); i++)
        if (!strcmp(text, algorithm))
            return i;
    return -1;
}

/* Makes communicators that are made from here on use the point's algorithm for its op. *before:
 * what to put back. -EOPNOTSUPP with why, and what to do instead. */
static int mpi_control_choose(const struct mpi_setup *setup, int *before, char *error, size_t len)
{
    enum collective_op op = setup->point->op;
    const char *algorithm = setup->point->algorithm;
    struct control c;
    int err = may_choose(op, setup->op_name, error, len);

    if (err)
        return err;
    if (open_control(&c, tuned[op]) || !is_int(&c))
        return -EOPNOTSUPP;
    int value = value_of(&c, algorithm);
    if (value < 0) { /* all names but the one for none */
        char text[NAME_BYTES];
        int used = snprintf(error, len, "no such algorithm: '%.48s'; this MPI has", algorithm);
        for (int i = 1; name_of(&c, i, text, sizeof(text)) && used > 0 && (size_t)used < len; i++)
            used += snprintf(error + used, len - (size_t)used, "%s %s", i > 1 ? "," : "", text);
        err = -EOPNOTSUPP;
    } else if (MPI_T_cvar_read(c.handle, before) != MPI_SUCCESS ||
               MPI_T_cvar_write(c.handle, &value) != MPI_SUCCESS) {
        snprintf(error, len, "'%s' cannot be set: give mpirun --mca %s %d", tuned[op], tuned[op],
                 value);
        err = -EOPNOTSUPP;
    }
    close_control(&c);
    return err;
}

/* What MPICH's variable holds: a name, or from version 4 on a number of which it does not tell the
 * name; then the environment has it. False where it is none: "auto", the first of them. */
static bool mpich_asks(enum collective_op op, char *name, size_t len)
{
    char text[TEXT_BYTES];
    const char *set = mpich[op] ? getenv(mpich[op]) : NULL;
    char *end;

    mpi_control_text(mpich[op], text, sizeof(text));
    long value = strtol(text, &end, 10);
    bool is_number = *text && !*end;
    if (!*text || !strcmp(text, "auto") || (is_number && !value))
        return false;
    if (is_number && set)
        snprintf(name, len, "%s", set);
    else
        snprintf(name, len, "%s%.64s", is_number ? "number " : "", text);
    for (char *p = name; (p = strchr(p, '_')); p++)
        *p = '-';
    return true;
}

/* What a communicator that is made now will use for `op`: see struct mpi_given. There is no way to
 * ask which one a call took: only what was forced can be told. MPICH falls back without a word
 * where what was asked for cannot be done. */
static void mpi_control_tell(enum collective_op op, bool asked, char *text, size_t len)
{
    char forced[TEXT_BYTES], name[NAME_BYTES], segment[32] = "";

    text[0] = 0;
    if (!tuned[op])
        return;
    snprintf(name, sizeof(name), "%s_segmentsize", tuned[op]);
    if (number(name, 0) > 0)
        snprintf(segment, sizeof(segment), ", segments of %ld B", number(name, 0));
    if (dynamic() && !before_tuned() && *mpi_control_text(tuned[op], forced, sizeof(forced)) &&
        strcmp(forced, "ignore") != 0)
        snprintf(text, len, "%.40s%s, %s", forced, segment,
                 asked ? "as asked for" : "forced by its settings");
    else if (mpich_asks(op, forced, sizeof(forced)))
        snprintf(text, len, "%.40s, by its settings, where it can", forced);
    else
        snprintf(text, len, "its own choice");
}

static void add(char *text, size_t len, const char *name, const char *value)
{
    size_t used = strlen(text);

    if (value && *value)
        snprintf(text + used, len - used, ", %s %.40s", name, value);
}

/* Above single, an MPI may lock what it does; "": single. */
static const char *thread_level(void)
{
    int level = MPI_THREAD_SINGLE;

    MPI_Query_thread(&level);
    return level == MPI_THREAD_SINGLE       ? ""
           : level == MPI_THREAD_FUNNELED   ? "funneled"
           : level == MPI_THREAD_SERIALIZED ? "serialized"
                                            : "multiple";
}

/* What decides how long it takes and which wire it takes, as far as it was set: in its own
 * settings, and in those of the layers below. */
static void mpi_control_detail(char *text, size_t len)
{
    static const char *const names[] = {
        "pml", "btl", "btl_tcp_flags", "btl_tcp_if_include", "mtl_ofi_provider_include", "coll"};
    static const char *const below[] = {"UCX_TLS", "UCX_NET_DEVICES", "FI_PROVIDER"};
    char value[TEXT_BYTES];

    mpi_version(text, len);
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        add(text, len, names[i], mpi_control_text(names[i], value, sizeof(value)));
    add(text, len, "device", mpi_device(value, sizeof(value)));
    add(text, len, "threads", thread_level());
    for (size_t i = 0; i < sizeof(below) / sizeof(*below); i++)
        add(text, len, below[i], getenv(below[i]));
}

#define BARRIER_TAG 1     /* pass_on() has 0 */
#define TAGS        30000 /* the standard promises 32767; below, the control messages' */

/* A call of MPI; counts are of `type`, and where the op has blocks, of each block. */
struct part {
    char *input, *result;
    mpi_count count;
    MPI_Datatype type;
    bool own_type;
};

/* A call of ours: a vector of more elements than a call of this MPI takes is cut. */
struct cut_call {
    struct mpi_call of;
    struct part *parts;
    size_t n;
};

struct mpi_collective {
    MPI_Comm comm;
    MPI_Datatype type;
    MPI_Op sum;
    bool own_type, own_sum;
    struct cut_call *calls;
    unsigned n_calls;
    MPI_Request *requests; /* two of each part */
    unsigned n_requests;   /* under way */
    uint64_t most;         /* see most() */
    int n, me, root;
    enum collective_op op;
    bool in_place;
    size_t element_bytes;
    /* a broadcast's root, out of place, still has to do its own part */
    const struct mpi_call *local;
    int round; /* of a barrier: the distance of its messages, 1, 2, 4 ...; 0: it is no barrier */
    mpi_copy_fn *copy; /* NULL: the buffers are the host's */
    void *copy_arg;
    struct mpi_given told;
};

#define TEXT_OF(name) #name
#define NAME_OF(name) TEXT_OF(name)
#define CALL(name)    NAME_OF(LARGE(name))

static const char *const calls[COLLECTIVE_OPS] = {
    CALL(MPI_Allreduce), CALL(MPI_Reduce_scatter_block),
    CALL(MPI_Allgather), CALL(MPI_Bcast),
    CALL(MPI_Alltoall),  CALL(MPI_Sendrecv),
    CALL(MPI_Reduce),    CALL(MPI_Gather),
    CALL(MPI_Scatter),
};

static uint64_t most(void)
{
    const char *set = getenv("PLUMB_MPI_ELEMENTS");
    uint64_t fewer = set ? strtoull(set, NULL, 10) : 0;

    return fewer && fewer < MOST_OF_MPI ? fewer : MOST_OF_MPI;
}

/* A function of MPI's operations gets no argument of ours. */
static mpi_reduce_fn *the_reduce;

/* `n` of a type: an element, or a part of a block, whose extent is the whole block's. */
static void sum_each(enum collective_type type, enum collective_sum sum, size_t element_bytes,
                     const char *in, char *both, mpi_count n, MPI_Datatype of)
{
    MPI_Count bytes, low, extent;

    MPI_Type_size_x(of, &bytes);
    MPI_Type_get_extent_x(of, &low, &extent);
    if (bytes == extent) {
        bytes *= n;
        n = 1;
    }
    for (mpi_count i = 0; i < n; i++, in += extent, both += extent)
        the_reduce(type, sum, both, in, both, (uint64_t)bytes / element_bytes);
}

typedef void sum_fn(void *in, void *both, mpi_count *n, MPI_Datatype *of);

#define OWN_SUM(name, type, sum, bytes)                                                            \
    static void name(void *in, void *both, mpi_count *n, MPI_Datatype *of)                         \
    {                                                                                              \
        sum_each(type, sum, bytes, in, both, *n, *of);                                             \
    }
#define OWN_SUMS(name, type, bytes)                                                                \
    OWN_SUM(name##_sum, type, COLLECTIVE_SUM, bytes)                                               \
    OWN_SUM(name##_max, type, COLLECTIVE_MAX, bytes)                                               \
    OWN_SUM(name##_min, type, COLLECTIVE_MIN, bytes)                                               \
    OWN_SUM(name##_prod, type, COLLECTIVE_PROD, bytes)
#define OWN_ALL(name)                                                                              \
    {                                                                                              \
        [COLLECTIVE_SUM] = name##_sum, [COLLECTIVE_MAX] = name##_max,                              \
        [COLLECTIVE_MIN] = name##_min, [COLLECTIVE_PROD] = name##_prod,                            \
    }
OWN_SUMS(f32, COLLECTIVE_F32, 4)
OWN_SUMS(f16, COLLECTIVE_F16, 2)
OWN_SUMS(bf16, COLLECTIVE_BF16, 2)
OWN_SUMS(f64, COLLECTIVE_F64, 8)
OWN_SUMS(i32, COLLECTIVE_I32, 4)
OWN_SUMS(i8, COLLECTIVE_I8, 1)
OWN_SUMS(i64, COLLECTIVE_I64, 8)

static int make_type(struct mpi_collective *c, const struct mpi_setup *s, char *error, size_t len)
{
    switch (s->point->type) {
    case COLLECTIVE_F32:
        c->type = MPI_FLOAT;
        return 0;
    case COLLECTIVE_F64:
        c->type = MPI_DOUBLE;
        return 0;
    case COLLECTIVE_I32:
        c->type = MPI_INT32_T;
        return 0;
    case COLLECTIVE_I8:
        c->type = MPI_INT8_T;
        return 0;
    case COLLECTIVE_I64:
        c->type = MPI_INT64_T;
        return 0;
    case COLLECTIVE_E4M3: /* moved, not summed */
    case COLLECTIVE_E5M2:
        c->type = MPI_BYTE;
        return 0;
    default: /* MPI 3 has no 16-bit floating point: two bytes */
        CHECK(MPI_Type_contiguous, 2, MPI_BYTE, &c->type);
        c->own_type = true;
        CHECK(MPI_Type_commit, &c->type);
        return 0;
    }
}

static int make_sum(struct mpi_collective *c, const struct mpi_setup *s, char *error, size_t len)
{
    static sum_fn *const functions[COLLECTIVE_TYPES][COLLECTIVE_SUMS] = {
        [COLLECTIVE_F32] = OWN_ALL(f32),   [COLLECTIVE_F16] = OWN_ALL(f16),
        [COLLECTIVE_BF16] = OWN_ALL(bf16), [COLLECTIVE_F64] = OWN_ALL(f64),
        [COLLECTIVE_I32] = OWN_ALL(i32),   [COLLECTIVE_I8] = OWN_ALL(i8),
        [COLLECTIVE_I64] = OWN_ALL(i64)};
    const MPI_Op mpis[COLLECTIVE_SUMS] = {[COLLECTIVE_SUM] = MPI_SUM,
                                          [COLLECTIVE_MAX] = MPI_MAX,
                                          [COLLECTIVE_MIN] = MPI_MIN,
                                          [COLLECTIVE_PROD] = MPI_PROD,
                                          [COLLECTIVE_AVG] = MPI_SUM}; /* refused before */
    bool parts = c->op == COLLECTIVE_REDUCE_SCATTER && s->point->count > c->most;

    c->sum = mpis[s->point->sum];
    if (!c->own_type && !parts)
        return 0;
    the_reduce = s->reduce;
    CHECK(LARGE(MPI_Op_create), functions[s->point->type][s->point->sum], 1, &c->sum);
    c->own_sum = true;
    return 0;
}

static int make_comm(struct mpi_collective *c, const struct mpi_setup *s, char *error, size_t len)
{
    int tag = (int)(s->point->seed % TAGS), ranks[WORLD_RANKS_MAX];
    MPI_Group world, group;

    for (unsigned i = 0; i < s->n; i++)
        ranks[i] = (int)s->members[i];
    CHECK(MPI_Comm_group, MPI_COMM_WORLD, &world);
    CHECK(MPI_Group_incl, world, (int)s->n, ranks, &group);
    CHECK(MPI_Comm_create_group, MPI_COMM_WORLD, group, tag, &c->comm);
    MPI_Group_free(&group);
    MPI_Group_free(&world);
    CHECK(MPI_Comm_set_errhandler, c->comm, MPI_ERRORS_RETURN);
    return 0;
}

/* The algorithm is fixed when the communicator is made. */
static int make_chosen(struct mpi_collective *c, const struct mpi_setup *s, char *error, size_t len)
{
    const char *asked = s->point->algorithm;
    int before = 0;
    int err = *asked ? mpi_control_choose(s, &before, error, len) : 0;

    if (err)
        return err;
    mpi_control_tell(c->op, *asked, c->told.algorithm, sizeof(c->told.algorithm));
    err = make_comm(c, s, error, len);
    struct control control;
    if (*asked && !open_control(&control, tuned[c->op])) {
        MPI_T_cvar_write(control.handle, &before);
        close_control(&control);
    }
    return err;
}

/* ---- Parts of calls ---- */

static unsigned blocks_of(const struct mpi_collective *c)
{
    bool blocks = c->op != COLLECTIVE_ALLREDUCE && c->op != COLLECTIVE_BROADCAST &&
                  c->op != COLLECTIVE_SEND_RECEIVE && c->op != COLLECTIVE_REDUCE;

    return blocks ? (unsigned)c->n : 1;
}

/* Elements of a block that one call takes, of a vector of `count`. An MPI may count all blocks of a
 * call in one int. */
static uint64_t part_of(const struct mpi_collective *c, uint64_t count)
{
    uint64_t part = (c->most / 2 + 1) / blocks_of(c);

    if (count <= c->most)
        return count / blocks_of(c);
    return part ? part : 1;
}

static size_t parts_of(const struct mpi_collective *c, uint64_t count)
{
    uint64_t block = count / blocks_of(c), part = part_of(c, count);

    return block > part ? (block + part - 1) / part : 1;
}

/* A part of each block: one element of a type that is as long as a block. */
static int make_part_type(struct part *p, MPI_Datatype element, MPI_Aint block_bytes, char *error,
                          size_t len)
{
    MPI_Datatype dense;

    CHECK(MPI_Type_contiguous, (int)p->count, element, &dense);
    int code = MPI_Type_create_resized(dense, 0, block_bytes, &p->type);
    MPI_Type_free(&dense);
    if (code != MPI_SUCCESS)
        return mpi_failed("MPI_Type_create_resized", code, error, len);
    p->own_type = true;
    p->count = 1;
    CHECK(MPI_Type_commit, &p->type);
    return 0;
}

/* Part number i of a call. */
static int make_part(struct mpi_collective *c, const struct mpi_call *call, size_t i,
                     struct part *p, char *error, size_t len)
{
    uint64_t block = call->count / blocks_of(c), part = part_of(c, call->count), first = i * part;
    uint64_t n = first + part < block ? part : block - first;

    *p = (struct part){.input = (char *)call->input + first * c->element_bytes,
                       .result = (char *)call->result + first * c->element_bytes,
                       .count = (mpi_count)n,
                       .type = c->type};
    if (n == block || blocks_of(c) == 1)
        return 0;
    return make_part_type(p, c->type, (MPI_Aint)(block * c->element_bytes), error, len);
}

static void describe(struct mpi_collective *c, uint64_t count)
{
    struct mpi_settings *set = &c->told.settings;

    mpi_control_detail(c->told.detail, sizeof(c->told.detail));
    mpi_control_text("pml", set->pml, sizeof(set->pml));
    mpi_control_text("btl", set->btl, sizeof(set->btl));
    mpi_control_text("mtl_ofi_provider_include", set->providers, sizeof(set->providers));
    size_t used = strlen(c->told.detail);
    if (c->own_sum && (c->op == COLLECTIVE_ALLREDUCE || c->op == COLLECTIVE_REDUCE_SCATTER ||
                       c->op == COLLECTIVE_REDUCE))
        used += (size_t)snprintf(c->told.detail + used, sizeof(c->told.detail) - used,
                                 ", sum of %s by plumb", c->own_type ? "16-bit numbers" : "parts");
    uint64_t part = part_of(c, count) * blocks_of(c);
    if (count > c->most && used < sizeof(c->told.detail))
        snprintf(c->told.detail + used, sizeof(c->told.detail) - used,
                 ", calls of %" PRIu64 " elements", part);
}

static void release(struct mpi_collective *c)
{
    if (c->n_requests) /* may still come: MPI writes to it */
        return;
    if (c->comm != MPI_COMM_NULL)
        MPI_Comm_free(&c->comm);
    for (unsigned i = 0; i < c->n_calls; i++) {
        for (size_t k = 0; k < c->calls[i].n; k++)
            if (c->calls[i].parts[k].own_type)
                MPI_Type_free(&c->calls[i].parts[k].type);
        free(c->calls[i].parts);
    }
    free(c->calls);
    if (c->own_sum)
        MPI_Op_free(&c->sum);
    if (c->own_type)
        MPI_Type_free(&c->type);
    free(c->requests);
    free(c);
}

static int open_collective(struct mpi_collective **out, const struct mpi_setup *s, char *error,
                           size_t len)
{
    struct mpi_collective *c = xcalloc(1, sizeof(*c));

    *out = NULL;
    c->comm = MPI_COMM_NULL;
    c->op = s->point->op;
    c->n = (int)s->n;
    c->me = (int)s->me;
    c->root = (int)s->point->root;
    c->in_place = s->point->in_place;
    c->element_bytes = s->element_bytes;
    c->copy = s->copy;
    c->copy_arg = s->copy_arg;
    c->most = most();
    c->requests = xcalloc(2 * parts_of(c, s->point->count), sizeof(*c->requests));
    int err = make_type(c, s, error, len);
    if (!err)
        err = make_sum(c, s, error, len);
    c->calls = xcalloc(s->n_calls, sizeof(*c->calls));
    for (; c->n_calls < s->n_calls && !err; c->n_calls++) {
        struct cut_call *call = &c->calls[c->n_calls];
        size_t parts = parts_of(c, s->calls[c->n_calls].count);
        *call = (struct cut_call){.of = s->calls[c->n_calls],
                                  .parts = xcalloc(parts, sizeof(*call->parts))};
        for (; call->n < parts && !err; call->n++)
            err = make_part(c, &call->of, call->n, &call->parts[call->n], error, len);
    }
    if (!err)
        err = make_chosen(c, s, error, len);
    if (err) {
        release(c);
        return err;
    }
    describe(c, s->point->count);
    *out = c;
    return 0;
}

/* Out of place, MPI_Bcast leaves the root's result to the root. */
static int finish_local(struct mpi_collective *c, const struct mpi_call *call, char *error,
                        size_t len)
{
    size_t bytes = call->count * c->element_bytes;

    if (c->op != COLLECTIVE_BROADCAST || c->in_place || c->me != c->root)
        return 0;
    if (!c->copy) {
        memcpy(call->result, call->input, bytes);
        return 0;
    }
    int err = c->copy(c->copy_arg, call->result, call->input, bytes);
    if (err)
        snprintf(error, len, "the root's own part cannot be copied");
    return err;
}

static void *broadcast_at(const struct mpi_collective *c, const struct part *p)
{
    return c->me == c->root && !c->in_place ? p->input : p->result;
}

/* Of reduce and gather, MPI_IN_PLACE is for the root alone: others send from the vector. */
static bool in_place_at(const struct mpi_collective *c)
{
    bool to_root = c->op == COLLECTIVE_REDUCE || c->op == COLLECTIVE_GATHER;

    return c->in_place && (c->me == c->root || !to_root);
}

static void *scattered_to(const struct mpi_collective *c, const struct part *p)
{
    return c->in_place && c->me == c->root ? MPI_IN_PLACE : p->result;
}

static int neighbour(const struct mpi_collective *c, int step)
{
    return (c->me + step + c->n) % c->n;
}

static int call_blocking(const struct mpi_collective *c, const struct part *p)
{
    const void *from = in_place_at(c) ? MPI_IN_PLACE : p->input;
    mpi_count n = p->count;
    MPI_Datatype of = p->type;

    switch (c->op) {
    case COLLECTIVE_ALLREDUCE:
        return LARGE(MPI_Allreduce)(from, p->result, n, of, c->sum, c->comm);
    case COLLECTIVE_REDUCE_SCATTER:
        return LARGE(MPI_Reduce_scatter_block)(from, p->result, n, of, c->sum, c->comm);
    case COLLECTIVE_ALL_GATHER:
        return LARGE(MPI_Allgather)(from, n, of, p->result, n, of, c->comm);
    case COLLECTIVE_BROADCAST:
        return LARGE(MPI_Bcast)(broadcast_at(c, p), n, of, c->root, c->comm);
    case COLLECTIVE_ALL_TO_ALL:
        return LARGE(MPI_Alltoall)(from, n, of, p->result, n, of, c->comm);
    case COLLECTIVE_REDUCE:
        return LARGE(MPI_Reduce)(from, p->result, n, of, c->sum, c->root, c->comm);
    case COLLECTIVE_GATHER:
        return LARGE(MPI_Gather)(from, n, of, p->result, n, of, c->root, c->comm);
    case COLLECTIVE_SCATTER:
        return LARGE(MPI_Scatter)(p->input, n, of, scattered_to(c, p), n, of, c->root, c->comm);
    default:
        return LARGE(MPI_Sendrecv)(p->input, n, of, neighbour(c, 1), 0, p->result, n, of,
                                   neighbour(c, -1), 0, c->comm, MPI_STATUS_IGNORE);
    }
}

/* NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker): test() waits for them */
/* To the next, from the one before; without the first request there is no second. */
static int pass_on(const struct mpi_collective *c, const struct part *p, MPI_Request *r)
{
    int code = LARGE(MPI_Irecv)(p->result, p->count, p->type, neighbour(c, -1), 0, c->comm, &r[0]);

    return code == MPI_SUCCESS
               ? LARGE(MPI_Isend)(p->input, p->count, p->type, neighbour(c, 1), 0, c->comm, &r[1])
               : code;
}

static int call_begun(const struct mpi_collective *c, const struct part *p, MPI_Request *r)
{
    const void *from = in_place_at(c) ? MPI_IN_PLACE : p->input;
    mpi_count n = p->count;
    MPI_Datatype of = p->type;

    switch (c->op) {
    case COLLECTIVE_ALLREDUCE:
        return LARGE(MPI_Iallreduce)(from, p->result, n, of, c->sum, c->comm, r);
    case COLLECTIVE_REDUCE_SCATTER:
        return LARGE(MPI_Ireduce_scatter_block)(from, p->result, n, of, c->sum, c->comm, r);
    case COLLECTIVE_ALL_GATHER:
        return LARGE(MPI_Iallgather)(from, n, of, p->result, n, of, c->comm, r);
    case COLLECTIVE_BROADCAST:
        return LARGE(MPI_Ibcast)(broadcast_at(c, p), n, of, c->root, c->comm, r);
    case COLLECTIVE_ALL_TO_ALL:
        return LARGE(MPI_Ialltoall)(from, n, of, p->result, n, of, c->comm, r);
    case COLLECTIVE_REDUCE:
        return LARGE(MPI_Ireduce)(from, p->result, n, of, c->sum, c->root, c->comm, r);
    case COLLECTIVE_GATHER:
        return LARGE(MPI_Igather)(from, n, of, p->result, n, of, c->root, c->comm, r);
    case COLLECTIVE_SCATTER:
        return LARGE(MPI_Iscatter)(p->input, n, of, scattered_to(c, p), n, of, c->root, c->comm, r);
    default:
        return pass_on(c, p, r);
    }
}

static int made(const struct mpi_collective *c, int code, char *error, size_t len)
{
    return code == MPI_SUCCESS ? 0 : mpi_failed(calls[c->op], code, error, len);
}

static int run(struct mpi_collective *c, unsigned number, uint64_t times, char *error, size_t len)
{
    const struct cut_call *call = &c->calls[number];
    int err = 0;

    for (uint64_t t = 0; t < times && !err; t++) {
        for (size_t i = 0; i < call->n && !err; i++)
            err = made(c, call_blocking(c, &call->parts[i]), error, len);
        if (!err)
            err = finish_local(c, &call->of, error, len);
    }
    return err;
}

static int start(struct mpi_collective *c, unsigned number, char *error, size_t len)
{
    const struct cut_call *call = &c->calls[number];
    int err = c->copy ? mpi_cuda_may_start(c->op, error, len) : 0;

    if (err)
        return err;
    c->n_requests = 2 * (unsigned)call->n;
    for (unsigned i = 0; i < c->n_requests; i++)
        c->requests[i] = MPI_REQUEST_NULL;
    c->local = &call->of;
    c->round = 0;
    for (size_t i = 0; i < call->n && !err; i++)
        err = made(c, call_begun(c, &call->parts[i], &c->requests[2 * i]), error, len);
    return err;
}

/* From the rank so far behind this one, to the rank so far before it. */
static int barrier_round(struct mpi_collective *c, char *error, size_t len)
{
    c->n_requests = 2;
    c->requests[0] = c->requests[1] = MPI_REQUEST_NULL;
    CHECK(MPI_Irecv, NULL, 0, MPI_BYTE, neighbour(c, -c->round), BARRIER_TAG, c->comm,
          &c->requests[0]);
    CHECK(MPI_Isend, NULL, 0, MPI_BYTE, neighbour(c, c->round), BARRIER_TAG, c->comm,
          &c->requests[1]);
    return 0;
}

/* By dissemination, of messages: after one MPI_Ibarrier, Open MPI asks its component for operations
 * that do not block in all that it waits for, which makes an allreduce of 8 bytes 7 % longer
 * (4.1.4). */
static int barrier(struct mpi_collective *c, char *error, size_t len)
{
    c->local = NULL;
    c->round = 1;
    return c->round < c->n ? barrier_round(c, error, len) : 0;
}

/* NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker) */

static int align(struct mpi_collective *c, char *error, size_t len)
{
    CHECK(MPI_Barrier, c->comm);
    return 0;
}

static int test(struct mpi_collective *c, bool *done, char *error, size_t len)
{
    int one = 1;

    for (unsigned i = 0; i < c->n_requests && one; i++)
        CHECK(MPI_Test, &c->requests[i], &one, MPI_STATUS_IGNORE);
    *done = one;
    if (!one)
        return 0;
    c->n_requests = 0;
    c->round *= 2;
    if (c->round && c->round < c->n) {
        *done = false;
        return barrier_round(c, error, len);
    }
    const struct mpi_call *local = c->local;
    c->local = NULL;
    return local ? finish_local(c, local, error, len) : 0;
}

static void tell(const struct mpi_collective *c, struct mpi_given *told)
{
    *told = c->told;
}

const struct mpi_collectives mpi_collectives = {
    .most = most,
    .open = open_collective,
    .close = release,
    .run = run,
    .start = start,
    .barrier = barrier,
    .align = align,
    .test = test,
    .tell = tell,
};
