#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2034,SC2086,SC2154 # options in one variable are several words, paths_of sets variables
# tier: long
# plumb-copy with GPUs, over simulated ones: every way shows the figures of the machine's description.

load ../sim/env
load rows

setup()
{
    paths_of copy
    quick="--csv --budget 2s --warmup 1ms --min-samples 7 --max-samples 7"
    conf=$BATS_TEST_TMPDIR/machine.conf
    two_nodes="pack:2 [numa(memory=8GB)] core:1 pu:1"
}

copy() { measure "$@"; }

# within SHARE: lines "VALUE EXPECTED [WHAT]", each value within that share of what is expected.
within()
{
    awk -v share="$1" '
        { if (!($1 >= $2 * (1 - share) && $1 <= $2 * (1 + share))) { print "wrong: " $0; bad = 1 } }
        END { if (!NR) print "no line"; exit bad || !NR }'
}

@test "matrix: 8 GPUs, NVLink between some and PCIe between others, as configured" {
    simulate eight
    exits 0 copy --source gpus --destination gpus --size 4M
    [ "$(cells status | wc -l)" -eq 56 ] # none with itself
    [ "$(cells origin | sort -u)" = simulated ]
    [ "$(cells engine op access clock | sort -u | grep -v -- -)" = "ce write on events" ]
    cells source destination value status | awk '
        BEGIN {
            split("01 23", fast); split("45 02 46", slow); split("03 12 13 47 56 57", bridge)
            for (i in fast) gbps[fast[i]] = 45
            for (i in slow) gbps[slow[i]] = 23
            for (i in bridge) gbps[bridge[i]] = 9
            gbps["67"] = 12
        }
        {
            i = substr($1, 6); j = substr($2, 6)
            pair = i < j ? i j : j i
            if (pair == "34") { if ($4 != "skipped") print "0 1 is measured" }
            else print $3, pair in gbps ? gbps[pair] : 7, pair
        }' | within 0.05
    [ "$(cells reason | grep -c 'peer access')" -eq 2 ]
    [ "$(cells source destination path atomics | grep -c 'peer access, rank 0.native$')" -eq 10 ]
    [ "$(cells source destination address | grep '^cuda:2 cuda:7 ')" = \
        "cuda:2 cuda:7 0000:3b:00.0+0000:bb:00.0" ]
}

@test "pairs: read and write, both ways, and through host memory" {
    machine 2 '[link 0 1]' 'kind = nvlink' 'gbps = 30' 'both_gbps = 40' 'read_factor = 0.5'
    exits 0 copy --source cuda:0 --destination cuda:1 --size 4M --op write,read --access off,on
    cells value op access | awk '
        { print $1, ($3 == "off" ? 0.45 * 12.5 : 30) * ($2 == "read" ? 0.5 : 1), $2, $3 }' | within 0.05
    [ "$(cells access evidence | grep -c 'not held')" -eq 2 ]
    [ "$(cells path | sort -u | paste -sd,)" = "peer access, rank 0,through host memory" ]
    copy --source cuda:0 --destination cuda:1 --size 4M --direction both
    [ "$(cells direction | paste -sd ' ')" = "forward reverse sum" ]
    cells value direction | awk '{ print $1, $2 == "sum" ? 40 : 20, $2 }' | within 0.05
    exits 0 copy --source cuda:1 --destination cuda:0 --size 4M --engine sm --access on,off
    cells value | head -n 1 | sed 's/$/ 28.5/' | within 0.05
    [ "$(cells status | tail -n 1)" = skipped ]
    [[ $(cells reason | tail -n 1) == *"--access on"*"--engine ce"* ]]
}

