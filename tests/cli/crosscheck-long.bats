#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tier: long
# shellcheck disable=SC2154 # of variables that the files of this name share
# plumb crosscheck with witnesses, and a benchmark of ours, that print what they are told; and once with the real ones.

# waits: for programs that take their time

bats_require_minimum_version 1.5.0
load rows
load crosscheck

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
    fakes osu_allreduce
    launcher
    FAKE_VALUE=20 FAKE_OURS=20 check --only 'osu*' --pairs 8
    [ "$status" -eq 0 ]
    says 'osu-allreduce 64 KiB 2 20 20 us 1.000 0.99[0-9] to 1.00[0-9] agree'
    says 'converted: its max latency'
    [ "$(grep -cx 'mpirun 2 plumb-allreduce' "$FAKE_LOG")" -eq 8 ]
    [ "$(grep -cx 'mpirun 2 osu_allreduce' "$FAKE_LOG")" -eq 8 ]
    [ "$(grep -c -- '^ours --backend mpi --ranks 2 --size 65536 --no-cpu --gap 1us --budget 1s' "$FAKE_LOG")" -eq 8 ]
    FAKE_VALUE=20 FAKE_OURS=30 check --only 'osu*' --pairs 8 --out "$work/again"
    [ "$status" -eq 1 ] # a time that is longer is slower
    says 'ours slower'
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
    says ' has 0 results .*, not 1'
}

@test "one that hangs is stopped and named, and the rest goes on" {
    fakes iperf3
    printf '#!/bin/sh\nexec env FAKE_HOW=hang %s "$@"\n' "$work/path/hang/nvbandwidth" >"$work/path/nvbandwidth"
    chmod +x "$work/path/nvbandwidth"
    mkdir "$work/path/hang"
    cp tests/witness/fake "$work/path/hang/nvbandwidth"
    check --only iperf3-4,nvbandwidth-to-gpu,iperf3-1 --pairs 6 --timeout 40s # of which those that work take a part too
    [ "$status" -eq 4 ]
    says 'iperf3-1 .* agree'
    says 'nvbandwidth-to-gpu failed: nvbandwidth in pair 1: .* 40 s'
    nothing_left
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
    FAKE_VALUE=8.04e9 check --only 'iperf3-1,nvbandwidth-to-gpu' --pairs 6 --csv
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

@test "the real iperf3 against the real plumb-net" {
    command -v iperf3 >/dev/null || skip 'iperf3 is not installed'
    status=0
    "${PLUMB_BIN:-build/bin}/plumb" crosscheck --only iperf3-1,iperf3-cpu --pairs 2 --seconds 1 --csv --out "$work/results" \
        >"$out" 2>"$err" </dev/null || status=$?
    cat "$out" "$err"
    [ "$status" -eq 3 ]
    [ "$(cells status | sort -u)" = "done" ]
    [ "$(cells pairs | sort -u)" = 2 ]
    cells cpus | grep -Eq '^[0-9 ]+>[0-9 ]+$'
}
