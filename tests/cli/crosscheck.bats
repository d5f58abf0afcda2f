#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tier: long
# shellcheck disable=SC2016,SC2154 # the made-up programs expand it themselves; run sets stderr
# scripts/crosscheck with programs, and benchmarks of ours, that print what they are told; and once with the real ones.

# waits: for programs that take their time

load common

setup()
{
    cd "$BATS_TEST_DIRNAME/../.." || exit
    work=$BATS_TEST_TMPDIR/w
    export FAKE_LOG=$work/log FAKE_OURS=1 FAKE_VALUE=1e9 FAKE_BIN=$PWD/build/bin
    mkdir -p "$work/bin" "$work/path"
    ln -s "$FAKE_BIN"/plumb* "$work/bin/"
    for name in net allreduce copy; do
        ln -sf "$PWD/tests/witness/fake" "$work/bin/plumb-$name"
    done
    : >"$FAKE_LOG"
}

# fakes NAME...: other programs on PATH.
fakes()
{
    local name
    for name; do
        ln -s "$PWD/tests/witness/fake" "$work/path/$name"
    done
}

check()
{
    run --separate-stderr env PATH="$work/path:$PATH" scripts/crosscheck --bin "$work/bin" --seconds 1 --out "$work/results" "$@"
    echo "$output" "$stderr"
}

# nothing_left: no process of the fakes is there any more.
nothing_left()
{
    in_time 600 eval "! pgrep -f '$work/path/'"
}

@test "two that agree: the ratio and its interval by plumb compare, in turn, on our CPUs; how the definitions differ" {
    fakes iperf3
    exits 0 check iperf3-1 --pairs 6
    [[ ${lines[0]} =~ ^iperf3-1\ +equivalent\ +1\.000\ \(0\.99[0-9]\ to\ 1\.00[0-9]\)\ .*Gb/s,\ 6\ pairs,\ iperf3\ 3\.12$ ]]
    [ "$(sed -n 's/^iperf3 client.*/their/p; s/^plumb-net .*/our/p' "$FAKE_LOG" | paste -sd' ')" = \
        "our their their our our their their our our their their our" ]
    python3 - "$work/results/iperf3-1" "$FAKE_LOG" <<'END'
import csv, sys
cpus = [next(csv.DictReader(open(f"{sys.argv[1]}/ours/001/net.csv")))["cpus"].split(">")[at] for at in (0, 1)]
for role, at in (("client", 0), ("server", 1)):
    assert any(line.strip() == f"iperf3 {role} {cpus[at]}" for line in open(sys.argv[2])), (role, cpus)
END
    run build/bin/plumb compare "$work/results/iperf3-1/theirs" "$work/results/iperf3-1/ours" --json -
    [[ $output == *'"by_pairs": true'* ]]
    nothing_left
}

@test "ours slower is status 1, faster 0, few pairs are inconclusive, and the ratio of a wrong definition is named" {
    fakes iperf3 sockperf
    FAKE_VALUE=1.25e9 exits 1 check iperf3-1 --pairs 6
    [[ ${lines[0]} == "iperf3-1 "*" worse "*" 0.800 (0."* ]]
    rm -r "$work/results"
    FAKE_VALUE=1.3 exits 0 check sockperf --pairs 6
    [[ ${lines[0]} == "sockperf "*" better "*" 1.300 (1."* ]]
    rm -r "$work/results"
    FAKE_VALUE=1.0 FAKE_OURS=0.5 exits 1 check sockperf --pairs 6
    [[ $output == *half*whole* ]]
    rm -r "$work/results"
    FAKE_VALUE=1.3 exits 3 check sockperf --pairs 1
}

@test "one that fails or hangs is named with its last words, and the rest goes on; nothing is left" {
    fakes sockperf
    ln -s "$PWD/tests/witness/fake" "$work/path/iperf3.py"
    for how in fail hang gone; do
        rm -rf "$work/results"
        printf '#!/bin/bash\n[[ $1 != --version ]] || { echo 3.12; exit; }\nFAKE_HOW=%s exec -a iperf3 python3 %s/iperf3.py "$@"\n' \
            $how "$work/path" >"$work/path/iperf3"
        chmod +x "$work/path/iperf3"
        FAKE_VALUE=1 exits 4 check iperf3-1 sockperf --pairs 6 --timeout 20
        [[ $output == *'iperf3-1 '*' failed: '* ]]
        [[ $output == *'sockperf '*' equivalent '* ]]
        nothing_left
    done
}

@test "what is not here is one line, and no failure of the others; wrong usage is status 2 and says what there is" {
    fakes iperf3
    exits 0 check iperf3-1 'nccl-all*' --pairs 6
    [[ $output == *"skipped: 'all_reduce_perf' "*github.com/NVIDIA/nccl-tests*nccl-allreduce* ]]
    exits 2 check iperf3-1
    [[ $stderr == *"results'"*--out* ]]
    rm -r "$work/results"
    exits 4 check nccl-allreduce
    exits 2 check nothing
    [[ $stderr == *"'nothing'"*" iperf3-1 iperf3-4 sockperf "* ]]
    exits 2 check --pairs 0
}

@test "our own rows that are wrong or skipped are no figures" {
    fakes iperf3
    FAKE_STATUS=wrong FAKE_REASON='byte 7 differs' exits 4 check iperf3-1
    [[ $output == *'iperf3-1 '*' failed: '*' byte 7 differs'* ]]
    rm -r "$work/results"
    FAKE_STATUS=skipped FAKE_REASON='no such port' exits 4 check iperf3-1
    [[ $output == *'skipped: '*' no such port'*iperf3-1* ]]
}

@test "an interrupt ends it, and leaves nothing behind" {
    fakes iperf3
    FAKE_HOW=hang PATH=$work/path:$PATH scripts/crosscheck iperf3-1 --bin "$work/bin" --out "$work/results" 2>"$work/err" 3>&- &
    pid=$!
    in_time 600 grep -q 'iperf3 client' "$FAKE_LOG"
    kill -TERM "$pid"
    reaped 4 "$pid"
    grep -qx 'crosscheck: interrupted' "$work/err"
    nothing_left
}

@test "collectives: both start by mpirun, and are one case" {
    command -v mpirun >/dev/null || skip 'MPI is not here: install openmpi-bin'
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
    fakes osu_allreduce
    rm "$work/bin/plumb-allreduce"
    ln -s "$FAKE_BIN/plumb-allreduce" "$work/bin/"
    FAKE_VALUE=0.1 check osu-allreduce --pairs 2
    [[ ${lines[0]} == "osu-allreduce "*" us, 2 pairs, osu-micro-benchmarks 7.4" ]]
}

@test "simulated GPUs: nvbandwidth and nccl-tests are one case with ours" {
    . tests/sim/env.bash
    simulate one
    fakes nvbandwidth all_reduce_perf
    FAKE_VALUE=55 FAKE_OURS=55 check nvbandwidth-to-gpu nccl-allreduce --gpus 1 --pairs 6
    [[ $output == *'nvbandwidth-to-gpu '*' GB/s, '* ]]
    [[ $output == *'nccl-allreduce '*' us, '* ]]
}

@test "the real iperf3 against the real plumb-net" {
    command -v iperf3 >/dev/null || skip 'iperf3 is not installed'
    run scripts/crosscheck iperf3-1 --pairs 2 --seconds 1 --out "$work/results"
    [[ ${lines[0]} == "iperf3-1 "*" Gb/s, 2 pairs, iperf3 "* ]]
}