@test "all at once: one GPU to all others, all to one, all to all, by engines and by kernels" {
    links='[link all]'
    machine 4 "$links" 'kind = nvlink' 'gbps = 10' 'both_gbps = 20'
    CUDA_DEVICE_MAX_CONNECTIONS=32 copy --source cuda:1 --destination cuda:all --size 1M --engine ce,sm --op write,read
    [ "$(cells evidence | grep -c 'CUDA_DEVICE_MAX_CONNECTIONS=32')" -eq 4 ]
    [ "$status" -eq 0 ]
    [ "$(cells source destination | sort -u)" = "cuda:1 cuda:all" ]
    cells value engine | awk '{ print $1, 3 * 10 * ($2 == "sm" ? 0.95 : 1), $2 }' | within 0.06
    [ "$(cells evidence | grep -c '3 pairs at once')" -eq 4 ]
    [ "$(cells address path atomics | sort -u)" = "0000:11:00.0 peer access, rank 0 native" ]
    copy --source cuda:all --destination cuda:3 --size 1M
    cells value address | sed 's/ / 30 /' | within 0.06
    [ "$(cells address)" = 0000:13:00.0 ]
    exits 0 copy --source cuda:all --destination cuda:all --size 1M
    cells value | sed 's/$/ 120/' | within 0.06 # 12 ways of 10 GB/s
    [ "$(cells address)" = "" ] # no one link limits it
    [[ $(cells evidence) == *"12 pairs at once"* ]]
    # Over switches, whatever leaves or reaches a GPU shares its port.
    machine 4 'nvswitch_gbps = 16' "$links" 'kind = nvlink' 'gbps = 16' 'both_gbps = 32'
    copy --source cuda:1,cuda:all --destination cuda:0,cuda:all --size 1M
    cells value source destination | awk '
        { print $1, $2 $3 == "cuda:allcuda:all" ? 64 : 16, $2, $3 }' | within 0.06
    [ "$("${PLUMB_BIN:-build/bin}/plumb" probe --json | grep -c '"nvlink_via": "nvswitch"')" -eq 6 ]
    # In a sweep each GPU once, as with any other place.
    copy --source gpus --destination cuda:all --size 64K
    [ "$(cells source | paste -sd,)" = "cuda:0,cuda:1,cuda:2,cuda:3" ]
}

@test "all at once: data is checked on every way, and what cannot be is skipped with its reason" {
    machine 3 '[link all]' 'kind = nvlink'
    for gpu in 1 2; do
        fault "corrupt:gpu=$gpu:kernel=copy16:times=1000000"
        copy --source cuda:0 --destination cuda:all --engine sm --op read --size 64K
        [ "$(cells status)" = wrong ]
        [ "$status" -eq 1 ]
    done
    machine 3 '[link 1 2]' 'kind = none'
    copy --source cuda:all --destination cuda:all --size 64K
    [[ $(cells reason) == "cuda:1 and cuda:2 "* || $(cells reason) == "cuda:2 and cuda:1 "* ]]
    [ "$(cells status)" = skipped ]
    fault no_device
    copy --source cuda:all --destination cuda:all --size 64K
    [ "$(cells status engine)" = "skipped ce" ]
}

@test "pairs by fabric handles: the same copies; without the driver's support or an IMEX channel skipped, with the reason" {
    nvlink='[link all]'
    machine 3 '[gpu]' 'fabric = yes' "$nvlink" 'kind = nvlink' 'gbps = 30'
    exits 0 copy --source cuda:0 --destination cuda:1 --engine ce,sm --op write,read --handle none,fabric --size 4M
    [ "$(cells handle | sort | uniq -c | awk '{ print $1, $2 }' | paste -sd,)" = "4 fabric,4 none" ]
    cells value engine handle | awk '{ print $1, 30 * ($2 == "sm" ? 0.95 : 1), $2, $3 }' | within 0.05
    copy --source cuda:0 --destination cuda:1 --handle fabric --direction both --size 1M
    [ "$(cells status | grep -c -e ok -e noisy)" -eq 3 ]
    copy --source cuda:0 --destination cuda:1 --handle fabric --metric load-latency --size 64K
    cells value | sed 's/$/ 900/' | within 0.05
    exits 0 copy --source cuda:all --destination cuda:all --handle fabric --size 64K
    copy --source cuda:0 --destination cuda:1 --handle fabric --size 64K --inject corrupt
    [ "$(cells status)" = wrong ]
    copy --source cuda:0 --destination cuda:1 --handle fabric --access off --size 64K
    [[ $(cells reason) == *"--access on"* ]]
    machine 2 '[gpu]' 'fabric = yes' 'imex = no' "$nvlink" 'kind = nvlink'
    copy --source cuda:0 --destination cuda:1 --handle fabric --size 64K
    row skipped 'IMEX channel'
    machine 2 "$nvlink" 'kind = nvlink'
    copy --source cuda:0 --destination cuda:1 --handle fabric --size 64K
    row skipped 'fabric handle'
    exits 2 copy --source node0 --destination cuda:1 --handle fabric --size 64K
}

