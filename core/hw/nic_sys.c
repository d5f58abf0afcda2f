/* SPDX-License-Identifier: Apache-2.0 */
/* Small files of /proc and /sys: see nic_sys.h. */
#include "core/hw/nic_sys.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct full {
    char path[SYS_PATH];
};

/* "" where it is too long: no such file. */
static struct full full_path(const char *root, const char *format, va_list args)
{
    struct full f;
    int n = snprintf(f.path, sizeof(f.path), "%s/", root ? root : "");

    if (n < 0 || (size_t)n >= sizeof(f.path) ||
        vsnprintf(f.path + n, sizeof(f.path) - (size_t)n, format, args) >=
            (int)(sizeof(f.path) - (size_t)n))
        f.path[0] = '\0';
    return f;
}

#define FULL(f)                                                                                    \
    struct full f;                                                                                 \
    do {                                                                                           \
        va_list args;                                                                              \
        va_start(args, format);                                                                    \
        f = full_path(root, format, args);                                                         \
        va_end(args);                                                                              \
    } while (0)

static int read_line(const char *path, char *text, size_t len)
{
    char line[512];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t got;
    size_t n;

    text[0] = '\0';
    if (fd < 0)
        return -errno;
    got = read(fd, line, sizeof(line) - 1);
    n = got < 0 ? (size_t)errno : (size_t)got;
    close(fd);
    if (got < 0)
        return -(int)n;
    line[n] = '\0';
    line[strcspn(line, "\n")] = '\0';
    const char *begin = line + strspn(line, " \t");
    n = strlen(begin);
    while (n && isspace((unsigned char)begin[n - 1]))
        n--;
    snprintf(text, len, "%.*s", (int)n, begin);
    return n ? 0 : -ENODATA;
}

int sys_line(const char *root, char *text, size_t len, const char *format, ...)
{
    FULL(f);
    return read_line(f.path, text, len);
}

int sys_number(const char *root, long long *value, const char *format, ...)
{
    char text[64], *end;

    FULL(f);
    int rc = read_line(f.path, text, sizeof(text));
    if (rc)
        return rc;
    errno = 0;
    *value = strtoll(text, &end, 0);
    return errno || *end ? -EINVAL : 0;
}

int sys_counter(const char *root, uint64_t *value, const char *format, ...)
{
    char text[64], *end;

    FULL(f);
    int rc = read_line(f.path, text, sizeof(text));
    if (rc)
        return rc;
    errno = 0;
    *value = strtoull(text, &end, 10);
    return errno || *end || !isdigit((unsigned char)text[0]) ? -EINVAL : 0;
}

static int read_link(const char *path, char *target, size_t len)
{
    ssize_t n = readlink(path, target, len - 1);

    target[n < 0 ? 0 : n] = '\0';
    if (n < 0)
        return -errno;
    return n == (ssize_t)len - 1 ? -ENAMETOOLONG : 0;
}

int sys_link(const char *root, char *target, size_t len, const char *format, ...)
{
    FULL(f);
    return read_link(f.path, target, len);
}

int sys_link_name(const char *root, char *name, size_t len, const char *format, ...)
{
    char target[SYS_PATH];

    FULL(f);
    int rc = read_link(f.path, target, sizeof(target));
    const char *last = strrchr(target, '/');
    snprintf(name, len, "%s", last ? last + 1 : target);
    return rc;
}

bool sys_exists(const char *root, const char *format, ...)
{
    struct stat st;

    FULL(f);
    return f.path[0] && !lstat(f.path, &st);
}

int sys_list(const char *root, int (*each)(void *arg, const char *name), void *arg,
             const char *format, ...)
{
    struct dirent *entry;
    int rc = 0;

    FULL(f);
    DIR *dir = opendir(f.path);
    while (dir && !rc && (entry = readdir(dir)) != NULL)
        if (entry->d_name[0] != '.')
            rc = each(arg, entry->d_name);
    if (dir)
        closedir(dir);
    return rc;
}

FILE *sys_open(const char *root, const char *format, ...)
{
    FULL(f);
    return fopen(f.path, "re");
}
