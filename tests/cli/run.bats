#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# plumb run: plans, launches, faults, resume, interrupts and full disks, on the null benchmark.

# waits: for launches that hang

setup() {
    top="$(cd "$BATS_TEST_DIRNAME/../.." && pwd)"
    bin="${PLUMB_BIN:-$top/build/bin}"
    plumb="$bin/plumb"
    work="$(mktemp -d)"
    cd "$work" || return 1
}

teardown() {
    cd / || return 1
    if mountpoint -q "$work/small" 2>/dev/null; then umount "$work/small"; fi
    rm -rf "$work"
}

suite() { # suite: the cases on stdin
    { printf 'suite: t\nabout: a test\ndefaults: {repeat: 2, budget: 20ms}\ncases:\n'; cat; } > t.yaml
}

small_suite() {
    suite <<'END'
  - bench: "null"
    number: 1..4+1
    noise: [none, normal]
END
}

launch_of() { # launch_of PID: the benchmark that this plumb has at work, not one that it asks what it is
    pgrep -P "$1" -f 'plumb-null .*--csv'
}

kill_launch() { kill -9 "$(launch_of "$1")"; }

wait_for() { # wait_for PID COMMAND...: until it is true, as long as that process lives, and for a minute at most
    local pid=$1
    shift
    for _ in $(seq 6000); do
        if "$@" > /dev/null 2>&1; then return; fi
        kill -0 "$pid" || return
        sleep 0.02
    done
    return 1
}

column() { # column FILE NAME: the cells of one column
    python3 -c 'import csv, sys
for row in csv.DictReader(open(sys.argv[1])): print(row[sys.argv[2]])' "$1" "$2"
}

@test "a suite's name that is mistyped: the nearest is told, and none where none is near" {
    mkdir configs
    small_suite
    cp t.yaml configs/nightly.yaml
    cp t.yaml configs/weekly.yaml
    export PLUMB_CONFIGS=$work/configs
    "$plumb" run nightly --dry-run > plan
    status=0; "$plumb" run nihgtly --dry-run 2> said || status=$?
    [ "$status" -eq 2 ]
    grep -q "no suite 'nihgtly' in .*: did you mean 'nightly'?; .plumb list. shows the suites" said
    status=0; "$plumb" run monthly-in-full --dry-run 2> said || status=$?
    [ "$status" -eq 2 ]
    grep -q "no suite 'monthly-in-full' in .*configs'; .plumb list. shows" said
}

@test "--only takes sizes as people write them" {
    suite <<'END'
  - bench: memory
    op: [read, write]
    size: [64K, 1M, 65537]
END
    "$plumb" run t.yaml --dry-run --only '*read*size 64K' > plan
    [ "$(column plan arguments | sort -u | grep -c .)" -eq 1 ]
    column plan arguments | grep -q -- '--size 65536'
    "$plumb" run t.yaml --dry-run --only 'size 1MiB' --only 65537 > plan
    [ "$(column plan arguments | sort -u | grep -c .)" -eq 4 ]
    ! "$plumb" run t.yaml --dry-run --only 'size 6K' > plan || return 1
    "$plumb" run --help | tr -s '\n ' ' ' | grep -q 'sizes as 65536, 64K or 64KiB'
}

@test "--repeat launches every case so often, whatever the suite says" {
    small_suite
    "$plumb" run t.yaml --dry-run --repeat 7 > plan
    [ "$(tail -n +2 plan | wc -l)" -eq 56 ]
    [ "$(tail -n +2 plan | cut -d, -f3 | sort -n | tail -n 1)" -eq 7 ]
    "$plumb" run t.yaml --dry-run --repeat 1 > plan
    [ "$(tail -n +2 plan | wc -l)" -eq 8 ]
    run "$plumb" run t.yaml --dry-run --repeat 0
    [ "$status" -eq 2 ]
}

