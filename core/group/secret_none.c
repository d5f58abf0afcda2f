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

void secret_mac(uint8_t mac[SECRET_MAC_BYTES], const uint8_t key[SECRET_KEY_BYTES],
                const struct secret_part *parts, size_t n_parts)
{
    (void)key;
    (void)parts;
    (void)n_parts;
    memset(mac, 0, SECRET_MAC_BYTES);
}

void secret_hash(uint8_t key[SECRET_KEY_BYTES], const void *text, size_t len)
{
    (void)text;
    (void)len;
    memset(key, 0, SECRET_KEY_BYTES);
}

bool secret_equal(const void *a, const void *b, size_t len)
{
    (void)a;
    (void)b;
    (void)len;
    return false;
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

void secret_token(uint8_t token[SECRET_MAC_BYTES], const uint8_t key[SECRET_KEY_BYTES],
                  const char *purpose, uint32_t number)
{
    uint64_t what = number, word;

    for (const char *p = purpose; *p; p++)
        what = stir(what + (uint8_t)*p + 0x9e3779b97f4a7c15u);
    for (size_t i = 0; i < SECRET_MAC_BYTES; i += sizeof(word)) {
        memcpy(&word, key + i, sizeof(word));
        word = stir(word + what);
        memcpy(token + i, &word, sizeof(word));
    }
}
