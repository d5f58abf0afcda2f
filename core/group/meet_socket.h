/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets and names that both ends of a meeting need: see meet.h. */
#ifndef PLUMB_CORE_GROUP_MEET_SOCKET_H
#define PLUMB_CORE_GROUP_MEET_SOCKET_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "core/group/fd_channel.h"
#include "core/group/handshake.h"

#define MEET_ADDRESS_BYTES 80
#define MEET_LISTENERS_MAX 8

/* "10.77.0.2 port 18515" */
void meet_address_text(const struct sockaddr_storage *a, char *text, size_t len);

/* Who this end is, and a fresh nonce. 0 or -errno. */
int meet_self(struct shake_self *self, const struct meet_secret *secret, uint32_t protocol,
              char name[SHAKE_NAME_BYTES]);

/* After the handshake: takes over the socket. 0 or -errno, and the socket is closed. */
int meet_channel(struct channel **c, int fd, const struct shake *s, const char *name,
                 const struct sockaddr_storage *address);

/* Sends what the handshake has to say. It is short, and nothing else is on its way: what does not go out at once
 * goes to nobody. 0 or -errno. */
int meet_say(int fd, struct shake *s);
/* Hears what has come, without waiting: 0, -EAGAIN when nothing has, -ECONNRESET at the end, or -errno. */
int meet_hear(int fd, struct shake *s);

/* Opens up to MEET_LISTENERS_MAX sockets; *port is the one that was asked for, or found. 0 or -errno with error. */
int meet_open_listeners(const char *address, uint16_t *port, int fds[MEET_LISTENERS_MAX], size_t *n,
                        char *error, size_t len);

#endif