# listen RUNS [NAME=VALUE]...: a listener for so many leaders, with these variables; sets its process and its port.
listen()
{
    local runs=$1
    shift
    export PLUMB_SECRET_FILE=$BATS_TEST_TMPDIR/secret
    [ -e "$PLUMB_SECRET_FILE" ] || (umask 077 && echo "what only the two ends know" >"$PLUMB_SECRET_FILE")
    : >"$BATS_TEST_TMPDIR/listener"
    env "$@" "$bin" --listen loopback --port 0 --runs "$runs" >/dev/null 2>"$BATS_TEST_TMPDIR/listener" 3>&- &
    listener=$!
    in_time 300 grep -q 'listening on' "$BATS_TEST_TMPDIR/listener"
    port=$(sed -n 's/.*listening on .* port //p' "$BATS_TEST_TMPDIR/listener")
}

# peer_copy ARGUMENTS...: the same as copy, with the listener as the peer.
peer_copy()
{
    copy 127.0.0.1 --port "$port" "$@"
}

@test "a GPU of another process: written and read by fabric handles, checked where it arrives; the limit is the slower GPU's NVLinks" {
    # A link signals 26.5 GB/s, of which data is 25; the slower end has two of them.
    machine 2 '[gpu]' 'fabric = yes' '[link all]' 'kind = nvlink' 'gbps = 30' 'lanes = 3' 'lane_gbps = 26.5'
    sed 's/lanes = 3/lanes = 2/' "$conf" >"$conf.slower"
    listen 6 PLUMB_SIM_MACHINE="$conf.slower"
    exits 0 peer_copy --source cuda:1 --destination cuda:peer --engine ce,sm --size 4M,1000
    [ "$(cells source destination op access handle origin limit limit_link | sort -u)" = \
        "cuda:1 cuda:peer write on fabric simulated 50 nvlink" ]
    [[ $(cells limit_source | head -n 1) == "nvml: "*NVLinks* ]]
    cells value engine size | awk '$3 == "4194304" { print $1, 30 * ($2 == "sm" ? 0.95 : 1), $2 }' | within 0.05
    [[ $(cells evidence | head -n 1) == *"cuda:1 Simulated GPU"* ]]
    exits 0 peer_copy --source cuda:peer --destination cuda:0 --op read --engine ce,sm --size 4M
    cells value engine | awk '{ print $1, 30 * ($2 == "sm" ? 0.95 : 1), $2 }' | within 0.05
    peer_copy --source cuda:peer --destination cuda:0 --metric load-latency --size 64K
    cells value | sed 's/$/ 900/' | within 0.05
    # Both ways at once, each with memory of its own at both ends.
    exits 0 peer_copy --source cuda:0 --destination cuda:peer --direction both --engine ce,sm --size 4M
    [ "$(cells engine direction limit | paste -sd,)" = \
        "ce forward 50,ce reverse 50,ce sum 100,sm forward 50,sm reverse 50,sm sum 100" ]
    cells value direction engine | awk '{ print $1, 30 * ($2 == "sum" ? 2 : 1) * ($3 == "sm" ? 0.95 : 1), $2, $3 }' | within 0.2
    peer_copy --source cuda:peer --destination cuda:1 --op read --direction both --size 64K --inject corrupt
    [ "$(cells status | sort -u)" = wrong ]
    # What the peer finds is wrong: spoilt there, and by a copy that leaves one byte wrong.
    fault corrupt:kernel=copy:after=3
    peer_copy --source cuda:0 --destination cuda:peer --engine ce,sm --size 64K
    [ "$(cells status engine | paste -sd,)" = "wrong ce,ok sm" ] || [ "$(cells status engine | paste -sd,)" = "wrong ce,noisy sm" ]
    [ "$status" -eq 1 ]
    wait "$listener"
}

