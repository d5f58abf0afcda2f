/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames of a channel as bytes: pure functions over a buffer.
 *
 *   length u32 | type u16 | 0 u16 | sequence u64 | payload | tag 16 bytes       big-endian
 *
 * The tag is HMAC-SHA256, cut to 16 bytes, over all that goes before it, with a key of its own for each
 * direction, so that a frame cannot be made up, changed or sent back; the sequence number counts a
 * direction's frames from 0, so that none can be repeated or left out. A link without a key (between a
 * process and its child) has a tag of zeros.
 */
#ifndef PLUMB_CORE_GROUP_FRAME_H
#define PLUMB_CORE_GROUP_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/group/channel.h"
#include "core/group/secret.h"

#define FRAME_HEADER_BYTES 16u
#define FRAME_TAG_BYTES    16u
#define FRAME_BYTES_MAX    (FRAME_HEADER_BYTES + CHANNEL_FRAME_MAX + FRAME_TAG_BYTES)

/* One direction, at one end. */
struct frame_link {
    bool keyed;
    uint8_t key[SECRET_KEY_BYTES];
    uint64_t sequence; /* of the next frame */
};

struct frame {
    uint16_t type;
    const uint8_t *data; /* in the buffer that was parsed */
    size_t len;
};

/* Writes one frame to `to`, which holds FRAME_BYTES_MAX. Its size; -EMSGSIZE: more than
 * CHANNEL_FRAME_MAX. */
long frame_encode(struct frame_link *l, uint16_t type, const void *data, size_t len, uint8_t *to);

/* How many bytes the frame that begins with these n has: FRAME_HEADER_BYTES while there are fewer;
 * -EPROTO: none begins so. Never more than FRAME_BYTES_MAX. */
long frame_size(const uint8_t *bytes, size_t n);

/* A whole frame of n bytes, as frame_size() says, is taken: 0, or -EPROTO: damaged, repeated, out of turn or
 * not from the other end; then the link is of no more use. */
int frame_take(struct frame_link *l, const uint8_t *bytes, size_t n, struct frame *f);

#endif
