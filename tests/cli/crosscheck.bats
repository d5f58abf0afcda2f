#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# plumb crosscheck with witnesses, and a benchmark of ours, that print what they are told; and once with the real ones.

# waits: for programs that take their time

bats_require_minimum_version 1.5.0
load rows

setup()
{
    cd "$BATS_TEST_DIRNAME/../.." || exit
    top=$PWD
    work=$BATS_TEST_TMPDIR/w
    mkdir -p "$work/bin" "$work/path"
    cp build/bin/plumb tests/witness/plumb-net "$work/bin/" # our programs are looked for beside plumb
    cp tests/witness/plumb-net "$work/bin/plumb-allreduce"
    cp tests/witness/plumb-net "$work/bin/plumb-copy"
    plumb=$work/bin/plumb
    export FAKE_LOG=$work/log FAKE_OURS=1 FAKE_VALUE=8e9
    : >"$FAKE_LOG"
    out=$BATS_TEST_TMPDIR/out err=$BATS_TEST_TMPDIR/err
}

# fakes NAME...: witnesses on PATH.
fakes()
{
    local name
    for name; do
        cp "$top/tests/witness/fake" "$work/path/$name"
    done
}

# check ARGUMENTS...: with none but the fakes on PATH; sets status, and leaves stdout and stderr in $out and $err.
check()
{
    status=0
    PATH=$work/path:$tools timeout 120 "$plumb" crosscheck --seconds 1 --out "$work/results" "$@" >"$out" 2>"$err" \
        </dev/null || status=$?
}

# What the fakes themselves need, without this machine's own witnesses.
setup_file()
{
    tools=$BATS_FILE_TMPDIR/tools
    export tools
    mkdir -p "$tools"
    ln -s "$(python3 -c 'import os; print(os.path.realpath("/proc/self/exe"))')" "$tools/python3"
    ln -s "$(command -v env)" "$(command -v sh)" "$(command -v timeout)" "$(command -v sleep)" "$tools/"
}

# nothing_left: no process of the fakes is there any more.
nothing_left()
{
    for _ in $(seq 6000); do
        ! pgrep -f "$work/path/" >"$BATS_TEST_TMPDIR/left" && return
        sleep 0.1
    done
    cat "$BATS_TEST_TMPDIR/left"
    return 1
}

# says PATTERN: the output, its lines joined.
says()
{
    tr -s ' \n' ' ' <"$out" | grep -q -- "$1" || {
        cat "$out" "$err"
        return 1
    }
}

@test "two that agree: the ratio, its interval, and status 0" {
    fakes iperf3
    check --only iperf3-1 --pairs 8
    [ "$status" -eq 0 ]
    says 'iperf3-1 128 KiB 1 1 1 GB/s 1.000 0.99[0-9] to 1.00[0-9] agree'
    says 'converted: bits to bytes'
    nothing_left
}

# Stands for mpirun -np N PROGRAM...: notes it, and runs the program once.
launcher()
{
    cat >"$work/path/mpirun" <<'END'
#!/bin/sh
echo "mpirun $2 ${3##*/}" >>"$FAKE_LOG"
shift 2
exec "$@"
END
    chmod +x "$work/path/mpirun"
}

@test "collectives: both behind mpirun with the same ranks, the slowest rank's time" {
    fakes IMB-MPI1 osu_allreduce
    launcher
    FAKE_VALUE=20 FAKE_OURS=20 check --only 'imb*,osu*' --pairs 8
    [ "$status" -eq 0 ]
    says 'imb-allreduce 64 KiB 2 20 20 us 1.000 0.99[0-9] to 1.00[0-9] agree'
    says 'osu-allreduce 64 KiB 2 20 20 us 1.000 0.99[0-9] to 1.00[0-9] agree'
    says 'converted: its t_max, not its t_avg'
    [ "$(grep -cx 'mpirun 2 plumb-allreduce' "$FAKE_LOG")" -eq 16 ]
    [ "$(grep -cx 'mpirun 2 IMB-MPI1' "$FAKE_LOG")" -eq 8 ]
    grep -q -- '^ours --backend mpi --ranks 2 --size 65536 --no-cpu --gap 1us --budget 1s' "$FAKE_LOG"
    [ "$(grep -c -- '^ours --backend mpi --ranks 2 --size 65536 --no-cpu --budget 1s' "$FAKE_LOG")" -eq 8 ]
    FAKE_VALUE=20 FAKE_OURS=30 check --only 'imb*' --pairs 8 --out "$work/again"
    [ "$status" -eq 1 ] # a time that is longer is slower
    says 'ours slower'
}

