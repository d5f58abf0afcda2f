#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154 # of variables that the files of this name share
# plumb-net from outside, on this machine alone: its rows, what it proves, who may connect, and peers that die or hang.

bats_require_minimum_version 1.5.0
load processes
load rows
load net

@test "rows: every pattern over shared memory and TCP, data checked, nothing wrong" {
    net --transport shm,tcp --pattern bandwidth,latency,rate,loaded-latency --size 64 --no-cpu
    [ "$status" -eq 0 ]
    [ "$(cells status | grep -vc -e ok -e noisy)" -eq 0 ]
    [ "$(of metric bandwidth unit | sort -u)" = GB/s ]
    [ "$(of metric latency unit | sort -u)" = us ]
    [ "$(of metric message_rate unit | sort -u)" = Mop/s ]
    [ "$(of metric loaded_latency pattern | sort -u)" = loaded-latency ]
    [ "$(of metric load_bandwidth unit | sort -u)" = GB/s ]
    cells value | awk '$1 < 0 { exit 1 }'
    of metric latency p999 | awk '!($1 > 0) { exit 1 }'
    of metric latency max | awk '!($1 > 0) { exit 1 }'
}

@test "both ways: each direction and the sum, which is no more than both" {
    net --transport tcp --pattern bandwidth --direction both --size 256K --no-cpu
    [ "$status" -eq 0 ]
    [ "$(of metric bandwidth direction | paste -sd ' ')" = "both-forward both-reverse sum" ]
    of metric bandwidth max | paste -sd ' ' | awk '{ exit !($3 <= ($1 + $2) * 1.001 && $3 > 0) }'
}

@test "the evidence names the device that carried the bytes; limits say why there is none" {
    net --transport tcp --pattern bandwidth --size 1M --no-cpu
    [ "$status" -eq 0 ]
    [[ $(of metric bandwidth evidence) == *"own: lo sent"*"100 % of the bytes"*"peer: lo received"* ]]
    [ -n "$(of metric bandwidth limit_source)" ]
    [ -z "$(of metric bandwidth limit)" ]
}

@test "wrong data: wrong, exit 1" {
    for transport in shm tcp; do
        net --transport $transport --pattern bandwidth --size 64K --no-cpu --inject corrupt
        [ "$status" -eq 1 ]
        [ "$(cells status | head -1)" = wrong ]
        [[ $(cells reason | head -1) == *"wrong data"* ]]
    done
    net --transport tcp --pattern latency --size 64 --inject corrupt
    [ "$status" -eq 1 ]
}

@test "a device that is not there is an error, not a reason to skip" {
    net --transport tcp --pattern bandwidth --size 64K -d eth99
    [ "$status" -eq 4 ]
    [[ $(cells reason) == *eth99* ]]
    net --transport shm -d lo
    [ "$status" -eq 2 ]
}

@test "options: what says nothing of a transport is refused, defaults give way, perftest's letters" {
    net --transport shm --mode epoll
    [ "$status" -eq 2 ]
    grep -q "it is for TCP" "$err"
    net --transport tcp --streams 2 --size 64K --no-cpu
    [ "$status" -eq 0 ]
    [ "$(cells pattern | sort -u)" = bandwidth ]
    net --transport tcp --pattern latency -s 8 -n 300 --budget 60s # ends with the 300th: a busy machine takes its time
    [ "$status" -eq 0 ]
    [ "$(cells samples)" = 300 ]
    net --transport tcp --pattern bandwidth --mode blocking --streams 4 --threads 2 --no-cpu
    [ "$status" -eq 2 ]
    grep -q -e "--mode epoll" "$err"
    net --transport tcp --pattern bandwidth --streams 64 --size 64K --no-cpu
    [ "$status" -eq 2 ]
    grep -q -e "--mode epoll" "$err"
    net --transport shm --pattern loaded-latency --load-size 18446744073709551615
    [ "$status" -eq 2 ]
    net --node far --transport tcp --pattern bandwidth --no-cpu --size 64K
    [ "$(cells status | sort -u)" = skipped ]
}

@test "without an RDMA device a row says what is missing" {
    [ -z "$(ls /sys/class/infiniband 2>/dev/null)" ] || skip "this machine has an RDMA device"
    net --transport rdma --pattern bandwidth --size 64K
    [ "$status" -eq 0 ]
    [ "$(cells status | sort -u)" = skipped ]
    [ -n "$(cells reason)" ]
}

@test "a listener serves many, and only who knows the secret" {
    serve
    net 127.0.0.1 --port "$port" --secret-file "$secret" --transport tcp --pattern latency --size 8
    [ "$status" -eq 0 ]
    net 127.0.0.1 --port "$port" --secret-file "$secret" --transport tcp,shm --pattern bandwidth --size 64K --no-cpu
    [ "$status" -eq 0 ]
    [ "$(of metric bandwidth transport | sort -u | paste -sd ' ')" = "shm tcp" ]
    (umask 077 && echo "another secret, just as long as it is" >"$BATS_TEST_TMPDIR/other")
    net 127.0.0.1 --port "$port" --secret-file "$BATS_TEST_TMPDIR/other" --wait 60s --transport tcp --pattern latency --size 8
    [ "$status" -eq 4 ]
    [[ $(cells reason) == *secret* ]]
    net 127.0.0.1 --port "$port" --secret-file "$secret" --transport tcp --pattern latency --size 8
    [ "$status" -eq 0 ]
    kill "$server"
    for _ in $(seq 6000); do kill -0 "$server" 2>/dev/null || break; sleep 0.1; done
    run ! kill -0 "$server"
    server=
    no_process "--port $port"
}

@test "no secret, one that others may read, and a port that is taken: said, exit 2" {
    net 127.0.0.1 --port "$port" --transport tcp --pattern latency
    [[ $(cat "$err" "$out") == *"--secret-file"* ]]
    [ "$status" -ne 0 ]
    chmod 644 "$secret"
    run -2 timeout 600 "$bin" --listen loopback --port "$port" --secret-file "$secret"
    [[ $output == *"$secret"* ]]
    chmod 600 "$secret"
    serve
    run -2 timeout 600 "$bin" --listen loopback --port "$port" --secret-file "$secret"
    [[ $output == *"$port"* ]]
}

@test "nobody listens: told within the time that was given" {
    SECONDS=0
    net 127.0.0.1 --port 1 --secret-file "$secret" --wait 1s --transport tcp --pattern latency --size 8
    [ "$status" -eq 4 ]
    [ "$SECONDS" -lt 300 ]
    [[ $(cells reason) == *"127.0.0.1"* ]]
}
