#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154 # env.bash sets them
# plumb-step between hosts of a lab: the time of a step against the closed form, from the links' rate and the stated compute.

# takes: machine
load env
load ../cli/rows

setup_file() { between_file; }

# Four equal blocks: of the compute 1/12 goes forward through each, and 1/6 back. 2 MB of parameters each; 1000 numbers go from
# block to block, and 250,000 are summed after a block's forward pass where it is split.
setup() {
    bin=build/bin/plumb-step
    between_hosts 4 "$bin"
    model=$BATS_TEST_TMPDIR/blocks.csv
    printf '%s\n' 'unit,sample' 'block,layer,parameters,m,n,k,output,split,sum' \
        '0..3,l.{},500000,1,1000,1000,1000,row,250000' >"$model"
    scripts/lab-cluster rate 500mbit
}

teardown() { between_file; }

# step N OPTIONS: N hosts, a rank each; rows to $out. Ranks run before all other programs of the machine, where they may.
step() {
    local n=$1 i front=()
    shift
    ! chrt -f 1 true 2>/dev/null || front=(chrt -f 1)
    for ((i = 1; i < n; i++)); do
        timeout -k 5 1000 scripts/lab-cluster exec "$i" ${front[@]+"${front[@]}"} "$bin" --np "$n" --rank "$i" --leader node0 --secret-file "$secret" \
            --wait 30s >"$BATS_TEST_TMPDIR/rank$i" 2>&1 3>&- &
    done
    timeout -k 5 1000 scripts/lab-cluster exec 0 ${front[@]+"${front[@]}"} "$bin" --np "$n" --ranks "$n" --listen 0.0.0.0 --secret-file "$secret" --wait 30s \
        --csv --transport tcp --model "$model" --budget 1s --warmup 300ms --min-samples 5 "$@" >"$out" 2>"$out.err" 3>&- ||
        { cat "$out.err" >&2 && return 1; }
    wait
}

# of METRIC [RANK]: its value.
of() {
    paste -d'|' <(cells metric) <(cells rank) <(cells value) | awk -F'|' -v metric="$1" -v rank="${2-}" \
        '$1 == metric && (rank == "" || $2 == rank) { print $3; exit }'
}

# lasts MS N OPTIONS: the step lasts so long, to 3 %, in one of four goes; other work on this machine makes it longer, nothing
# makes it shorter. `shares`, pairs of a metric and percent of the step, hold in that go, too, to a point.
lasts() {
    local wanted=$1 go value
    shift
    for ((go = 0; go < 4; go++)); do
        step "$@" || return
        [ "$(cells status | grep -cE 'wrong|failed|skipped')" -eq 0 ] || { cut -c 1-300 "$out" && return 1; }
        value=$(of step_time)
        echo "$*: $value ms of $wanted"
        ! awk -v v="$value" -v w="$wanted" 'BEGIN { exit !(v < 0.97 * w) }' || { echo 'too short' && return 1; }
        ! awk -v v="$value" -v w="$wanted" 'BEGIN { exit !(v <= 1.03 * w) }' || ! shares_hold || return 0
    done
    echo 'fell short'
    return 1
}

