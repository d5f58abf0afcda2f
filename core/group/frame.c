/* SPDX-License-Identifier: Apache-2.0 */
/* Frames as bytes: see frame.h. */
#include <errno.h>
#include <string.h>

#include "core/group/bytes.h"
#include "core/group/frame.h"

static void tag(const struct frame_link *l, const uint8_t *bytes, size_t n,
                uint8_t mac[SECRET_MAC_BYTES])
{
    struct secret_part part = {bytes, n};

    if (l->keyed)
        secret_mac(mac, l->key, &part, 1);
    else
        memset(mac, 0, SECRET_MAC_BYTES);
}

long frame_encode(struct frame_link *l, uint16_t type, const void *data, size_t len, uint8_t *to)
{
    uint8_t mac[SECRET_MAC_BYTES];
    size_t n = FRAME_HEADER_BYTES + len;

    if (len > CHANNEL_FRAME_MAX)
        return -EMSGSIZE;
    bytes_put32(to, (uint32_t)len);
    bytes_put16(to + 4, type);
    bytes_put16(to + 6, 0);
    bytes_put64(to + 8, l->sequence++);
    if (len)
        memcpy(to + FRAME_HEADER_BYTES, data, len);
    tag(l, to, n, mac);
    memcpy(to + n, mac, FRAME_TAG_BYTES);
    return (long)(n + FRAME_TAG_BYTES);
}

long frame_size(const uint8_t *bytes, size_t n)
{
    if (n < FRAME_HEADER_BYTES)
        return FRAME_HEADER_BYTES;
    uint32_t len = bytes_get32(bytes);
    if (len > CHANNEL_FRAME_MAX || bytes_get16(bytes + 6))
        return -EPROTO;
    return (long)(FRAME_HEADER_BYTES + len + FRAME_TAG_BYTES);
}

int frame_take(struct frame_link *l, const uint8_t *bytes, size_t n, struct frame *f)
{
    static const uint8_t none[FRAME_TAG_BYTES];
    uint8_t mac[SECRET_MAC_BYTES];

    if (n < FRAME_HEADER_BYTES + FRAME_TAG_BYTES || frame_size(bytes, n) != (long)n)
        return -EPROTO;
    const uint8_t *theirs = bytes + n - FRAME_TAG_BYTES;
    tag(l, bytes, n - FRAME_TAG_BYTES, mac);
    bool same = l->keyed ? secret_equal(mac, theirs, FRAME_TAG_BYTES)
                         : !memcmp(none, theirs, FRAME_TAG_BYTES);
    if (!same || bytes_get64(bytes + 8) != l->sequence)
        return -EPROTO;
    l->sequence++;
    *f = (struct frame){.type = bytes_get16(bytes + 4),
                        .data = bytes + FRAME_HEADER_BYTES,
                        .len = n - FRAME_HEADER_BYTES - FRAME_TAG_BYTES};
    return 0;
}
