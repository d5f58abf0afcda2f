#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2034,SC2154,SC2317,SC2329 # cells reads out, section sets output, the guest calls sections
# plumb-allreduce, and plumb-step, in a guest with RDMA devices: our own algorithms over RDMA and over TCP, by the same wires; and ranks, links and data that fail.

# takes: guest
load env
load sections
load ../cli/rows

setup_file() {
    cd "$BATS_TEST_DIRNAME/../.." || exit
    guest_setup
    [[ -e build/lib/plumbline/plumb-rdma.so ]] || no_guest 'the module plumb-rdma.so is not built (libibverbs-dev)'
    [[ -x build/bin/plumb-allreduce ]] || no_guest 'plumb-allreduce is not built'
    sections --mesh 3
}

setup() {
    cd "$BATS_TEST_DIRNAME/../.." || exit
    lab_guest
}

# What each section in the guest begins with.
in_guest() {
    set -o pipefail
    run() {
        local to=$1
        shift
        timeout -k 5 240 build/bin/plumb-allreduce --csv --min-samples 3 --warmup 100ms --budget 150ms "$@" >"$to" 2>"$to.err"
        echo "$to $?"
    }
    rdma=(--transport rdma --device rxe0+rxe1+rxe2)
    tcp=(--transport tcp --device v0+v1+v2)
    packets() { cat /sys/class/infiniband/rxe[01]/ports/1/hw_counters/rcvd_pkts | paste -sd+ | bc; }
    # The same when it stands still: the kernel keeps a reading for 10 ms and a tick, and the last packets of a transfer take
    # their time.
    all_packets() {
        local now last=-1 try
        for try in $(seq 3000); do
            now=$(packets)
            ((now == last)) && break
            last=$now
            sleep 0.1
        done
        echo "$now"
    }
    # under_way BUDGET OPTIONS: a long measurement, process $lead, whose first case moves packets.
    under_way() {
        local before budget=$1
        before=$(packets)
        shift
        timeout -k 5 240 build/bin/plumb-allreduce --csv --no-cpu --np 3 --ranks 3 --min-samples 3 --budget "$budget" \
            --width 0.01% "${rdma[@]}" "$@" >long 2>long.err &
        lead=$!
        for try in $(seq 3000); do
            (($(packets) > before + 2000)) && break
            sleep 0.1
        done
        mapfile -t ranks < <(pgrep -P "$(pgrep -x -P "$lead" plumb-allreduce)") # 1 and on
        began=$SECONDS
    }
    # ended FILE: how, and after how many seconds.
    ended() {
        wait "$lead"
        echo "$1 $? $((SECONDS - began))"
        mv long "$1"
    }
}

# in_section NAME: what it left, and what its programs said.
in_section() {
    section "$1"
    cat "$job"/*.err 2>/dev/null || true
    [ "$status" -eq 0 ]
}

# table FILE COLUMN...: of that file of the guest, the rows of a metric and these columns, with | between.
table() {
    local out=$job/$1 column
    shift
    for column; do
        cells "$column" >"$BATS_TEST_TMPDIR/column.$column"
    done
    (cd "$BATS_TEST_TMPDIR" && paste -d'|' "${@/#/column.}")
}

# sound FILE N: N cases, all measured and right.
sound() {
    table "$1" metric status reason | grep -vE '\|(ok|noisy)\|' && return 1
    [ "$(table "$1" metric | grep -c '^time$')" -eq "$2" ]
    [ "$(table "$1" metric value | grep -cE '^time\|[0-9.]+$')" -eq "$2" ]
}

# costs FILE N: of N cases, those of 64 KiB and more have a CPU cost per GB. One of 8 B has it, or its
# reason is that reading the clocks cost too much of the CPU time.
costs() {
    local at=$BATS_TEST_TMPDIR
    table "$1" metric backend dtype size | sed -n 's/^time|//p' | sort >"$at/cases"
    [ "$(wc -l <"$at/cases")" -eq "$2" ]
    table "$1" metric scope value backend dtype size |
        sed -nE 's/^cpu_per_gb\|threads\|[0-9.]*[1-9][0-9]*\|//p' >"$at/costs"
    table "$1" metric backend dtype size reason |
        sed -nE "s/^time\|([^|]*\|[^|]*\|8)\|.*CPU .* GB.*/\1/p" >"$at/withheld"
    sort "$at/costs" "$at/withheld" | diff "$at/cases" -
}

