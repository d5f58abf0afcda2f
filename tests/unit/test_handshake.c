/* SPDX-License-Identifier: Apache-2.0 */
/* Handshakes: who knows the secret gets in and nobody else, whatever is sent, cut, turned or said again. */
#include "tests/unit/handshakes.h"
#include "tests/unit/unit.h"

static struct shake client, server;
static uint8_t client_said[TALK_CLIENT_BYTES + SHAKE_BYTES_MAX],
    server_said[TALK_SERVER_BYTES + SHAKE_BYTES_MAX];

static int begin(void **state)
{
    (void)state;
    talk_good(&client, false);
    talk_good(&server, true);
    return 0;
}

/* Both ends have the keys of this session alone, and who learns the secret later has none of them. */
TEST_WITH(test_the_right_secret, begin, NULL)
{
    static const struct secret_pair none;
    struct secret_keys first;

    talk(&client, &server, NULL, NULL);
    assert_int_equal(client.state, SHAKE_DONE);
    assert_int_equal(server.state, SHAKE_DONE);
    assert_memory_equal(&client.link.in, &server.link.out, sizeof(client.link.in));
    assert_memory_equal(&client.link.out, &server.link.in, sizeof(client.link.in));
    assert_memory_not_equal(&client.link.out, &client.link.in, sizeof(client.link.in));
    assert_memory_equal(client.link.token, server.link.token, sizeof(client.link.token));
    assert_string_equal(client.name, "server-host");
    assert_string_equal(server.name, "client-host");
    assert_memory_equal(&client.pair, &none, sizeof(none));
    assert_memory_equal(&server.pair, &none, sizeof(none));
    first = client.keys;
    for (int who = 0; who < 2; who++) {
        talk_begin(&client, false, &talk_secret, TALK_PROTOCOL, TALK_VERSION, who ? 0xcc : 0xcd);
        talk_begin(&server, true, &talk_secret, TALK_PROTOCOL, TALK_VERSION, who ? 0x56 : 0x55);
        talk(&client, &server, NULL, NULL);
        assert_int_equal(client.state, SHAKE_DONE);
        assert_memory_not_equal(client.keys.to_server, first.to_server, sizeof(first.to_server));
        assert_memory_not_equal(client.keys.to_client, first.to_client, sizeof(first.to_client));
        assert_memory_not_equal(client.keys.token, first.token, sizeof(first.token));
    }
}

/* A stranger gets nothing by which a secret could be guessed: nothing is sealed. */
TEST_WITH(test_another_secret, begin, NULL)
{
    static const uint8_t none[SHAKE_SEALED_BYTES];
    struct meet_secret other = talk_secret;

    other.bytes[31] ^= 1;
    talk_begin(&client, false, &other, TALK_PROTOCOL, TALK_VERSION, 0xcc);
    talk(&client, &server, NULL, server_said);
    assert_int_equal(server.err, -EACCES);
    assert_int_equal(client.err, -EACCES);
    assert_memory_equal(server_said + TALK_SERVER_BYTES - sizeof(none), none, sizeof(none));
}

/* A server that says welcome without the secret. */
TEST_WITH(test_a_false_server, begin, NULL)
{
    struct meet_secret other = {.bytes = "not the secret"};
    uint8_t bytes[SHAKE_BYTES_MAX];
    size_t n = 0;

    talk_begin(&server, true, &other, TALK_PROTOCOL, TALK_VERSION, 0x55);
    talk_pass(&client, &server, NULL, NULL);
    talk_pass(&server, &client, NULL, NULL);
    talk_pass(&client, &server, bytes, &n);
    assert_int_equal(n, SHAKE_PROOF_BYTES);
    server.state = SHAKE_PROVED; /* it does not mind */
    shake_answer(&server, NULL);
    talk_pass(&server, &client, NULL, NULL);
    assert_int_equal(client.state, SHAKE_FAILED);
    assert_int_equal(client.err, -EACCES);
}

TEST_WITH(test_busy, begin, NULL)
{
    talk_pass(&client, &server, NULL, NULL);
    talk_pass(&server, &client, NULL, NULL);
    talk_pass(&client, &server, NULL, NULL);
    assert_int_equal(server.state, SHAKE_PROVED);
    shake_answer(&server, "node7");
    talk_pass(&server, &client, NULL, NULL);
    assert_int_equal(server.state, SHAKE_FAILED);
    assert_int_equal(client.err, -EBUSY);
    assert_non_null(strstr(client.error, "'node7'"));
}

