# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154 # tests read what setup sets
# What the files of tests of this name share: history.bats, history-long.bats.

setup_file() {
    top="$(cd "$BATS_TEST_DIRNAME/../.." && pwd)"
    shared=$BATS_FILE_TMPDIR
    export top shared
    python3 "$top/tests/tools/make-history.py" "$shared/runs" --runs 60 --step triad@40=0.95 \
        --step latency@57=1.1 --once onednn@50=0.5 --gap triad@20..24 \
        --fact host.kernel@40=6.1.0-20-amd64 --fact gpus.driver_version@40=570.1 --fact cpu.clock.governors@57=schedutil
    python3 "$top/tests/tools/make-history.py" "$shared/calm" --runs 20
    python3 "$top/tests/tools/make-history.py" "$shared/one" --runs 1
    python3 "$top/tests/tools/make-history.py" "$shared/slips" --runs 100 --slip triad@40..99=0.997 \
        --slip latency@40..69=1.004 --fact host.kernel@50=6.1.0-20-amd64
}

setup() {
    plumb="${PLUMB_BIN:-$top/build/bin}/plumb"
    work=$BATS_TEST_TMPDIR
    cd "$work" || return 1
}

# series ARGUMENTS...: what plumb history tells of them, but for what was accepted, which a folder does not know
series() {
    "$plumb" history "$@" --json | python3 -c 'import json, sys
o = json.load(sys.stdin)
o.pop("accepted")
json.dump(o, sys.stdout, indent=1)'
}
