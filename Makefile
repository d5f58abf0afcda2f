# SPDX-License-Identifier: Apache-2.0
# One word per habit: make, make run, make test, make test-all, make lint, make format, make install, make bundle;
# `make help` lists them, docs/building.md explains. What is built goes to build/, with SAN=1 (ASan
# and UBSan) to build-san/, with SAN=thread (TSan) to build-tsan/. V=1 shows the commands.

MAKEFLAGS += --no-builtin-rules
ifeq ($(MAKELEVEL),0)
# All CPUs, unless the command line has a -j of its own, which wins.
MAKEFLAGS += -j$(shell nproc 2>/dev/null || echo 2)
endif
.SUFFIXES:
.DEFAULT_GOAL := all
.DELETE_ON_ERROR:

ifeq ($(origin CC),default)
CC := cc
endif
export CC
SAN ?=
FUZZ ?=
BUILD := build$(if $(SAN),$(if $(filter thread,$(SAN)),-tsan,-san))$(if $(FUZZ),-fuzz)
PREFIX ?= /usr/local
DESTDIR ?=
SUITE ?= quick
# no: make run and make test install nothing
BOOTSTRAP ?= yes
Q := $(if $(V),,@)
say = $(if $(V),,@printf '  %-6s %s\n' $(1) $(2);)
VERSION := $(shell sed -n 's/^#define PLUMB_VERSION "\(.*\)"/\1/p' core/program.h)

# What this machine has to build with, found once. Goals that do not build do without.
CONFIG := build/config.mk
ifneq ($(filter-out clean config format help lint machines run test test-all test-long,$(or $(MAKECMDGOALS),all)),)
include $(CONFIG)
endif

# With sanitizers: what takes a third less time to build; lines are known, variables not.
CFLAGS ?= $(if $(SAN)$(FUZZ),-O1 -g1,-O2 -g)
# Tests are compiled more often than they are run.
UNIT_CFLAGS := $(if $(filter file,$(origin CFLAGS)),-O0 -g1)
WERROR ?= -Werror
WARN := -Wall -Wextra $(WERROR) -Wmissing-prototypes -Wstrict-prototypes -Wshadow -Wvla
ifneq ($(SAN)$(FUZZ),)
# Our fences order memory that processes share, of which ThreadSanitizer knows nothing.
SANITIZE := $(if $(filter thread,$(SAN)),-fsanitize=thread -Wno-unknown-warning-option -Wno-tsan,-fsanitize=address,undefined -fno-sanitize-recover=undefined)
endif
ifneq ($(FUZZ),)
override CC := $(LIBFUZZER_CC)
SANITIZE += -fsanitize=fuzzer-no-link
endif
# Names of files in what is built begin at the tree, so that ccache may share it between checkouts.
ALL_CFLAGS := -std=gnu11 -D_GNU_SOURCE $(WARN) -I. -fdebug-prefix-map='$(CURDIR)'=. -fno-omit-frame-pointer -ffunction-sections \
	-fdata-sections -fPIC -fno-semantic-interposition $(SANITIZE) $(HWLOC_CFLAGS) $(JANSSON_CFLAGS) $(LIBYAML_CFLAGS) $(LIBCSV_CFLAGS) \
	$(LIBSODIUM_CFLAGS) $(CPPFLAGS) $(CFLAGS)
# A program looks for libraries in ../lib first: see scripts/bundle.
ALL_LDFLAGS := -Wl,--gc-sections -Wl,--as-needed -Wl,--disable-new-dtags -Wl,-rpath,'$$ORIGIN/../lib' \
	$(SANITIZE) $(LDFLAGS)
CORE_LIBS := $(HWLOC_LIBS) $(JANSSON_LIBS) $(LIBSODIUM_LIBS) -lm -lpthread -ldl -lrt
HARNESS_LIBS := $(LIBYAML_LIBS) $(LIBCSV_LIBS) $(SQLITE_LIBS)

# core/bench/main.c is in the benchmarks alone, harness/plumb/main.c in plumb; any program may use the rest.
CORE_SRC := $(filter-out core/bench/main.c,$(wildcard core/*.c core/*/*.c core/wire/tcp/*.c))
HARNESS_SRC := $(filter-out harness/plumb/main.c,$(wildcard harness/*.c harness/*/*.c))
# Folders of which no fuzz target reaches a function: half of what such a build would compile. Who reaches one takes it off.
ifneq ($(FUZZ),)
CORE_SRC := $(filter-out $(patsubst %,core/%,bench/% collective/% session/% wire/%),$(CORE_SRC))
HARNESS_SRC := $(filter-out $(patsubst %,harness/%,against/% check/% doctor/% forecast/% history/% hosts/% import/% limits/% \
	probe/% run/%),$(HARNESS_SRC))
