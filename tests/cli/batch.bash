# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154 # tests read what setup sets
# What the files of tests of this name share: batch.bats, batch-long.bats.

setup() {
    top="$(cd "$BATS_TEST_DIRNAME/../.." && pwd)"
    bin="${PLUMB_BIN:-$top/build/bin}"
    plumb="$bin/plumb"
    work=$BATS_TEST_TMPDIR
    export PLUMB_CONFIGS=$top/configs
    cd "$top" || return 1
}

suite() { # suite DEFAULTS: the cases on stdin
    { printf 'suite: t\nabout: a test\ndefaults: {%s}\ncases:\n' "$1"; cat; } > t.yaml
}

# watched BENCH: there, a plumb and the benchmark; the file `starts` gets a line for each of its processes that measures, with its options.
watched() {
    cp "$bin/plumb" plumb
    plumb=./plumb
    cat > "plumb-$1" <<EOF
#!/bin/bash
[[ " \$* " != *" --csv "* && " \$* " != *" --commands "* ]] || echo "\$*" >> "$work/starts"
PLUMB_WATCHED=$work exec "$bin/plumb-$1" "\$@"
EOF
    chmod +x "plumb-$1"
}
