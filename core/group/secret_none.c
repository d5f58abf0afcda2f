/* SPDX-License-Identifier: Apache-2.0 */
/* A build without a library for secrets: see secret.h. Everything fails closed. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "core/group/secret.h"

int secret_supported(char *error, size_t len)
{
    snprintf(error, len,
             "this build cannot prove a secret, so it meets nobody over a network: "
             "install libsodium-dev, then make config and make; or use MPI");
    return -EOPNOTSUPP;
}

int secret_random(void *to, size_t len)
{
    uint8_t *at = to;

    while (len) {
        ssize_t n = getrandom(at, len, 0);
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n > 0) {
            at += n;
            len -= (size_t)n;
        }
    }
    return 0;
}

void secret_hash(uint8_t key[SECRET_KEY_BYTES], const void *text, size_t len)
{
    (void)text;
    (void)len;
    memset(key, 0, SECRET_KEY_BYTES);
}

void secret_pair(struct secret_pair *pair, const uint8_t seed[SECRET_KEY_BYTES])
{
    (void)seed;
    memset(pair, 0, sizeof(*pair));
}

int secret_agree(struct secret_keys *keys, bool server, const struct secret_pair *own,
                 const uint8_t peer[SECRET_KEY_BYTES], const uint8_t secret[SECRET_KEY_BYTES],
                 const void *said, size_t len)
{
    (void)server;
    (void)own;
    (void)peer;
    (void)secret;
    (void)said;
    (void)len;
    memset(keys, 0, sizeof(*keys));
    return -EOPNOTSUPP;
}

void secret_seal_begin(struct secret_stream *s, const uint8_t key[SECRET_KEY_BYTES],
                       uint8_t header[SECRET_HEADER_BYTES])
{
    (void)key;
    memset(s, 0, sizeof(*s));
    memset(header, 0, SECRET_HEADER_BYTES);
}

void secret_open_begin(struct secret_stream *s, const uint8_t key[SECRET_KEY_BYTES],
                       const uint8_t header[SECRET_HEADER_BYTES])
{
    (void)key;
    (void)header;
    memset(s, 0, sizeof(*s));
}

/* What is not encrypted is not sent either. */
void secret_seal(struct secret_stream *s, uint8_t *sealed, const void *data, size_t len,
                 const void *beside, size_t beside_len)
{
    (void)s;
    (void)data;
    (void)beside;
    (void)beside_len;
    memset(sealed, 0, len + SECRET_SEAL_BYTES);
}

int secret_open(struct secret_stream *s, void *data, const uint8_t *sealed, size_t len,
                const void *beside, size_t beside_len)
{
    (void)s;
    (void)data;
    (void)sealed;
    (void)len;
    (void)beside;
    (void)beside_len;
    return -EPROTO;
}

void secret_wipe(void *data, size_t len)
{
    explicit_bzero(data, len);
}

static uint64_t stir(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

void secret_token(uint8_t token[SECRET_TOKEN_BYTES], const uint8_t key[SECRET_KEY_BYTES],
                  const char *purpose, uint32_t number)
{
    uint64_t what = number, word;

    for (const char *p = purpose; *p; p++)
        what = stir(what + (uint8_t)*p + 0x9e3779b97f4a7c15u);
    for (size_t i = 0; i < SECRET_TOKEN_BYTES; i += sizeof(word)) {
        memcpy(&word, key + i, sizeof(word));
        word = stir(word + what);
        memcpy(token + i, &word, sizeof(word));
    }
}