@test "the same seed plans the same cases in the same order, another seed another" {
    small_suite
    "$plumb" run t.yaml --dry-run --seed 7 > a
    "$plumb" run t.yaml --dry-run --seed 7 > b
    "$plumb" run t.yaml --dry-run --seed 8 > c
    cmp a b
    run cmp -s a c
    [ "$status" -ne 0 ]
    diff <(tail -n +2 a | cut -d, -f2- | sort) <(tail -n +2 c | cut -d, -f2- | sort)
    [ "$(wc -l < a)" -eq 17 ]
}

@test "a plan's order is what is run" {
    small_suite
    "$plumb" run t.yaml --seed 7 --out r --no-report
    "$plumb" run t.yaml --seed 7 --dry-run | tail -n +2 | cut -d, -f2,3 > planned
    paste -d, <(column r/null.csv case) <(column r/null.csv repeat) > ran
    diff planned ran
}

@test "plumb list counts the launches of a suite as a run plans them" {
    "$plumb" list > listed
    for suite in quick net; do
        "$plumb" run "$suite" --dry-run > plan.csv 2> said
        planned="$(($(wc -l < plan.csv) - 1))"
        grep -q "^  $suite .*($(awk -F, 'NR > 1 {print $2}' plan.csv | sort -u | wc -l) cases, $planned launches[;)]" listed
    done
}

@test "plumb list fits a terminal; a reason that several backends share stands once" {
    script -qec "stty cols 60; '$plumb' list" /dev/null < /dev/null | tr -d '\r' > shown
    [ -z "$(awk 'length > 60' shown)" ]
    "$plumb" list > listed
    diff <(grep -oE '[^ ]+' shown) <(grep -oE '[^ ]+' listed)
    [ "$(grep -c 'absent: no CUDA driver' listed)" -le 1 ]
}

@test "of a run folder that may not be read, no command says that it is none" {
    local as=()
    mkdir closed
    cp "$plumb" program
    chmod a+rx . program
    if [ "$EUID" -eq 0 ]; then
        command -v setpriv || skip "no setpriv"
        as=(setpriv --reuid 65534 --regid 65534 --clear-groups)
    fi
    chmod 0 closed
    for command in "report closed" "history closed" "compare closed closed"; do
        # shellcheck disable=SC2086 # several words
        run ${as[@]+"${as[@]}"} ./program $command
        [ "$status" -eq 4 ]
        [[ "$output" == *"cannot read "?closed?": Permission denied" ]]
    done
}

@test "a plan says how long it is expected to take, with its parts and its error" {
    small_suite
    "$plumb" run t.yaml --dry-run 2> said
    grep -qx 'plumb run: 16 launches planned, nothing was run' said
    grep -Eqx 'plumb run: expected time: about [0-9]+ (s|min), or half to twice that: [0-9]+ (s|min) of warm-up and sampling \(16 launches x .*\), [0-9]+ (s|min) of start, set-up and checks' said
}

@test "the expected time holds within its stated factor, of cases that use their time" {
    # Samples that sleep and an interval that is never narrow: what a busy machine adds is little beside it.
    printf 'suite: t\nabout: t\ndefaults: {repeat: 2, budget: 900ms, warmup: 100ms, min-samples: 1000000}\ncases:\n' > t.yaml
    printf '  - {bench: "null", number: 1..4+1, sleep: 20ms}\n' >> t.yaml
    local began=$EPOCHREALTIME
    "$plumb" run t.yaml --out r --no-report 2> said
    local ended=$EPOCHREALTIME
    python3 - "$(grep -o 'about [0-9]* s' said | grep -o '[0-9]*')" "$began" "$ended" << 'END'
import sys
expected, began, ended = map(float, sys.argv[1:])
took = ended - began
assert expected / 2 <= took <= 2 * expected + 5, (expected, took)
END
}

@test "repeats are interleaved: each round runs every case once" {
    small_suite
    "$plumb" run t.yaml --dry-run | tail -n +2 | cut -d, -f3 | uniq > rounds
    [ "$(tr '\n' ' ' < rounds)" = "1 2 " ]
}

