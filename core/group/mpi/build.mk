# SPDX-License-Identifier: Apache-2.0
# The MPI module, plumb-mpi.so: included by the Makefile. Built where scripts/configure found an MPI for C; with another
# one: make config MPICC=mpicc.mpich, then make. No program is linked with it or waits for it.
#
# Beside that, for another MPI's launcher: make mpi-module MPICC=mpicc.mpich makes $(BUILD)/mpi/mpicc.mpich/plumb-mpi.so,
# which PLUMB_MPI_MODULE names to the same programs.

MPI_MODULE := $(if $(HAVE_MPI),$(if $(FUZZ),,$(BUILD)/lib/plumbline/plumb-mpi.so))
MPI_SRC := $(wildcard core/group/mpi/*.c)
MPI_OBJ := $(call obj,$(MPI_SRC))
MPI_LINK := -shared -Wl,--gc-sections -Wl,--enable-new-dtags -Wl,-rpath,'$$ORIGIN:$$ORIGIN/..' $(SANITIZE) $(LDFLAGS)

$(MPI_OBJ): ALL_CFLAGS += $(MPI_CFLAGS) -fPIC -fvisibility=hidden
$(MPI_OBJ): $(BUILD)/mpi/flags

# Another MPI, found by make config, is no change of what everything is built with.
MPI_FLAGS_TEXT := $(MPI_CFLAGS) $(MPI_LIBS)
$(BUILD)/mpi/flags: FORCE
	$(call keep_text,$(call quote,$(MPI_FLAGS_TEXT)))

$(BUILD)/lib/plumbline/plumb-mpi.so: $(MPI_OBJ) $(BUILD)/mpi/flags
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(MPI_LINK) $(MPI_OBJ) -o $@ $(MPI_LIBS) -ldl

MPICC ?= mpicc
MPI_OTHER := $(BUILD)/mpi/$(notdir $(firstword $(MPICC)))

mpi-module: $(MPI_OTHER)/plumb-mpi.so
	@echo $<

$(MPI_OTHER)/%.o: core/group/mpi/%.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,MPICC,$<)$(MPICC) $(ALL_CFLAGS) -fPIC -fvisibility=hidden -MMD -MP -c $< -o $@

$(MPI_OTHER)/plumb-mpi.so: $(patsubst core/group/mpi/%.c,$(MPI_OTHER)/%.o,$(MPI_SRC))
	$(call say,LINK,$@)$(MPICC) $(MPI_LINK) $^ -o $@ -ldl

.PHONY: mpi-module
-include $(wildcard $(MPI_OTHER)/*.d)