@test "a GPU of another process: what does not go, or is not there, is skipped and says which end and why" {
    nvlink='[link all]'
    machine 2 '[gpu]' 'fabric = yes' "$nvlink" 'kind = nvlink'
    cp "$conf" "$conf.whole"
    copy --source cuda:0 --destination cuda:peer --size 64K
    [ "$(cells status)" = skipped ]
    [[ $(cells reason) == "cuda:peer "*HOST* ]]
    sed 's/fabric = yes/fabric = no/' "$conf.whole" >"$conf.none"
    sed 's/fabric = yes/&\nimex = no/' "$conf.whole" >"$conf.closed"
    listen 1 PLUMB_SIM_MACHINE="$conf.none"
    peer_copy --source cuda:0 --destination cuda:peer --size 64K
    row skipped '127.0.0.1*fabric handle'
    listen 1 PLUMB_SIM_MACHINE="$conf.closed"
    peer_copy --source cuda:0 --destination cuda:peer --size 64K
    row skipped '127.0.0.1*IMEX channel'
    listen 1
    simulate "$conf.closed" # the memory is there, and this end does not reach it
    peer_copy --source cuda:0 --destination cuda:peer --size 64K
    row skipped 'cuMemImportFromShareableHandle*nvidia-imex'
}

@test "a GPU of another process under mpirun: measured, and where this end has none that is skipped, neither waits for the other" {
    command -v mpirun >/dev/null && [ -e "${PLUMB_BIN:-build/bin}/../lib/plumbline/plumb-mpi.so" ] || skip "no mpirun, or no MPI module was built"
    local fabric
    for fabric in yes no; do
        machine 1 '[gpu]' "fabric = $fabric"
        # of both: rank 1 gives up after a minute if rank 0 never comes
        under="mpirun --allow-run-as-root --oversubscribe -np 2" exits 0 copy --source cuda:0 --destination cuda:peer --size 64K
        [ "$(cells status | paste -sd, | sed 's/noisy/ok/')" = "$([ $fabric = yes ] && echo ok || echo skipped)" ]
    done
}

@test "a GPU of another process that dies: the row fails, and says who" {
    machine 1 '[gpu]' 'fabric = yes'
    listen 1
    (
        for _ in $(seq 1200); do # until it is measured: the memory has been asked for
            served=$(pgrep -P "$listener" || true)
            [ -n "$served" ] && find "/proc/$served/fd" -lname "*memfd:fabric*" 2>/dev/null | grep -q . && exec kill -KILL "$served"
            sleep 0.1
        done
    ) 3>&- &
    copy 127.0.0.1 --port "$port" --source cuda:0 --destination cuda:peer --size 64K --min-samples 1000000 --max-samples 1000000 --budget 100s
    [ "$(cells status)" = failed ]
    [ "$status" -eq 4 ]
    [[ $(cells reason) == *"127.0.0.1"* ]]
    kill "$listener" || true
}

