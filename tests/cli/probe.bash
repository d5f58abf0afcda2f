# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154 # tests read what setup sets
# What the files of tests of this name share: probe.bats, probe-long.bats.

setup_file()
{
    make -s -C "$BATS_TEST_DIRNAME/../.." machines
}

setup()
{
    cd "$BATS_TEST_DIRNAME/../.." || exit
    plumb=${PLUMB:-${PLUMB_BIN:-build/bin}/plumb}
    out=$BATS_TEST_TMPDIR/out err=$BATS_TEST_TMPDIR/err
}

# probe ARGUMENTS...: sets status, and leaves stdout and stderr in $out and $err.
probe()
{
    status=0
    "$plumb" probe "$@" >"$out" 2>"$err" </dev/null || status=$?
}

# settled [KEY...]: the facts in $out but for those that change from call to call (docs/probe.md),
# and but for these keys, a line each.
settled()
{
    python3 - "$@" "$out" <<'END'
import json, sys
*gone, path = sys.argv[1:]
gone += ["load", "counters", "hw_counters", "grown", "clock_reasons", "memory_bytes", "free"]
def without(value):
    if isinstance(value, dict):
        return {k: without(v) for k, v in value.items() if k not in gone and k[:-4] not in gone}
    return [without(v) for v in value] if isinstance(value, list) else value
text = json.dumps(without(json.load(open(path))), indent=1)
print("\n".join(line for line in text.split("\n") if "the NUMA nodes show" not in line))
END
}
