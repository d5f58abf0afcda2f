/* SPDX-License-Identifier: Apache-2.0 */
/* Files of /proc and /sys: see sys.h. */
#include "core/hw/sys.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/alloc.h"

/* ---- Opening ---- */

enum { TRIES = 1000 }; /* openat2() says EAGAIN where something was renamed meanwhile */

/* The descriptor of what the path leads to, or -errno. */
static int open_below(int top, bool live, const char *path, int flags)
{
    struct open_how how = {.flags = (unsigned)flags | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT};
    int fd = -1;

    if (top < 0)
        return top;
    for (int i = 0; i < TRIES && fd < 0 && (!i || errno == EAGAIN); i++)
        fd = live ? openat(top, path, flags | O_CLOEXEC)
                  : (int)syscall(SYS_openat2, top, path, &how, sizeof(how));
    return fd < 0 ? -errno : fd;
}

static int open_top(const char *root)
{
    int top = open(root && *root ? root : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);

    return top < 0 ? -errno : top;
}

static int open_path(const char *root, int flags, const char *format, va_list args)
{
    char path[SYS_PATH];
    int top, fd;

    if (vsnprintf(path, sizeof(path), format, args) >= (int)sizeof(path))
        return -ENAMETOOLONG;
    top = open_top(root);
    fd = open_below(top, !root || !*root, path, flags);
    if (top >= 0)
        close(top);
    return fd;
}

#define OPEN(fd, flags)                                                                            \
    int fd;                                                                                        \
    do {                                                                                           \
        va_list args;                                                                              \
        va_start(args, format);                                                                    \
        fd = open_path(root, flags, format, args);                                                 \
        va_end(args);                                                                              \
    } while (0)

/* Opens for reading what `place` (O_PATH) is, and closes that. What is no regular file is not
 * opened: opening a device may already do something. */
static int open_regular(int place)
{
    char path[32];
    struct stat st;
    int fd = -EINVAL;

    if (place < 0)
        return place;
    if (!fstat(place, &st) && S_ISREG(st.st_mode)) {
        snprintf(path, sizeof(path), "/proc/self/fd/%d", place);
        fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        fd = fd < 0 ? -errno : fd;
    }
    close(place);
    return fd;
}

/* ---- What is there ---- */

/* Where a descriptor is. 0 or -errno. */
static int place_of(int fd, char *path, size_t size)
{
    char link[32];
    ssize_t n;

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    n = readlink(link, path, size);
    if (n < 0)
        return -errno;
    if ((size_t)n >= size)
        return -ENAMETOOLONG;
    path[n] = '\0';
    return 0;
}

int sys_resolve(const char *root, char *path, size_t size, const char *format, ...)
{
    char top[PATH_MAX], real[PATH_MAX];
    int top_fd = open_top(root), rc = top_fd < 0 ? top_fd : place_of(top_fd, top, sizeof(top));
    size_t n = rc || !strcmp(top, "/") ? 0 : strlen(top);

    OPEN(fd, O_PATH);
    if (!rc)
        rc = fd < 0 ? fd : place_of(fd, real, sizeof(real));
    if (!rc && (size_t)snprintf(path, size, "%s", real + n + (real[n] == '/')) >= size)
        rc = -ENAMETOOLONG;
    if (fd >= 0)
        close(fd);
    if (top_fd >= 0)
        close(top_fd);
    return rc;
}

int sys_stat(const char *root, struct stat *st, const char *format, ...)
{
    int rc = 0;

    OPEN(fd, O_PATH);
    if (fd < 0)
        return fd;
    if (fstat(fd, st))
        rc = -errno;
    close(fd);
    return rc;
}

