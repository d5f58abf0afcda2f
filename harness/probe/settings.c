/* SPDX-License-Identifier: Apache-2.0 */
/* The variables of the environment that steer libraries: see probe.h. */
#include <stdbool.h>
#include <string.h>

#include "harness/probe/probe.h"

/* By what their names begin with; those without a '_' at their end are names. The rest of the environment may hold secrets,
 * and is not looked at. */
static const char *const steering[] = {"OMP_",
                                       "GOMP_",
                                       "KMP_",
                                       "MKL_",
                                       "ONEDNN_",
                                       "DNNL_",
                                       "OPENBLAS_",
                                       "GOTO_",
                                       "BLIS_",
                                       "NVPL_",
                                       "CUDA_",
                                       "CUBLAS_",
                                       "CUDNN_",
                                       "NVIDIA_TF32_OVERRIDE",
                                       "NCCL_",
                                       "NVSHMEM_",
                                       "UCX_",
                                       "UCC_",
                                       "FI_",
                                       "I_MPI_",
                                       "MPICH_",
                                       "MV2_",
                                       "IBV_",
                                       "MLX5_",
                                       "RDMAV_",
                                       "GLIBC_TUNABLES",
                                       "MALLOC_",
                                       "LD_PRELOAD",
                                       "LD_LIBRARY_PATH"};

/* Open MPI's own launcher sets more of these, other ones every time. */
static const char *const steering_mpi[] = {"OMPI_MCA_btl",  "OMPI_MCA_pml", "OMPI_MCA_mtl",
                                           "OMPI_MCA_coll", "OMPI_MCA_osc", "OMPI_MCA_opal",
                                           "OMPI_MCA_mpi"};

/* Not these: what no run folder is to hold, and which of the same devices a job was given this time. */
static const char *const left_out[] = {"SECRET", "TOKEN",      "PASSWORD",
                                       "PASSWD", "CREDENTIAL", "VISIBLE_DEVICES"};

#define VALUE_MAX 1024

static bool begins(const char *variable, const char *name)
{
    size_t n = strlen(name);

    return !strncmp(variable, name, n) && (name[n - 1] == '_' || variable[n] == '=');
}

static bool is_steering(const char *variable)
{
    for (size_t i = 0; i < sizeof(steering) / sizeof(*steering); i++)
        if (begins(variable, steering[i]))
            return true;
    for (size_t i = 0; i < sizeof(steering_mpi) / sizeof(*steering_mpi); i++)
        if (!strncmp(variable, steering_mpi[i], strlen(steering_mpi[i])))
            return true;
    return false;
}

static bool is_left_out(const char *name)
{
    for (size_t i = 0; i < sizeof(left_out) / sizeof(*left_out); i++)
        if (strcasestr(name, left_out[i]))
            return true;
    return false;
}

static void set(json_t *settings, const char *variable)
{
    const char *value = strchr(variable, '=');
    char name[128];

    if (!value || (size_t)(value - variable) >= sizeof(name))
        return;
    memcpy(name, variable, (size_t)(value - variable));
    name[value - variable] = '\0';
    if (is_left_out(name))
        return;
    /* Bytes that are no UTF-8 are no text of JSON. */
    json_t *text = json_stringn(value + 1, strnlen(value + 1, VALUE_MAX));
    json_object_set_new(settings, name, text ? text : json_string("(not UTF-8)"));
}

json_t *probe_settings(const char *const *variables)
{
    json_t *settings = json_object();

    for (; settings && variables && *variables; variables++)
        if (is_steering(*variables))
            set(settings, *variables);
    return settings;
}
