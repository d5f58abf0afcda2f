#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2030,SC2031,SC2086,SC2154 # each test has variables of its own
# plumb probe, its options and exit codes, scripts/record-machine.

load ../sim/env
load rows
load probe

@test "--json: one object, whole, the same twice; without it a table, and nothing on stderr" {
    exits 0 probe --json
    [ ! -s "$err" ]
    says "$out" '"source": "this machine"'
    [ "$(head -c 1 "$out")" = '{' ]
    [ "$(tail -n 1 "$out")" = '}' ]
    settled >"$out.1"
    probe --json
    settled >"$out.2"
    cmp "$out.1" "$out.2"
    exits 0 probe # a table, too
    [ ! -s "$err" ]
    says "$out" MACHINE PROCESSOR MEMORY 'PCI DEVICES' NETWORK RDMA GPUS FINDINGS
}

@test "--sysroot reads the tree, and only the tree" {
    exits 0 probe --sysroot build/machines/arm64-server/root
    cmp "$out" tests/machines/arm64-server/expected.txt
    probe --sysroot=build/machines/nvlink-8gpu/root --json
    cmp "$out" tests/machines/nvlink-8gpu/expected.json
}

@test "usage errors: exit 2, nothing on stdout, what to do" {
    for arguments in --nonsense --sysroot '--sysroot /nonexistent' '--sysroot /dev/null' extra '--sysroot='; do
        exits 2 probe $arguments
        [ ! -s "$out" ]
        [ -s "$err" ]
    done
    warned 2 "'sys'" probe --sysroot "$BATS_TEST_TMPDIR"
}

@test "incomplete: exit 4 where not even the processor can be read, and what there is is shown" {
    mkdir -p "$BATS_TEST_TMPDIR/tree/proc"
    exits 4 probe --sysroot "$BATS_TEST_TMPDIR/tree"
    says "$out" FINDINGS
    says "$err" 'processor'
    # Nothing was read: that nothing was found is no good news.
    grep -Eq '^none +.*[1-9][0-9]* facts ' "$out"
}

@test "simulated GPUs: lanes to each peer and peer access as configured, and said to be stand-ins" {
    simulate eight
    exits 0 probe --json
    says "$out" '"simulated": true'
    [ "$(grep -c '"nature": "simulated"' "$out")" -eq 8 ]
    says "$out" '"cuda": "cuda:7"'
    # GPU 0: 4 lanes to 1, 2 to 2.
    sed -n '/"address": "0000:1b:00.0"/,/"cuda": /p' "$out" >"$out.gpu"
    says "$out.gpu" '"active": 6'
    sed -n '/"peers"/,/\]/p' "$out.gpu" | tr -d ' \n' >"$out.peers"
    says "$out.peers" '"kind":"gpu","address":"0000:1c:00.0","links":4,"gbytes_per_s":50.0'
    says "$out.peers" '"kind":"gpu","address":"0000:3b:00.0","links":2,"gbytes_per_s":25.0'
    says "$out.gpu" '"sms": 20' '"numa_node": 0'
    [ "$(grep -c '"a": ' "$out")" -eq 28 ]
    probe
    says "$out" ': simulated'
    grep -qE '^0000:1b:00.0  0  \.  +NV4  +NV2  +PCIe' "$out"
    says "$out" '(PCIe)' '(0000:3c:00.0 and 0000:9a:00.0'
    [ "$(wc -L <"$out")" -le 100 ]
}
