#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Wrong usage: exit 2 with a sentence, before anything is measured, and how a command is found that was nearly right.

load common

setup()
{
    cd "$BATS_TEST_DIRNAME/../.." || exit
    bin=${PLUMB_BIN:-build/bin}
}

# refused WORDS: plumb WORDS is wrong usage, says so, and prints nothing else.
refused()
{
    local status=0
    # shellcheck disable=SC2086 # several words
    timeout 60 "$bin/plumb" "$@" --csv >"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" </dev/null || status=$?
    [[ $status -eq 2 && -s $BATS_TEST_TMPDIR/err && ! -s $BATS_TEST_TMPDIR/out ]] || { echo "$* ended with $status" && return 1; }
}

@test "a value that cannot be meant is refused before anything is measured, also among others that can" {
    refused allreduce --np 0
    refused allreduce --np 2 --rank 2 --size 8
    refused allreduce --np 2 --rank 1 --size 8
    refused allreduce --np 2 --ranks 3 --size 8
    refused allreduce --np 2 --op broadcast --root 0,7 --size 8
    refused allreduce --np 2 --min-bytes 1K --max-bytes 2K --size 8
    refused allreduce --np 2 --model no-such-model
    refused copy --source node4711 --size 64K
    refused copy --source node0,node4711 --size 64K
    refused copy --engine ce --size 64K
    refused memory --threads 1,65536 --size 64K
    refused memory --op latency --threads 2 --size 64K
    refused net --transport tcp --peer-node 4711 --size 64K
    refused net --transport tcp --pattern bandwidth --segment 1 --size 64K
    refused net --transport rdma --mtu 1500 --size 64K
    refused launch --node 4711
    refused step --np 2 --tflops 0
    refused step --np 2 --tp 3
    refused null --confidence 100%
    refused null --min-samples 9 --max-samples 8
}

@test "every root and every number of ranks is each that there is" {
    run -0 "$bin/plumb-allreduce" --np 3 --op broadcast --root -1 --ranks 0 --size 64 --budget 1ms --warmup 1ms --min-samples 1 --csv
    [ "$(grep -c ',skipped,' <<<"$output")" -eq 0 ]
}

@test "help and version by each of their names; the help of a command by its name" {
    local word
    for word in version -v --version; do
        run -0 "$bin/plumb" $word
        [[ $output == "plumb "[0-9]* ]]
    done
    [ "$("$bin/plumb" help)" = "$("$bin/plumb" --help)" ]
    [ "$("$bin/plumb" help run)" = "$("$bin/plumb" run --help)" ]
    run -2 "$bin/plumb" help nosuch
}

@test "a suite's name in place of a command is told how to run it" {
    told 2 'plumb run quick' "$bin/plumb" quick
}
