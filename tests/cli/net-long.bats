#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tier: long
# shellcheck disable=SC2086,SC2154 # of variables that the files of this name share
# plumb-net from outside, on this machine alone: its rows, what it proves, who may connect, and peers that die or hang.

load processes
load rows
load net

# fits_together: the cores of both ends over their CPU seconds a GB are the rate.
fits_together()
{
    paste -d' ' <(cells metric) <(cells side) <(cells scope) <(cells value) | awk '
        $1 == "average_bandwidth" { gbps = $2 / 8 }
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
            exits 0 net --transport tcp --pattern bandwidth --size 1M --direction $direction --budget 600ms
            ! fits_together || break
        done
        fits_together
    done
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
    exits 0 in_a_net 1500 --transport tcp --pattern bandwidth --size 1M --no-cpu --segment 0,1K
    [ "$(cells segment | uniq | xargs)" = "auto 1024" ]
    [[ $(cells detail | head -1) == *"MSS 14"[46]* ]]
    [[ $(cells detail | tail -1) == *"MSS 10"[12]* ]]
    in_a_net 1500 --transport tcp --pattern bandwidth --size 1M --no-cpu --segment 8940
    row skipped " 8940 bytes *'lo' has 1460"
    exits 2 net --transport shm --segment 1K
}

# On an interface that others use, too, their bytes would stand for those that are missing.
@test "bytes that went another way than was said: wrong, exit 1" {
    unshare -n ip link set lo mtu 1500 2>"$err" || skip "no network can be made here: $(cat "$err")"
    exits 1 in_a_net 65536 --transport tcp --pattern bandwidth --size 1M --no-cpu --inject elsewhere
    [ "$(cells status | head -1)" = wrong ]
    [[ $(cells reason | head -1) == *" lo "* ]]
}

# The peer of a run on this machine is its one child.
peer_of() { pgrep -P "$(pgrep -f "^$bin .*--seed $1" | head -1)" | head -1; }

@test "a peer that is killed, or stopped: the row fails and names it, the next point runs, no orphan" {
    local victim=$RANDOM
    for signal in KILL STOP; do
        timeout 600 "$bin" $quick --budget 6s --transport tcp --pattern bandwidth --size 64K,128K --no-cpu --seed $victim >"$out" 2>"$err" 3>&- &
        local leader=$!
        for _ in $(seq 6000); do peer=$(peer_of $victim); [ -n "$peer" ] && break; sleep 0.05; done
        for _ in $(seq 6000); do at_work 20 "$peer" && break; sleep 0.05; done # it moves bytes by now
        kill -$signal "$peer"
        reaped 4 $leader
        [ "$(of metric bandwidth status | head -1)" = failed ]
        [[ $(of metric bandwidth reason | head -1) == *"pid "* ]]
        [ "$(of metric bandwidth status | tail -1)" != failed ]
        no_process "--seed $victim"
    done
}

@test "a leader that is killed leaves no process behind; its listener serves the next one" {
    serve
    "$bin" $quick --budget 20s 127.0.0.1 --port "$port" --secret-file "$secret" --transport tcp --pattern bandwidth --size 64K --no-cpu >"$out" 2>"$err" 3>&- &
    local leader=$!
    for _ in $(seq 6000); do at_work 20 $leader && break; sleep 0.05; done # it moves bytes by now
    kill -9 $leader
    wait $leader || true
    exits 0 net 127.0.0.1 --port "$port" --secret-file "$secret" --wait 300s --transport tcp --pattern latency --size 8
}

@test "under mpirun: two ranks are one run, three are refused, without the module none runs alone" {
    command -v mpirun >/dev/null && [ -e "${PLUMB_BIN:-build/bin}/../lib/plumbline/plumb-mpi.so" ] || skip "no mpirun, or no MPI module was built"
    local mpirun="timeout 600 mpirun --allow-run-as-root --oversubscribe"
    $mpirun -np 2 "$bin" $quick --transport tcp,shm --pattern latency --size 8 >"$out" 2>"$err" </dev/null
    [ "$(cells metric | grep -c latency)" -eq 2 ]
    [ "$(cells status | grep -vc -e ok -e noisy)" -eq 0 ]
    run $mpirun -np 3 "$bin" $quick --transport shm --pattern latency --size 8
    [ "$status" -ne 0 ]
    [[ $output == *" 3"* && $output != *",us,"* ]]
    run env PLUMB_MPI_MODULE=/nowhere/plumb-mpi.so $mpirun -np 2 "$bin" $quick --transport shm --pattern latency --size 8
    [ "$status" -ne 0 ]
    [[ $output == *"MPI module"* ]]
    [[ $output != *",us,"* ]]
}

@test "cross-memory attach: every pattern, data checked; refused: skipped, with what to do" {
    exits 0 net --transport cma --pattern bandwidth,latency,rate,loaded-latency --size 4K --no-cpu
    if [ "$(cells status | head -n 1)" != skipped ]; then
        [ "$(cells status | grep -vc -e ok -e noisy)" -eq 0 ]
        [[ $(cells detail | head -n 1) == *process_vm_readv* ]]
        exits 1 net --transport cma --pattern bandwidth --size 64K --no-cpu --inject corrupt
    fi
    command -v "${CC:-cc}" >/dev/null || skip "no compiler"
    cat >"$BATS_TEST_TMPDIR/refuse.c" <<'END'
#include <errno.h>
#include <sys/types.h>
ssize_t process_vm_readv(void) { errno = EPERM; return -1; }
END
    "${CC:-cc}" -shared -fPIC -o "$BATS_TEST_TMPDIR/refuse.so" "$BATS_TEST_TMPDIR/refuse.c"
    LD_PRELOAD=$BATS_TEST_TMPDIR/refuse.so exits 0 net --transport cma --pattern bandwidth,latency --size 4K
    [ "$(cells status | sort -u)" = skipped ]
    [[ $(cells reason | head -n 1) == *"ptrace_scope=1"* ]]
    [[ $(cells reason | tail -n 1) == *"--cap-add SYS_PTRACE"* ]]
}