@test "multicast: one GPU stores to all, a byte counts once, data is checked on each; else skipped with the reason" {
    multicast="--source cuda:1 --destination cuda:all --handle multicast"
    machine 3 '[gpu]' 'multicast = yes' '[link all]' 'kind = nvlink' 'gbps = 30'
    exits 0 copy $multicast --size 4M,16M,1040
    cells value size | awk '$2 != "1040" { print $1, 30 * 0.95 }' | within 0.05
    [ "$(cells engine op handle direction address atomics | sort -u)" = "sm write multicast one-way 0000:11:00.0 native" ]
    [[ $(cells evidence | head -n 1) == *multicast16*" 3 GPUs"* ]]
    # Wrong on any one of them, and no other: the last one's, by hand, and the writer's own.
    copy $multicast --size 64K --inject corrupt
    [ "$(cells status)" = wrong ]
    [ "$status" -eq 1 ]
    [[ $(cells reason) == *"byte 32768 of 65536 on cuda:2"* ]]
    machine 3 '[gpu]' 'multicast = yes' '[gpu 2]' 'multicast = no' '[link all]' 'kind = nvlink'
    copy $multicast --size 64K
    row skipped 'multicast for cuda:2* 9.0'
    machine 2 '[gpu]' 'multicast = yes' '[link all]' 'kind = nvlink'
    fault error:call=cuMulticastBindMem:code=802
    copy $multicast --size 64K
    row skipped 'cuMulticastBindMem*nvidia-fabricmanager'
    fault error:call=cuMemCreate:code=2
    copy $multicast --size 64K
    [ "$(cells status)" = failed ]
}

@test "host to device and back: page-locked memory, by copy engine and by kernel" {
    machine 1 '[gpu]' 'write_combined_factor = 0.8'
    copy --source node0 --destination cuda --engine sm --memory wc --size 4M
    row skipped write-combined
    copy --source node0 --destination cuda --engine ce --memory wc --size 4M
    cells value | sed "s/$/ 10.4/" | within 0.05
    exits 0 copy --source node0 --destination cuda --engine ce,sm --memory pinned,pinned-huge --size 4M
    [ "$(cells clock origin address | sort -u)" = "events simulated 0000:10:00.0" ]
    cells value memory engine | awk '
        { print $1, 13 * ($3 == "sm" ? 0.95 : 1), $2, $3 }' | within 0.05
    copy --source cuda:0 --destination node0 --engine ce,sm --size 4M
    cells value engine | awk '{ print $1, 12.5 * ($2 == "sm" ? 0.95 : 1), $2 }' | within 0.05
    [ "$(cells memory | sort -u)" = pinned ] # where nothing is asked for
    [[ $(cells evidence | tail -n 1) == *"kernel copy16, "*" blocks of 256"*"host memory: "* ]]
}

@test "host to device and back at once: each direction, and the sum" {
    machine 1 '[gpu]' 'h2d_gbps = 12' 'd2h_gbps = 8' 'both_gbps = 30'
    exits 0 copy --source node0 --destination cuda --direction both --engine ce,sm --size 1M
    [ "$(cells direction | paste -sd ' ')" = "forward reverse sum forward reverse sum" ]
    # The slower direction makes fewer copies, so that both are at it all the time.
    cells value direction engine | awk '
        {
            f = $3 == "sm" ? 0.95 : 1
            print $1, f * ($2 == "forward" ? 12 : $2 == "reverse" ? 8 : 20), $2, $3
        }' | within 0.06
    # Kernels of both directions find room on the 20 SMs: half of 8 blocks each.
    [[ $(cells evidence | tail -n 1) == *"kernel copy16, 80 blocks of 256"* ]]
    copy --source node0 --destination cuda --engine sm --size 1M
    [[ $(cells evidence) == *"kernel copy16, 160 blocks of 256"* ]]
    machine 1 '[gpu]' 'copy_engines = 1'
    copy --source node0 --destination cuda --direction both --size 64K
    [[ $(cells reason | head -n 1) == *"copy engine"* ]]
}