bool sys_exists(const char *root, const char *format, ...)
{
    OPEN(fd, O_PATH);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* Names with odd bytes are left out: no kernel makes them, and they would reach a terminal. */
static bool name_is_plain(const char *name)
{
    if (name[0] == '.' || strlen(name) >= SYS_LINE)
        return false;
    for (; *name; name++)
        if (!isgraph((unsigned char)*name))
            return false;
    return true;
}

int sys_link(const char *root, char *name, size_t size, const char *format, ...)
{
    char target[SYS_PATH];
    const char *last;
    ssize_t n;

    OPEN(fd, O_PATH | O_NOFOLLOW);
    name[0] = '\0';
    if (fd < 0)
        return fd;
    n = readlinkat(fd, "", target, sizeof(target) - 1);
    close(fd);
    target[n < 0 ? 0 : n] = '\0';
    last = strrchr(target, '/');
    last = last ? last + 1 : target;
    if (!*last || strlen(last) >= size || !name_is_plain(last))
        return -EINVAL;
    strcpy(name, last);
    return 0;
}

void names_add(struct names *names, const char *name)
{
    *ARRAY_ADD(names->name, names->count) = xstrdup(name);
}

void names_free(struct names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->name[i]);
    free(names->name);
    *names = (struct names){0};
}

static int by_version(const void *a, const void *b)
{
    return strverscmp(*(char *const *)a, *(char *const *)b);
}

int sys_list(const char *root, struct names *names, const char *format, ...)
{
    struct dirent *entry;
    DIR *dir;

    OPEN(fd, O_RDONLY | O_DIRECTORY);
    *names = (struct names){0};
    if (fd < 0)
        return fd;
    dir = fdopendir(fd);
    if (!dir)
        alloc_fail(1);
    while (names->count < SYS_NAMES && (entry = readdir(dir)))
        if (name_is_plain(entry->d_name))
            names_add(names, entry->d_name);
    closedir(dir);
    if (names->count)
        qsort(names->name, names->count, sizeof(*names->name), by_version);
    return 0;
}

/* ---- What it holds ---- */

/* Closes the descriptor, which may be -errno. */
static int read_all(int fd, char *buf, size_t size, size_t *length)
{
    size_t n = 0;
    ssize_t got = 1;

    while (fd >= 0 && n < size - 1 && got) {
        got = read(fd, buf + n, size - 1 - n);
        if (got < 0 && errno != EINTR)
            break;
        n += got > 0 ? (size_t)got : 0;
    }
    int rc = fd < 0 ? fd : got < 0 ? -errno : 0;
    if (fd >= 0)
        close(fd);
    buf[n] = '\0';
    if (length)
        *length = n;
    return rc;
}

int sys_read(const char *root, char *buf, size_t size, size_t *length, const char *format, ...)
{
    OPEN(place, O_PATH);
    return read_all(open_regular(place), buf, size, length);
}

static int read_line(int place, char *buf, size_t size)
{
    char text[SYS_LINE];
    int rc = read_all(open_regular(place), text, sizeof(text), NULL);
    char *start = text + strspn(text, " \t");
    size_t n = strcspn(start, "\n");

    buf[0] = '\0';
    if (rc)
        return rc;
    while (n && isspace((unsigned char)start[n - 1]))
        n--;
    if (n >= size)
        n = size - 1;
    for (size_t i = 0; i < n; i++)
        buf[i] = start[i] >= ' ' && start[i] <= '~' ? start[i] : '?';
    buf[n] = '\0';
    return n ? 0 : -ENODATA;
}

int sys_line(const char *root, char *buf, size_t size, const char *format, ...)
{
    OPEN(place, O_PATH);
    return read_line(place, buf, size);
}

int sys_number(const char *root, long long *value, const char *format, ...)
{
    char buf[64], *end;

    OPEN(place, O_PATH);
    int rc = read_line(place, buf, sizeof(buf));
    if (rc)
        return rc;
    errno = 0;
    *value = strtoll(buf, &end, strncmp(buf, "0x", 2) ? 10 : 16);
    return end == buf || *end || errno ? -EINVAL : 0;
}

int sys_counter(const char *root, uint64_t *value, const char *format, ...)
{
    char buf[64], *end;

    OPEN(place, O_PATH);
    int rc = read_line(place, buf, sizeof(buf));
    if (rc)
        return rc;
    errno = 0;
    *value = strtoull(buf, &end, 10);
    return errno || *end || !isdigit((unsigned char)buf[0]) ? -EINVAL : 0;
}

FILE *sys_open(const char *root, const char *format, ...)
{
    OPEN(place, O_PATH);
    int fd = open_regular(place);

    return fd < 0 ? NULL : fdopen(fd, "r");
}