@test "collectives: what is missing is said; NCCL needs no launcher" {
    check --only 'imb*,nccl*' --pairs 1
    says "'IMB-MPI1' is not on PATH (no package of Debian: build it from github.com/intel/mpi-benchmarks)"
    says "'all_reduce_perf' is not on PATH"
    fakes IMB-MPI1 all_reduce_perf
    FAKE_VALUE=94 FAKE_OURS=94 check --only 'imb*,nccl*' --pairs 8 --out "$work/again"
    says "'mpirun' is not on PATH (Debian: openmpi-bin)"
    says 'nccl-allreduce 64 MiB 1 94 94 us 1.000 0.99[0-9] to 1.00[0-9] agree'
    grep -q -- '^ours --backend nccl --op allreduce --np 1 --ranks 1 --per-process 1 --size 67108864' "$FAKE_LOG"
}

@test "GPUs: nvbandwidth of this size, and a rank of NCCL for each GPU" {
    fakes nvbandwidth all_reduce_perf
    FAKE_VALUE=55.5 FAKE_OURS=55.5 check --only 'nvbandwidth-to-gpu' --pairs 8
    [ "$status" -eq 0 ]
    says 'nvbandwidth-to-gpu 512 MiB 1 55.5 55.5 GB/s 1.000 0.99[0-9] to 1.00[0-9] agree'
    grep -q -- '^ours --engine ce --source host --destination cuda:0 --memory pinned --size 536870912 ' "$FAKE_LOG"
    FAKE_VALUE=94 FAKE_OURS=94 check --only nccl-allreduce --gpus 4 --pairs 1 --out "$work/again"
    grep -q -- '^ours --backend nccl --op allreduce --np 1 --ranks 4 --per-process 4 --size 67108864' "$FAKE_LOG"
    says 'nccl-allreduce 64 MiB 4 94 '
    # A test that nvbandwidth was not asked for is no figure.
    check --only 'nvbandwidth-from-gpu' --pairs 1 --out "$work/third"
    [ "$status" -eq 4 ]
    says 'its output has 0 results that were asked for, not 1'
}

@test "in turn: ours, theirs, theirs, ours, ours, theirs" {
    fakes iperf3
    check --only iperf3-1 --pairs 3
    [ "$status" -eq 3 ]
    says 'undecided: an interval takes 6 pairs'
    [ "$(grep -v server "$FAKE_LOG" | cut -c1 | tr -d '\n')" = oiiooi ]
    [ "$(grep -c 'iperf3 server' "$FAKE_LOG")" -eq 3 ]
    grep -q -- '--size 131072 --streams 1 .*--budget 1s' "$FAKE_LOG"
}

@test "the witness' ends are put where ours were" {
    fakes iperf3
    first=$(python3 -c 'import os; print(min(os.sched_getaffinity(0)))')
    last=$(python3 -c 'import os; print(max(os.sched_getaffinity(0)))')
    FAKE_CPUS="$first>$last" check --only iperf3-1 --pairs 1
    grep -qx "iperf3 client $first" "$FAKE_LOG"
    grep -qx "iperf3 server $last" "$FAKE_LOG"
    says "CPUs $first>$last; lo cubic"
}

@test "a witness whose MB are 2^20 bytes: converted, and said so" {
    fakes ib_write_bw
    FAKE_OURS=1.048576 FAKE_VALUE=1000 check --only ib_write_bw --device fake0 --pairs 8
    [ "$status" -eq 0 ]
    says 'ib_write_bw 64 KiB 1 1.0486 1.0486 GB/s 1.000 .* agree'
    says 'as printed (1000 MB/s) the ratio would be 1.049'
    grep -q -- '--device fake0:1' "$FAKE_LOG"
}

