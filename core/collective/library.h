/* SPDX-License-Identifier: Apache-2.0 */
/* What the backends over a library have in common: which part of the buffers a call is of, and what must at least have gone
 * from node to node, whatever the library did. */
#ifndef PLUMB_CORE_COLLECTIVE_LIBRARY_H
#define PLUMB_CORE_COLLECTIVE_LIBRARY_H

#include "core/collective/collective.h"

/* Bytes from the beginning of the input and of the result; in place, of the one vector. */
struct library_part {
    uint64_t input, result;
};
struct library_part library_part(const struct collective *c, const struct collective_call *call);

/* Bytes that this member's node must send to and receive from others in an operation of `bytes` (the vector), at the least:
 * what no algorithm and no reduction on the way can save. Told by the node's first member; 0 for its others. */
struct library_least {
    double out_bytes, in_bytes;
};
struct library_least library_least(const struct collective *c, double bytes);

/* Is all that the point's `device` names here, each of "eth0+eth1" an interface or an RDMA port? 0; -ENODEV with error, which lists those
 * that there are. */
int library_devices(struct collective *c);

/* The flow of all that, over `device` ("a+b": over all of them together); none where that is "" or nothing must have gone. */
void library_flow(struct collective_told *told, const char *device, struct library_least least,
                  double bytes);

#endif
