/* SPDX-License-Identifier: Apache-2.0 */
/* Pipes, one for each direction, with the largest buffer that the system allows an ordinary user. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/transport/transport.h"

struct pipes {
    int fds[2][2]; /* [sender's rank][0: read end, 1: write end]; -1: closed */
    int buffer_bytes;
};

static int largest_buffer(void)
{
    FILE *f = fopen("/proc/sys/fs/pipe-max-size", "re");
    int bytes = 1 << 20;

    if (f && fscanf(f, "%d", &bytes) != 1)
        bytes = 1 << 20;
    if (f)
        fclose(f);
    return bytes;
}

static int pipe_open(struct transport *t)
{
    struct pipes *p = calloc(1, sizeof(*p));

    t->state = p;
    if (!p)
        return -ENOMEM;
    for (int i = 0; i < 2; i++)
        p->fds[i][0] = p->fds[i][1] = -1;
    for (int i = 0; i < 2; i++) {
        /* In one direction the ends may sleep; in both, one that sleeps in a full pipe could not
         * empty the other. */
        if (pipe2(p->fds[i], O_CLOEXEC | (t->both ? O_NONBLOCK : 0)))
            return -errno;
        fcntl(p->fds[i][1], F_SETPIPE_SZ, largest_buffer()); /* refused: the default is reported */
        p->buffer_bytes = fcntl(p->fds[i][1], F_GETPIPE_SZ);
    }
    return 0;
}

static void close_end(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* Each rank keeps the ends that are its own: so a peer's death shows as an end of the stream. */
static int pipe_attach(struct transport *t)
{
    struct pipes *p = t->state;
    unsigned me = group_rank(t->group);

    close_end(&p->fds[me][0]);
    close_end(&p->fds[!me][1]);
    return 0;
}

static ssize_t result(ssize_t n)
{
    if (n > 0)
        return n;
    if (n == 0 || errno == EPIPE)
        return -ECONNRESET;
    return errno == EAGAIN || errno == EINTR ? 0 : -errno;
}

static ssize_t pipe_push(struct transport *t, const void *data, size_t len)
{
    struct pipes *p = t->state;

    return result(write(p->fds[group_rank(t->group)][1], data, len));
}

static ssize_t pipe_pull(struct transport *t, void *data, size_t len)
{
    struct pipes *p = t->state;

    return result(read(p->fds[!group_rank(t->group)][0], data, len));
}

static const char *pipe_describe(const struct transport *t, char *text, size_t len)
{
    const struct pipes *p = t->state;

    snprintf(text, len, "pipe buffer %d KiB", p->buffer_bytes >> 10);
    return text;
}

static void pipe_close(struct transport *t)
{
    struct pipes *p = t->state;

    for (int i = 0; p && i < 2; i++) {
        close_end(&p->fds[i][0]);
        close_end(&p->fds[i][1]);
    }
    free(p);
    t->state = NULL;
}

const struct transport_ops transport_pipe = {
    .name = "pipe",
    .open = pipe_open,
    .attach = pipe_attach,
    .push = pipe_push,
    .pull = pipe_pull,
    .describe = pipe_describe,
    .close = pipe_close,
};
