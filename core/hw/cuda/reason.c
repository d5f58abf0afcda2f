/* SPDX-License-Identifier: Apache-2.0 */
/* Why there is no CUDA here, and what to do: see reason.h. */
#include "core/hw/cuda/reason.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/hw/cuda/driver.h"

#define CONTAINER "in a container: start it with its GPUs (--gpus all, by nvidia-container-toolkit)"

static const char *root(void)
{
    const char *set = getenv("PLUMB_SYSROOT");

    return set ? set : "";
}

static bool exists(const char *path)
{
    char full[PATH_MAX];

    snprintf(full, sizeof(full), "%s%s", root(), path);
    return access(full, F_OK) == 0;
}

static bool kernel_driver(void)
{
    return exists("/proc/driver/nvidia/version") || exists("/sys/module/nvidia");
}

/* The first number in a file of /sys; -1 where there is none. */
static long number_in(const char *folder, const char *device, const char *file)
{
    char full[PATH_MAX];
    long value = -1;

    snprintf(full, sizeof(full), "%s/%s/%s", folder, device, file);
    FILE *f = fopen(full, "re");
    if (!f)
        return -1;
    if (fscanf(f, "%li", &value) != 1)
        value = -1;
    fclose(f);
    return value;
}

/* Does PCI show a display or 3D controller of NVIDIA's? */
static bool gpu_on_pci(void)
{
    char folder[PATH_MAX];
    const struct dirent *entry;
    bool found = false;

    snprintf(folder, sizeof(folder), "%s/sys/bus/pci/devices", root());
    DIR *dir = opendir(folder);
    while (dir && !found && (entry = readdir(dir)))
        found = number_in(folder, entry->d_name, "vendor") == 0x10de &&
                number_in(folder, entry->d_name, "class") >> 16 == 0x03;
    if (dir)
        closedir(dir);
    return found;
}

/* Why a device node cannot be opened: 0, or -errno. */
static int node_error(const char *path, gid_t *group)
{
    char full[PATH_MAX];
    struct stat st;

    snprintf(full, sizeof(full), "%s%s", root(), path);
    *group = stat(full, &st) ? (gid_t)-1 : st.st_gid;
    int fd = open(full, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    close(fd);
    return 0;
}

static void no_permission(const char *node, int err, gid_t gid, char *error, size_t len)
{
    const struct group *group = getgrgid(gid);

    if (err == -EPERM)
        snprintf(error, len,
                 "no permission to open '%s': this container's or service's device rules forbid "
                 "it; " CONTAINER,
                 node);
    else
        snprintf(error, len,
                 "no permission to open '%s': its group is '%s'; join it (usermod -aG GROUP USER, "
                 "then log in again), or let the administrator open it; in a container: --gpus all",
                 node, group ? group->gr_name : "unknown");
}

/* Nodes that cannot be opened, in the order that the driver opens them. Says so and returns true. */
static bool nodes_explain(char *error, size_t len)
{
    static const char *const nodes[] = {"/dev/nvidiactl", "/dev/nvidia0", "/dev/nvidia-uvm"};
    gid_t group;

    for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++) {
        int err = node_error(nodes[i], &group);
        if (err == -EACCES || err == -EPERM)
            no_permission(nodes[i], err, group, error, len);
        else if (err == -ENOENT && i != 1) /* a container may have another GPU than the first */
            snprintf(error, len,
                     "there is no '%s', though the kernel has NVIDIA's driver: run nvidia-modprobe "
                     "-c 0 -u as root; " CONTAINER,
                     nodes[i]);
        else
            continue;
        return true;
    }
    return false;
}