@test "every sample is kept, and the row's median is that of its samples" {
    small_suite
    "$plumb" run t.yaml --out r --no-report
    python3 - <<'END'
import csv, statistics
samples = {}
for s in csv.DictReader(open("r/samples/null.csv")):
    assert s["origin"] == "simulated" and s["disturbed"] == "", s
    samples.setdefault((s["case"], s["repeat"]), []).append(float(s["value"]))
rows = list(csv.DictReader(open("r/null.csv")))
assert len(rows) == 16, len(rows)
for row in rows:
    own = samples[row["case"], row["repeat"]]
    assert len(own) == int(row["samples"]), row
    assert abs(statistics.median(own) - float(row["value"])) < 1e-6 * float(row["value"]), row
    assert row["run"] == "r" and row["origin"] == "simulated"
END
}

@test "launches of one case do not draw the same data" {
    small_suite
    "$plumb" run t.yaml --only 'number 1 --noise normal' --out r --no-report
    [ "$(column r/null.csv value | sort -u | wc -l)" -eq 2 ]
}

@test "faults: each gets a row with its reason, the other cases run, the exit code tells" {
    suite <<'END'
  - bench: "null"
    fault: [none, skip, fail, crash, garbage]
    repeat: 1
  - bench: "null"
    fault: hang
    repeat: 1
    timeout: 500ms
END
    run "$plumb" run t.yaml --out r --no-report
    [ "$status" -eq 4 ]
    python3 - <<'END'
import csv
rows = {r["fault"]: r for r in csv.DictReader(open("r/null.csv"))}
wanted = {"none": ("ok", ""), "skip": ("skipped", "asked to be skipped"), "fail": ("failed", "asked to fail"), "crash": ("failed", "killed by signal 11"),
          "garbage": ("failed", "output is not rows"), "hang": ("failed", "over its time-out of 0.5 s")}
assert set(rows) == set(wanted), set(rows)
for fault, (status, reason) in wanted.items():
    assert rows[fault]["status"] in (status, "noisy" if status == "ok" else status), (fault, rows[fault]["status"])
    assert reason in rows[fault]["reason"], (fault, rows[fault]["reason"])
    assert fault == "none" or rows[fault]["value"] == "", (fault, "a value without a measurement")
    assert rows[fault]["number"] == "1", (fault, "the parameters are missing")
states = {r["arguments"].split()[1]: r["state"] for r in csv.DictReader(open("r/plan.csv"))}
assert states == {"none": "done", "skip": "skip", "fail": "fail", "crash": "fail", "garbage": "fail", "hang": "late"}, states
END
}

@test "wrong data is exit 1" {
    suite <<'END'
  - bench: "null"
    fault: [none, wrong]
END
    run "$plumb" run t.yaml --out r --no-report
    [ "$status" -eq 1 ]
    [ "$(column r/null.csv status | grep -c wrong)" -eq 2 ]
}

@test "a suite that is wrong is refused with file, line and what is allowed" {
    suite <<'END'
  - bench: "null"
    nois: normal
END
    run "$plumb" run t.yaml --out r
    [ "$status" -eq 2 ]
    [[ "$output" == *"t.yaml:6:"*"'nois'"*"did you mean 'noise'"* ]]
    suite <<'END'
  - bench: "null"
    noise: [normal, loud]
END
    run "$plumb" run t.yaml --out r
    [ "$status" -eq 2 ]
    [[ "$output" == *"t.yaml:6:"*"'loud'"*"none, normal, lognormal"* ]]
    suite <<'END'
  - bench: "null"
    number: -3
END
    run "$plumb" run t.yaml --out r
    [ "$status" -eq 2 ]
    [[ "$output" == *"t.yaml:6:"*"whole number"* ]]
    suite <<'END'
  - bench: nul
END
    run "$plumb" run t.yaml --out r
    [ "$status" -eq 2 ]
    [[ "$output" == *"t.yaml:5:"*"did you mean 'null'"* ]]
    [ ! -e r ]
}

