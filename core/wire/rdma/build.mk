# SPDX-License-Identifier: Apache-2.0
# The RDMA module, plumb-rdma.so: included by the Makefile. Built where scripts/configure found libibverbs' and
# librdmacm's headers. No program is linked with it or waits for it.

RDMA_MODULE := $(if $(HAVE_LIBIBVERBS),$(if $(HAVE_LIBRDMACM),$(if $(FUZZ),,$(BUILD)/lib/plumbline/plumb-rdma.so)))
RDMA_SRC := $(wildcard core/wire/rdma/*.c)
RDMA_OBJ := $(call obj,$(RDMA_SRC))

$(RDMA_OBJ): ALL_CFLAGS += $(LIBIBVERBS_CFLAGS) $(LIBRDMACM_CFLAGS) -fPIC -fvisibility=hidden

# A library that it needs is looked for in the folder above it too: a bundle has its libraries there. With sanitizers
# it takes from the program what it lacks.
$(BUILD)/lib/plumbline/plumb-rdma.so: $(RDMA_OBJ)
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) -shared -Wl,--gc-sections -Wl,--as-needed -Wl,--enable-new-dtags \
		-Wl,-rpath,'$$ORIGIN:$$ORIGIN/..' $(if $(SANITIZE),,-Wl,--no-undefined) $(SANITIZE) $(LDFLAGS) \
		$(RDMA_OBJ) -o $@ $(LIBRDMACM_LIBS) $(LIBIBVERBS_LIBS)

# Its tests open it where it was built.
$(call unit_bin,$(wildcard tests/unit/test_net_rdma*.c tests/unit/test_wire_rdma*.c)): | $(RDMA_MODULE)
