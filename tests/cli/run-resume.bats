#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154 # of variables that the files of this name share
# plumb run: what is kept through interrupts, kills, torn files and full disks, and what --resume makes of it, on the null benchmark.

load common
load run

# waits: for launches that hang

@test "an existing folder is never written into" {
    small_suite
    mkdir r
    told 4 --resume "$plumb" run t.yaml --out r
    [ -z "$(ls r)" ]
}

@test "an interrupt keeps what was measured, leaves no child, and resume goes on to the same set" {
    suite <<< '  - {bench: "null", number: 1..12+1, sleep: 2ms, max-samples: 60, budget: 10s}'
    "$plumb" run t.yaml --out r --no-report 2> message &
    pid=$!
    wait_for "$pid" grep '^done' r/plan.csv
    kill -INT "$pid"
    reaped 4 "$pid"
    grep -q -- "--resume r" message
    [ -z "$(pgrep -f "$(realpath "$bin")/plumb-null.*--number [0-9]+ .*--sleep 2ms .*--max-samples 60")" ]
    cp r/null.csv before.csv
    [ "$(grep -c '^todo' r/plan.csv)" -gt 0 ]
    "$plumb" run --resume r --no-report
    [ "$(grep -c '^todo' r/plan.csv)" -eq 0 ]
    head -c "$(stat -c %s before.csv)" r/null.csv | cmp - before.csv
    diff <(paste -d, <(column r/null.csv case) <(column r/null.csv repeat) | sort) \
        <("$plumb" run t.yaml --dry-run | tail -n +2 | cut -d, -f2,3 | sort)
}

@test "resuming a run that is complete changes nothing" {
    small_suite
    "$plumb" run t.yaml --out r --no-report
    cp -r r before
    "$plumb" run --resume r --no-report
    cmp r/null.csv before/null.csv
    cmp r/plan.csv before/plan.csv
    [ "$(grep benchmarks_ms r/run.json)" = "$(grep benchmarks_ms before/run.json)" ]
}

@test "resume keeps what failed; with --retry it is launched again, but for wrong data" {
    suite <<< '  - {bench: "null", fault: [none, crash, wrong], max-samples: 200, repeat: 1}'
    run "$plumb" run t.yaml --out r --no-report
    [ "$(cut -d, -f1 r/plan.csv | grep -c fail)" -eq 2 ]
    cp r/null.csv before.csv
    run -1 "$plumb" run --resume r --no-report
    cmp r/null.csv before.csv
    sed -i 's/--fault crash/--fault  none/' r/plan.csv # mended
    told 1 ' 1 launch' "$plumb" run --resume r --retry --no-report # of the wrong data, which stays
    [ "$(cut -d, -f1 r/plan.csv | grep -c fail)" -eq 1 ]
    [ "$(column r/null.csv status | sort | xargs)" = 'ok ok wrong' ]
    [ "$(cut -d, -f1 r/samples/null.csv | tail -n +2 | sort -u | wc -l)" -ge 2 ]
    run -2 "$plumb" run t.yaml --retry --no-report
}

@test "a folder that may not be written to is told as that" {
    ((EUID == 0)) && ! command -v setpriv >/dev/null && skip 'root may write anywhere, and setpriv is not here'
    mkdir closed
    chmod 555 closed
    chmod 755 .
    local as=()
    ((EUID)) || as=(setpriv --reuid 65534 --regid 65534 --clear-groups)
    cd closed
    told 4 "'results' *Permission denied*--out" "${as[@]}" env PLUMB_CONFIGS="$top/configs" "$plumb" run quick --only memory --no-report
}

@test "two writers: the second is refused" {
    suite <<< '  - {bench: "null", sleep: 20ms, max-samples: 600, min-samples: 600, budget: 60s}'
    "$plumb" run t.yaml --out r --no-report &
    pid=$!
    wait_for "$pid" launch_of "$pid"
    run "$plumb" run --resume r --no-report
    kill -INT "$pid" || true
    wait "$pid" || true
    [ "$status" -eq 4 ]
}

@test "resume: no run folder is exit 2, a damaged plan is exit 5" {
    mkdir empty
    run -2 "$plumb" run --resume empty
    small_suite
    "$plumb" run t.yaml --out r --no-report
    printf 'x' >> r/plan.csv
    told 5 plan.csv "$plumb" run --resume r
    printf '{' > r/run.json
    told 5 run.json "$plumb" run --resume r
}

@test "a torn tail, as a loss of power leaves it, is cut off and its launch run again" {
    small_suite
    "$plumb" run t.yaml --out r --no-report
    truncate -s -20 r/null.csv
    run -0 "$plumb" run --resume r --no-report
    [ "$(wc -l < r/null.csv)" -eq 17 ]
    [ "$(paste -d, <(column r/null.csv case) <(column r/null.csv repeat) | sort -u | wc -l)" -eq 16 ]
}