@test "sizes: from one byte, and not beyond the free memory" {
    machine 1 '[gpu]' 'memory_bytes = 256M'
    exits 0 copy --source node0 --destination cuda --engine ce,sm --size 1,8,1000 --memory pinned
    [ "$(cells status | grep -c -e ok -e noisy)" -eq 6 ]
    [[ $(cells evidence | tail -n 1) == *"kernel copy1, "* ]]
    exits 0 copy --source node0 --destination cuda --memory pinned,managed --size 1G
    [ "$(cells status | sort -u)" = skipped ]
    [ "$(cells reason | grep -c '1024 MiB .*cuda:0')" -eq 2 ]
}

@test "load latency: a hop in the host's, the other GPU's and the own memory" {
    machine 2 '[gpu]' 'l2_bytes = 64K' '[link 0 1]' 'kind = nvlink' 'hop_ns = 1100'
    exits 0 copy --source node0,cuda:0,cuda:1 --destination cuda:0 --metric load-latency --size 1M
    [ "$(cells metric unit engine | sort -u)" = "load-latency ns sm" ]
    cells value source | awk '
        { print $1, $2 == "node0" ? 1500 : 1100 }' | within 0.05
    copy --source cuda:0 --destination cuda:0 --metric load-latency --size 1M
    cells value | sed 's/$/ 500/' | within 0.05
    copy --source node0,cuda:1 --destination cuda:0 --metric load-latency --size 64K # which the first-level cache would hold
    cells value source | awk '{ print $1, $2 == "node0" ? 1500 : 1100 }' | within 0.05
    copy --source cuda:0 --destination node0 --metric load-latency --size 1M
    [[ $(cells reason) == *"source"* ]]
    copy --source cuda:1 --destination cuda:0 --metric load-latency --size 128
    [[ $(cells reason) == *" 256 bytes"* ]]
}

@test "nodes: near and far as rows" {
    [ "$(nproc)" -ge 2 ] || skip "two nodes take two CPUs"
    simulate eight # cpu 0 is on node 0, cpu 1 on node 1
    HWLOC_THISSYSTEM=1 HWLOC_SYNTHETIC=$two_nodes exits 0 copy --source nodes --destination cuda:0,cuda:4 --size 4M
    [ "$(cells source destination numa | paste -sd,)" = \
        "node0 cuda:0 local,node0 cuda:4 remote,node1 cuda:0 remote,node1 cuda:4 local" ]
    cells value numa | awk '{ print $1, $2 == "local" ? 13 : 0.7 * 13 }' | within 0.05
    [[ $(cells evidence | sed -n 3p) == *cpu1* ]]
}

@test "several GPUs at once: who shares an uplink" {
    simulate two # 20 GB/s to the host for both
    exits 0 copy --source node0 --destination cuda:0 --together cuda:1 --size 4M
    [ "$(cells load | paste -sd ' ')" = "alone together all" ]
    cells value load | awk '{ print $1, $2 == "alone" ? 13 : $2 == "together" ? 10 : 20 }' | within 0.05
    [ "$(cells reason | grep -c 'cuda:1 .* 77 %')" -eq 3 ]
    [ "$(cells address | paste -sd ' ')" = "0000:10:00.0 0000:10:00.0 " ]
    copy --source cuda:0 --destination node0 --together all --direction both --size 4M
    [ "$(cells direction load | paste -sd,)" = \
        "forward alone,reverse alone,sum alone,forward together,reverse together,sum together,sum all" ]
    simulate eight
    copy --source node0 --destination cuda:0 --together all --size 1M
    [ "$(cells reason | grep -c 'shares a link .*cuda:1 (..* %)')" -eq 3 ]
    [ "$(cells reason | grep -c 'cuda:2 (')" -eq 0 ]
    copy --source node0 --destination cuda:0 --together cuda:4 --size 1M
    [ "$(cells reason | grep -c 'share a link')" -eq 0 ]
    cells value load | awk '$2 != "all" { print $1, 13 }' | within 0.06
}

