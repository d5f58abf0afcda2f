# SPDX-License-Identifier: Apache-2.0
# The NCCL module, plumb-nccl.so: included by the Makefile. Built where scripts/configure found nccl.h beside CUDA's headers; the
# library itself is opened at run time.

NCCL_MODULE := $(if $(HAVE_NCCL),$(if $(FUZZ),,$(BUILD)/lib/plumbline/plumb-nccl.so))
NCCL_OBJ := $(call obj,$(wildcard core/collective/nccl/*.c))

$(NCCL_OBJ): ALL_CFLAGS += $(NCCL_CFLAGS) -fPIC -fvisibility=hidden

$(BUILD)/lib/plumbline/plumb-nccl.so: $(NCCL_OBJ)
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) -shared -Wl,--gc-sections -Wl,--as-needed -Wl,--enable-new-dtags \
		-Wl,-rpath,'$$ORIGIN:$$ORIGIN/..' $(if $(SANITIZE),,-Wl,--no-undefined) $(SANITIZE) $(LDFLAGS) \
		$(NCCL_OBJ) -o $@ -ldl
