/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What proves that somebody knows a secret. The cryptography is a library's (libsodium, in
 * secret_sodium.c); a build without it has secret_none.c, in which nothing compares equal, so that
 * nobody is ever let in.
 */
#ifndef PLUMB_CORE_GROUP_SECRET_H
#define PLUMB_CORE_GROUP_SECRET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SECRET_KEY_BYTES 32
#define SECRET_MAC_BYTES 32

struct secret_part {
    const void *data;
    size_t len;
};

/* 0, or -EOPNOTSUPP with the remedy. To be asked before anything below but secret_random() and
 * secret_token(), which every build has. */
int secret_supported(char *error, size_t len);

int secret_random(void *to, size_t len); /* 0 or -errno */

/* HMAC-SHA256 of the parts one after the other; a part of a length that is not fixed is the
 * last. */
void secret_mac(uint8_t mac[SECRET_MAC_BYTES], const uint8_t key[SECRET_KEY_BYTES],
                const struct secret_part *parts, size_t n_parts);
/* A key from a text that a person chose: SHA-256. */
void secret_hash(uint8_t key[SECRET_KEY_BYTES], const void *text, size_t len);
/* In a time that does not tell where they differ. */
bool secret_equal(const void *a, const void *b, size_t len);
void secret_wipe(void *data, size_t len);

/* What both holders of a key work out alike, another one for each purpose and number. Without the
 * library it tells no more than strangers apart: who sees one token can work out the others. That
 * is enough between a process and its child, which show them to nobody else. */
void secret_token(uint8_t token[SECRET_MAC_BYTES], const uint8_t key[SECRET_KEY_BYTES],
                  const char *purpose, uint32_t number);

#endif
