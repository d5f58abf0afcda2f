/* SPDX-License-Identifier: Apache-2.0 */
/* Bounded reading of /proc and /sys below a root that is not trusted. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "harness/probe/facts.h"

/* ---- What is known not to be there: see tree_absent() in facts.h ---- */

enum { ABSENT_MAX = 4 << 20 };

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The kernel's folders are never empty: one that is stands for what is hidden or not mounted. */
static bool has_entries(const struct tree *tree, const char *folder)
{
    struct names names;
    bool some = !tree_list(tree, folder, &names) && names.count;

    names_free(&names);
    return some;
}

bool tree_absent(const struct tree *tree, const char *path)
{
    char above[TREE_PATH], *slash;
    const char *key = above;
    struct stat st;
    int rc = tree_stat(tree, path, &st);

    if ((rc != -ENOENT && rc != -ENOTDIR) ||
        (size_t)snprintf(above, sizeof(above), "%s", path) >= sizeof(above))
        return false;
    while (above[0]) {
        if (!tree->live && tree->absent.count &&
            bsearch(&key, tree->absent.name, tree->absent.count, sizeof(*tree->absent.name),
                    by_name))
            return true;
        slash = strrchr(above, '/');
        *(slash ? slash : above) = '\0';
        if (tree->live && tree_exists(tree, above[0] ? above : "/"))
            return !above[0] || has_entries(tree, above);
    }
    return false;
}

bool tree_absent_at(const struct tree *tree, const char *folder, const char *file)
{
    return tree_absent(tree, tree_join(folder, file).s);
}

enum { LINKS_MAX = 40 };

