/* SPDX-License-Identifier: Apache-2.0 */
/* Conversations: requests and replies of any length, in their turn; who does not answer is named. */
/* waits: for peers that hang */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/clock.h"
#include "core/group/talk.h"
#include "tests/unit/late_channel.h"

#define PEERS     4 /* beside this process */
#define LONG      (3 * CHANNEL_FRAME_MAX + 5)
#define SECOND_NS 1000000000ull

enum { TURN = 1, DOUBLE, FAIL, WORK, HANG, REQUESTS };
enum { IDLE, TURNED };

/* All bytes, in the order from the last. */
static int turn(struct talk_server *s, const void *data, size_t len)
{
    const uint8_t *from = data;
    uint8_t *to = talk_body(s, len);

    for (size_t i = 0; to && i < len; i++)
        to[i] = from[len - 1 - i];
    return to ? 0 : -ENOMEM;
}

static int twice(struct talk_server *s, const void *data, size_t len)
{
    uint64_t number;

    memcpy(&number, data, len);
    number *= 2;
    memcpy(s->body, &number, sizeof(number));
    return 0;
}

static int break_down(struct talk_server *s, const void *data, size_t len)
{
    (void)data, (void)len;
    strcpy(s->error, "the cable is out");
    return -EIO;
}

/* Until the leader gives up, looking at the channel all the time. */
static int work(struct talk_server *s, const void *data, size_t len)
{
    int err = 0;

    (void)data, (void)len;
    while (!(err = talk_look(s)))
        usleep(1000);
    return err;
}

/* The thread that serves hangs; its process is alive. */
static int hang(struct talk_server *s, const void *data, size_t len)
{
    (void)s, (void)data, (void)len;
    while (pause())
        ;
    return 0;
}

static const struct talk_request requests[REQUESTS] = {
    [TURN] = {TALK_ANY, TALK_ANY, IDLE, TURNED, TURNED, TALK_NEVER, turn},
    [DOUBLE] = {8, 8, TURNED, TURNED, TURNED, TALK_NEVER, twice},
    [FAIL] = {0, 0, IDLE, TURNED, TURNED, TALK_NEVER, break_down},
    [WORK] = {0, 0, IDLE, TURNED, IDLE, TALK_ALWAYS, work},
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
    if (beat_start(&b, &c, 1, BEAT_LEADING_NS))
        return 1;
    int err = talk_serve(&s);
    beat_end(b);
    return err ? 1 : 0;
}

struct scene {
    struct channel *channels[PEERS + 1];
    struct talk talk;
};

static void begin(struct scene *s)
{
    memset(s, 0, sizeof(*s));
    for (int i = 1; i <= PEERS; i++)
        assert_int_equal(channel_fork(&s->channels[i], serve, NULL), 0);
    assert_int_equal(talk_open(&s->talk, s->channels, PEERS + 1, requests, REQUESTS), 0);
}

static void end(struct scene *s)
{
    talk_close(&s->talk);
    channel_end_children(s->channels, PEERS + 1);
    for (int i = 1; i <= PEERS; i++)
        channel_close(s->channels[i]);
}

static bool settle(struct scene *s)
{
    return talk_settle(&s->talk, &(struct talk_patience){.quiet_ns = 20 * SECOND_NS});
}

static void test_any_length(void **state)
{
    static const size_t sizes[] = {0, 1, CHANNEL_FRAME_MAX, CHANNEL_FRAME_MAX + 1, LONG};
    static uint8_t text[LONG];
    struct scene s;

    (void)state;
    begin(&s);
    for (size_t i = 0; i < LONG; i++)
        text[i] = (uint8_t)(i * 7 + (i >> 8));
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        for (unsigned peer = 1; peer <= PEERS; peer++)
            assert_int_equal(talk_post(&s.talk, peer, TURN, text, sizes[i]), 0);
        assert_true(settle(&s));
        for (unsigned peer = 1; peer <= PEERS; peer++) {
            const uint8_t *back = talk_reply(&s.talk, peer);
            assert_int_equal(talk_reply_len(&s.talk, peer), sizes[i]);
            for (size_t k = 0; k < sizes[i]; k++)
                if (back[k] != text[sizes[i] - 1 - k])
                    fail_msg("byte %zu of %zu", k, sizes[i]);
        }
    }
    end(&s);
}

/* A request out of turn, of a wrong size, or of no number, is refused; the next one is not. */
static void test_turns_and_sizes(void **state)
{
    static const struct {
        uint16_t request;
        size_t len;
        int err;
    } asked[] = {{DOUBLE, 8, -EPROTO}, {TURN, 3, 0},    {DOUBLE, 7, -EPROTO}, {DOUBLE, 8, 0},
                 {WORK, 1, -EPROTO},   {FAIL, 0, -EIO}, {DOUBLE, 8, 0}};
    const uint64_t number = 21;
    uint64_t got = 0;
    struct scene s;

    (void)state;
    begin(&s);
    for (size_t i = 0; i < sizeof(asked) / sizeof(*asked); i++) {
        assert_int_equal(talk_post(&s.talk, 2, asked[i].request, &number, asked[i].len), 0);
        assert_int_equal(settle(&s), !asked[i].err);
        assert_int_equal(s.talk.peers[2].err, asked[i].err);
        if (asked[i].err)
            assert_int_equal(!strcmp(s.talk.peers[2].error, "the cable is out"),
                             asked[i].err == -EIO);
    }
    memcpy(&got, talk_reply(&s.talk, 2), sizeof(got));
    assert_int_equal(got, 42);
    assert_false(s.talk.broken);
    end(&s);
}

/* Those that look give up and serve on; the one that hangs is named first. One whose answers come only
 * after all were told to give up is not; one that answered until all were asked is not sure to hang. */
static void test_give_up(void **state)
{
    struct scene s;

    (void)state;
    begin(&s);
    assert_int_equal(talk_post(&s.talk, 1, WORK, NULL, 0), 0);
    assert_int_equal(talk_post(&s.talk, 2, WORK, NULL, 0), 0);
    assert_int_equal(talk_post(&s.talk, 3, HANG, NULL, 0), 0);
    assert_int_equal(talk_post(&s.talk, 4, WORK, NULL, 0), 0);
    assert_false(talk_settle(
        &s.talk, &(struct talk_patience){.quiet_ns = TALK_STILL_NS, .still_ns = TALK_STILL_NS}));
    late_begin(s.channels[1], true, 0);
    late_begin(s.channels[2], false, 0);
    talk_give_up(&s.talk, 0);
    for (unsigned peer = 1; peer <= PEERS; peer++) {
        bool lost = peer == 2 || peer == 3;
        assert_int_equal(s.talk.peers[peer].gone, lost);
        assert_int_equal(s.talk.peers[peer].silent, lost);
        assert_int_equal(s.talk.peers[peer].err, lost ? -ETIMEDOUT : -ECANCELED);
    }
    assert_false(s.talk.peers[2].sure);
    assert_true(s.talk.peers[3].sure);
    assert_non_null(strstr(s.talk.loss, channel_peer(s.channels[3])));
    assert_int_equal(talk_post(&s.talk, 3, TURN, NULL, 0), -ECONNRESET);
    late_end();
    s.talk.peers[2].err = s.talk.peers[3].err = 0;
    assert_int_equal(talk_post(&s.talk, 1, TURN, "abc", 3), 0);
    assert_int_equal(talk_post(&s.talk, 4, TURN, "abc", 3), 0);
    assert_true(settle(&s));
    end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_length),
        cmocka_unit_test(test_turns_and_sizes),
        cmocka_unit_test(test_give_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
