/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads files of /proc and /sys below a root: NULL or "" is this machine, else a recorded tree.
 * Paths are given as a format, without a leading "/". In a recording links are followed inside it
 * (".." at its root stays there, an absolute target starts there; openat2(2), Linux 5.6), so that a
 * hostile one cannot lead outside. Only regular files are read, never more than the buffer given; a
 * device, a pipe or a loop is an error, not a hang.
 *
 * All return 0 or -errno: -ENOENT where nothing is there, -EINVAL for what is no regular file.
 */
#ifndef PLUMB_CORE_HW_SYS_H
#define PLUMB_CORE_HW_SYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>

/* A line: a list of 1000 CPUs that are numbered in turn over two sockets. */
enum { SYS_PATH = 1024, SYS_LINE = 4096, SYS_NAMES = 65536 };

#define SYS_FORMAT(n) __attribute__((format(printf, n, n + 1)))

/* Where the path leads with all links followed, below the root, without a leading "/". */
int sys_resolve(const char *root, char *path, size_t size, const char *format, ...) SYS_FORMAT(4);

/* Type and size of what the path leads to. */
int sys_stat(const char *root, struct stat *st, const char *format, ...) SYS_FORMAT(3);
bool sys_exists(const char *root, const char *format, ...) SYS_FORMAT(2);

/* At most size - 1 bytes, and a NUL after them. *length (may be NULL) is the number read. */
int sys_read(const char *root, char *buf, size_t size, size_t *length, const char *format, ...)
    SYS_FORMAT(5);

/* The first line without the blanks around it, in plain ASCII ('?' for any other byte). -ENODATA
 * where it is empty. */
int sys_line(const char *root, char *buf, size_t size, const char *format, ...) SYS_FORMAT(4);

/* The number that is the first line: decimal, or hexadecimal with 0x; a counter has digits only.
 * -EINVAL where anything stands beside it. */
int sys_number(const char *root, long long *value, const char *format, ...) SYS_FORMAT(3);
int sys_counter(const char *root, uint64_t *value, const char *format, ...) SYS_FORMAT(3);

/* The last part of where a link points, e.g. the driver of a device; the target need not be there.
 */
int sys_link(const char *root, char *name, size_t size, const char *format, ...) SYS_FORMAT(4);

struct names {
    char **name;
    size_t count;
};

/* Names in a folder, numbers in order (cpu2 before cpu10), at most SYS_NAMES, none that begins with
 * a dot. Where there is no such folder it is empty. */
int sys_list(const char *root, struct names *names, const char *format, ...) SYS_FORMAT(3);
void names_add(struct names *names, const char *name); /* a copy */
void names_free(struct names *names);

/* For reading line by line; NULL where it cannot be opened. */
FILE *sys_open(const char *root, const char *format, ...) SYS_FORMAT(2);

#endif
