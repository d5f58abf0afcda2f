# SPDX-License-Identifier: Apache-2.0
# The GPU module, plumb-cuda.so: included by the Makefile. Built where scripts/configure found nvcc and cuda.h; its
# products are left out where there is no cublasLt.h. No program is linked with it or waits for it.

CUDA_GEN := build/gen/cuda
CUDA_MODULE := $(if $(HAVE_CUDA),$(if $(FUZZ),,$(BUILD)/lib/plumbline/plumb-cuda.so))
CUDA_SRC := $(filter-out $(if $(HAVE_CUBLASLT),,core/hw/cuda/gemm%),$(wildcard core/hw/cuda/*.c))
CUDA_OBJ := $(call obj,$(CUDA_SRC))
CUDA_NAMES := $(foreach kind,tiles stages clusters,$(CUDA_GEN)/cublaslt_$(kind).h)

# The kernels: machine code (sm_) and PTX (compute_), no code for the host.
CUDA_KERNELS := $(wildcard core/hw/cuda/kernels*.cu core/hw/cuda/kernels*.cuh) core/hw/gpu_kernels.h \
	core/hw/gpu_kernels.h
CUDA_TARGETS := $(foreach c,$(CUDA_CODES),-gencode arch=compute_$(c),code=sm_$(c)) \
	$(foreach c,$(sort $(CUDA_PTX)),-gencode arch=compute_$(c),code=compute_$(c))
NVCCFLAGS ?= -allow-unsupported-compiler -Wno-deprecated-gpu-targets
NVCC_ALL := $(NVCC) -fatbin -std=c++14 -t 2 -I. $(CUDA_TARGETS) $(NVCCFLAGS)

$(CUDA_GEN)/kernels.fatbin: $(CUDA_KERNELS) $(CUDA_GEN)/flags
	$(call say,NVCC,core/hw/cuda/kernels.cu)$(NVCC_ALL) core/hw/cuda/kernels.cu -o $@

$(CUDA_GEN)/flags: FORCE
	$(call keep_text,$(call quote,$(NVCC_ALL) $(CUDA_CFLAGS)))

# Which sources there are: without cublasLt.h, fewer.
$(CUDA_GEN)/sources: FORCE
	$(call keep_text,$(call quote,$(CUDA_SRC)))

# What the sources take from the build: the image's place (relative to where make runs), and what is in it.
$(CUDA_GEN)/image.h: FORCE
	$(call keep_text,'#define CUDA_IMAGE "$(CUDA_GEN)/kernels.fatbin"' '#define CUDA_CAPABILITIES "$(CUDA_CAPABILITIES)"')

# The header's enums as tables of names: its tiles come to hundreds, more with each version.
define CUDA_NAMES_RULE
$(CUDA_GEN)/cublaslt_$(1).h: $(CUDA_GEN)/flags
	$$(Q)$$(CC) $$(CUDA_CFLAGS) -E -P -include cublasLt.h -x c /dev/null | tr ',' '\n' | \
		sed -n 's/.*\<$(2)_\([0-9][0-9xAUTO]*\) *= *\([0-9]*\).*/[\2] = "\1",/p' >$$@
	$$(Q)test -s $$@ || { echo 'cublasLt.h names no $(1)' >&2; exit 1; }
endef
$(eval $(call CUDA_NAMES_RULE,tiles,CUBLASLT_MATMUL_TILE))
$(eval $(call CUDA_NAMES_RULE,stages,CUBLASLT_MATMUL_STAGES))
$(eval $(call CUDA_NAMES_RULE,clusters,CUBLASLT_CLUSTER_SHAPE))

$(CUDA_OBJ): ALL_CFLAGS += $(CUDA_CFLAGS) -I$(patsubst %/cuda,%,$(CUDA_GEN)) -fPIC -fvisibility=hidden
$(CUDA_OBJ): $(CUDA_GEN)/flags
$(call obj,core/hw/cuda/module.c): $(CUDA_GEN)/image.h $(CUDA_GEN)/kernels.fatbin
$(call obj,core/hw/cuda/gemm.c): $(CUDA_NAMES)

# A library that it opens is looked for in the folder above it too: a bundle has its libraries there. With sanitizers
# it takes from the program what it lacks.
$(BUILD)/lib/plumbline/plumb-cuda.so: $(CUDA_OBJ) $(CUDA_GEN)/sources
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) -shared -Wl,--gc-sections -Wl,--as-needed -Wl,--enable-new-dtags \
		-Wl,-rpath,'$$ORIGIN:$$ORIGIN/..' $(if $(SANITIZE),,-Wl,--no-undefined) $(SANITIZE) $(LDFLAGS) \
		$(CUDA_OBJ) -o $@ -ldl

# Its tests open it where it was built.
$(call unit_bin,$(wildcard tests/unit/test_cuda_*.c)): | $(CUDA_MODULE)

# The same once more with an older toolkit, where scripts/configure found one: a driver runs what was made with its own major version of CUDA,
# or an older one.
CUDA_OLDER_MODULE := $(if $(CUDA_OLDER),$(if $(FUZZ),,$(BUILD)/lib/plumbline/plumb-cuda$(CUDA_OLDER).so))
ifneq ($(CUDA_OLDER),)
CUDA_OLDER_BUILD := $(BUILD)/cuda$(CUDA_OLDER)
$(BUILD)/lib/plumbline/plumb-cuda$(CUDA_OLDER).so: FORCE
	@mkdir -p $(@D)
	$(Q)$(MAKE) --no-print-directory BUILD='$(CUDA_OLDER_BUILD)' CUDA_GEN='$(CUDA_OLDER_BUILD)/gen/cuda' CUDA_OLDER= \
		NVCC='$(OLDER_NVCC)' CUDA_CFLAGS='$(OLDER_CFLAGS)' CUDA_CODES='$(OLDER_CODES)' CUDA_PTX='$(OLDER_PTX)' \
		CUDA_CAPABILITIES='$(OLDER_CAPABILITIES)' HAVE_CUBLASLT='$(OLDER_CUBLASLT)' \
		'$(CUDA_OLDER_BUILD)/lib/plumbline/plumb-cuda.so'
	@cmp -s '$(CUDA_OLDER_BUILD)/lib/plumbline/plumb-cuda.so' $@ || cp '$(CUDA_OLDER_BUILD)/lib/plumbline/plumb-cuda.so' $@
endif
