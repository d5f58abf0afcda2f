/* SPDX-License-Identifier: Apache-2.0 */
/* Did whoever started the program choose sockets for a library's bytes, where RDMA might carry them? By the library's own settings; `--device` is
 * another way to say so: member_prove(). */
#ifndef PLUMB_CORE_COLLECTIVE_SOCKETS_H
#define PLUMB_CORE_COLLECTIVE_SOCKETS_H

#include <stddef.h>

/*
 * The setting that says so, "UCX_TLS=tcp,self"; "": none. Returns text. Names of transports without any of RDMA among them; a list of what is not
 * to be taken ("^openib") chooses nothing, but for all of InfiniBand ("^ib").
 *
 * mpi: pml and btl are Open MPI's, as it has them, "" where they are not set; the rest (UCX_TLS, UCX_NET_DEVICES, FI_PROVIDER,
 * I_MPI_OFI_PROVIDER) is of the environment. nccl: NCCL_IB_DISABLE and NCCL_NET, which a file nccl.conf may have put there.
 */
const char *sockets_of_mpi(const char *pml, const char *btl, char *text, size_t len);
const char *sockets_of_nccl(char *text, size_t len);

#endif