/* Both ends say which versions met. */
TEST_WITH(test_another_version, begin, NULL)
{
    static const struct {
        uint32_t protocol;
        const char *version, *said;
    } others[] = {{TALK_PROTOCOL + 1, TALK_VERSION, "01020305"}, {TALK_PROTOCOL, "0.2.0", "0.2.0"}};

    for (size_t i = 0; i < 2; i++) {
        talk_good(&server, true);
        talk_begin(&client, false, &talk_secret, others[i].protocol, others[i].version, 0xcc);
        talk(&client, &server, NULL, NULL);
        for (int end = 0; end < 2; end++) {
            const struct shake *s = end ? &client : &server;
            assert_int_equal(s->err, -EPROTO);
            assert_non_null(strstr(s->error, others[i].said));
            assert_non_null(strstr(s->error, TALK_VERSION));
            assert_non_null(strstr(s->error, "01020304"));
        }
    }
}

/* Cut after every number of bytes, or with more behind it: never in, never further than what came allows. */
TEST_WITH(test_cut_short, begin, NULL)
{
    uint8_t more[TALK_CLIENT_BYTES + 10] = {0};
    struct shake to;

    talk(&client, &server, client_said, server_said);
    for (size_t n = 0; n < TALK_CLIENT_BYTES; n++) {
        talk_good(&to, true);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(talk_feed(&to, client_said + i, 1), 1);
        assert_int_equal(to.state, n < SHAKE_HELLO_BYTES ? SHAKE_HELLO : SHAKE_PROOF);
    }
    for (size_t n = 0; n < TALK_SERVER_BYTES; n++) {
        talk_good(&to, false);
        assert_int_equal(talk_feed(&to, server_said, n), n);
        assert_int_equal(to.state, n < SHAKE_HELLO_BYTES ? SHAKE_HELLO : SHAKE_ANSWER);
    }
    memcpy(more, client_said, TALK_CLIENT_BYTES);
    talk_good(&to, true);
    assert_int_equal(talk_feed(&to, more, sizeof(more)), TALK_CLIENT_BYTES);
    shake_feed(&to, more, sizeof(more)); /* a caller that does not ask */
    assert_int_equal(to.state, SHAKE_PROVED);
}

static bool turned_bit_fails(bool is_server, uint8_t *said, size_t n, size_t bit)
{
    struct shake to;

    said[bit / 8] ^= (uint8_t)(1u << bit % 8);
    talk_good(&to, is_server);
    talk_feed(&to, said, n);
    said[bit / 8] ^= (uint8_t)(1u << bit % 8);
    return to.state == SHAKE_FAILED && (to.err == -EPROTO || to.err == -EACCES) && *to.error;
}

TEST_WITH(test_turned_bits, begin, NULL)
{
    talk(&client, &server, client_said, server_said);
    for (size_t bit = 0; bit < 8 * TALK_CLIENT_BYTES; bit++)
        assert_true(turned_bit_fails(true, client_said, TALK_CLIENT_BYTES, bit));
    for (size_t bit = 0; bit < 8 * TALK_SERVER_BYTES; bit++)
        assert_true(turned_bit_fails(false, server_said, TALK_SERVER_BYTES, bit));
}

/* All that a client once said, to a server that drew another key; and the other way round. */
TEST_WITH(test_said_again, begin, NULL)
{
    struct shake to;

    talk(&client, &server, client_said, server_said);
    talk_begin(&to, true, &talk_secret, TALK_PROTOCOL, TALK_VERSION, 0x56);
    talk_feed(&to, client_said, TALK_CLIENT_BYTES);
    assert_int_equal(to.err, -EACCES);
    talk_begin(&to, false, &talk_secret, TALK_PROTOCOL, TALK_VERSION, 0xcd);
    talk_feed(&to, server_said, TALK_SERVER_BYTES);
    assert_int_equal(to.err, -EACCES);
}