int tree_open(struct tree *tree, const char *sysroot)
{
    *tree = (struct tree){.live = !sysroot || !*sysroot};
    tree->fd = open(tree->live ? "/" : sysroot, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (tree->fd < 0)
        return -errno;
    if (!tree->live) {
        char *text = xrealloc(NULL, ABSENT_MAX), *save = NULL;

        if (!tree_read(tree, "plumb/absent", text, ABSENT_MAX, NULL))
            for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
                names_add(&tree->absent, line);
        if (tree->absent.count)
            qsort(tree->absent.name, tree->absent.count, sizeof(*tree->absent.name), by_name);
        free(text);
    }
    return 0;
}

void tree_close(struct tree *tree)
{
    names_free(&tree->absent);
    if (tree->fd >= 0)
        close(tree->fd);
    tree->fd = -1;
}

static void path_pop(char *path)
{
    char *slash = strrchr(path, '/');

    *(slash ? slash : path) = '\0';
}

static int path_push(char *path, size_t size, const char *part, size_t length)
{
    size_t used = strlen(path);

    if (used + length + 2 > size)
        return -ENAMETOOLONG;
    if (used)
        path[used++] = '/';
    memcpy(path + used, part, length);
    path[used + length] = '\0';
    return 0;
}

/* Where out is a link: drops it from out and puts its target before what remains to be walked. */
static int follow(const struct tree *tree, char *out, char *rest, size_t rest_size)
{
    char target[TREE_PATH], joined[2 * TREE_PATH];
    ssize_t n = readlinkat(tree->fd, out, target, sizeof(target) - 1);

    if (n < 0)
        return errno == EINVAL ? 0 : -errno;
    target[n] = '\0';
    if (n >= (ssize_t)sizeof(target) - 1)
        return -ENAMETOOLONG;
    if (target[0] == '/')
        out[0] = '\0';
    else
        path_pop(out);
    if ((size_t)snprintf(joined, sizeof(joined), "%s/%s", target, rest) >= rest_size)
        return -ENAMETOOLONG;
    strcpy(rest, joined);
    return 1;
}

int tree_resolve(const struct tree *tree, const char *path, char *out, size_t size)
{
    char rest[TREE_PATH];
    int links = 0, rc = 0;

    if (!path[0])
        return -ENOENT;
    if ((size_t)snprintf(rest, sizeof(rest), "%s", path) >= sizeof(rest))
        return -ENAMETOOLONG;
    out[0] = '\0';
    while (rest[0] && rc >= 0) {
        size_t slashes = strspn(rest, "/"), length = strcspn(rest + slashes, "/");
        char part[TREE_PATH];

        memcpy(part, rest + slashes, length);
        part[length] = '\0';
        memmove(rest, rest + slashes + length, strlen(rest + slashes + length) + 1);
        if (!length || !strcmp(part, "."))
            continue;
        if (!strcmp(part, "..")) {
            path_pop(out);
            continue;
        }
        rc = path_push(out, size, part, length);
        if (!rc)
            rc = follow(tree, out, rest, sizeof(rest));
        if (rc > 0 && ++links > LINKS_MAX)
            rc = -ELOOP;
    }
    return rc < 0 ? rc : 0;
}

/* Opens what the path leads to. O_NONBLOCK: a pipe in a hostile tree must not hold us. */
static int open_at(const struct tree *tree, const char *path, int flags)
{
    char real[TREE_PATH];
    int rc = tree_resolve(tree, path, real, sizeof(real));

    if (rc)
        return rc;
    rc = openat(tree->fd, real[0] ? real : ".", O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | flags);
    return rc < 0 ? -errno : rc;
}

int tree_stat(const struct tree *tree, const char *path, struct stat *st)
{
    char real[TREE_PATH];
    int rc = tree_resolve(tree, path, real, sizeof(real));

    if (!rc && fstatat(tree->fd, real[0] ? real : ".", st, AT_SYMLINK_NOFOLLOW))
        rc = -errno;
    return rc;
}

bool tree_exists(const struct tree *tree, const char *path)
{
    struct stat st;

    return tree_stat(tree, path, &st) == 0;
}

static int read_all(int fd, char *buf, size_t size, size_t *length)
{
    while (*length < size - 1) {
        ssize_t n = read(fd, buf + *length, size - 1 - *length);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        *length += (size_t)n;
    }
    return 0;
}

int tree_read(const struct tree *tree, const char *path, char *buf, size_t size, size_t *length)
{
    struct stat st;
    size_t n = 0;
    int rc, fd;

    /* Looked at before it is opened: opening a device may already do something. */
    rc = tree_stat(tree, path, &st);
    if (!rc && !S_ISREG(st.st_mode))
        rc = -EINVAL;
    fd = rc ? rc : open_at(tree, path, O_RDONLY | O_NOCTTY);
    if (fd >= 0) {
        rc = read_all(fd, buf, size, &n);
        close(fd);
    }
    buf[n] = '\0';
    if (length)
        *length = n;
    return fd < 0 ? fd : rc;
}

int tree_line(const struct tree *tree, const char *path, char *buf, size_t size)
{
    char text[TREE_LINE * 4];
    int rc = tree_read(tree, path, text, sizeof(text), NULL);
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

int tree_number(const struct tree *tree, const char *path, long long *value)
{
    char buf[64], *end;
    int rc = tree_line(tree, path, buf, sizeof(buf));

    if (rc)
        return rc;
    errno = 0;
    *value = strtoll(buf, &end, strncmp(buf, "0x", 2) ? 10 : 16);
    return end == buf || *end || errno ? -EINVAL : 0;
}

long long digits_number(const char *text)
{
    size_t digits = strspn(text, "0123456789");

    return digits && digits < 19 && !text[digits] ? atoll(text) : -1;
}

/* The path with the links of its folders followed, and its own not. */
static int resolve_folder(const struct tree *tree, const char *path, char *real, size_t size)
{
    char folder[TREE_PATH];
    const char *slash = strrchr(path, '/'), *last = slash ? slash + 1 : path;
    int rc;

    snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
    rc = tree_resolve(tree, folder, real, size);
    return rc ? rc : path_push(real, size, last, strlen(last));
}

bool tree_is_link(const struct tree *tree, const char *path)
{
    char real[TREE_PATH];
    struct stat st;

    return !resolve_folder(tree, path, real, sizeof(real)) &&
           !fstatat(tree->fd, real, &st, AT_SYMLINK_NOFOLLOW) && S_ISLNK(st.st_mode);
}

/* Names with odd bytes are left out: no kernel makes them, and they would reach a terminal. */
static bool name_is_plain(const char *name)
{
    if (name[0] == '.' || strlen(name) >= TREE_LINE)
        return false;
    for (; *name; name++)
        if (!isgraph((unsigned char)*name))
            return false;
    return true;
}

int tree_link(const struct tree *tree, const char *path, char *buf, size_t size)
{
    char real[TREE_PATH], target[TREE_PATH];
    const char *last;
    ssize_t n;
    int rc = resolve_folder(tree, path, real, sizeof(real));

    buf[0] = '\0';
    if (rc)
        return rc;
    n = readlinkat(tree->fd, real, target, sizeof(target) - 1);
    if (n < 0)
        return -errno;
    target[n] = '\0';
    last = strrchr(target, '/');
    last = last ? last + 1 : target;
    if (!*last || strlen(last) >= size || !name_is_plain(last))
        return -EINVAL;
    strcpy(buf, last);
    return 0;
}

static int by_version(const void *a, const void *b)
{
    return strverscmp(*(char *const *)a, *(char *const *)b);
}

void names_add(struct names *names, const char *name)
{
    *ARRAY_ADD(names->name, names->count) = xstrdup(name);
}

int tree_list(const struct tree *tree, const char *path, struct names *names)
{
    int fd = open_at(tree, path, O_RDONLY | O_DIRECTORY);
    struct dirent *entry;
    DIR *dir;

    *names = (struct names){0};
    if (fd < 0)
        return fd;
    dir = fdopendir(fd);
    if (!dir)
        alloc_fail(1);
    while (names->count < TREE_NAMES && (entry = readdir(dir)))
        if (name_is_plain(entry->d_name))
            names_add(names, entry->d_name);
    closedir(dir);
    if (names->count)
        qsort(names->name, names->count, sizeof(*names->name), by_version);
    return 0;
}

void names_free(struct names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->name[i]);
    free(names->name);
    *names = (struct names){0};
}

struct path tree_join(const char *folder, const char *file)
{
    struct path path;

    if ((size_t)snprintf(path.s, sizeof(path.s), "%s/%s", folder, file) >= sizeof(path.s))
        path.s[0] = '\0';
    return path;
}

int tree_line_at(const struct tree *tree, const char *folder, const char *file, char *buf,
                 size_t size)
{
    return tree_line(tree, tree_join(folder, file).s, buf, size);
}

int tree_number_at(const struct tree *tree, const char *folder, const char *file, long long *value)
{
    return tree_number(tree, tree_join(folder, file).s, value);
}

int tree_link_at(const struct tree *tree, const char *folder, const char *file, char *buf,
                 size_t size)
{
    return tree_link(tree, tree_join(folder, file).s, buf, size);
}

bool tree_exists_at(const struct tree *tree, const char *folder, const char *file)
{
    return tree_exists(tree, tree_join(folder, file).s);
}

int cpulist_count(const char *list, long limit)
{
    long count = 0;

    while (*list) {
        char *end;
        long first = strtol(list, &end, 10), last = first;

        if (!isdigit((unsigned char)*list))
            return -EINVAL;
        if (*end == '-') {
            list = end + 1;
            if (!isdigit((unsigned char)*list))
                return -EINVAL;
            last = strtol(list, &end, 10);
        }
        if (last < first || last >= limit || (*end && *end != ','))
            return -EINVAL;
        count += last - first + 1;
        list = *end ? end + 1 : end;
    }
    return count > limit ? -EINVAL : (int)count;
}
