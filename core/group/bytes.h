/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in the order of the network: big-endian. */
#ifndef PLUMB_CORE_GROUP_BYTES_H
#define PLUMB_CORE_GROUP_BYTES_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

static inline void bytes_put16(uint8_t *to, uint16_t value)
{
    value = htobe16(value);
    memcpy(to, &value, sizeof(value));
}

static inline void bytes_put32(uint8_t *to, uint32_t value)
{
    value = htobe32(value);
    memcpy(to, &value, sizeof(value));
}

static inline void bytes_put64(uint8_t *to, uint64_t value)
{
    value = htobe64(value);
    memcpy(to, &value, sizeof(value));
}

static inline uint16_t bytes_get16(const uint8_t *from)
{
    uint16_t value;

    memcpy(&value, from, sizeof(value));
    return be16toh(value);
}

static inline uint32_t bytes_get32(const uint8_t *from)
{
    uint32_t value;

    memcpy(&value, from, sizeof(value));
    return be32toh(value);
}

static inline uint64_t bytes_get64(const uint8_t *from)
{
    uint64_t value;

    memcpy(&value, from, sizeof(value));
    return be64toh(value);
}

#endif
