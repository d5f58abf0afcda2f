# SPDX-License-Identifier: Apache-2.0
# The simulated device (README.md here), built into $(BUILD)/sim: included by the Makefile. What needs a header of
# CUDA's is left out where there is none; nothing of CUDA is linked.

SIM_DIR := $(BUILD)/sim
SIM_LT_MAJOR := $(if $(HAVE_CUDA),$(shell \
	sed -n 's/^\#define CUBLAS_VER_MAJOR *//p' $(CUDA_INCLUDE)/cublas_api.h 2>/dev/null))

sim_obj = $(patsubst %.c,$(SIM_DIR)/obj/%.o,$(1))
SIM_MACHINE_OBJ := $(call sim_obj,machine.c machine_keys.c fault.c)
SIM_CUDA_OBJ := $(call sim_obj,state.c space.c path.c share.c cost.c schedule.c effects.c wait.c \
	kernel_names.c kernel_cost.c kernel_run.c api_device.c api_context.c api_memory.c api_copy.c \
	api_stream.c api_graph.c api_module.c api_export.c api_fabric.c \
	api_multicast.c)
SIM_LT_OBJ := $(call sim_obj,lt.c lt_algo.c lt_product.c lt_types.c)
SIM_NCCL_OBJ := $(call sim_obj,nccl.c nccl_data.c nccl_say.c nccl_share.c)
SIM_NVML_OBJ := $(call sim_obj,nvml.c nvml_links.c nvml_health.c)

SIM_LIBS := $(SIM_DIR)/libnvidia-ml.so.1 $(if $(HAVE_CUDA),$(SIM_DIR)/libcuda.so.1 \
	$(if $(SIM_LT_MAJOR),$(SIM_DIR)/libcublasLt.so.$(SIM_LT_MAJOR)) \
	$(if $(HAVE_NCCL),$(SIM_DIR)/libnccl.so.2) \
	$(if $(HAVE_LIBIBVERBS),$(SIM_DIR)/librdma-gpu.so))

sim: $(SIM_LIBS)
units: sim
.PHONY: sim

$(SIM_DIR)/obj/%.o: tests/sim/%.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,CC,$<)$(compile) $(ALL_CFLAGS) -O3 -fPIC $(CUDA_CFLAGS) -MMD -MP -c $< -o $@

sim_link = $(call say,LINK,$@)$(CC) -shared $(SANITIZE) $(LDFLAGS) -Wl,-soname,$(@F) \
	-Wl,--version-script=tests/sim/exports.map $(filter %.o,$^) -o $@ -lpthread -lm -ldl
$(SIM_DIR)/libcuda.so.1: $(SIM_CUDA_OBJ) $(SIM_MACHINE_OBJ) tests/sim/exports.map
	$(sim_link)
$(SIM_DIR)/libcublasLt.so.%: $(SIM_LT_OBJ) $(SIM_MACHINE_OBJ) tests/sim/exports.map
	$(sim_link)
$(SIM_NCCL_OBJ): ALL_CFLAGS += $(NCCL_CFLAGS)
$(SIM_DIR)/libnccl.so.2: $(SIM_NCCL_OBJ) $(SIM_MACHINE_OBJ) tests/sim/exports.map
	$(sim_link)
$(call sim_obj,rdma_gpu.c): ALL_CFLAGS += $(LIBIBVERBS_CFLAGS)
$(SIM_DIR)/librdma-gpu.so: $(call sim_obj,rdma_gpu.c)
	$(call say,LINK,$@)$(CC) -shared $(SANITIZE) $(LDFLAGS) -Wl,-soname,$(@F) $^ -o $@ -ldl
$(SIM_DIR)/libnvidia-ml.so.1: $(SIM_NVML_OBJ) $(SIM_MACHINE_OBJ) tests/sim/exports.map
	$(sim_link)

-include $(wildcard $(SIM_DIR)/obj/*.d)

# Its tests open the libraries where they were built.
SIM_TESTS := $(wildcard tests/unit/test_sim*.c)
$(call obj,$(SIM_TESTS)): ALL_CFLAGS += -DSIM_DIR='"$(abspath $(SIM_DIR))"' $(CUDA_CFLAGS) \
	$(if $(HAVE_CUDA),,-DSIM_ABSENT)
$(call unit_bin,$(SIM_TESTS)): | $(SIM_LIBS)
