/* SPDX-License-Identifier: Apache-2.0 */
/* This machine and its CPUs: see machine.h. */
#include "core/hw/machine.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"

/* ---- Small files of /proc and /sys ---- */

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

/* ---- What the CPUs did ---- */

/* Columns of the line "cpu"; guest and guest_nice follow, and are in user and nice already. */
enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, COLUMNS };

uint64_t cpu_tick_ns(void)
{
    long hz = sysconf(_SC_CLK_TCK);

    return 1000000000u / (uint64_t)(hz > 0 ? hz : 100);
}

bool cpu_ticks_tell(double seconds)
{
    return seconds * 1e9 >= 20 * (double)cpu_tick_ns();
}

int cpu_read_at(struct cpu_reading *r, const char *root)
{
    uint64_t t[COLUMNS] = {0}, tick_ns = cpu_tick_ns();
    FILE *f = sys_open(root, "proc/stat");
    int got = 0;

    *r = (struct cpu_reading){.at_ns = clock_now_ns()};
    if (!f)
        return -errno;
    got = fscanf(f,
                 "cpu %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
                 " %" SCNu64 " %" SCNu64,
                 &t[USER], &t[NICE], &t[SYSTEM], &t[IDLE], &t[IOWAIT], &t[IRQ], &t[SOFTIRQ],
                 &t[STEAL]);
    fclose(f);
    if (got < COLUMNS)
        return -ENODATA;
    r->busy_ns = (t[USER] + t[NICE] + t[SYSTEM] + t[IRQ] + t[SOFTIRQ]) * tick_ns;
    r->softirq_ns = t[SOFTIRQ] * tick_ns;
    r->steal_ns = t[STEAL] * tick_ns;
    return 0;
}

int cpu_read(struct cpu_reading *r)
{
    return cpu_read_at(r, NULL);
}

/* Counts of the kernel may go back a little where a CPU is taken off: not below nothing. */
static double per_second(uint64_t before, uint64_t after, uint64_t ns)
{
    if (!ns)
        return NAN;
    return after > before ? (double)(after - before) / (double)ns : 0;
}

double cpu_busy(const struct cpu_reading *before, const struct cpu_reading *after)
{
    return per_second(before->busy_ns, after->busy_ns, after->at_ns - before->at_ns);
}

double cpu_softirq(const struct cpu_reading *before, const struct cpu_reading *after)
{
    return per_second(before->softirq_ns, after->softirq_ns, after->at_ns - before->at_ns);
}

void cpu_watch(uint64_t ns, double *busy, double *softirq)
{
    struct timespec t = {.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};
    struct cpu_reading before, after;
    bool known = !cpu_read(&before);

    while (nanosleep(&t, &t) && errno == EINTR) {
    }
    known = known && !cpu_read(&after);
    *busy = known ? cpu_busy(&before, &after) : NAN;
    *softirq = known ? cpu_softirq(&before, &after) : NAN;
}

uint64_t cpu_of_thread(pthread_t thread)
{
    struct timespec t;
    clockid_t clock;

    if (pthread_getcpuclockid(thread, &clock) || clock_gettime(clock, &t))
        return 0;
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- Which machine this is ---- */

void machine_id(char text[MACHINE_ID_BYTES])
{
    if (sys_line(NULL, text, MACHINE_ID_BYTES, "proc/sys/kernel/random/boot_id"))
        text[0] = '\0';
}

bool machine_same(const char *a, const char *b)
{
    return a[0] && !strcmp(a, b);
}