@test "options that say nothing between these ends: refused, and of several values one row" {
    machine 2
    for option in "--op write" "--access off"; do
        exits 2 copy --source node0 --destination cuda:0 --size 4K $option
        [ ! -s "$out" ]
        [[ $(<"$err") == *"'${option%% *}'"* ]]
    done
    exits 0 copy --source node0,cuda:0 --destination cuda:1 --size 64K --op read
    [ "$(cells source status | head -n 1)" = "node0 skipped" ]
    [[ $(cells reason | head -n 1) == "--op "* ]]
    cells op status | tail -n 1 | grep -qx -e 'read ok' -e 'read noisy'
    exits 0 copy --source node0,cuda:0 --destination cuda:1 --size 64K --op write,read --memory pageable,pinned
    [ "$(cells source op memory | paste -sd,)" = \
        "node0 - pageable,node0 - pinned,cuda:0 write -,cuda:0 read -" ]
    [ "$(cells status | grep -c -e ok -e noisy)" -eq 4 ]
}

@test "wrong data: found after the last timed copy, and in the copy of fresh data; exit 1" {
    machine 1
    # One copy to get ready, two timed ones, then the check fetches what arrived, and one more is made.
    one="--metric latency --min-samples 1 --max-samples 1 --warmup 0ms --size 4K"
    for after in 2 4; do
        fault corrupt:kernel=copy:after=$after
        exits 1 copy --source node0 --destination cuda $one
        row wrong ' byte * of 4096'
        cells reason >>"$BATS_TEST_TMPDIR/reasons"
    done
    [ "$(sort -u "$BATS_TEST_TMPDIR/reasons" | wc -l)" -eq 2 ] # each says which check it was
}

@test "wrong data: looked for whatever the way" {
    machine 2
    for ends in "--source node0 --destination cuda" "--source cuda --destination node0" \
        "--source cuda:0 --destination cuda:1" "--source cuda:1 --destination cuda:1"; do
        exits 1 copy $ends --engine ce,sm --size 64K --inject corrupt
        [ "$(cells status | sort -u)" = wrong ]
    done
    copy --source node0 --destination cuda --memory pageable,managed,wc --size 64K --inject corrupt
    [ "$(cells status | sort -u)" = wrong ]
    copy --source cuda:0 --destination cuda:1 --metric load-latency --size 64K --inject corrupt
    [ "$(cells status)" = wrong ]
}

@test "faults: a clear reason, and the other rows survive" {
    simulate eight
    fault peer_refused:gpu=1:peer=0
    copy --source cuda:0 --destination cuda:1,cuda:2 --size 64K
    [ "$(cells status | head -n 1)" = skipped ]
    [[ $(cells reason | head -n 1) == *cuCtxEnablePeerAccess* ]]
    cells status | tail -n 1 | grep -q -e ok -e noisy
    fault lost:gpu=1:after=5
    exits 4 copy --source node0 --destination cuda:1,cuda:2 --size 64K
    [ "$(cells status | head -n 1)" = failed ]
    cells status | tail -n 1 | grep -q -e ok -e noisy
    fault launch_failed:gpu=1:kernel=copy16:after=3
    copy --source node0 --destination cuda:1 --engine sm,ce --size 64K
    [ "$(cells status | head -n 1)" = failed ]
    [[ $(cells reason | head -n 1) == *CUDA_ERROR_LAUNCH_FAILED* ]]
    cells status | tail -n 1 | grep -q -e ok -e noisy # opened again
    fault out_of_memory:gpu=1
    copy --source cuda:0 --destination cuda:1,cuda:2 --size 64K
    [ "$(cells status | head -n 1)" = failed ]
    [[ $(cells reason | head -n 1) == *CUDA_ERROR_OUT_OF_MEMORY* ]]
    cells status | tail -n 1 | grep -q -e ok -e noisy
}
