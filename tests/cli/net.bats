#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# plumb-net from outside, on this machine alone: its rows, what it proves, who may connect, and peers that die or hang.

bats_require_minimum_version 1.5.0
load processes
load rows

setup()
{
    cd "$BATS_TEST_DIRNAME/../.." || exit
    bin=$PWD/build/bin/plumb-net
    out=$BATS_TEST_TMPDIR/out err=$BATS_TEST_TMPDIR/err secret=$BATS_TEST_TMPDIR/secret
    quick="--csv --budget 200ms --warmup 50ms"
    (umask 077 && echo "a secret of more than 16 characters" >"$secret")
    port=$((20000 + (BASHPID % 20000)))
    unset PLUMB_SECRET_FILE
}

teardown()
{
    if [ -n "${server:-}" ]; then
        kill -9 "$server" 2>/dev/null || true
    fi
}

# net ARGUMENTS...: runs the benchmark; sets status, and leaves stdout and stderr in $out and $err.
net()
{
    status=0
    # shellcheck disable=SC2086 # quick is several words
    timeout 600 "$bin" $quick "$@" >"$out" 2>"$err" </dev/null || status=$?
}

# serve: a listener in the background, ready when this returns; sets server.
serve()
{
    "$bin" --listen loopback --port "$port" --secret-file "$secret" "$@" 2>"$BATS_TEST_TMPDIR/served" 3>&- &
    server=$!
    for _ in $(seq 6000); do
        grep -q "listening on" "$BATS_TEST_TMPDIR/served" && return
        sleep 0.1
    done
    cat "$BATS_TEST_TMPDIR/served"
    return 1
}

# of COLUMN VALUE COLUMN: cells of the second column in rows where the first has that value.
of() { paste -d'|' <(cells "$1") <(cells "$3") | awk -F'|' -v v="$2" '$1 == v { print $2 }'; }

no_process() {
    for _ in $(seq 6000); do
        pgrep -f "^$bin .*$1" >/dev/null || return 0
        sleep 0.1
    done
    pgrep -fa "^$bin .*$1"
    return 1
}

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

@test "CPU cost: threads of both ends and the machine; none where it is not wanted" {
    net --transport tcp --pattern bandwidth --size 1M --budget 1s
    [ "$status" -eq 0 ]
    [[ $(of metric cpu_per_gb scope) == *threads* ]] # the machine's only where nobody else was busy
    [ "$(paste -d/ <(of metric cpu_cores side) <(of metric cpu_cores scope) | grep threads | sort | paste -sd ' ')" = "own/threads peer/threads" ]
    paste -d' ' <(cells metric) <(cells scope) <(cells value) | awk '
        $1 == "cpu_cores" && $2 == "threads" && !($3 > 0 && $3 < 1.05) { exit 1 }'
    net --transport tcp --pattern bandwidth --size 1M --no-cpu
    [ "$(cells metric | grep -c cpu)" -eq 0 ]
}

# fits_together: the cores of both ends over their CPU seconds a GB are the rate.
fits_together()
{
    paste -d' ' <(cells metric) <(cells side) <(cells scope) <(cells value) | awk '
        $1 == "average_bandwidth" { gbps = $2 }
        $1 == "cpu_cores" && $3 == "threads" { cores[$2] = $4 }
        $1 == "cpu_per_gb" && $3 == "threads" { per_gb[$2] = $4 }
        END { for (side in cores) { n++; q = cores[side] / per_gb[side] / gbps; if (q < 0.85 || q > 1.15) bad = 1 }
              exit bad || n != 2 }'
}

# CPU seconds a second over CPU seconds a GB are GB a second: those of the average, over the same time. The ends are read
# one after the other, and the machine may stop in between: a wrong figure is wrong each time.
@test "CPU seconds a GB, cores and bytes over time fit together, at both ends and both ways" {
    for direction in forward both; do
        for _ in 1 2 3 4 5; do
            net --transport tcp --pattern bandwidth --size 1M --direction $direction --budget 600ms
            [ "$status" -eq 0 ]
            ! fits_together || break
        done
        fits_together
    done
}

