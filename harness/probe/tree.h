/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the files of a machine below one root: "/" or a recorded tree. Every path is relative to
 * the root, and links are followed inside it (".." at the root stays there, an absolute target
 * starts there), so that a recorded or hostile tree cannot lead outside. Only regular files are
 * read, never more than the buffer given; a device, a pipe or a loop is an error, not a hang.
 */
#ifndef PLUMB_PROBE_TREE_H
#define PLUMB_PROBE_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

enum { TREE_PATH = 1024, TREE_LINE = 256, TREE_NAMES = 65536 };

struct names {
    char **name;
    size_t count;
};

struct tree {
    int fd;              /* the root folder */
    bool live;           /* the running machine, not a recording */
    struct names absent; /* a recording: what plumb/absent names, sorted */
};

/* Returns 0 or -errno. sysroot NULL or "": the running machine. */
int tree_open(struct tree *tree, const char *sysroot);
void tree_close(struct tree *tree);

/* The path with all links followed, without a leading "/". Returns 0 or -errno (-ELOOP, -ENOENT).
 */
int tree_resolve(const struct tree *tree, const char *path, char *out, size_t size);

/* Type and size of what the path leads to. Returns 0 or -errno. */
int tree_stat(const struct tree *tree, const char *path, struct stat *st);
bool tree_exists(const struct tree *tree, const char *path);

/*
 * Whether it is known that nothing is at the path; else what is missing was only not read. Running
 * machine: its folder, or the nearest one above that is there, is listed and has other entries.
 * Recording: plumb/absent, one path a line, names it or a folder above it.
 */
bool tree_absent(const struct tree *tree, const char *path);
bool tree_absent_at(const struct tree *tree, const char *folder, const char *file);

/*
 * Reads at most size - 1 bytes and ends them with NUL. *length (may be NULL) is the number read.
 * Returns 0 or -errno; -EINVAL for what is no regular file.
 */
int tree_read(const struct tree *tree, const char *path, char *buf, size_t size, size_t *length);

/* The first line, trimmed, in plain ASCII ('?' for any other byte). -ENODATA where it is empty. */
int tree_line(const struct tree *tree, const char *path, char *buf, size_t size);

/* The number that is the file's first line: decimal, or hexadecimal with 0x. Returns 0 or -errno;
 * -EINVAL where anything stands beside it. */
int tree_number(const struct tree *tree, const char *path, long long *value);

/* The last part of where a link points, e.g. the driver of a device; the target need not be there.
 */
int tree_link(const struct tree *tree, const char *path, char *buf, size_t size);

/* Names in a folder, sorted with numbers in order (cpu2 before cpu10), at most TREE_NAMES. */
int tree_list(const struct tree *tree, const char *path, struct names *names);
void names_free(struct names *names);
int names_add(struct names *names, const char *name); /* a copy; 0 or -ENOMEM */

/* Joins two parts, e.g. ("sys/class/net/eth0", "speed"). Cuts nothing: too long gives "". */
struct path {
    char s[TREE_PATH];
};
struct path tree_join(const char *folder, const char *file);

/* As above with a folder and a file, because nearly every caller holds them apart. */
int tree_line_at(const struct tree *tree, const char *folder, const char *file, char *buf,
                 size_t size);
int tree_number_at(const struct tree *tree, const char *folder, const char *file, long long *value);
int tree_link_at(const struct tree *tree, const char *folder, const char *file, char *buf,
                 size_t size);
/* Whether what is at the path itself is a link, wherever it leads. */
bool tree_is_link(const struct tree *tree, const char *path);
bool tree_exists_at(const struct tree *tree, const char *folder, const char *file);

/* A whole number of nothing but digits, or -1. */
long long digits_number(const char *text);

/* Counts the numbers of a list such as "0-3,8", each below limit; -EINVAL where it is no such list.
 */
int cpulist_count(const char *list, long limit);

#endif