@test "ours slower is status 1, faster 0, and the reason by definition is said" {
    fakes iperf3 sockperf
    FAKE_VALUE=10e9 check --only iperf3-1 --pairs 6
    [ "$status" -eq 1 ]
    says '0.80[0-9] 0.79[0-9] to 0.80[0-9] ours slower'
    rm -r "$work/results"
    FAKE_VALUE=1.3 check --only sockperf --pairs 6
    [ "$status" -eq 0 ]
    says 'ours faster'
    says 'what differs all the same: it leaves out its first 400 ms'
}

@test "a ratio that is just that of a mistaken definition is status 1, though ours looks the faster" {
    fakes sockperf
    FAKE_VALUE=2 check --only sockperf --pairs 6
    [ "$status" -eq 1 ]
    says 'the ratio is that of half against whole round trips'
}

@test "one that hangs is stopped and named, and the rest goes on" {
    fakes iperf3
    printf '#!/bin/sh\nexec env FAKE_HOW=hang %s "$@"\n' "$work/path/hang/sockperf" >"$work/path/sockperf"
    chmod +x "$work/path/sockperf"
    mkdir "$work/path/hang"
    cp tests/witness/fake "$work/path/hang/sockperf"
    check --only iperf3-4,sockperf,iperf3-1 --pairs 6 --timeout 15s # of which those that work take a part too
    [ "$status" -eq 4 ]
    says 'iperf3-1 .* agree'
    says 'sockperf failed: sockperf in pair 1: it did not end in 15 s'
    nothing_left
}

@test "one that fails is a row with its last words, and the rest goes on" {
    fakes iperf3 qperf
    cat >"$work/path/iperf3" <<'END'
#!/bin/sh
[ "$1" = --version ] && echo 3.12 && exit
echo 'cannot do this' >&2
exit 1
END
    FAKE_OURS=8 FAKE_VALUE=8000 check --only iperf3-1,qperf-latency --pairs 6
    [ "$status" -eq 4 ]
    says 'iperf3-1 failed: iperf3 in pair 1: its server ended before it listened: cannot do this'
    says 'qperf-latency 64 B 1 8 8 us 1.000 .* agree'
    [ -s "$work/results/log/iperf3-1-001-server.err" ]
}

@test "a client that fails, and a server that never listens" {
    fakes iperf3
    FAKE_HOW=fail check --only iperf3-1 --pairs 2
    [ "$status" -eq 4 ]
    says 'failed: iperf3 in pair 1: it ended with status 3: fake: no such weather'
    rm -r "$work/results"
    FAKE_HOW=mute check --only iperf3-1 --pairs 2
    [ "$status" -eq 4 ]
    says 'its server did not listen on port [0-9]* in 5 s'
    nothing_left
}

@test "a witness that is not here is one line, and no failure of the others" {
    fakes iperf3
    check --only 'iperf3-1,sockperf,ib_*' --pairs 6
    [ "$status" -eq 0 ]
    says "sockperf absent: 'sockperf' is not on PATH (Debian: sockperf)"
    says "ib_send_lat absent: 'ib_send_lat' is not on PATH (Debian: perftest)"
    rm -r "$work/results"
    check --only sockperf
    [ "$status" -eq 4 ]
}

@test "our own rows that are wrong or skipped are no figures" {
    fakes iperf3
    FAKE_STATUS=wrong FAKE_REASON='byte 7 differs' check --only iperf3-1
    [ "$status" -eq 4 ]
    says 'failed: ours in pair 1: our row is wrong: byte 7 differs'
    rm -r "$work/results"
    FAKE_STATUS=skipped FAKE_REASON='no such port' check --only iperf3-1
    [ "$status" -eq 4 ]
    says 'iperf3-1 skipped: our row is skipped: no such port'
}