@test "the evidence names the device that carried the bytes; limits say why there is none" {
    net --transport tcp --pattern bandwidth --size 1M --no-cpu
    [ "$status" -eq 0 ]
    [[ $(of metric bandwidth evidence) == *"own: lo sent"*"100 % of the bytes"*"peer: lo received"* ]]
    [ -n "$(of metric bandwidth limit_source)" ]
    [ -z "$(of metric bandwidth limit)" ]
}

# in_a_net MTU ARGUMENTS...: the benchmark in a network of its own, whose loopback has this MTU.
in_a_net()
{
    status=0
    # shellcheck disable=SC2016,SC2086 # the inner shell expands it; quick is several words
    timeout 600 unshare -n bash -ec 'ip link set lo mtu "$1" up; exec "${@:2}"' - "$1" "$bin" $quick "${@:2}" \
        >"$out" 2>"$err" </dev/null || status=$?
}

@test "segments as long as asked for: the row shows them; where the path has no such ones, it is skipped" {
    unshare -n ip link set lo mtu 1500 2>"$err" || skip "no network can be made here: $(cat "$err")"
    in_a_net 1500 --transport tcp --pattern bandwidth --size 1M --no-cpu --segment 0,1K
    [ "$status" -eq 0 ]
    [ "$(cells segment | uniq | xargs)" = "0 1024" ]
    [[ $(cells detail | head -1) == *"MSS 14"[46]* ]]
    [[ $(cells detail | tail -1) == *"MSS 10"[12]* ]]
    in_a_net 1500 --transport tcp --pattern bandwidth --size 1M --no-cpu --segment 8940
    [ "$(cells status)" = skipped ]
    [[ $(cells reason) == *"segments of 8940 bytes were asked for, and the connection over 'lo' has 1460"* ]]
    net --transport shm --segment 1K
    [ "$status" -eq 2 ]
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

# On an interface that others use, too, their bytes would stand for those that are missing.
@test "bytes that went another way than was said: wrong, exit 1" {
    unshare -n ip link set lo mtu 1500 2>"$err" || skip "no network can be made here: $(cat "$err")"
    in_a_net 65536 --transport tcp --pattern bandwidth --size 1M --no-cpu --inject elsewhere
    [ "$status" -eq 1 ]
    [ "$(cells status | head -1)" = wrong ]
    [[ $(cells reason | head -1) == *"went another way"*"lo moved"* ]]
}

@test "for people: the tail of a latency, and what a stream cost in one text" {
    timeout 600 "$bin" --transport tcp --pattern bandwidth,latency --size 64 --budget 2s --warmup 50ms >"$out" 2>"$err"
    tr -s '\n ' ' ' <"$out" >"$out.flat"
    grep -Eq "min [0-9.]+, p95 [0-9.]+, p99 [0-9.]+, p99.9 [0-9.]+, max [0-9.]+" "$out.flat"
    grep -Eq "average_bandwidth [0-9.e-]+ GB/s; .*cpu_per_gb own threads [0-9.]+,.* peer threads [0-9.]+ s/GB" "$out.flat"
}

@test "--tune tells each step, measures what it found, and refuses what it would find" {
    net --transport tcp --tune --no-cpu
    [ "$status" -eq 0 ]
    grep -q "tune: streams 1: .* GB/s" "$err"
    grep -q "tune: size 4096: .* GB/s" "$err"
    local found
    found=$(sed -n 's/.*the plateau begins at \([0-9]*\) stream.*/\1/p' "$err")
    [ "$(cells streams | sort -u)" = "$found" ]
    [ "$(cells pattern | sort -u)" = bandwidth ]
    net --transport tcp --tune --size 1M
    [ "$status" -eq 2 ]
    net --transport tcp,shm --tune
    [ "$status" -eq 2 ]
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
    [ "$(cells status | sort -u)" = skipped ]
    [[ $(cells reason | head -1) == *"--mode epoll"* ]]
    net --transport tcp --pattern bandwidth --streams 64 --size 64K --no-cpu
    [ "$(cells status)" = skipped ]
    [[ $(cells reason) == *"--mode epoll"* ]]
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
    net 127.0.0.1 --port "$port" --secret-file "$BATS_TEST_TMPDIR/other" --wait 1s --transport tcp --pattern latency --size 8
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

@test "a listener may be told its device" {
    serve --device lo
    net 127.0.0.1 --port "$port" --secret-file "$secret" --transport tcp --pattern latency --size 8
    [ "$status" -eq 0 ]
    [[ $(cells peer_detail) == lo* ]]
}

@test "rows say the node that a listener's own command line chose, not the one that the leader asked for" {
    serve --device lo --node 0
    net 127.0.0.1 --port "$port" --secret-file "$secret" --transport tcp --pattern latency --size 8
    [ "$status" -eq 0 ]
    [ "$(cells node) $(cells peer_node)" = "near 0" ]
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
    [ "$SECONDS" -lt 60 ]
    [[ $(cells reason) == *"127.0.0.1"* ]]
}

# The peer of a run on this machine is its one child.
peer_of() { pgrep -P "$(pgrep -f "^$bin .*--seed $1" | head -1)" | head -1; }

@test "a peer that is killed, or stopped: the row fails and names it, the next point runs, no orphan" {
    local victim=$RANDOM
    for signal in KILL STOP; do
        # shellcheck disable=SC2086
        timeout 600 "$bin" $quick --budget 6s --transport tcp --pattern bandwidth --size 64K,128K --no-cpu --seed $victim >"$out" 2>"$err" 3>&- &
        local leader=$!
        for _ in $(seq 6000); do peer=$(peer_of $victim); [ -n "$peer" ] && break; sleep 0.05; done
        for _ in $(seq 6000); do at_work 20 "$peer" && break; sleep 0.05; done # it moves bytes by now
        kill -$signal "$peer"
        status=0
        wait $leader || status=$?
        [ "$status" -eq 4 ]
        [ "$(of metric bandwidth status | head -1)" = failed ]
        [[ $(of metric bandwidth reason | head -1) == *"pid "* ]]
        [ "$(of metric bandwidth status | tail -1)" != failed ]
        no_process "--seed $victim"
    done
}

@test "a leader that is killed leaves no process behind; its listener serves the next one" {
    serve
    # shellcheck disable=SC2086
    "$bin" $quick --budget 20s 127.0.0.1 --port "$port" --secret-file "$secret" --transport tcp --pattern bandwidth --size 64K --no-cpu >"$out" 2>"$err" 3>&- &
    local leader=$!
    for _ in $(seq 6000); do at_work 20 $leader && break; sleep 0.05; done # it moves bytes by now
    kill -9 $leader
    wait $leader || true
    net 127.0.0.1 --port "$port" --secret-file "$secret" --wait 15s --transport tcp --pattern latency --size 8
    [ "$status" -eq 0 ]
}

@test "a launcher that tells ranks and no number is refused" {
    for set in PMIX_RANK=0 'WORLD_SIZE=2 RANK=1'; do
        # shellcheck disable=SC2086 # several variables, several words
        run -2 env $set timeout 600 "$bin" $quick --transport shm --pattern latency --size 8
        [[ $output == *"plumb-net: a launcher set "*"(env -u "*"Or give --listen to one"* && $output != *",us,"* ]]
    done
    # shellcheck disable=SC2086
    run -0 env PMIX_RANK=0 OMPI_COMM_WORLD_SIZE=1 timeout 600 "$bin" $quick --transport shm --pattern latency --size 8
}

@test "under mpirun: two ranks are one run, three are refused, without the module none runs alone" {
    command -v mpirun >/dev/null && [ -e build/lib/plumbline/plumb-mpi.so ] || skip "no mpirun, or no MPI module was built"
    local mpirun="timeout 600 mpirun --allow-run-as-root --oversubscribe"
    # shellcheck disable=SC2086
    $mpirun -np 2 "$bin" $quick --transport tcp,shm --pattern latency --size 8 >"$out" 2>"$err" </dev/null
    [ "$(cells metric | grep -c latency)" -eq 2 ]
    [ "$(cells status | grep -vc -e ok -e noisy)" -eq 0 ]
    # shellcheck disable=SC2086
    run $mpirun -np 3 "$bin" $quick --transport shm --pattern latency --size 8
    [ "$status" -ne 0 ]
    [[ $output == *"the launcher started 3"* ]]
    # shellcheck disable=SC2086
    run env PLUMB_MPI_MODULE=/nowhere/plumb-mpi.so $mpirun -np 2 "$bin" $quick --transport shm --pattern latency --size 8
    [ "$status" -ne 0 ]
    [[ $output == *"MPI module"* ]]
    [[ $output != *",us,"* ]]
}