void cuda_reason_library(const char *said, char *error, size_t len)
{
    const char *given = getenv("PLUMB_LIBCUDA");

    if (given && *given)
        snprintf(error, len, "the CUDA driver named by PLUMB_LIBCUDA does not load: %.200s", said);
    else if (!strstr(said, "libcuda.so.1: cannot open shared object file"))
        snprintf(error, len, "the CUDA driver does not load: %.200s", said);
    else if (kernel_driver())
        snprintf(
            error, len,
            "libcuda.so.1 is not here, though the kernel has NVIDIA's driver: install the "
            "driver's CUDA library (libcuda1, libnvidia-compute); in a container: --gpus all and "
            "NVIDIA_DRIVER_CAPABILITIES=compute,utility");
    else if (gpu_on_pci())
        snprintf(
            error, len,
            "no CUDA driver (libcuda.so.1), though there is a GPU of NVIDIA's: install NVIDIA's "
            "driver; " CONTAINER);
    else
        snprintf(error, len,
                 "no CUDA driver (libcuda.so.1), and PCI shows no GPU of NVIDIA's: where there is "
                 "one, install NVIDIA's driver; " CONTAINER);
}

/* Codes whose own meaning says what to do, whatever the machine's files tell. */
static const char *init_remedy(int code)
{
    switch (code) {
    case CUDA_ERROR_STUB_LIBRARY:
        return "the libcuda.so.1 that was found is the toolkit's stub, to link with: take its "
               "folder "
               "out of LD_LIBRARY_PATH and install NVIDIA's driver";
    case CUDA_ERROR_SYSTEM_NOT_READY:
        return "the GPUs' switches are not set up: start nvidia-fabricmanager (systemctl status "
               "nvidia-fabricmanager), of the driver's own version";
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
        return "the driver's library and its kernel module are of different versions: load the "
               "module "
               "anew or restart the machine";
    case CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE:
        return "this GPU does not run with the forward-compatible libcuda.so.1 of cuda-compat: "
               "take "
               "its folder out of LD_LIBRARY_PATH, or install a newer driver";
    case CUDA_ERROR_DEVICE_NOT_LICENSED:
        return "this vGPU has no licence: nvidia-smi -q | grep -i licen, systemctl status "
               "nvidia-gridd";
    case CUDA_ERROR_MPS_CONNECTION_FAILED:
    case CUDA_ERROR_MPS_SERVER_NOT_READY:
        return "the MPS server does not answer: start nvidia-cuda-mps-control -d, or unset "
               "CUDA_MPS_PIPE_DIRECTORY";
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
        return "another process has the GPU for itself, or its compute mode forbids all: "
               "nvidia-smi "
               "-q -d COMPUTE";
    case CUDA_RESULT_NEEDS_NEWER_DRIVER:
        return "install a newer driver of NVIDIA's";
    default:
        return NULL;
    }
}

void cuda_reason_init(int code, const char *said, char *error, size_t len)
{
    const char *remedy = init_remedy(code), *visible = getenv("CUDA_VISIBLE_DEVICES");

    if (remedy)
        snprintf(error, len, "cuInit: %.100s: %s", said, remedy);
    else if (code == CUDA_ERROR_NO_DEVICE && visible)
        snprintf(error, len, "CUDA_VISIBLE_DEVICES='%.60s' hides all GPUs: unset it, or name one",
                 visible);
    else if (!kernel_driver() && !exists("/dev/nvidiactl"))
        snprintf(
            error, len,
            "cuInit: %.100s: NVIDIA's kernel driver is not loaded: modprobe nvidia (dmesg says why "
            "it does not load)%s",
            said, gpu_on_pci() ? "" : "; PCI shows no GPU of NVIDIA's");
    else if (!nodes_explain(error, len))
        snprintf(
            error, len,
            "cuInit: %.100s: nvidia-smi -L lists the GPUs that the driver has; the kernel's log "
            "(dmesg | grep -iE 'nvrm|xid') says what is wrong with one",
            said);
}

/* The oldest driver that runs programs of a major version of CUDA (its release notes, table of
 * drivers: minor version compatibility). */
static const char *oldest_driver(int major)
{
    return major == 11 ? "450" : major == 12 ? "525" : major == 13 ? "580" : "that came with it";
}

void cuda_reason_version(int driver, int build, char *error, size_t len)
{
    snprintf(
        error, len,
        "the driver supports CUDA %d.%d, this build needs %d.0: install driver %s or newer, or "
        "build with an older CUDA toolkit",
        driver / 1000, driver % 1000 / 10, build / 1000, oldest_driver(build / 1000));
}
