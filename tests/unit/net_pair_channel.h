/* SPDX-License-Identifier: Apache-2.0 */
/* A channel for tests whose two ends are in one process. It keeps no secret. */
#ifndef PLUMB_TESTS_UNIT_NET_PAIR_CHANNEL_H
#define PLUMB_TESTS_UNIT_NET_PAIR_CHANNEL_H

#include "core/group/channel.h"

/* Both ends, over a socket pair; each has 127.0.0.1 for an address. 0 or -errno. */
int net_pair_channels(struct channel *channels[2]);

#endif