@test "a full disk: a clear error, exit 4, valid files, and resume when there is room" {
    [ "$(id -u)" -eq 0 ] || skip "mounting a small tmpfs needs root"
    small_suite
    "$plumb" run t.yaml --out one --no-report
    mkdir small
    # What a run keeps of itself, however long its texts have grown, and rows and samples of less than half of the launches.
    mount -t tmpfs -o size=$(($(cat one/run.json one/plan.csv | wc -c) / 1024 + 128))k tmpfs small 2> /dev/null ||
        skip "this place does not let root mount a tmpfs"
    suite <<< '  - {bench: "null", number: 1..40+1, max-samples: 200, min-samples: 200, budget: 60s}'
    told 4 'No space left*--resume' "$plumb" run t.yaml --out small/r --no-report
    python3 - <<'END'
import csv
plan = list(csv.DictReader(open("small/r/plan.csv")))
rows = list(csv.reader(open("small/r/null.csv"), strict=True))
samples = list(csv.reader(open("small/r/samples/null.csv"), strict=True))
assert all(len(r) == len(rows[0]) for r in rows) and all(len(s) == 6 for s in samples)
done = [p for p in plan if p["state"] == "done"]
assert 0 < len(done) < len(plan), len(done)
assert len(rows) - 1 == len(done), (len(rows), len(done))
assert len(samples) - 1 == 200 * len(done), (len(samples), len(done))
END
    mount -o remount,size=8m small
    run -0 "$plumb" run --resume small/r --no-report
    [ "$(wc -l < small/r/null.csv)" -eq 81 ]
    # Room for the rows, and none for the report.
    mount -o remount,size=$(($(df -k --output=used small | tail -n 1)))k small
    told 4 "No space left*: $plumb report small/r" "$plumb" run --resume small/r
    mount -o remount,size=8m small
    "$plumb" report small/r
    [ -s small/r/report.html ]
}

@test "resume: what changes the plan is refused, and nothing is measured" {
    small_suite
    "$plumb" run t.yaml --out r --no-report
    cp -r r before
    for option in "--dry-run" "--only x" "--seed 3" "--out q" "--repeat 2"; do
        # shellcheck disable=SC2086 # an option and its value
        told 2 --resume "$plumb" run --resume r $option
    done
    diff -r r before
}

@test "resume: another build or another host is refused" {
    small_suite
    "$plumb" run t.yaml --out r --no-report
    cp r/run.json kept.json
    for field in '"version": "[^"]*"' '"hostname": "[^"]*"'; do
        sed "s/$field/${field%%:*}: \"other\"/" kept.json > r/run.json
        told 2 "'other'" "$plumb" run --resume r --no-report
    done
}

@test "resume: rows never go under other columns" {
    suite <<< '  - {bench: "null", number: 1..2+1, repeat: 1}'
    "$plumb" run t.yaml --out r --no-report
    sed -i '1s/^number,/nr,/' r/null.csv
    sed -i '3s/^done,0001/todo,0000/' r/plan.csv
    lost="$(sed -n 3p r/plan.csv | cut -d, -f4)"
    python3 - "$lost" <<'END'
import csv, sys
rows = list(csv.reader(open("r/null.csv")))
case = rows[0].index("case")
with open("r/null.csv", "w") as f:
    csv.writer(f, lineterminator="\n").writerows(r for r in rows if r[case] != sys.argv[1])
END
    cp r/null.csv before.csv
    told 4 null.csv "$plumb" run --resume r --no-report
    cmp r/null.csv before.csv
}

@test "a start that was killed before it had a plan leaves nothing in the way" {
    small_suite
    mkdir -p r.new/samples
    echo half > r.new/run.json
    "$plumb" run t.yaml --out r --no-report
    [ ! -e r.new ]
    [ "$(grep -c '^done' r/plan.csv)" -eq 16 ]
}

@test "a run under nohup survives the hang-up" {
    suite <<< '  - {bench: "null", sleep: 2ms, max-samples: 500, min-samples: 500, budget: 20s}'
    nohup "$plumb" run t.yaml --out r --no-report > /dev/null 2>&1 &
    pid=$!
    wait_for "$pid" launch_of "$pid"
    kill -HUP "$pid"
    wait "$pid"
    [ "$(grep -c '^done' r/plan.csv)" -eq 2 ]
}

@test "a launch that crashes is said where its case is shown" {
    suite <<< '  - {bench: "null", sleep: 2ms, max-samples: 200, min-samples: 200, budget: 20s, repeat: 3}'
    "$plumb" run t.yaml --out r --no-report &
    pid=$!
    wait_for "$pid" kill_launch "$pid"
    wait "$pid" || true
    "$plumb" report r
    grep -q "1 of 3 " r/report.html
}

@test "kill -9 of plumb and of benchmarks at a few random instants loses nothing that was committed" {
    run -0 python3 "$top/tests/tools/crash.py" "$plumb" "$work" "${PLUMB_KILLS:-8}"
}
