/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets by libsodium: see secret.h. The only file that knows this library. */
#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "core/group/secret.h"

_Static_assert(SECRET_MAC_BYTES == crypto_auth_hmacsha256_BYTES, "as in meet.h");
_Static_assert(SECRET_KEY_BYTES == crypto_hash_sha256_BYTES, "a hash is a key");

int secret_supported(char *error, size_t len)
{
    if (sodium_init() >= 0)
        return 0;
    snprintf(error, len, "libsodium does not start: no source of random numbers was found");
    return -EOPNOTSUPP;
}

int secret_random(void *to, size_t len)
{
    if (sodium_init() < 0)
        return -EOPNOTSUPP;
    randombytes_buf(to, len);
    return 0;
}

void secret_mac(uint8_t mac[SECRET_MAC_BYTES], const uint8_t key[SECRET_KEY_BYTES],
                const struct secret_part *parts, size_t n_parts)
{
    crypto_auth_hmacsha256_state state;

    crypto_auth_hmacsha256_init(&state, key, SECRET_KEY_BYTES);
    for (size_t i = 0; i < n_parts; i++)
        crypto_auth_hmacsha256_update(&state, parts[i].data, parts[i].len);
    crypto_auth_hmacsha256_final(&state, mac);
    sodium_memzero(&state, sizeof(state));
}

void secret_hash(uint8_t key[SECRET_KEY_BYTES], const void *text, size_t len)
{
    crypto_hash_sha256(key, text, len);
}

bool secret_equal(const void *a, const void *b, size_t len)
{
    return sodium_memcmp(a, b, len) == 0;
}

void secret_wipe(void *data, size_t len)
{
    sodium_memzero(data, len);
}

void secret_token(uint8_t token[SECRET_MAC_BYTES], const uint8_t key[SECRET_KEY_BYTES],
                  const char *purpose, uint32_t number)
{
    uint8_t text[4] = {number >> 24, number >> 16, number >> 8, number};
    struct secret_part parts[] = {
        {"plumb token", sizeof("plumb token")}, {text, sizeof(text)}, {purpose, strlen(purpose)}};

    secret_mac(token, key, parts, 3);
}
