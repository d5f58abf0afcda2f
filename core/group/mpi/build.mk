# SPDX-License-Identifier: Apache-2.0
# The MPI module, plumb-mpi.so: included by the Makefile. Built where scripts/configure found an MPI for C. No program is
# linked with it or waits for it; with another MPI, build again with its mpicc first on PATH.

MPI_MODULE := $(if $(HAVE_MPI),$(if $(FUZZ),,$(BUILD)/lib/plumbline/plumb-mpi.so))
MPI_OBJ := $(call obj,$(wildcard core/group/mpi/*.c))

$(MPI_OBJ): ALL_CFLAGS += $(MPI_CFLAGS) -fPIC -fvisibility=hidden

$(BUILD)/lib/plumbline/plumb-mpi.so: $(MPI_OBJ)
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) -shared -Wl,--gc-sections -Wl,--enable-new-dtags -Wl,-rpath,'$$ORIGIN:$$ORIGIN/..' \
		$(SANITIZE) $(LDFLAGS) $^ -o $@ $(MPI_LIBS)
