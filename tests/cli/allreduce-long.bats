#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tier: long
# shellcheck disable=SC2154 # of variables that the files of this name share
# plumb-allreduce on one machine: what it counts, what it finds, and what it refuses.

# takes: spinners
load rows
load processes
load allreduce

@test "every operation of ours, over shared memory and TCP, 1 to 3 ranks, in place or not: right to the bit" {
    local transport
    for transport in shm tcp; do
        allreduce --np 3 --ranks 1,2,3 --backend ring,halving,doubling --transport $transport --size 12,100K --budget 20ms \
            --op allreduce,reduce-scatter,all-gather,broadcast,all-to-all,send-receive,reduce,gather,scatter
        all_good
        [ "$(cells op | sort -u | wc -l)" -eq 9 ]
    done
    allreduce --np 3 --ranks 2,3 --backend ring,halving --size 100K --in-place --op allreduce,reduce-scatter,all-gather,broadcast,reduce,gather,scatter
    all_good
    [ "$(cells in_place | sort -u)" = 1 ] || [ "$(cells in_place | sort -u)" = yes ] || [ "$(cells in_place | sort -u)" = true ]
}

@test "each rank is the root in turn, of 1 to 3 ranks, in place or not: right to the bit; what has no root has no such column" {
    allreduce --np 3 --ranks 2,3 --backend ring,halving --transport tcp --size 40K --budget 10ms --root -1 --op broadcast,reduce,gather,scatter,allreduce
    all_good
    [ "$(paste -d' ' <(cells op) <(cells ranks) <(cells root) <(cells metric) | grep -c 'time$')" -eq 44 ] # 2 x (4 x (2 + 3) + 2)
    [ "$(paste -d' ' <(cells op) <(cells root) | grep '^allreduce' | sort -u)" = "allreduce " ]
    allreduce --np 3 --ranks 3 --size 40K --in-place --budget 10ms --root 1,2 --op broadcast,reduce,gather,scatter
    all_good
    [ "$(cells root | sort -u | xargs)" = "1 2" ]
    warned 2 "--root 3* 2" allreduce --np 3 --ranks 3 --size 40K --root 3 --op reduce
    exits 1 allreduce --np 3 --ranks 3 --size 300K --root 2 --op scatter --inject corrupt
    [[ $(of time reason) == *"element "* ]]
}

@test "on one CPU the ranks take at most that one, whatever they do and however short it is" {
    local transport cpu
    cpu=$(taskset -cp $$ | grep -o '[0-9]*$')
    for transport in shm tcp; do
        under="taskset -c $cpu" quick="--csv --budget 50ms --warmup 10ms --min-samples 5" allreduce --np 4 --ranks 1,2,4 --transport $transport \
            --size 8,1M --op allreduce,reduce-scatter,all-gather,broadcast,all-to-all,send-receive
        all_good
        cells metric scope value op ranks size | awk '$1 == "cpu_cores" && $2 == "threads" {
                n++
                if (!($3 > 0 && $3 <= 1.001)) { print; bad = 1 } # two clocks, of which one may be slewed
            }
            END { exit bad || n < 32 }'
    done
}

@test "every type and reduction of ours; averages and sums of fp8 are NCCL's alone" {
    allreduce --np 3 --ranks 3 --backend ring,doubling --size 60K --dtype f32,f16,bf16,f64,i32,i8,i64 --redop sum,max,min,prod --budget 20ms
    all_good
    [ "$(paste -d' ' <(cells dtype) <(cells redop) | sort -u | wc -l)" -eq 28 ]
    allreduce --np 2 --ranks 2 --size 60K --dtype e4m3,e5m2 --op all-gather,broadcast --budget 20ms
    all_good
    allreduce --np 2 --ranks 2 --size 60K --redop avg --budget 20ms
    cells reason | grep -q -- '--redop sum, .*--backend nccl'
    allreduce --np 2 --ranks 2 --size 60K --dtype e5m2 --budget 20ms
    cells reason | grep -q 'fp8 .*--backend nccl'
}

@test "a rank that never runs ends the point in time, by name; the next one is measured" {
    local began=$SECONDS
    allreduce --np 3 --ranks 3 --size 64K --transport tcp --inject absent
    echo "took $((SECONDS - began)) s" && cut -c 1-400 "$out"
    [ "$status" -eq 4 ]
    ((SECONDS - began <= NAMED_S))
    [[ $(of time reason) == *"rank 2"* ]]
}

