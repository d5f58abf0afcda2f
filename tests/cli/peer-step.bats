#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tier: long
# What scripts/peer-step makes of made-up rounds: 2 hosts, links of 1 MB/s, a model of two layers of 1 MB, 3 ms forward and 6 back.

load common

setup() {
    cd "$BATS_TEST_DIRNAME/../.." || exit
    rounds=$BATS_TEST_TMPDIR/rounds model=$BATS_TEST_TMPDIR/two.csv
    printf '%s\n' 'block,layer,parameters,m,n,k' '0..1,l.{},250000,10,10,10' >"$model"
    made
}

# made [DDP [WATCHED [WHOLE]]]: two rounds, in ms.
made() {
    local i
    for i in 0 1; do
        printf '%s\n' "$i plumb 9:1000000 2006 2" "$i ddp 9:1000000 ${1-2010} 2 1000000,1000000 -" \
            "$i watched 9:1000000 ${2-2008} 2 1000000,1000000 ${3-6,9}"
    done >"$rounds"
}

judge() {
    run python3 scripts/lab/judge_step.py "$rounds" "$model" 2 8000000 2
    echo "$output"
}

@test "the formula: the first bucket is whole at 6 ms, and both take 2 s over the link" {
    exits 0 judge
    [[ $output == *' 2006.0 '* && $output == *'+0.2 %'*': same' ]]
    sed -i 's/9:1000000/9:3000000/; s/1000000,1000000/2000000/; s/6,9$/9/' "$rounds"
    judge
    [[ $output == *' 2009.0 '* && $output == *': same' ]]
}

@test "DDP that differs has a reason only where it makes the same step without the delay of its buckets" {
    made 2200 2210 206,209
    exits 0 judge
    [[ $output == *' 200.0 ms '*': +0.2 %'* ]]
    made 2200 2210 206,1009 # the second one waits for the link anyway
    exits 0 judge
    made 2200 2210 6,209
    exits 1 judge
    [[ $output == *short ]]
}

@test "other buckets, rounds that failed, and an interval that is too wide are short" {
    sed -i 's/1000000,1000000 /2000000 /' "$rounds"
    exits 1 judge
    [[ $output == *'DDP made 1 buckets'* ]]
    made
    sed -i '/^1 ddp/d' "$rounds"
    exits 1 judge
    [[ $output == *' 1 of 2 rounds'* ]]
    made
    sed -i 's/^\(1 [dw].*\) 20[01][0-9] /\1 2100 /' "$rounds"
    exits 1 judge
    : >"$rounds"
    exits 1 judge
}
