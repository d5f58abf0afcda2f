/* SPDX-License-Identifier: Apache-2.0 */
/* A second instance of a library: see private_copy.h. */
#include "core/blas/private_copy.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

static int copy_all(int from, int to)
{
    struct stat st;

    if (fstat(from, &st))
        return -errno;
    for (off_t at = 0; at < st.st_size;) {
        ssize_t n = sendfile(to, from, &at, (size_t)(st.st_size - at));
        if (n < 0 && errno != EINTR)
            return -errno;
        if (!n)
            return -EIO; /* it has become shorter */
    }
    return 0;
}

/* The DT_SONAME of a loaded library, or NULL. */
static const char *soname_of(const struct link_map *map)
{
    const char *strings = NULL;
    const ElfW(Dyn) *name = NULL;

    for (const ElfW(Dyn) *d = map->l_ld; d->d_tag != DT_NULL; d++) {
        if (d->d_tag == DT_STRTAB)
            strings = (const char *)d->d_un.d_ptr; /* glibc has relocated it */
        else if (d->d_tag == DT_SONAME)
            name = d;
    }
    return strings && name ? strings + name->d_un.d_val : NULL;
}

/* Changes the first letter of the name wherever it stands as a string of its own. */
static int rename_in(int fd, const char *soname)
{
    struct stat st;
    size_t len = strlen(soname) + 1; /* with its end */

    if (fstat(fd, &st))
        return -errno;
    char *data = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (data == MAP_FAILED)
        return -errno;
    char *at = data, *end = data + st.st_size;
    while ((at = memmem(at, (size_t)(end - at), soname, len)) != NULL) {
        if (at > data && !at[-1])
            *at = '_';
        at += len;
    }
    munmap(data, (size_t)st.st_size);
    return 0;
}

/* The copy's descriptor, or -errno. */
static int copy_file(const char *path, const char *soname)
{
    int from = open(path, O_RDONLY | O_CLOEXEC);
    int to = from < 0 ? -1 : memfd_create("plumb-library", MFD_CLOEXEC);
    int err = to < 0 ? -errno : copy_all(from, to);

    if (!err && soname)
        err = rename_in(to, soname);

    if (from >= 0)
        close(from);
    if (err && to >= 0)
        close(to);
    return err ? err : to;
}

static void *open_with(const char *path, const char *name, const char *value)
{
    const char *had = getenv(name);
    char *old = had ? strdup(had) : NULL;

    setenv(name, value, 1);
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (old)
        setenv(name, old, 1);
    else
        unsetenv(name);
    free(old);
    return handle;
}

void *private_copy_open(const void *symbol, const char *name, const char *value, int *err,
                        const char **why)
{
    struct link_map *map = NULL;
    Dl_info info;
    char path[64];
    void *handle = NULL;

    *err = -ENODEV;
    *why = "the loader does not know its file";
    if (!dladdr1(symbol, &info, (void **)&map, RTLD_DL_LINKMAP) || !info.dli_fname || !map)
        return NULL;
    int fd = copy_file(info.dli_fname, soname_of(map));
    if (fd < 0) {
        *err = fd;
        *why = strerror(-fd);
        return NULL;
    }
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    handle = open_with(path, name, value);
    if (handle) { /* fd stays open: another file under this name would be taken for this library */
        *err = 0;
        return handle;
    }
    close(fd);
    *why = dlerror();
    if (!*why)
        *why = "unknown error";
    return NULL;
}