shares_hold() {
    local i
    for ((i = 0; i < ${#shares[@]}; i += 2)); do
        awk -v metric="${shares[i]}" -v v="$(of "${shares[i]}")" -v w="${shares[i + 1]}" 'BEGIN {
            print metric, v, "of", w
            exit !(v > w - 1 && v < w + 1) }' || return
    done
}

# ms FORMULA [RATE]: b is the time of 1 MB over a link, in ms.
ms() {
    awk -v bits="$(expected "${2-500mbit}")" "BEGIN { b = 8e9 / bits; $([[ $1 != *';'* ]] || echo "${1%;*};") print (${1##*;}) }"
}

@test "data parallel, 2 and 4 hosts: compute and sums add up, or overlap as far as they can" {
    local n
    for n in 2 4; do # 8 MB of gradients: 2 (n-1)/n of them over each link
        lasts "$(ms "240 + 16 * ($n - 1) / $n * b")" $n --compute-time 240ms --overlap none
        # Two buckets of 4 MB: the first is whole at 80 + 80 ms, the second at 240 ms.
        lasts "$(ms "(s = 8 * ($n - 1) / $n * b) > 80 ? 160 + 2 * s : 240 + s")" $n --compute-time 240ms --bucket 2M
    done
    [[ $(cells evidence) == *'4 of 4 '* ]]
    awk -v v="$(of sent 2)" 'BEGIN { exit !(v > 11.99 && v < 12.01) }' # MB of 8 x 2 x 3/4
}

@test "ZeRO 1 and 2 take as long as sums; 3 moves half as many bytes again" {
    lasts "$(ms '120 + 12 * b')" 4 --compute-time 120ms --overlap none --zero 1
    lasts "$(ms '120 + 12 * b')" 4 --compute-time 120ms --overlap none --zero 2 --bucket 2M
    lasts "$(ms '120 + 18 * b')" 4 --compute-time 120ms --overlap none --zero 3 --bucket 2M
    awk -v v="$(of sent 1)" 'BEGIN { exit !(v > 17.99 && v < 18.01) }'
    # Of two micro-batches, gradients are scattered after each, and 3 gathers parameters for each pass of each.
    lasts "$(ms '120 + 18 * b')" 4 --compute-time 120ms --overlap none --zero 2 --bucket 2M --batch 2 --micro-batches 2
    lasts "$(ms '120 + 36 * b')" 4 --compute-time 120ms --overlap none --zero 3 --bucket 2M --batch 2 --micro-batches 2
}

@test "tables on one rank each: a row of each for each sample goes forward, and its gradient back" {
    # a table on each of four ranks, 250 numbers a row, 500 samples of each rank: 2 MB of rows beside 8 MB of gradients
    sed -i '2a 0,table.0,1000000,,,,250,,\n0,table.1,1000000,,,,250,,\n0,table.2,1000000,,,,250,,\n0,table.3,1000000,,,,250,,' "$model"
    sed -i '2,$s/$/,/; 2s/.*/block,layer,parameters,m,n,k,output,split,sum,kind/; s/^0\.\.3/1..4/; /table/s/,$/,table/' "$model"
    lasts "$(ms '120 + 15 * b')" 4 --compute-time 120ms --overlap none --batch 500
    awk -v v="$(of sent 1)" 'BEGIN { exit !(v > 14.99 && v < 15.01) }'
}

@test "a pipeline's bubble is (p-1)/(m+p-1), in both orders" {
    local order bubble
    for order in gpipe 1f1b; do # a micro-batch takes a quarter of a quarter of the compute in each stage
        lasts 315 4 --compute-time 720ms --pp 4 --micro-batches 4 --batch 4 --schedule $order
        bubble=$(of bubble)
        echo "bubble $bubble"
        awk -v v="$bubble" 'BEGIN { exit !(v > 0.97 * 300 / 7 && v < 1.03 * 300 / 7) }' || { echo 'fell short' && false; }
    done
}

@test "a pipeline of real products, a stage on each host, has a limit and a slowdown of compute" {
    step 2 --pp 2 --micro-batches 4 --batch 400 --compute product
    [ "$(cells status | grep -cE 'wrong|failed|skipped')" -eq 0 ]
    [[ $(cells limit_source) == *"slowest stage"* ]]
    [ -n "$(of compute_slowdown)" ]
    # each stage waits for the other at least a quarter of its own compute: it holds 4 of 5 turns at most
    paste -d' ' <(cells metric) <(cells percent_of_limit) | awk '$1 == "throughput" { n++; print $2; ok = $2 > 1 && $2 < 85 } END { exit !(n == 1 && ok) }'
}

@test "split layers sum their activations, experts exchange their tokens" {
    # Four sums of 4 x 250,000 numbers of 4 bytes; a quarter of the compute.
    lasts "$(ms '50 + 4 * 4 * 1.5 * b')" 4 --compute-time 200ms --tp 4 --batch 4
    # Four blocks of experts, whose 4 x 500,000 numbers go out and come back, forward and back: 3/4 of 8 MB each time. An
    # expert's gradients stay where they are.
    printf '%s\n' 'unit,sample' 'experts,4' 'block,layer,parameters,m,n,k,output,kind' \
        '0..1,l.{},500000,500,1000,1000,1000,expert' >"$model"
    lasts "$(ms '100 + 2 * 4 * 0.75 * 8 * b')" 4 --compute-time 100ms --ep 4 --batch 4
}

@test "ways together: split layers in a pipeline, replicas of either, and experts in a pipeline" {
    local order shares=()
    scripts/lab-cluster rate 500mbit --as 2gbit # a link's bucket makes good half a millisecond of each pause
    # Of a micro-batch a stage computes 60 ms, and sums 1 MB behind each of two blocks. All of it passes 4 + 1 times.
    for order in gpipe 1f1b; do
        shares=(bubble 20 exposed "$(ms '100 * 8 * b / (5 * (60 + 2 * b))')")
        lasts "$(ms '5 * (60 + 2 * b)')" 4 --compute-time 960ms --tp 2 --pp 2 --micro-batches 4 --batch 4 --schedule $order
    done
    # Two replicas, whose ranks have 4 of 8 MB of gradients each: half of every layer, or a stage of all.
    shares=(exposed "$(ms '100 * 20 * b / (100 + 20 * b)')")
    lasts "$(ms '100 + 4 * 4 * b + 4 * b')" 4 --compute-time 200ms --tp 2 --batch 4 --overlap none
    shares=(bubble "$(ms '100 * 60 / (300 + 4 * b)')")
    lasts "$(ms '5 * 60 + 4 * b')" 4 --compute-time 480ms --pp 2 --micro-batches 4 --batch 4 --overlap none
    # With ZeRO 2 a stage scatters its gradients behind each micro-batch, when it has passed on what the stage before waits for.
    shares=()
    lasts "$(ms '5 * 60 + 4 * 2 * b + 2 * b')" 4 --compute-time 480ms --pp 2 --zero 2 --micro-batches 4 --batch 4 --overlap none --schedule gpipe
    # Tokens of two blocks of a stage go out and come back in both passes: 8 times 1 MB, beside 60 ms.
    printf '%s\n' 'unit,sample' 'experts,2' 'block,layer,parameters,m,n,k,output,kind' '0..3,l.{},500000,500,1000,1000,1000,expert' >"$model"
    shares=(bubble "$(ms '100 / 3')")
    lasts "$(ms '3 * (60 + 8 * b)')" 4 --compute-time 240ms --ep 2 --pp 2 --micro-batches 2 --batch 2
}

@test "sums of activations and of gradients share a link, which is busy to the end" {
    scripts/lab-cluster rate 500mbit --as 2gbit
    printf '%s\n' 'unit,sample' 'block,layer,parameters,m,n,k,output,split,sum' '0..3,l.{},2000000,1,1000,1000,1000,column,250000' >"$model"
    # From the first of four pieces of the backward pass on: 4 sums of 1 MB, and 4 MB of gradients of each block.
    lasts "$(ms '40 + 20 + (4 + 16) * b')" 4 --compute-time 240ms --tp 2 --batch 1 --bucket 1M
}

@test "ZeRO beside compute: 1 gathers all at the end; of 3 compute hides all but the first group and the last, or is hidden" {
    scripts/lab-cluster rate 500mbit --as 2gbit
    # Two buckets of 4 MB, the first at 2/3 of the compute, whose scatter ends before the compute or after it.
    lasts "$(ms '240 + 9 * b')" 4 --compute-time 240ms --zero 1 --bucket 2M
    lasts "$(ms '80 + 12 * b')" 4 --compute-time 120ms --zero 1 --bucket 2M
    # Two groups of 4 MB; each pass of a group hides the gather of the next, or is hidden by it.
    lasts "$(ms '360 + 6 * b')" 4 --compute-time 360ms --zero 3 --bucket 2M
    lasts "$(ms '18 * b')" 4 --compute-time 60ms --zero 3 --bucket 2M
    # No group ahead: all of it shows.
    lasts "$(ms '60 + 18 * b')" 4 --compute-time 60ms --zero 3 --bucket 2M --prefetch 0
}

@test "a delay: of each step of each bucket's sum, and of each border of a pipeline" {
    scripts/lab-cluster delay 5
    # four buckets of 40 kB: 2 (n-1) messages each, one after another
    printf '%s\n' 'unit,sample' 'block,layer,parameters,m,n,k,output' '0..3,l.{},10000,1,1000,1000,1000' >"$model"
    lasts "$(ms '100 + 4 * (6 * 5 + 1.5 * 0.04 * b)')" 4 --compute-time 100ms --overlap none --bucket 40000
    # three borders on the way down, and three on the way back
    lasts 345 4 --compute-time 720ms --pp 4 --micro-batches 4 --batch 4 --schedule gpipe
    scripts/lab-cluster nodelay
}

@test "one slow host, and one slow link: everybody waits for them" {
    lasts "$(ms '300 + 12 * b')" 4 --compute-time 150ms --overlap none --slow 2
    awk -v a="$(of waited 0)" -v b="$(of waited 3)" 'BEGIN { exit !(a > b + 120) }' # rank 3 is the slow one
    scripts/lab-cluster rate 300mbit --host 2
    lasts "$(ms '150 + 12 * b' 300mbit)" 4 --compute-time 150ms --overlap none
}

@test "8 hosts at 300 Mbit/s: the sums of a model whose gradients hide, and of one whose do not" {
    scripts/lab-cluster up 8 2>/dev/null
    scripts/lab-cluster congestion cubic
    scripts/lab-cluster rate 300mbit
    lasts "$(ms '150 + 14 * b' 300mbit)" 8 --compute-time 150ms --overlap none
    lasts "$(ms '1200 + 7 * b' 300mbit)" 8 --compute-time 1200ms --bucket 2M # the first bucket hides, the second cannot
    # Two replicas of two stages of two halves: a rank has 2 MB of the gradients.
    scripts/lab-cluster rate 300mbit --as 2gbit
    lasts "$(ms '5 * (60 + 2 * b) + 2 * b' 300mbit)" 8 --compute-time 960ms --tp 2 --pp 2 --micro-batches 4 --batch 4 --overlap none
}

@test "a run's answer: the network bounds the job, and buckets that save what the formula says are advised" {
    local go suite=$BATS_TEST_TMPDIR/job.yaml
    [[ -x build/bin/plumb ]] || skip 'plumb is not built'
    printf '%s\n' 'suite: job' 'about: a job of known time' 'defaults: {repeat: 3, timeout: 120s, budget: 1s, warmup: 300ms}' 'cases:' \
        "  - {bench: step, transport: tcp, model: $model, ranks: 2, batch: 4, compute-time: 120ms, bucket: [25M, 1M]}" >"$suite"
    scripts/lab-cluster hosts | head -n 2 >"$BATS_TEST_TMPDIR/hosts"
    # 8 MB behind 120 ms of compute; or four buckets, of which the first is whole after 60 ms. b is the time of 1 MB.
    wanted=$(ms '100 * (1 - (60 + 8 * b) / (120 + 8 * b))')
    for ((go = 0; go < 4; go++)); do # other work on this machine disturbs one or another
        rm -rf "$BATS_TEST_TMPDIR/run"
        timeout -k 5 600 build/bin/plumb run "$suite" --hosts "$BATS_TEST_TMPDIR/hosts" --rsh "$PWD/scripts/lab/rsh" --remote-dir "$PWD/build/bin" \
            --no-report --out "$BATS_TEST_TMPDIR/run" >"$out" 2>&1 3>&- || { cat "$out" && return 1; }
        cat "$out"
        build/bin/plumb report "$BATS_TEST_TMPDIR/run" --out "$BATS_TEST_TMPDIR/page" --markdown "$BATS_TEST_TMPDIR/run.md" >/dev/null 3>&-
        head -n 3 "$BATS_TEST_TMPDIR/run.md"
        ! sed -nE 's/.*\*\*Answer\*\*: .* network: (5[0-6]) % .* 1 MiB .* ([0-9.]+) % of the time.*/\2/p' \
            "$BATS_TEST_TMPDIR/run.md" | awk -v wanted="$wanted" '{ n++; off = $1 - wanted; print $1, "of", wanted } END { exit !(n == 1 && off < 2 && off > -2) }' ||
            return 0
    done
    echo 'fell short'
    return 1
}
