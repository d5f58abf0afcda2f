/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small files of /proc and /sys, below a root: NULL or "" is this machine, else a recorded tree. Paths are given
 * as a format, without a leading "/".
 */
#ifndef PLUMB_CORE_HW_NIC_SYS_H
#define PLUMB_CORE_HW_NIC_SYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define SYS_PATH 1024

/* The first line without the blanks around it. 0, -ENODATA where it is empty, or -errno. */
int sys_line(const char *root, char *text, size_t len, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The one number that the first line is. 0, -EINVAL for anything else, or -errno. */
int sys_number(const char *root, long long *value, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int sys_counter(const char *root, uint64_t *value, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Where a link points: all of it, and its last part. 0 or -errno; the target need not be there. */
int sys_link(const char *root, char *target, size_t len, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
int sys_link_name(const char *root, char *name, size_t len, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* A file, folder or link of that name, even one that leads nowhere. */
bool sys_exists(const char *root, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Calls `each` for every name in a folder, in no order, until it returns another value than 0. What it returned; 0 also where
 * there is no such folder. */
int sys_list(const char *root, int (*each)(void *arg, const char *name), void *arg,
             const char *format, ...) __attribute__((format(printf, 4, 5)));

/* For reading line by line; NULL where it cannot be opened. */
FILE *sys_open(const char *root, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
