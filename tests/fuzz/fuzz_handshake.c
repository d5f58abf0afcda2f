/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target of what a stranger can send: handshakes to a server and to a client, and frames. Beside not
 * crashing: nobody gets in but by the one good talk, byte for byte; more than a message is never asked for; a
 * refusal has words; a frame that is taken is the one that was made.
 *
 * The first byte of the input says to whom the rest goes, and whether it is sent as it is or laid over the good
 * bytes (exclusive or), which is how a mutation gets far.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/group/channel.h"
#include "tests/unit/handshakes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TO_SERVER, TO_CLIENT, FRAMES, TARGETS };

static void require(int truth, const char *what)
{
    if (truth)
        return;
    fprintf(stderr, "not so: %s\n", what);
    abort();
}

/* `size` bytes of the input over `n` good ones; as many as are left of either. */
static size_t lay_over(const uint8_t *data, size_t size, const uint8_t *good, size_t n, uint8_t *to)
{
    for (size_t i = 0; i < n; i++)
        to[i] = good[i] ^ (i < size ? data[i] : 0);
    return n;
}

/* In pieces of a size that the input chose. */
static void feed(struct shake *s, const uint8_t *bytes, size_t n, size_t piece)
{
    uint8_t out[SHAKE_ANSWER_BYTES];

    for (size_t at = 0; at < n; at += piece) {
        require(shake_wants(s) <= SHAKE_BYTES_MAX, "a message is bounded");
        talk_feed(s, bytes + at, n - at < piece ? n - at : piece);
        require(s->n_out <= sizeof(out), "so is an answer");
        memcpy(out, s->out, s->n_out);
        shake_sent(s);
    }
}

static void fuzz_handshake(bool server, const uint8_t *bytes, size_t n, size_t piece,
                           const uint8_t *good, size_t n_good)
{
    struct shake s;

    talk_good(&s, server);
    feed(&s, bytes, n, piece);
    bool in = s.state == SHAKE_DONE || s.state == SHAKE_PROVED;
    require(in == (n >= n_good && !memcmp(bytes, good, n_good)), "only the good talk gets in");
    require((s.state == SHAKE_FAILED) == (s.err != 0), "a failure has a code");
    require(!s.err || *s.error, "and words");
    for (const char *p = s.error; *p; p++)
        require(*p >= ' ' && *p <= '~', "that can be shown");
}

/* A stream of frames, sealed and not. What is taken of a sealed one is a good frame, in its turn. */
static void fuzz_frames(struct secret_stream *in, const uint8_t *bytes, size_t n,
                        const uint8_t *good)
{
    static uint8_t again[FRAME_BYTES_MAX], plain[CHANNEL_FRAME_MAX];
    struct frame f;

    for (;;) {
        long want = frame_size(in, bytes, n);
        require(want <= (long)FRAME_BYTES_MAX && (want > 0 || want == -EPROTO),
                "a frame is bounded");
        if (want < 0 || n < (size_t)want || frame_take(in, bytes, (size_t)want, plain, &f))
            return;
        require(f.len <= CHANNEL_FRAME_MAX, "so is what it holds");
        if (in)
            require(!memcmp(bytes, good, (size_t)want), "it is what the other end has sent");
        else
            require(frame_encode(NULL, f.type, f.data, f.len, again) == want &&
                        !memcmp(again, bytes, (size_t)want),
                    "it is what this end would have sent");
        bytes += want;
        good += want;
        n -= (size_t)want;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t client_said[TALK_CLIENT_BYTES + SHAKE_BYTES_MAX] = {0}, bytes[4096];
    uint8_t server_said[TALK_SERVER_BYTES + SHAKE_BYTES_MAX] = {0}, frames[256];
    struct shake client, server;

    if (size < 2 || size > sizeof(bytes))
        return 0;
    talk_good(&client, false);
    talk_good(&server, true);
    talk(&client, &server, client_said, server_said);
    require(client.state == SHAKE_DONE && server.state == SHAKE_DONE, "the good talk is good");
    int target = data[0] % TARGETS;
    bool over = data[0] / TARGETS % 2;
    size_t piece = 1 + data[1], n = size - 2;
    const uint8_t *good = target == TO_SERVER ? client_said : server_said;
    size_t n_good = target == TO_SERVER ? TALK_CLIENT_BYTES : TALK_SERVER_BYTES;
    if (target == FRAMES) {
        struct secret_stream *out = data[1] % 2 ? &client.link.out : NULL;
        n_good = (size_t)frame_encode(out, 1, "one", 3, frames);
        n_good += (size_t)frame_encode(out, 2, "and another", 11, frames + n_good);
        good = frames;
    }
    if (over)
        n = lay_over(data + 2, n, good, n_good, bytes);
    else
        memcpy(bytes, data + 2, n);
    if (target == FRAMES)
        fuzz_frames(data[1] % 2 ? &server.link.in : NULL, bytes, n, frames);
    else
        fuzz_handshake(target == TO_SERVER, bytes, n, piece, good, n_good);
    return 0;
}
