/* SPDX-License-Identifier: Apache-2.0 */
/* Did whoever started the program choose sockets for a library's bytes, where RDMA might carry
 * them? By the library's own settings; `--device` is another way to say so: member_prove(). */
#ifndef PLUMB_CORE_COLLECTIVE_SOCKETS_H
#define PLUMB_CORE_COLLECTIVE_SOCKETS_H

#include <stddef.h>

/* Open MPI's settings, as it has them; "": not set. One that fills its room was cut: what it
 * chooses is not known. */
struct mpi_settings {
    char pml[256], btl[256];
    char providers[256]; /* mtl_ofi_provider_include */
};

/*
 * The setting that says so, "UCX_TLS=tcp,self"; "": none. Returns text. Names of transports without
 * any of RDMA among them; a list of what is not to be taken ("^openib") chooses nothing, but for
 * all of InfiniBand ("^ib").
 *
 * mpi: beside Open MPI's settings UCX_TLS, UCX_NET_DEVICES, FI_PROVIDER, I_MPI_FABRICS,
 * I_MPI_OFI_PROVIDER and MPIR_CVAR_OFI_USE_PROVIDER, which are of the environment; where the pml is
 * said, those of the layer that it takes alone. nccl: NCCL_IB_DISABLE and NCCL_NET, which a file
 * nccl.conf may have put there.
 */
const char *sockets_of_mpi(const struct mpi_settings *s, char *text, size_t len);
const char *sockets_of_nccl(char *text, size_t len);

#endif
