/* SPDX-License-Identifier: Apache-2.0 */
/* Cards of many members on their way, packed: what frames of them carry. Pure, but for cards_send(). */
#ifndef PLUMB_BENCHES_ALLREDUCE_CARDS_H
#define PLUMB_BENCHES_ALLREDUCE_CARDS_H

#include <stdbool.h>

#include "core/collective/collective.h"

/* Each: uint32_t member, uint32_t length, the card's bytes. */
struct card_list {
    uint8_t *bytes;
    size_t len, room;
    unsigned n;
};

/* 0, -ENOMEM; -EMSGSIZE: longer than COLLECTIVE_CARD_MAX. */
int cards_add(struct card_list *l, unsigned member, const void *card, size_t len);
/* A frame's cards are added: 0, -ENOMEM; -EPROTO: not whole, of no member, or more than one for each member; then none is. */
int cards_take(struct card_list *l, const void *frame, size_t len, unsigned members);
/* The next one from *at on, which begins at 0. */
bool cards_next(const struct card_list *l, size_t *at, unsigned *member, const uint8_t **card,
                size_t *len);
/* In frames of whole cards. */
int cards_send(struct channel *c, uint16_t type, const struct card_list *l);
void cards_free(struct card_list *l); /* leaves an empty list */

#endif
