/* SPDX-License-Identifier: Apache-2.0 */
/* The library's own variables, by MPI's tool interface: which algorithm is forced, and forcing one. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/group/mpi/mpi_check.h"

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
};
static const char *const mpich[COLLECTIVE_OPS] = {
    "MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM", "MPIR_CVAR_REDUCE_SCATTER_BLOCK_INTRA_ALGORITHM",
    "MPIR_CVAR_ALLGATHER_INTRA_ALGORITHM", "MPIR_CVAR_BCAST_INTRA_ALGORITHM",
    "MPIR_CVAR_ALLTOALL_INTRA_ALGORITHM",  NULL,
};

/* Open MPI looks at a forced algorithm only where this is on, and it cannot be switched on later. With nothing forced and no
 * file of rules the library's choice is the same. */
int mpi_control_prepare(char *error, size_t len)
{
    int level;

    setenv("OMPI_MCA_coll_tuned_use_dynamic_rules", "1", 0);
    int code = MPI_T_init_thread(MPI_THREAD_SERIALIZED, &level);
    if (code == MPI_SUCCESS)
        return 0;
    /* MPICH would go on to MPI_Init, and crash there. There is no text to be had of an error yet. */
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

/* All names but the one for none. */
static void say_names(const struct control *c, const char *asked, char *error, size_t len)
{
    char text[NAME_BYTES];
    int used = snprintf(error, len, "no such algorithm: '%.48s'; this MPI has", asked);

    for (int i = 1; name_of(c, i, text, sizeof(text)) && used > 0 && (size_t)used < len; i++)
        used += snprintf(error + used, len - (size_t)used, "%s %s", i > 1 ? "," : "", text);
}

static int value_of(const struct control *c, const char *algorithm)
{
    char text[NAME_BYTES];

    for (int i = 1; name_of(c, i, text, sizeof(text)); i++)
        if (!strcmp(text, algorithm))
            return i;
    return -1;
}

int mpi_control_choose(const struct mpi_setup *setup, int *before, char *error, size_t len)
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
    if (value < 0) {
        say_names(&c, algorithm, error, len);
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

void mpi_control_restore(enum collective_op op, int before)
{
    struct control c;

    if (open_control(&c, tuned[op]))
        return;
    MPI_T_cvar_write(c.handle, &before);
    close_control(&c);
}

/* What MPICH's variable holds: a name, or from version 4 on a number of which it does not tell the name; then the environment has
 * it. False where it is none: "auto", the first of them. */
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

/* There is no way to ask which one a call took: only what was forced can be told. MPICH falls back without a word where what was asked for cannot
 * be done. */
void mpi_control_tell(enum collective_op op, bool asked, char *text, size_t len)
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

/* What decides which wire it takes, as far as it was set: in its own settings, and in those of the layers below. */
void mpi_control_detail(char *text, size_t len)
{
    static const char *const names[] = {
        "pml", "btl", "btl_tcp_flags", "btl_tcp_if_include", "mtl_ofi_provider_include", "coll"};
    static const char *const below[] = {"UCX_TLS", "UCX_NET_DEVICES", "FI_PROVIDER"};
    char value[TEXT_BYTES];

    mpi_version(text, len);
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        add(text, len, names[i], mpi_control_text(names[i], value, sizeof(value)));
    add(text, len, "device", mpi_device(value, sizeof(value)));
    for (size_t i = 0; i < sizeof(below) / sizeof(*below); i++)
        add(text, len, below[i], getenv(below[i]));
}