# evidence FILE PATTERN: that of each time at 1 MiB and more.
evidence() {
    local seen=0 line
    while IFS= read -r line; do
        [[ ${line##*|} =~ $2 ]] || {
            echo "'${line##*|}' is not $2"
            return 1
        }
        seen=$((seen + 1))
    done < <(table "$1" metric size evidence | grep -E '^time\|(1048576|4194304)\|')
    ((seen > 0))
}

section_steps() {
    local way
    printf '%s\n' 'unit,sample' 'block,layer,parameters,m,n,k,output,split,sum' '0..2,l.{},50000,1,100,100,50000,row,10000' >model.csv
    for way in '--overlap none --zero 3 --bucket 300K' '--pp 3 --micro-batches 2'; do
        # shellcheck disable=SC2086
        timeout -k 5 240 build/bin/plumb-step --csv --np 3 --ranks 3 --model model.csv --batch 2 --compute-time 20ms --budget 100ms \
            --warmup 10ms --min-samples 2 "${rdma[@]}" $way >>steps 2>>steps.err
        echo "$? $way"
    done
}

@test "RDMA: steps of training, each way of working, right" {
    in_section steps
    [ "$(grep -c '^0 ' <<<"$output")" -eq 2 ]
    [ "$(table steps metric status evidence | grep -cE '^step_time\|(ok|noisy)\|guest: .*not proved: [^;]*rxe1:1 ')" -eq 2 ]
}

section_against_tcp() {
    local before algorithms=(--backend 'ring,halving,doubling' --np 2 --ranks 2 --size '8,64K,1M,4M' --dtype 'f32,bf16')
    before=$(all_packets)
    run rdma "${algorithms[@]}" "${rdma[@]}"
    echo "packets $(($(all_packets) - before))"
    before=$(all_packets)
    run tcp "${algorithms[@]}" "${tcp[@]}"
    echo "packets $(($(all_packets) - before))"
}

@test "RDMA against TCP: the same algorithms over the same wires, right, each with its CPU cost and by the devices that were asked" {
    in_section against_tcp
    [ "${lines[0]}" = 'rdma 0' ]
    [ "$(cut -d' ' -f2 <<<"${lines[1]}")" -gt 2000 ] # of the RDMA devices
    [ "${lines[2]}" = 'tcp 0' ]
    [ "${lines[3]}" = 'packets 0' ] # while TCP was measured
    sound rdma 24
    sound tcp 24
    evidence rdma '^guest: not proved: [^;]*rxe0:1 [^;]*; not proved: [^;]*rxe1:1 '
    evidence tcp '^guest: v0 sent [0-9.]+ [MG]B, [0-9.]+ % of the bytes; v1 sent [0-9.]+ [MG]B, [0-9.]+ % of the bytes$'
    costs rdma 24
    costs tcp 24
    # The very same messages.
    [ "$(table rdma metric backend dtype size chosen | grep '^time|')" = "$(table tcp metric backend dtype size chosen | grep '^time|')" ]
    [ "$(table rdma metric detail | grep '^time|' | sort -u)" = 'time|RoCE v2, rxe, GID 1, MTU 4096' ]
    [[ "$(table tcp metric detail | grep '^time|' | sort -u)" == *MSS* ]]
    table rdma metric backend dtype size value | grep -E '^(algbw|cpu_per_gb)\|ring\|f32\|4194304' | sed 's/^/# RDMA /' >&3
    table tcp metric backend dtype size value | grep -E '^(algbw|cpu_per_gb)\|ring\|f32\|4194304' | sed 's/^/# TCP /' >&3
}

section_operations() {
    run ops --np 3 --ranks 2,3 --backend ring,halving --size 192K "${rdma[@]}" \
        --op allreduce,reduce-scatter,all-gather,broadcast,all-to-all,send-receive
    run in-place --np 3 --ranks 2,3 --backend ring,halving,doubling --size 192K "${rdma[@]}" --in-place --redop max --dtype i32
    run three --np 3 --ranks 3 --backend ring,halving,doubling --size 1M "${rdma[@]}"
    run chosen --np 2 --ranks 2 --transport rdma --size 64K
}

@test "every operation between two and three ranks, in place, and on a device that is chosen" {
    in_section operations
    [ "$output" = $'ops 0\nin-place 0\nthree 0\nchosen 0' ]
    sound ops 24
    sound in-place 6
    sound three 3
    evidence three 'rxe0:1 .*rxe1:1 .*rxe2:1 '
    sound chosen 1
}

section_wrong_ways() {
    run corrupt --np 2 --ranks 2 --size 1M "${rdma[@]}" --inject corrupt
    run elsewhere --np 2 --ranks 2 --size 4M "${rdma[@]}" --inject elsewhere
    run absent --np 2 --ranks 2 --size 64K "${rdma[@]}" --inject absent
    run nosuch --np 2 --ranks 2 --size 64K --transport rdma --device rxe0+rxe9
    run asked --np 2 --ranks 2 --size 64K --transport tcp --device rxe0
}

@test "wrong data and another way are found, and a device that is not there is said" {
    in_section wrong_ways
    [ "${lines[0]}" = 'corrupt 1' ]
    [[ $(table corrupt metric status reason) == *'time|wrong|'*element* ]]
    [ "${lines[1]}" = 'elsewhere 1' ]
    [[ $(table elsewhere metric status reason) == *'time|wrong|'*'rank 0 (guest)'*' v'[01]' '* ]]
    [ "${lines[2]}" = 'absent 4' ]
    [[ $(table absent metric status reason) == *'time|failed|'*'rank 1 (guest)'* ]]
    [[ $(table nosuch metric status reason) == *"time|skipped|"*"rank 1 (guest)"*"'rxe9'"*" rxe0, rxe1, rxe2"* ]]
    [[ $(table asked metric status reason) == *"time|"*"'rxe0'"* ]]
}

section_failures() {
    under_way 15s --size 4M,8K
    kill -KILL "${ranks[1]}"
    ended killed
    under_way 60s --size 4M
    kill -STOP "${ranks[0]}"
    ended stopped
    kill -CONT "${ranks[0]}"
    under_way 60s --size 4M
    ip netns exec fabric ip link set b1 down
    ended pulled
}

@test "a rank that is killed or stopped, and a cable that is pulled, end the case within 10 s by name, and the next one runs" {
    in_section failures
    [[ ${lines[0]} == 'killed 4 '* && ${lines[1]} == 'stopped 4 '* && ${lines[2]} == 'pulled 4 '* ]]
    ((${lines[1]##* } <= 25 && ${lines[2]##* } <= 25)) # a guest's seconds: the case would last 60
    [[ $(table killed metric size status reason) == *"time|4194304|failed|'rank 2 (guest)' "*" 9"* ]]
    table killed metric size status elapsed_s | grep -qE '^time\|8192\|(ok|noisy)\|'
    [[ $(table stopped metric size status reason) == *"time|4194304|failed|rank 1 (guest) "* ]]
    [[ $(table pulled metric size status reason) == *"time|4194304|failed|rank 1 (guest)"*"'rxe1:1'"* ]]
}
