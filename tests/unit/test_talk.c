/* SPDX-License-Identifier: Apache-2.0 */
/* Conversations: replies of any length, requests in their turn; who does not answer is named, and others can be asked again. */
/* waits: for peers that hang */
#include "core/clock.h"
#include "core/group/talk.h"
#include "tests/unit/unit.h"

enum { PEERS = 3 }; /* beside this process */
enum { TURN = 1, WORK, HANG, REQUESTS };
enum { IDLE, TURNED };

/* All bytes, in the order from the last. */
static int turn(struct talk_server *s)
{
    const uint8_t *from = s->in.bytes;
    size_t len = s->in.len;
    uint8_t *to = talk_body(s, len);

    for (size_t i = 0; to && i < len; i++)
        to[i] = from[len - 1 - i];
    return to ? 0 : -ENOMEM;
}

/* Until the leader gives up, looking at the channel all the time. */
static int work(struct talk_server *s)
{
    int err = 0;

    while (!(err = talk_look(s)))
        usleep(1000);
    return err;
}

/* The thread that serves hangs; its process is alive. */
static int hang(struct talk_server *s)
{
    (void)s;
    while (pause())
        ;
    return 0;
}

static const struct talk_request requests[REQUESTS] = {
    [TURN] = {TALK_ANY, TALK_ANY, IDLE, TURNED, TURNED, TALK_NEVER, turn},
    [WORK] = {4, 0, TURNED, TURNED, IDLE, TALK_ALWAYS, work},
    [HANG] = {0, 0, IDLE, TURNED, IDLE, TALK_ALWAYS, hang},
};

static int serve(struct channel *c, void *arg)
{
    static uint64_t moved_ns;
    struct talk_server s = {
        .channel = c, .requests = requests, .n_requests = REQUESTS, .moved_ns = &moved_ns};
    struct beat *b = NULL;

    (void)arg;
    moved_ns = clock_now_ns();
    int err = beat_start(&b, &c, 1, BEAT_LEADING_NS);
    if (!err)
        err = talk_serve(&s);
    beat_end(b);
    return err ? 1 : 0;
}

/* A peer of which nothing comes any more, as of one that stands still from now on. */
static int nothing_comes(struct channel *c, uint16_t *type, void *data, size_t size, size_t *len,
                         uint64_t wait_ns)
{
    (void)c, (void)type, (void)data, (void)size, (void)len;
    usleep((useconds_t)(wait_ns / 1000));
    return wait_ns ? -ETIMEDOUT : -EAGAIN;
}

static const struct talk_patience still = {.quiet_ns = TALK_STILL_NS, .still_ns = TALK_STILL_NS};

static void refuses(struct talk *t, uint16_t request, size_t len)
{
    assert_int_equal(talk_post(t, 2, request, "a request", len), 0);
    assert_false(talk_settle(t, &still));
    assert_int_equal(t->peers[2].err, -EPROTO);
}

TEST(test_a_conversation)
{
    static const size_t sizes[] = {0, CHANNEL_FRAME_MAX + 1, 3 * CHANNEL_FRAME_MAX + 5};
    static uint8_t text[3 * CHANNEL_FRAME_MAX + 5];
    struct channel *channels[PEERS + 1] = {NULL};
    struct channel_ops mute;
    struct talk t = {0};

    for (int i = 1; i <= PEERS; i++)
        assert_int_equal(channel_fork(&channels[i], serve, NULL), 0);
    assert_int_equal(talk_open(&t, channels, PEERS + 1, requests, REQUESTS), 0);
    refuses(&t, WORK, 4); /* out of turn: nothing has been turned yet */
    refuses(&t, HANG, 1);
    refuses(&t, REQUESTS, 0);
    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = (uint8_t)(i * 7 + (i >> 8));
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        for (unsigned peer = 1; peer <= PEERS; peer++)
            assert_int_equal(talk_post(&t, peer, TURN, text, sizes[i]), 0);
        assert_true(talk_settle(&t, &still));
        for (unsigned peer = 1; peer <= PEERS; peer++) {
            const uint8_t *back = talk_reply(&t, peer);
            assert_int_equal(talk_reply_len(&t, peer), sizes[i]);
            for (size_t k = 0; k < sizes[i]; k++)
                if (back[k] != text[sizes[i] - 1 - k])
                    fail_msg("byte %zu of %zu", k, sizes[i]);
        }
    }
    refuses(&t, WORK, 3);
    assert_false(t.broken);
    /* 1 looks and gives up; 2 has answered until all are asked, and then not; 3 hangs */
    for (unsigned peer = 1; peer <= 2; peer++)
        assert_int_equal(talk_post(&t, peer, WORK, text, 4), 0);
    assert_int_equal(talk_post(&t, 3, HANG, NULL, 0), 0);
    assert_false(talk_settle(&t, &still));
    const struct channel_ops *real = channels[2]->ops;
    mute = *real;
    mute.recv = nothing_comes;
    channels[2]->ops = &mute;
    talk_give_up(&t, 0);
    channels[2]->ops = real;
    for (unsigned peer = 1; peer <= PEERS; peer++) {
        assert_true(t.peers[peer].gone == (peer > 1) && t.peers[peer].silent == (peer > 1));
        assert_int_equal(t.peers[peer].err, peer > 1 ? -ETIMEDOUT : -ECANCELED);
        assert_int_equal(t.peers[peer].sure, peer == 3);
    }
    assert_says(t.loss, channel_peer(channels[3]));
    assert_int_equal(talk_post(&t, 3, TURN, NULL, 0), -ECONNRESET);
    t.peers[2].err = t.peers[3].err = 0;
    assert_int_equal(talk_post(&t, 1, TURN, "abc", 3), 0);
    assert_true(talk_settle(&t, &still));
    talk_close(&t);
    channel_end_children(channels, PEERS + 1);
    for (int i = 1; i <= PEERS; i++)
        channel_close(channels[i]);
}
