/* SPDX-License-Identifier: Apache-2.0 */
/* How a rank that is led ends where rank 0 is gone and nobody else may be able to say it: it says so on stderr itself. */
#ifndef PLUMB_BENCHES_ALLREDUCE_ENDING_H
#define PLUMB_BENCHES_ALLREDUCE_ENDING_H

#include "benches/allreduce/order.h"

/* -errno, and said: rank 0 is lost, by its signs of life. */
int ending_heed(const struct member *m);
/* Rank 0 took no answer from this channel: said. Returns -ECONNRESET. */
int ending_untaken(const struct member *m, struct channel *channel);
/* The channel to rank 0 is cut: said, where it is a socket's; of processes of one machine rank 0 says what there is to say. */
void ending_cut(const struct member *m, struct channel *channel);
/* member.await, while the rank is in a library: 0, or the process ends there and then with EXIT_INCOMPLETE. */
int ending_await(struct member *m);

#endif
