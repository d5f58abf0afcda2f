#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154 # of variables that the files of this name share
# plumb-net from outside, on this machine alone: its rows, what it proves, who may connect, and peers that die or hang.

load processes
load rows
load net

@test "rows: every pattern over shared memory and TCP, data checked, nothing wrong" {
    exits 0 net --transport shm,tcp --pattern bandwidth,latency,rate,loaded-latency --size 64 --no-cpu
    [ "$(cells status | grep -vc -e ok -e noisy)" -eq 0 ]
    [ "$(of metric bandwidth unit | sort -u)" = Gb/s ]
    [ "$(of metric latency unit | sort -u)" = us ]
    [ "$(of metric message_rate unit | sort -u)" = Mop/s ]
    [ "$(of metric loaded_latency pattern | sort -u)" = loaded-latency ]
    [ "$(of metric load_bandwidth unit | sort -u)" = Gb/s ]
    cells value | awk '$1 < 0 { exit 1 }'
    of metric latency p999 | awk '!($1 > 0) { exit 1 }'
    of metric latency max | awk '!($1 > 0) { exit 1 }'
}

@test "both ways: each direction and the sum, which is no more than both" {
    exits 0 net --transport tcp --pattern bandwidth --direction both --size 256K --no-cpu
    [ "$(of metric bandwidth direction | paste -sd ' ')" = "both-forward both-reverse sum" ]
    of metric bandwidth max | paste -sd ' ' | awk '{ exit !($3 <= ($1 + $2) * 1.001 && $3 > 0) }'
}

@test "the evidence names the device that carried the bytes; limits say why there is none" {
    exits 0 net --transport tcp --pattern bandwidth --size 1M --no-cpu
    [[ $(of metric bandwidth evidence) == *"own: lo sent"*"100 %"*"peer: lo received"* ]]
    [ -n "$(of metric bandwidth limit_source)" ]
    [ -z "$(of metric bandwidth limit)" ]
}

@test "wrong data: wrong, exit 1" {
    for transport in shm tcp; do
        exits 1 net --transport $transport --pattern bandwidth --size 64K --no-cpu --inject corrupt
        [ "$(cells status | head -1)" = wrong ]
        [ "$(cells code | head -1)" = wrong-data ]
    done
    exits 1 net --transport tcp --pattern latency --size 64 --inject corrupt
}

@test "a device that is not there is an error, not a reason to skip" {
    exits 4 net --transport tcp --pattern bandwidth --size 64K -d eth99
    [[ $(cells reason) == *eth99* ]]
    exits 2 net --transport shm -d lo
}

@test "options: what says nothing of a transport is refused, defaults give way, perftest's letters" {
    warned 2 --mode net --transport shm --mode epoll
    exits 0 net --transport tcp --streams 2 --size 64K --no-cpu
    [ "$(cells pattern | sort -u)" = bandwidth ]
    exits 0 net --transport tcp --pattern latency -s 8 -n 300 --budget 60s # ends with the 300th: a busy machine takes its time
    [ "$(cells samples)" = 300 ]
    warned 2 "--mode epoll" net --transport tcp --pattern bandwidth --mode blocking --streams 4 --threads 2 --no-cpu
    warned 2 "--mode epoll" net --transport tcp --pattern bandwidth --streams 64 --size 64K --no-cpu
    exits 2 net --transport shm --pattern loaded-latency --load-size 18446744073709551615
    net --node far --transport tcp --pattern bandwidth --no-cpu --size 64K
    [ "$(cells status | sort -u)" = skipped ]
}

@test "a listener serves many, and only who knows the secret" {
    serve
    exits 0 net 127.0.0.1 --port "$port" --secret-file "$secret" --transport tcp --pattern latency --size 8
    exits 0 net 127.0.0.1 --port "$port" --secret-file "$secret" --transport tcp,shm --pattern bandwidth --size 64K --no-cpu
    [ "$(of metric bandwidth transport | sort -u | paste -sd ' ')" = "shm tcp" ]
    (umask 077 && echo "another secret, just as long as it is" >"$BATS_TEST_TMPDIR/other")
    exits 4 net 127.0.0.1 --port "$port" --secret-file "$BATS_TEST_TMPDIR/other" --wait 60s --transport tcp --pattern latency --size 8
    [[ $(cells reason) == *secret* ]]
    exits 0 net 127.0.0.1 --port "$port" --secret-file "$secret" --transport tcp --pattern latency --size 8
    kill "$server"
    in_time 600 eval "! kill -0 $server 2>/dev/null"
    server=
    no_process "--port $port"
}

@test "no secret, one that others may read, and a port that is taken: said, exit 2" {
    net 127.0.0.1 --port "$port" --transport tcp --pattern latency
    [[ $(cat "$err" "$out") == *"--secret-file"* ]]
    [ "$status" -ne 0 ]
    chmod 644 "$secret"
    told 2 "$secret" timeout 600 "$bin" --listen loopback --port "$port" --secret-file "$secret"
    chmod 600 "$secret"
    serve
    told 2 "$port" timeout 600 "$bin" --listen loopback --port "$port" --secret-file "$secret"
}

@test "nobody listens: told within the time that was given" {
    SECONDS=0
    exits 4 net 127.0.0.1 --port 1 --secret-file "$secret" --wait 1s --transport tcp --pattern latency --size 8
    [ "$SECONDS" -lt 300 ]
    [[ $(cells reason) == *"127.0.0.1"* ]]
}
