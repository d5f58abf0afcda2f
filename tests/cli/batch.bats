#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154 # of variables that the files of this name share
# Many cases in one process: plumb run --processes, and --commands of the benchmarks.

bats_require_minimum_version 1.5.0
load ../sim/env
load batch

@test "--commands: each line is a command line, with its rows, and the marks say where it ends and how" {
    cd "$work"
    printf '%s\n' '--number 1 --max-samples 20 --csv' '--fault fail --csv' '--nonsense' '--describe' '--number 2 --max-samples 20 --csv' > lines
    run -4 --separate-stderr "$bin/plumb-null" --commands marks < lines
    [ "$(cat marks)" = "$(printf 'begin\nend 0\nbegin\nend 4\nbegin\nend 2\nbegin\nend 2\nbegin\nend 0')" ]
    [ "$(grep -c '^number,' <<< "$output")" -eq 3 ]
    # shellcheck disable=SC2154 # run sets it
    [[ "$stderr" == *"nonsense"* ]]
    # What a line measures is what it would measure alone.
    printf '%s\n' "$output" > many.csv
    "$bin/plumb-null" --number 2 --max-samples 20 --csv > alone.csv
    python3 - <<'END'
import csv
alone = list(csv.DictReader(open("alone.csv")))[0]
last = list(csv.DictReader(open("many.csv")))[-1]
assert [last[k] for k in ("value", "samples", "min", "max")] == [alone[k] for k in ("value", "samples", "min", "max")], (last, alone)
END
}

@test "a crash, a hang and a failure cost their own case; the rest go on in another process" {
    cd "$work"
    watched null
    suite "repeat: 1, warmup: 0s, max-samples: 30" <<'END'
  - {bench: "null", number: 1..4+1}
  - {bench: "null", number: 5..6+1, fault: [crash, fail, wrong]}
  - {bench: "null", number: 5..6+1, fault: hang, timeout: 1s}
END
    run -1 "$plumb" run t.yaml --out r --processes round --no-report
    python3 - <<'END'
import collections, csv
plan = list(csv.DictReader(open("r/plan.csv")))
states = collections.defaultdict(collections.Counter)
for launch in plan:
    words = launch["arguments"].split()
    fault = words[words.index("--fault") + 1] if "--fault" in words else "none"
    states[fault][launch["state"]] += 1
assert states == {"none": {"done": 4}, "crash": {"fail": 2}, "hang": {"late": 2}, "fail": {"fail": 2}, "wrong": {"fail": 2}}, states
# A process in which a case fails takes no other: as many processes as failures, and one more where the last case is good.
starts = len(open("starts").readlines())
assert 8 <= starts <= 9, starts
codes = collections.Counter(row["code"] for row in csv.DictReader(open("r/null.csv")))
assert codes["crashed"] == codes["timeout"] == 2, codes
END
}

@test "the cases of net in a round share a process, whose start takes longer than they do" {
    cd "$work"
    watched net
    echo '  - {bench: net, transport: shm, pattern: latency, size: [8, 64]}' | suite "repeat: 2, warmup: 0s, max-samples: 30"
    run -0 "$plumb" run t.yaml --out r --no-report
    [ "$(wc -l < starts)" -eq 2 ]
    run -0 "$plumb" run t.yaml --out s --no-report --processes case
    [ "$(wc -l < starts)" -eq 6 ]
}
