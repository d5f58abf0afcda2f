# SPDX-License-Identifier: Apache-2.0
# The machines that tests read (README.md here): build/machines/NAME/root, of every build. Included by the Makefile.
# What compose.d describes is composed; what was recorded is a link to it.

MACHINES := build/machines
MACHINES_COMPOSED := $(patsubst tests/machines/compose.d/%,$(MACHINES)/%/root,$(wildcard tests/machines/compose.d/*))
MACHINES_RECORDED := $(patsubst tests/%,build/%,$(wildcard tests/machines/*/root))

machines: $(MACHINES_COMPOSED) $(MACHINES_RECORDED)
units: machines
.PHONY: machines
MACHINES_TESTS := $(if $(UNIT_SRC),$(shell grep -l '"tests/unit/machines.h"' $(UNIT_SRC)))
$(call unit_bin,$(MACHINES_TESTS)): | $(MACHINES_COMPOSED) $(MACHINES_RECORDED)

$(MACHINES_COMPOSED): $(MACHINES)/%/root: tests/machines/compose.d/% tests/machines/compose
	$(call say,MAKE,$@)tests/machines/compose $(MACHINES) $*

$(filter-out $(MACHINES_COMPOSED),$(MACHINES_RECORDED)): build/%:
	@mkdir -p $(@D)
	@ln -sfn ../../../tests/$* $@
