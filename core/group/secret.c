/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets by libsodium: see secret.h. The only file that knows this library. */
#include <errno.h>
#include <sodium.h>
#include <string.h>

#include "core/group/secret.h"

#define SEAL(name) crypto_secretstream_xchacha20poly1305_##name

_Static_assert(SECRET_KEY_BYTES == crypto_kx_PUBLICKEYBYTES &&
                   SECRET_KEY_BYTES == crypto_kx_SECRETKEYBYTES &&
                   SECRET_KEY_BYTES == crypto_kx_SEEDBYTES &&
                   SECRET_KEY_BYTES == crypto_kx_SESSIONKEYBYTES &&
                   SECRET_KEY_BYTES == crypto_generichash_KEYBYTES &&
                   SECRET_KEY_BYTES == crypto_kdf_KEYBYTES && SECRET_KEY_BYTES == SEAL(KEYBYTES),
               "one size of keys");
_Static_assert(SECRET_HEADER_BYTES == SEAL(HEADERBYTES) && SECRET_SEAL_BYTES == SEAL(ABYTES) &&
                   sizeof(struct secret_stream) == sizeof(SEAL(state)) &&
                   _Alignof(struct secret_stream) == _Alignof(SEAL(state)),
               "as in secret.h");

/* What begins with one of the three that call sodium_init() needs no call of its own. */
int secret_random(void *to, size_t len)
{
    if (sodium_init() < 0)
        return -EIO;
    randombytes_buf(to, len);
    return 0;
}

void secret_wipe(void *data, size_t len)
{
    sodium_memzero(data, len);
}

void secret_hash(uint8_t key[SECRET_KEY_BYTES], const void *text, size_t len)
{
    (void)!sodium_init();
    crypto_generichash(key, SECRET_KEY_BYTES, text, len, NULL, 0);
}

void secret_token(uint8_t token[SECRET_TOKEN_BYTES], const uint8_t key[SECRET_KEY_BYTES],
                  const char *purpose, uint32_t number)
{
    uint8_t text[4] = {number >> 24, number >> 16, number >> 8, number};
    crypto_generichash_state state;

    crypto_generichash_init(&state, key, SECRET_KEY_BYTES, SECRET_TOKEN_BYTES);
    crypto_generichash_update(&state, text, sizeof(text));
    crypto_generichash_update(&state, (const uint8_t *)purpose, strlen(purpose));
    crypto_generichash_final(&state, token, SECRET_TOKEN_BYTES);
    sodium_memzero(&state, sizeof(state));
}

void secret_pair(struct secret_pair *pair, const uint8_t seed[SECRET_KEY_BYTES])
{
    (void)!sodium_init();
    crypto_kx_seed_keypair(pair->shown, pair->own, seed);
}

int secret_agree(struct secret_keys *keys, bool server, const struct secret_pair *own,
                 const uint8_t peer[SECRET_KEY_BYTES], const uint8_t secret[SECRET_KEY_BYTES],
                 const void *said, size_t len)
{
    uint8_t shared[2][SECRET_KEY_BYTES], session[SECRET_KEY_BYTES];
    crypto_generichash_state state;
    int err = server
                  ? crypto_kx_server_session_keys(shared[0], shared[1], own->shown, own->own, peer)
                  : crypto_kx_client_session_keys(shared[1], shared[0], own->shown, own->own, peer);

    if (err)
        return -EPROTO;
    crypto_generichash_init(&state, secret, SECRET_KEY_BYTES, sizeof(session));
    crypto_generichash_update(&state, *shared, sizeof(shared));
    crypto_generichash_update(&state, said, len);
    crypto_generichash_final(&state, session, sizeof(session));
    crypto_kdf_derive_from_key(keys->to_server, SECRET_KEY_BYTES, 1, "plumbnet", session);
    crypto_kdf_derive_from_key(keys->to_client, SECRET_KEY_BYTES, 2, "plumbnet", session);
    crypto_kdf_derive_from_key(keys->token, SECRET_KEY_BYTES, 3, "plumbnet", session);
    sodium_memzero(&state, sizeof(state));
    sodium_memzero(session, sizeof(session));
    sodium_memzero(shared, sizeof(shared));
    return 0;
}

static SEAL(state) * of(struct secret_stream *s)
{
    return (SEAL(state) *)s->state;
}

void secret_seal_begin(struct secret_stream *s, const uint8_t key[SECRET_KEY_BYTES],
                       uint8_t header[SECRET_HEADER_BYTES])
{
    SEAL(init_push)(of(s), header, key);
}

void secret_open_begin(struct secret_stream *s, const uint8_t key[SECRET_KEY_BYTES],
                       const uint8_t header[SECRET_HEADER_BYTES])
{
    SEAL(init_pull)(of(s), header, key);
}

void secret_seal(struct secret_stream *s, uint8_t *sealed, const void *data, size_t len,
                 const void *beside, size_t beside_len)
{
    SEAL(push)(of(s), sealed, NULL, data, len, beside, beside_len, 0);
}

int secret_open(struct secret_stream *s, void *data, const uint8_t *sealed, size_t len,
                const void *beside, size_t beside_len)
{
    uint8_t tag = 0;

    return SEAL(pull)(of(s), data, NULL, &tag, sealed, len + SECRET_SEAL_BYTES, beside,
                      beside_len) ||
                   tag
               ? -EPROTO
               : 0;
}