@test "a rank that is killed: the point fails and names it, the next runs in a new world; no orphan" {
    local began rank lead
    timeout 600 "$bin" --csv --budget 5s --min-samples 100000 --no-cpu --np 3 --ranks 3 --size 64K,128K >"$out" 2>"$err" 3>&- &
    local pid=$!
    for _ in $(seq 6000); do # until it moves bytes: a rank that is forked has no start of its own
        lead=$(pgrep -P $pid -f plumb-allreduce) && rank=$(pgrep -P "$lead" | head -n 1) && at_work 10 "$rank" && break
        sleep 0.05
    done
    kill -KILL "$rank"
    began=$SECONDS
    wait $pid || status=$?
    cut -c 1-300 "$out"
    [[ $(of time reason) == *"rank 1"*"killed"* ]]
    [ "$(cells status | grep -c failed)" -eq 3 ]
    [ "$(cells value | grep -c .)" -ge 3 ]
    ! pgrep -f "$bin --csv --budget 5s" || return 1
}

# by_sockets N OPTIONS: N ranks that find each other on a port of this machine; rank 0 is ${ranks[0]}, rows go to $out.
by_sockets() {
    local n=$1 i port secret=$BATS_TEST_TMPDIR/secret
    shift
    (umask 077 && echo 'a secret of these tests' >"$secret")
    # --port 0 is any that is free
    timeout 600 "$bin" --csv --no-cpu --np "$n" --listen loopback --port 0 --secret-file "$secret" --transport tcp "$@" \
        >"$out" 2>"$err" 3>&- &
    ranks=($!)
    until port=$(sed -n 's/.*listening on .* port //p' "$err") && [ -n "$port" ]; do
        kill -0 "${ranks[0]}" || { cat "$err" && return 1; }
        sleep 0.05
    done
    for ((i = 1; i < n; i++)); do
        exec_rank "$i" --np "$n" --rank "$i" --leader localhost --port "$port" --secret-file "$secret"
    done
}

# Its id is the rank's own, not that of a command which waits for it.
exec_rank() {
    local i=$1
    shift
    "$bin" "$@" --wait 600s >"$BATS_TEST_TMPDIR/rank$i" 2>&1 3>&- &
    ranks[i]=$!
}

@test "a rank that is lost while it is no member: communicators without it go on, those with it fail by its name" {
    local status=0
    # All but the last communicator of a size are without rank 3, and take long to a test: it is killed in time.
    by_sockets 4 --ranks 1,2,4 --size 64,1K --budget 2s --warmup 10ms --min-samples 100000000
    until [ "$(cells metric 2>/dev/null | wc -l)" -ge 1 ]; do # the first point has ended: the next is of ranks 0 and 1
        kill -0 "${ranks[0]}" || { cat "$err" && return 1; }
        sleep 0.02
    done
    kill -KILL "${ranks[3]}"
    wait "${ranks[0]}" || status=$?
    paste -d'|' <(cells metric) <(cells size) <(cells ranks) <(cells status) <(cells reason) | grep '^time|' | tee "$out.rows"
    [ "$status" -eq 4 ]
    [ "$(wc -l <"$out.rows")" -eq 6 ]
    [ "$(grep -cE '^time\|[0-9]+\|[12]\|(ok|noisy)\|' "$out.rows")" -eq 4 ]
    [ "$(grep -cE '^time\|[0-9]+\|4\|failed\|.*rank 3 \(.*is gone' "$out.rows")" -eq 2 ]
    wait "${ranks[1]}" "${ranks[2]}" # they serve to the end, and end well
}

@test "64 ranks start, agree and finish" {
    allreduce --np 64 --ranks 64 --size 64K --backend ring,doubling --budget 500ms
    all_good
    [ "$(cells metric | grep -c late_share)" -eq 128 ]
}

@test "nccl-tests' letters: sizes from least to most by a factor, its types, so many operations" {
    allreduce --np 2 --ranks 2 -b 1K -e 16K -f 4 -d float -o max -n 20 -w 2 -c 1 --budget 60s # a machine that is busy takes its time
    all_good
    [ "$(cells vector_bytes | sort -nu | xargs)" = "1024 4096 16384" ]
    [ "$(cells dtype | sort -u) $(cells redop | sort -u)" = "f32 max" ]
    paste -d' ' <(cells metric) <(cells samples) <(cells inner_repeat) | awk '{ print } $1 == "time" { n++; if ($2 * $3 < 20 || $2 * $3 > 25) bad = 1 } END { exit bad || n != 3 }'
}