endif
# A benchmark is a folder, or one file.
BENCHES := $(sort $(patsubst benches/%.c,%,$(wildcard benches/*.c)) \
	$(patsubst benches/%/,%,$(dir $(wildcard benches/*/*.c))))
UNIT_SRC := $(wildcard tests/unit/test_*.c)
UNIT_HELP_SRC := $(filter-out $(UNIT_SRC),$(wildcard tests/unit/*.c))
FUZZ_SRC := $(wildcard tests/fuzz/fuzz_*.c)
# Tests of core link core alone, so that they need no more than it does.
UNIT_HARNESS_SRC := $(if $(UNIT_SRC),$(shell grep -l '"harness/' $(UNIT_SRC)))
UNIT_CORE_SRC := $(filter-out $(UNIT_HARNESS_SRC),$(UNIT_SRC))

obj = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))
BENCH_BIN := $(BENCHES:%=$(BUILD)/bin/plumb-%)
PLUMB_BIN := $(BUILD)/bin/plumb
unit_bin = $(patsubst tests/unit/%.c,$(BUILD)/tests/%,$(1))
UNIT_BIN := $(call unit_bin,$(UNIT_SRC))
# What the verdicts promise, by simulation: one of compare and check, one of history.
SELF_BIN := $(addprefix $(BUILD)/selftest/,verdicts history forecast published)
FUZZ_BIN := $(patsubst tests/fuzz/%.c,$(BUILD)/fuzz/%,$(FUZZ_SRC))
CORE_OBJ := $(call obj,$(CORE_SRC))
CORE_LIB := $(BUILD)/obj/core.a
# What benchmarks are made of, but for what each has under the same name: tests link parts of several.
BENCH_OBJ := $(call obj,$(filter-out $(foreach b,$(BENCHES),benches/$(b)/$(b).c benches/$(b)/rows.c),$(wildcard benches/*/*.c)))
HARNESS_OBJ := $(call obj,$(HARNESS_SRC))
HARNESS_LIB := $(BUILD)/obj/harness.a
# What unit tests link: one library of core and the benchmarks, one of the harness, and an archive of the tests' own helpers.
UNIT_CORE_LIB := $(BUILD)/tests/libcore-tests.so
UNIT_HARNESS_LIB := $(BUILD)/tests/libharness-tests.so
UNIT_HELP_LIB := $(BUILD)/tests/help.a

all: programs
	@cmp -s build/config.txt build/config.shown || \
		{ echo; cat build/config.txt; cp build/config.txt build/config.shown; }
programs: $(BENCH_BIN) $(PLUMB_BIN) module
# Some of the tests ask the benchmarks what they say of themselves.
units: $(UNIT_BIN) $(BENCH_BIN) module
selftests: $(SELF_BIN)
fuzz: $(FUZZ_BIN)

# By ccache where it is there; CCACHE= on the command line does without.
compile = $(if $(findstring ccache,$(CC)),,$(CCACHE)) $(CC)
$(BUILD)/obj/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,CC,$<)$(compile) $(ALL_CFLAGS) -MMD -MP -c $< -o $@

$(call obj,$(wildcard harness/history/history_db_sqlite*.c)): ALL_CFLAGS += $(SQLITE_CFLAGS)

