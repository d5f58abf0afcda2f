/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signs of life beside the channels, for worlds whose channels are a library's: while a rank waits
 * inside of that, nobody can ask it anything. A thread in each rank keeps a TCP connection to rank
 * 0's and says twice a second that it is there, and which request it has come to; rank 0's answers
 * alike.
 *
 * So it is known who was killed (the connection ends), who hangs or was cut off (nothing comes any
 * more) and who has not come (to the request that rank 0 is at). A rank of which nothing was ever
 * heard is not judged: perhaps a firewall is between them. Where all are there and yet nothing
 * moves, they try to reach each other: so it is known between which hosts the network is dead.
 */
#ifndef PLUMB_BENCHES_ALLREDUCE_PULSE_H
#define PLUMB_BENCHES_ALLREDUCE_PULSE_H

#include <stdbool.h>

#include "core/group/notice.h"
#include "core/group/world.h"

#define PULSE_BEAT_NS   500000000u
#define PULSE_SILENT_NS 5000000000u /* of a rank that was heard before */
#define PULSE_LEADER_NS 7000000000u /* of rank 0: it is to judge first */
#define PULSE_ABSENT_NS 7500000000u /* rank 0 is at a request that the other one has not come to */

struct pulse;

/* Rank 0: listens; *port is for the others. By loopback where all share this one's network. IPv4
 * and IPv6. 0 or -errno. */
int pulse_lead(struct pulse **p, struct world *w, uint16_t *port);
/* The others: connects, for at most three seconds. 0 or -errno: then there is none. */
int pulse_follow(struct pulse **p, struct world *w, uint16_t port);
void pulse_close(struct pulse *p); /* NULL is left alone */
/* Rank 0, before it lets the others go: until then who is gone, the first, is said on stderr at
 * once. NULL is left alone. */
void pulse_part(struct pulse *p);

/* From here on this rank is at this request, which is numbered alike in all ranks, upwards; 0: it
 * is done. NULL is left alone. */
void pulse_at(struct pulse *p, uint64_t request);
/* Rank 0: has this one been heard? */
bool pulse_hears(struct pulse *p, unsigned rank);
/* The first of these ranks that is lost, with the sentence that names it: -ECONNRESET: it is gone;
 * -ETIMEDOUT: it is silent, or has not come; 0: none is. The caller is not among them. NULL:
 * none. */
int pulse_lost(struct pulse *p, const unsigned *ranks, unsigned n, unsigned *rank, char *text,
               size_t len);
/* The fact that goes with pulse_lost(), for the launcher. */
struct notice pulse_notice(const struct pulse *p, unsigned rank, int err);
/* Did this process stop for longer than a rank may be silent? Then what it says of others proves
 * nothing. */
bool pulse_stood_still(struct pulse *p);
/* Rank 0: the first of all that is gone. A launcher of MPI ends all ranks then, whether they need
 * it or not. */
int pulse_gone(struct pulse *p, unsigned *rank, char *text, size_t len);
/* Rank 0, where these, the caller not among them, are alive and yet nothing moves: can TCP
 * connections be made between their hosts? Each call looks; true: it is known, and text is a
 * clause, or "": nothing could be tried. NULL: true. */
bool pulse_between(struct pulse *p, const unsigned *ranks, unsigned n, char *text, size_t len);

#endif
