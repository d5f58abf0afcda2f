/* SPDX-License-Identifier: Apache-2.0 */
/* The session's secret, from a file and new: see meet.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/group/meet.h"
#include "core/group/secret.h"

#define LINE_MIN 16
#define LINE_MAX 1024

int meet_supported(char *error, size_t len)
{
    return secret_supported(error, len);
}

static int open_private(const char *path, int *fd, char *error, size_t len)
{
    struct stat st;

    *fd = open(path, O_RDONLY | O_CLOEXEC);
    if (*fd < 0) {
        int err = -errno;
        snprintf(error, len, "cannot read the secret in '%s': %s", path, strerror(-err));
        return err;
    }
    if (fstat(*fd, &st) || !S_ISREG(st.st_mode) || !(st.st_mode & 077))
        return 0;
    close(*fd);
    snprintf(error, len, "the secret in '%s' is open to others: chmod 600 '%s'", path, path);
    return -EACCES;
}

/* Not a byte more than the line: what follows on stdin may be for somebody else. */
static int read_line(int fd, char line[LINE_MAX], size_t *n)
{
    *n = 0;
    while (*n < LINE_MAX) {
        ssize_t got = read(fd, line + *n, 1);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        if (got == 0 || line[*n] == '\n')
            break;
        ++*n;
    }
    if (*n == LINE_MAX)
        return -EMSGSIZE;
    if (*n && line[*n - 1] == '\r')
        --*n;
    return 0;
}

int meet_secret_load(const char *path, struct meet_secret *secret, char *error, size_t len)
{
    bool is_stdin = !strcmp(path, "-");
    int fd = STDIN_FILENO;
    char line[LINE_MAX];
    size_t n;
    int err = secret_supported(error, len);

    if (!err && !is_stdin)
        err = open_private(path, &fd, error, len);
    if (err)
        return err;
    err = read_line(fd, line, &n);
    if (!is_stdin)
        close(fd);
    if (err == -EMSGSIZE)
        snprintf(error, len,
                 "the first line of '%s' is too long for a secret: %d characters at most", path,
                 LINE_MAX - 1);
    else if (err)
        snprintf(error, len, "cannot read the secret in '%s': %s", path, strerror(-err));
    else if (n < LINE_MIN) {
        snprintf(error, len,
                 "the first line of '%s' is too short for a secret: %d characters at least", path,
                 LINE_MIN);
        err = -EINVAL;
    }
    if (!err)
        secret_hash(secret->bytes, line, n);
    secret_wipe(line, sizeof(line));
    return err;
}

int meet_secret_need(const char *path, struct meet_secret *secret, char *error, size_t len)
{
    int err = meet_supported(error, len);

    if (!path || !*path)
        path = getenv("PLUMB_SECRET_FILE");
    if (err)
        return err;
    if (path && *path)
        return meet_secret_load(path, secret, error, len);
    snprintf(error, len,
             "processes on several machines want a secret that all of them know: give "
             "--secret-file FILE on each (make one: openssl rand -hex 32 >FILE; chmod 600 FILE)");
    return -EINVAL;
}

int meet_secret_make(char *text, size_t len)
{
    uint8_t bytes[32];

    if (len < 2 * sizeof(bytes) + 2)
        return -EMSGSIZE;
    int err = secret_random(bytes, sizeof(bytes));
    for (size_t i = 0; !err && i < sizeof(bytes); i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    if (!err)
        snprintf(text + 2 * sizeof(bytes), 2, "\n");
    secret_wipe(bytes, sizeof(bytes));
    return err;
}