@test "a key of the suite itself that is unknown, a repeat out of range, a zero time-out are refused" {
    printf 'suite: t\ncase: []\n' > t.yaml
    run "$plumb" run t.yaml
    [ "$status" -eq 2 ]
    [[ "$output" == *"t.yaml:2:"*cases* ]]
    suite <<'END'
  - bench: "null"
    repeat: 0
END
    run "$plumb" run t.yaml
    [ "$status" -eq 2 ]
    suite <<'END'
  - bench: "null"
    timeout: 0s
END
    run "$plumb" run t.yaml
    [ "$status" -eq 2 ]
    printf 'suite: t\ndefaults: {budgett: 1s}\ncases: [{bench: "null"}]\n' > t.yaml
    run "$plumb" run t.yaml
    [ "$status" -eq 2 ]
    [[ "$output" == *"t.yaml:2:"*budgett* ]]
}

@test "--only takes the cases that match, and says so when none does" {
    small_suite
    run "$plumb" run t.yaml --dry-run --only 'noise none'
    [ "$(grep -c 'noise none' <<< "$output")" -eq 8 ]
    [ "$(grep -c 'noise normal' <<< "$output")" -eq 0 ]
    run "$plumb" run t.yaml --dry-run --only nothing-such
    [ "$status" -eq 2 ]
}

@test "--only, given several times: what any of them takes, wherever the options stand" {
    small_suite
    "$plumb" run --only 'number 2 --noise none' -o x t.yaml --only='number 4*normal' --dry-run > out
    [ "$(tail -n +2 out | cut -d, -f5 | sort | uniq -c | awk '{ print $1, $3, $5 }' | xargs)" = "2 2 none 2 4 normal" ]
    "$plumb" run t.yaml --dry-run --only 'number 2 --noise none|number 4*normal' > same
    diff out same
    # What is the value of another option is no --only.
    "$plumb" run t.yaml --out --only --dry-run --only 'number 2 --noise none' > out
    [ "$(tail -n +2 out | wc -l)" -eq 2 ]
    run "$plumb" run t.yaml --dry-run --only this --only that
    [ "$status" -eq 2 ]
    [[ "$output" == *"matches --only 'this|that'"* ]]
}

@test "--only with the name of a benchmark takes no other's cases" {
    suite <<'END'
  - {bench: "null", number: 1}
  - {bench: copy, engine: memcpy, memory: pageable, size: 1M}
  - {bench: memory, op: read, size: 1M}
END
    "$plumb" run t.yaml --dry-run > all
    grep -q ',copy,.*memory' all
    "$plumb" run t.yaml --dry-run --only memory > out
    [ "$(tail -n +2 out | cut -d, -f4 | sort -u)" = memory ]
    "$plumb" run t.yaml --dry-run --only memory --only 'null' > out
    [ "$(tail -n +2 out | cut -d, -f4 | sort -u | xargs)" = "memory null" ]
    "$plumb" run t.yaml --dry-run --only 'memor' > out # no name: a pattern
    [ "$(tail -n +2 out | cut -d, -f4 | sort -u | xargs)" = "copy memory" ]
}

@test "without a terminal a line now and then says how far it is, and none in a short run" {
    small_suite
    PLUMB_PROGRESS=1ms "$plumb" run t.yaml --out r --no-report 2> said
    grep -qE '^plumb run: [0-9]+ of 16 launches done, about [0-9]+ s left; now null --number ' said
    [ "$(grep -c 'launches done' said)" -le 100 ]
    "$plumb" run t.yaml --out q --no-report 2> said
    [ "$(grep -c 'launches done' said)" -eq 0 ]
    [ "$(grep -c $'\r' said)" -eq 0 ]
}

@test "an existing folder is never written into" {
    small_suite
    mkdir r
    run "$plumb" run t.yaml --out r
    [ "$status" -eq 4 ]
    [[ "$output" == *"--resume"* ]]
    [ -z "$(ls r)" ]
}

