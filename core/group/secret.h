/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What two ends need that prove to each other that they know a secret, and then talk in private.
 * All of it is libsodium's.
 */
#ifndef PLUMB_CORE_GROUP_SECRET_H
#define PLUMB_CORE_GROUP_SECRET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SECRET_KEY_BYTES   32
#define SECRET_TOKEN_BYTES 32

int secret_random(void *to, size_t len); /* 0 or -errno */
void secret_wipe(void *data, size_t len);
/* A key from a text that a person chose: BLAKE2b. */
void secret_hash(uint8_t key[SECRET_KEY_BYTES], const void *text, size_t len);

/* What both holders of a key work out alike, another one for each purpose and number. */
void secret_token(uint8_t token[SECRET_TOKEN_BYTES], const uint8_t key[SECRET_KEY_BYTES],
                  const char *purpose, uint32_t number);

/* ---- Keys of one session (crypto_kx): who learns the secret later cannot read it ---- */

struct secret_pair {
    uint8_t shown[SECRET_KEY_BYTES], own[SECRET_KEY_BYTES]; /* X25519: sent, and kept */
};
void secret_pair(struct secret_pair *pair, const uint8_t seed[SECRET_KEY_BYTES]);

struct secret_keys {
    uint8_t to_server[SECRET_KEY_BYTES], to_client[SECRET_KEY_BYTES], token[SECRET_KEY_BYTES];
};
/* The keys that only two have who know the same secret, have drawn these pairs, and have sent each
 * other the same `said`. 0, or -EPROTO: what the peer showed is no key. */
int secret_agree(struct secret_keys *keys, bool server, const struct secret_pair *own,
                 const uint8_t peer[SECRET_KEY_BYTES], const uint8_t secret[SECRET_KEY_BYTES],
                 const void *said, size_t len);

/* ---- A direction of frames (crypto_secretstream): each opens once, whole, in its turn ---- */

#define SECRET_HEADER_BYTES 24 /* goes before the first */
#define SECRET_SEAL_BYTES   17 /* a sealed frame is longer by so much */

struct secret_stream {
    uint8_t state[52];
};
/* The end that seals makes the header, the other one is given it. */
void secret_seal_begin(struct secret_stream *s, const uint8_t key[SECRET_KEY_BYTES],
                       uint8_t header[SECRET_HEADER_BYTES]);
void secret_open_begin(struct secret_stream *s, const uint8_t key[SECRET_KEY_BYTES],
                       const uint8_t header[SECRET_HEADER_BYTES]);
/* `beside`: sent as it is, and yet nobody can change it. `sealed` has len + SECRET_SEAL_BYTES. */
void secret_seal(struct secret_stream *s, uint8_t *sealed, const void *data, size_t len,
                 const void *beside, size_t beside_len);
/* `len`: of what was sealed. 0 or -EPROTO: it is not the next one, or was changed. */
int secret_open(struct secret_stream *s, void *data, const uint8_t *sealed, size_t len,
                const void *beside, size_t beside_len);

#endif