@test "an interrupt ends it, keeps what there is and leaves nothing behind" {
    fakes iperf3
    FAKE_HOW=hang PATH=$work/path:$tools "$plumb" crosscheck --only iperf3-1 --seconds 1 --out "$work/results" \
        >"$out" 2>"$err" </dev/null 3>&- &
    pid=$!
    for _ in $(seq 6000); do
        grep -q 'iperf3 client' "$FAKE_LOG" && break
        sleep 0.1
    done
    kill -INT "$pid"
    status=0
    wait "$pid" || status=$?
    [ "$status" -eq 4 ]
    grep -qx 'plumb crosscheck: interrupted' "$err"
    grep -q '^iperf3-1,.*,interrupted,$' "$work/results/crosscheck.csv"
    nothing_left
}

@test "CSV, JSON and the folder say the same" {
    fakes iperf3
    FAKE_VALUE=8.04e9 check --only 'iperf3-1,sockperf' --pairs 6 --csv
    [ "$status" -eq 0 ]
    cmp "$out" "$work/results/crosscheck.csv"
    [ "$(cells status | tr '\n' ' ')" = "done absent " ]
    [ "$(cells verdict | tr '\n' ' ')" = "agree  " ]
    python3 - "$out" "$work/results" <<'END'
import csv, json, statistics, sys
rows = list(csv.DictReader(open(sys.argv[1])))
whole = json.load(open(sys.argv[2] + "/crosscheck.json"))["comparisons"]
assert len(rows) == len(whole) == 2
for row, one in zip(rows, whole):
    for name, cell in row.items():
        same = one[name] is None if cell == "" else \
            one[name] == cell or abs(float(cell) - one[name]) <= 1e-6 * abs(one[name])
        assert same, (name, cell, one[name])
one = whole[0]
assert abs(one["theirs"] - statistics.median(one["theirs_of_pairs"])) < 1e-6 and abs(one["theirs"] - 1.005) < 0.002
assert abs(one["ours"] - 1) < 1e-9 and abs(one["printed"] - 8.04e9) < 0.02e9
pairs = list(csv.DictReader(open(sys.argv[2] + "/pairs.csv")))
assert [p["first"] for p in pairs] == ["ours", "theirs"] * 3
for p, ours, theirs in zip(pairs, whole[0]["ours_of_pairs"], whole[0]["theirs_of_pairs"]):
    assert abs(float(p["theirs"]) - theirs) < 1e-6 and abs(float(p["ours"]) - ours) < 1e-6
END
    [ "$(find "$work/results/log" -name 'iperf3-1-*-theirs.out' | wc -l)" -eq 6 ]
}

@test "wrong usage is status 2 and says what there is" {
    check --only nothing
    [ "$status" -eq 2 ]
    grep -q "no witness is named as --only 'nothing' says; there are: iperf3-1 iperf3-4 iperf3-cpu sockperf" "$err"
    check --pairs 0
    [ "$status" -eq 2 ]
    check --csv --json
    [ "$status" -eq 2 ]
    mkdir "$work/results"
    check --only sockperf
    [ "$status" -eq 2 ]
    grep -q "cannot make the folder '.*results': File exists; name another with --out" "$err"
}

@test "where no folder 'results' can be made: the folder, the reason and what to do" {
    fakes sockperf
    status=0
    (cd /proc && PATH=$work/path:$tools "$plumb" crosscheck --only sockperf 2>"$err") || status=$? # nobody makes a folder there
    cat "$err"
    [ "$status" -eq 2 ]
    grep -qx "plumb crosscheck: cannot make the folder 'results' here: .*; name a folder with --out" "$err"
}

@test "the real iperf3 against the real plumb-net" {
    command -v iperf3 >/dev/null || skip 'iperf3 is not installed'
    status=0
    build/bin/plumb crosscheck --only iperf3-1,iperf3-cpu --pairs 2 --seconds 1 --csv --out "$work/results" \
        >"$out" 2>"$err" </dev/null || status=$?
    cat "$out" "$err"
    [ "$status" -eq 3 ]
    [ "$(cells status | sort -u)" = "done" ]
    [ "$(cells pairs | sort -u)" = 2 ]
    cells cpus | grep -Eq '^[0-9 ]+>[0-9 ]+$'
}