@test "an interrupt keeps what was measured, leaves no child, and resume goes on to the same set" {
    suite <<'END'
  - bench: "null"
    number: 1..12+1
    sleep: 2ms
    max-samples: 60
    budget: 10s
END
    "$plumb" run t.yaml --out r --no-report 2> message &
    pid=$!
    wait_for "$pid" grep '^done' r/plan.csv
    kill -INT "$pid"
    status=0; wait "$pid" || status=$?
    [ "$status" -eq 4 ]
    grep -q -- "--resume r" message
    [ -z "$(pgrep -f 'plumb-null.*--number [0-9]+ .*--sleep 2ms .*--max-samples 60')" ]
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
    suite <<'END'
  - bench: "null"
    fault: [none, crash, wrong]
    max-samples: 200
    repeat: 1
END
    run "$plumb" run t.yaml --out r --no-report
    [ "$(cut -d, -f1 r/plan.csv | grep -c fail)" -eq 2 ]
    cp r/null.csv before.csv
    run "$plumb" run --resume r --no-report
    [ "$status" -eq 1 ]
    cmp r/null.csv before.csv
    sed -i 's/--fault crash/--fault  none/' r/plan.csv # mended
    run "$plumb" run --resume r --retry --no-report
    echo "$output"
    [ "$status" -eq 1 ] # of the wrong data, which stays
    [[ "$output" == *'1 launch to go'* ]]
    [ "$(cut -d, -f1 r/plan.csv | grep -c fail)" -eq 1 ]
    [ "$(column r/null.csv status | sort | xargs)" = 'ok ok wrong' ]
    [ "$(cut -d, -f1 r/samples/null.csv | tail -n +2 | sort -u | wc -l)" -ge 2 ]
    run "$plumb" run t.yaml --retry --no-report
    [ "$status" -eq 2 ]
}

@test "a folder that may not be written to is told as that" {
    ((EUID == 0)) && ! command -v setpriv >/dev/null && skip 'root may write anywhere, and setpriv is not here'
    mkdir closed
    chmod 555 closed
    chmod 755 .
    local as=()
    ((EUID)) || as=(setpriv --reuid 65534 --regid 65534 --clear-groups)
    cd closed
    run "${as[@]}" env PLUMB_CONFIGS="$top/configs" "$plumb" run quick --only memory --no-report
    echo "$output"
    [ "$status" -eq 4 ]
    [[ "$output" == *"cannot make the folder 'results' here: Permission denied; name a folder with --out"* ]]
}

@test "two writers: the second is refused" {
    suite <<'END'
  - bench: "null"
    sleep: 20ms
    max-samples: 600
    min-samples: 600
    budget: 60s
END
    "$plumb" run t.yaml --out r --no-report &
    pid=$!
    wait_for "$pid" launch_of "$pid"
    run "$plumb" run --resume r --no-report
    kill -INT "$pid" || true
    wait "$pid" || true
    [ "$status" -eq 4 ]
    [[ "$output" == *"another plumb"* ]]
}

@test "resume: no run folder is exit 2, a damaged plan is exit 5" {
    mkdir empty
    run "$plumb" run --resume empty
    [ "$status" -eq 2 ]
    small_suite
    "$plumb" run t.yaml --out r --no-report
    printf 'x' >> r/plan.csv
    run "$plumb" run --resume r
    [ "$status" -eq 5 ]
    [[ "$output" == *plan.csv* ]]
    printf '{' > r/run.json
    run "$plumb" run --resume r
    [ "$status" -eq 5 ]
    [[ "$output" == *run.json* ]]
}

@test "a torn tail, as a loss of power leaves it, is cut off and its launch run again" {
    small_suite
    "$plumb" run t.yaml --out r --no-report
    truncate -s -20 r/null.csv
    run "$plumb" run --resume r --no-report
    [ "$status" -eq 0 ]
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
    suite <<'END'
  - bench: "null"
    number: 1..40+1
    max-samples: 200
    min-samples: 200
    budget: 60s
END
    run "$plumb" run t.yaml --out small/r --no-report
    [ "$status" -eq 4 ]
    [[ "$output" == *"No space left"*"--resume"* ]]
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
    run "$plumb" run --resume small/r --no-report
    [ "$status" -eq 0 ]
    [ "$(wc -l < small/r/null.csv)" -eq 81 ]
    # Room for the rows, and none for the report.
    mount -o remount,size=$(($(df -k --output=used small | tail -n 1)))k small
    run "$plumb" run --resume small/r
    [ "$status" -eq 4 ]
    [[ "$output" == *"no report: "*"No space left"*"the run is kept; to make its report: $plumb report small/r"* ]]
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
        run "$plumb" run --resume r $option
        [ "$status" -eq 2 ]
        [[ "$output" == *"does not go with --resume"* ]]
    done
    diff -r r before
}