# The report's style sheet and scripts are part of its object files (.incbin).
$(call obj,$(wildcard harness/report/*.c)): $(wildcard harness/report/*.css harness/report/*.js)
$(call obj,harness/document/page.c harness/document/plot.c): $(wildcard harness/document/*.css)

# An archive, of which a program takes the objects that it uses, and so is linked with the libraries of these alone: the
# linker drops unused sections too late for that. Made again, too, when the list of its objects or libraries changes.
$(CORE_LIB): $(CORE_OBJ) $(CORE_LIB).list
	@rm -f $@
	$(Q)$(AR) rcs $@ $(CORE_OBJ)
$(HARNESS_LIB): $(HARNESS_OBJ) $(HARNESS_LIB).list
	@rm -f $@
	$(Q)$(AR) rcs $@ $(HARNESS_OBJ)
$(HARNESS_LIB).list: FORCE
	$(call keep_text,$(call quote,$(HARNESS_OBJ)))
$(CORE_LIB).list: FORCE
	$(call keep_text,$(call quote,$(CORE_OBJ) $(CORE_LIBS)))

link = $(CC) $(ALL_LDFLAGS) $(filter %.o,$^) -Wl,--start-group $(filter %.a,$^) -Wl,--end-group -o $@
$(foreach b,$(BENCHES),$(eval $(BUILD)/bin/plumb-$(b): $(call obj,$(wildcard benches/$(b).c benches/$(b)/*.c))))
$(BENCH_BIN): $(BUILD)/obj/core/bench/main.o $(CORE_LIB)
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(link) $(CORE_LIBS)

$(BUILD)/bin/plumb: $(BUILD)/obj/harness/plumb/main.o $(HARNESS_OBJ) $(CORE_LIB)
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(link) $(HARNESS_LIBS) $(CORE_LIBS)

# Two shared libraries that 200 test programs link in 0.05 s each, and that they need not be linked with again. A test may
# define a function of them anew: other files then call its own. What a benchmark's own main file has, and no test may need,
# stays undefined (-z lazy). A bundle has them in ../lib.
$(UNIT_CORE_LIB): $(CORE_OBJ) $(BENCH_OBJ) $(CORE_LIB).list
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) -shared -Wl,-soname,$(@F) -Wl,-z,lazy $(SANITIZE) $(LDFLAGS) $(filter %.o,$^) -o $@ $(CORE_LIBS)
$(UNIT_HARNESS_LIB): $(HARNESS_OBJ) $(UNIT_CORE_LIB) $(HARNESS_LIB).list
	$(call say,LINK,$@)$(CC) -shared -Wl,-soname,$(@F) $(SANITIZE) $(LDFLAGS) $(filter %.o %.so,$^) -o $@ -Wl,-rpath,'$$ORIGIN' \
		$(HARNESS_LIBS) $(CORE_LIBS)
$(UNIT_HELP_LIB): $(call obj,$(UNIT_HELP_SRC))
	@mkdir -p $(@D)
	@rm -f $@
	$(Q)$(AR) rcs $@ $^

$(call obj,$(wildcard tests/unit/*.c)): ALL_CFLAGS += $(UNIT_CFLAGS)
$(call unit_bin,$(UNIT_HARNESS_SRC)): | $(UNIT_HARNESS_LIB)
$(BUILD)/tests/%: $(BUILD)/obj/tests/unit/%.o $(UNIT_HELP_LIB) | $(UNIT_CORE_LIB)
	$(call say,LINK,$@)$(CC) $(SANITIZE) $(LDFLAGS) -Wl,--as-needed -Wl,-z,lazy -Wl,--unresolved-symbols=ignore-in-shared-libs \
		-Wl,--disable-new-dtags -Wl,-rpath,'$$ORIGIN:$$ORIGIN/../lib' $< $(UNIT_HELP_LIB) $(filter %-tests.so,$|) -o $@ $(CMOCKA_LIBS) $(HARNESS_LIBS) $(CORE_LIBS)

self_obj = $(call obj,$(addprefix tests/selftest/,$(addsuffix .c,$(1))))
$(BUILD)/selftest/verdicts: $(call self_obj,verdicts cells worlds promise)
$(BUILD)/selftest/history: $(call self_obj,history history_noise history_slip promise)
$(BUILD)/selftest/forecast: $(call self_obj,forecast clusters jobs fabric promise)
$(BUILD)/selftest/published: $(call self_obj,published)
$(SELF_BIN): $(HARNESS_LIB) $(CORE_LIB)
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(link) $(HARNESS_LIBS) $(CORE_LIBS)
selftest: $(SELF_BIN)
	$(BUILD)/selftest/verdicts
	$(BUILD)/selftest/history
	$(BUILD)/selftest/forecast

$(BUILD)/fuzz/%: $(BUILD)/obj/tests/fuzz/%.o $(HARNESS_LIB) $(CORE_LIB)
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(link) -fsanitize=fuzzer $(HARNESS_LIBS) $(CORE_LIBS)

# Files whose time changes only when their text does. $(call keep_text,TEXT)
quote = '$(subst ','\'',$(1))'
keep_text = @mkdir -p $(@D); printf '%s\n' $(1) >$@.new; \
	if cmp -s $@.new $@; then rm -f $@.new; else mv $@.new $@; fi

# A change of compiler or flags builds everything again. As they are here: a target's own additions to a variable
# hold for what it depends on, and so for this file, too.
FLAGS_TEXT := $(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS)
$(BUILD)/flags: FORCE
	$(call keep_text,$(call quote,$(FLAGS_TEXT)))

# The commit and the flags are compiled into one object. Only this checkout's own git is asked.
COMMIT = $(if $(wildcard .git),$(shell GIT_OPTIONAL_LOCKS=0 git describe --always --dirty --tags 2>/dev/null))
BUILD_INFO := $(BUILD)/gen/build_values.h
$(BUILD_INFO): FORCE
	$(call keep_text,$(call quote,#define BUILD_COMMIT "$(COMMIT)") \
		$(call quote,#define BUILD_FLAGS "$(subst ",\",$(strip $(SANITIZE) $(CPPFLAGS) $(CFLAGS)))"))
$(BUILD)/obj/core/build_info.o: $(BUILD_INFO)
$(BUILD)/obj/core/build_info.o: ALL_CFLAGS += -I$(BUILD)/gen

# The modules, and what stands in for a GPU in tests.
include core/hw/cuda/build.mk
include core/group/mpi/build.mk
include core/wire/rdma/build.mk
-include tests/sim/rules.mk tests/machines/rules.mk
module: $(CUDA_MODULE) $(CUDA_OLDER_MODULE) $(MPI_MODULE) $(RDMA_MODULE)

# What lint needs to read the sources as the compiler does.
generated: $(BUILD)/flags $(BUILD_INFO) $(if $(HAVE_CUDA),$(CUDA_GEN)/flags $(CUDA_GEN)/image.h) \
	$(if $(HAVE_CUBLASLT),$(CUDA_NAMES))

$(CONFIG): scripts/configure scripts/parts.sh
	@scripts/configure $(@D)

config:
	@rm -f $(CONFIG)
	@scripts/configure build
	@cat build/config.txt
	@cp build/config.txt build/config.shown

bootstrap = $(if $(filter no,$(BOOTSTRAP)),,@scripts/bootstrap --for $(1) --keep-going)

run:
	$(call bootstrap,run)
	@$(MAKE) --no-print-directory all
	@build/bin/plumb run $(SUITE)

test:
	$(call bootstrap,test)
	+@scripts/run-tests

# The short tier, then the rest; the last line is over both.
test-all:
	+@rm -f build/test-short.total; status=0; $(MAKE) --no-print-directory test || status=1; \
		$(MAKE) --no-print-directory test-long || status=1; exit $$status
test-long:
	$(call bootstrap,lint)
	+@scripts/run-tests --tier long --add

lint:
	$(call bootstrap,lint)
	+@scripts/lint

C_FILES = $(wildcard benches/*.[ch] benches/*/*.[ch] core/*.[ch] core/*/*.[ch] core/hw/cuda/*.[ch] \
	core/group/mpi/*.[ch] \
	core/wire/tcp/*.[ch] core/wire/rdma/*.[ch] harness/*.[ch] harness/*/*.[ch] tests/*/*.[ch])
format:
	clang-format -i $(C_FILES)

DOC := $(DESTDIR)$(PREFIX)/share/doc/plumbline
SHARE := $(DESTDIR)$(PREFIX)/share/plumbline
install: programs
	install -d $(DESTDIR)$(PREFIX)/bin $(SHARE) $(DOC)
	install $(BENCH_BIN) $(PLUMB_BIN) $(DESTDIR)$(PREFIX)/bin
	$(if $(CUDA_MODULE),install -m 755 -D $(CUDA_MODULE) $(DESTDIR)$(PREFIX)/lib/plumbline/plumb-cuda.so)
	$(if $(CUDA_OLDER_MODULE),install -m 755 $(CUDA_OLDER_MODULE) $(DESTDIR)$(PREFIX)/lib/plumbline)
	$(if $(MPI_MODULE),install -m 755 -D $(MPI_MODULE) $(DESTDIR)$(PREFIX)/lib/plumbline/plumb-mpi.so)
	$(if $(RDMA_MODULE),install -m 755 -D $(RDMA_MODULE) $(DESTDIR)$(PREFIX)/lib/plumbline/plumb-rdma.so)
	rm -rf $(SHARE)/configs/hardware
	cp -R configs $(SHARE)
	$(if $(wildcard results/reference),cp -R results/reference $(SHARE))
	cp -R $(wildcard README.md LICENSE docs examples) $(DOC)

# With the two tests of GPUs that scripts/gpu-check runs.
bundle: programs $(if $(HAVE_CUDA),$(if $(HAVE_CMOCKA),$(call unit_bin,$(wildcard tests/unit/test_cuda_module.c tests/unit/test_cuda_gemm.c))))
	@scripts/bundle build/plumbline-$(VERSION)-$(shell uname -m)

clean:
	rm -rf build build-san build-tsan build-fuzz

help:
	@sed -n 's/^#@ //p' Makefile
#@ make                  build everything this machine can (V=1: show commands; SAN=1, SAN=thread: with sanitizers)
#@ make run              the same from nothing: install what is missing, build, measure, report
#@ make test             the tests that a change needs: units, the command line (8 minutes)
#@ make test-all         these, then sanitizers, labs, simulations in full, fuzzing, lint (half an hour more)
#@ make selftest         what compare, check, history and forecast promise, by simulation, in full
#@ make lint             layout, bug patterns, shell scripts, spelling
#@ make format           lay out the C files
#@ make config           look again for what this machine has to build with
#@ make install          to PREFIX (/usr/local), under DESTDIR
#@ make bundle           a folder with all it needs, to carry to another machine (BUNDLE=gpu: only what GPUs need)
#@ make clean            remove what was built

.PHONY: all programs module generated units selftests selftest fuzz config run test test-all test-long lint format install bundle clean help FORCE
.SECONDARY:
-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)