/* A stranger who only gives back what it gets, as it is or with the other role; two of a kind; a key of low order; another program. */
TEST_WITH(test_reflected, begin, NULL)
{
    static const char ssh[] = "SSH-2.0-OpenSSH_9.2p1\r\n";
    uint8_t bytes[SHAKE_BYTES_MAX];
    struct shake other;

    for (int what = 0; what < 5; what++) {
        talk_good(&client, false);
        talk_good(&server, true);
        talk_begin(&other, what == 2 || what == 4, &talk_secret, TALK_PROTOCOL, TALK_VERSION, 0x77);
        memcpy(bytes, what < 2 ? client.out : what == 3 ? other.out : other.own, SHAKE_HELLO_BYTES);
        if (what == 1)
            bytes[8] = 'S';
        if (what == 4)
            memset(bytes + SHAKE_HELLO_BYTES - SECRET_KEY_BYTES, 0, SECRET_KEY_BYTES);
        struct shake *to = what == 2 ? &server : &client;
        talk_feed(to, bytes, SHAKE_HELLO_BYTES);
        assert_int_equal(to->err, -EPROTO);
        assert_true(to->n_out <= SHAKE_HELLO_BYTES); /* no proof was made */
    }
    talk_good(&client, false);
    assert_int_equal(talk_feed(&client, (const uint8_t *)ssh, sizeof(ssh) - 1), 8);
    assert_int_equal(client.err, -EPROTO);
}

/* A stranger between two clients hands the proof of one to the other, as a server's. */
TEST_WITH(test_a_proof_is_no_answer, begin, NULL)
{
    uint8_t answer[SHAKE_ANSWER_BYTES] = {'P', 'L', 'M', 'B', 2, 3, 0, SHAKE_ANSWER_BYTES};

    talk_pass(&client, &server, NULL, NULL);
    talk_pass(&server, &client, NULL, NULL);
    assert_int_equal(client.n_out, SHAKE_PROOF_BYTES);
    answer[11] = 1; /* welcome */
    memcpy(answer + SHAKE_ANSWER_BYTES - SHAKE_SEALED_BYTES,
           client.out + SHAKE_PROOF_BYTES - SHAKE_SEALED_BYTES, SHAKE_SEALED_BYTES);
    talk_feed(&client, answer, sizeof(answer));
    assert_int_equal(client.err, -EACCES);
}

/* Sizes other than a message's own; and another layout of the messages, of which both ends hear. */
TEST_WITH(test_sizes, begin, NULL)
{
    uint8_t bytes[SHAKE_BYTES_MAX];
    struct shake to;

    memcpy(bytes, client.out, SHAKE_HELLO_BYTES);
    for (unsigned size = 0; size < 65536; size += size < 1024 ? 1 : 256) {
        bytes[6] = (uint8_t)(size >> 8);
        bytes[7] = (uint8_t)size;
        talk_good(&to, true);
        size_t took = talk_feed(&to, bytes, SHAKE_HELLO_BYTES);
        assert_int_equal(to.state == SHAKE_PROOF, size == SHAKE_HELLO_BYTES);
        if (size != SHAKE_HELLO_BYTES)
            assert_int_equal(took, 8);
    }
    memcpy(bytes, client.out, SHAKE_HELLO_BYTES);
    bytes[4] = 9;
    talk_feed(&server, bytes, SHAKE_HELLO_BYTES);
    assert_int_equal(server.err, -EPROTO);
    assert_non_null(strstr(server.error, "number 9"));
    assert_int_equal(server.n_out, SHAKE_HELLO_BYTES);
}

/* Names and versions of a stranger do not reach a terminal as they are. */
TEST_WITH(test_texts, begin, NULL)
{
    char text[8];

    shake_text(text, sizeof(text), "\x1b[31mred and more", 14);
    assert_string_equal(text, "?[31mre");
    shake_text(text, sizeof(text), "abc", 2);
    assert_string_equal(text, "ab");
}

/* Ends whose layouts differ must not talk to each other. */
TEST(test_a_protocol_is_of_all_its_numbers)
{
    const uint32_t layout[] = {5, 64, 128}, other[] = {5, 64, 136}, newer[] = {6, 64, 128};

    assert_int_equal(meet_protocol(layout, 3), meet_protocol(layout, 3));
    assert_int_not_equal(meet_protocol(layout, 3), meet_protocol(other, 3));
    assert_int_not_equal(meet_protocol(layout, 3), meet_protocol(newer, 3));
    assert_int_not_equal(meet_protocol(layout, 3), meet_protocol(layout, 2));
}