@test "resume: another build or another host is refused" {
    small_suite
    "$plumb" run t.yaml --out r --no-report
    cp r/run.json kept.json
    for field in '"version": "[^"]*"' '"hostname": "[^"]*"'; do
        sed "s/$field/${field%%:*}: \"other\"/" kept.json > r/run.json
        run "$plumb" run --resume r --no-report
        [ "$status" -eq 2 ]
        [[ "$output" == *"'other'"*"start a new run"* ]]
    done
}

@test "resume: rows never go under other columns" {
    suite <<'END'
  - bench: "null"
    number: 1..2+1
    repeat: 1
END
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
    run "$plumb" run --resume r --no-report
    [ "$status" -eq 4 ]
    [[ "$output" == *"other columns"*"start a new run"* ]]
    cmp r/null.csv before.csv
}

@test "resume remembers wrong data: exit 1 still" {
    suite <<'END'
  - bench: "null"
    fault: wrong
    repeat: 1
END
    run "$plumb" run t.yaml --out r --no-report
    [ "$status" -eq 1 ]
    run "$plumb" run --resume r --no-report
    [ "$status" -eq 1 ]
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
    suite <<'END'
  - bench: "null"
    sleep: 2ms
    max-samples: 500
    min-samples: 500
    budget: 20s
END
    nohup "$plumb" run t.yaml --out r --no-report > /dev/null 2>&1 &
    pid=$!
    wait_for "$pid" launch_of "$pid"
    kill -HUP "$pid"
    wait "$pid"
    [ "$(grep -c '^done' r/plan.csv)" -eq 2 ]
}

@test "a launch that crashes is said where its case is shown" {
    suite <<'END'
  - bench: "null"
    sleep: 2ms
    max-samples: 200
    min-samples: 200
    budget: 20s
    repeat: 3
END
    "$plumb" run t.yaml --out r --no-report &
    pid=$!
    wait_for "$pid" kill_launch "$pid"
    wait "$pid" || true
    "$plumb" report r
    grep -q "1 of 3 launches failed" r/report.html
}

@test "the cost of a session that was killed stays, and --resume adds its own" {
    suite <<'END'
  - bench: "null"
    number: 1..3+1
    level: 100us
    spread: 30%
    sleep: 1ms
    budget: 600ms
END
    "$plumb" run t.yaml --out r --no-report 2> err &
    pid=$!
    # shellcheck disable=SC2016 # wait_for expands it
    wait_for $pid eval '[ "$(wc -l < r/null.csv)" -ge 5 ]'
    kill -9 $pid
    wait $pid || true
    cost() { python3 -c 'import json; print((json.load(open("r/run.json")).get("harness_cost") or {}).get("benchmarks_ms", 0))'; }
    before=$(cost)
    kept=$(wc -l < r/null.csv)
    "$plumb" run --resume r --no-report
    [ "$(wc -l < r/null.csv)" -eq 7 ]
    python3 - "$before" "$(cost)" "$kept" <<'END'
import csv, sys
before, after, kept = float(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]) - 1
elapsed = [1000 * float(row["elapsed_s"]) for row in csv.DictReader(open("r/null.csv"))]
assert before >= 1000, before
assert after >= before + sum(elapsed[kept:]), (before, after, elapsed)
END
}

@test "kill -9 of plumb and of benchmarks at 100 random instants loses nothing that was committed" {
    command -v python3 > /dev/null || skip "needs python3"
    run python3 "$top/tests/tools/crash.py" "$plumb" "$work" "${PLUMB_KILLS:-100}"
    echo "$output"
    [ "$status" -eq 0 ]
}
