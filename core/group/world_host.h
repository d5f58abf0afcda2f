/* SPDX-License-Identifier: Apache-2.0 */
/* Where in the network this process is. */
#ifndef PLUMB_CORE_GROUP_WORLD_HOST_H
#define PLUMB_CORE_GROUP_WORLD_HOST_H

#include <stdint.h>
#include <sys/socket.h>

/* The network namespace and the boot, mixed; 0 where one of them cannot be known. Two processes for which it is the
 * same reach each other by loopback. */
uint64_t host_network(void);

/* Port 0, of the first interface that is up and not loopback: IPv4, else IPv6, a link's own address last; AF_UNSPEC: there is none. */
void host_first_address(struct sockaddr_storage *address);

#endif
