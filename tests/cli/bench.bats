#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154 # of variables that the files of this name share
# What every benchmark's command line does, shown on plumb-null, whose samples are made up.

load rows
load bench

@test "--help: what it is, its own options with defaults, the common ones, exit codes" {
    bench --help
    [ "$status" -eq 0 ]
    [ ! -s "$err" ]
    grep -q '^plumb-null: measures nothing' "$out"
    grep -q -- '--level TIME,.. .*\[100us\]$' "$out"
    grep -q -- '--noise none|normal|lognormal|ar1|two-levels,..' "$out"
    grep -q -- '--width SHARE .*\[1%\]$' "$out"
    grep -q -- '-O, --output FILE' "$out"
    grep -q '^exit: 0 good, 1 wrong data, 2 usage, 4 ' "$out"
}

@test "no benchmark has an option twice: one of its own hides none that all share" {
    local program
    for program in "${PLUMB_BIN:-build/bin}"/plumb-*; do
        [ -z "$("$program" --help | grep -oE '^ {2}(-., |    )--[a-z0-9-]+' | sed 's/.*--//' | sort | uniq -d | tee /dev/stderr)" ]
        "$program" --help | grep -q -- ' --commands FILE '
    done
}

@test "--describe: JSON that a program can read" {
    bench --describe
    [ "$status" -eq 0 ]
    python3 - "$out" <<'END'
import json, sys
said = json.load(open(sys.argv[1]))
assert [said[k] for k in ("bench", "needs", "origin", "backends")] == ["null", "", "simulated", []]
noise = [o for o in said["options"] if o["name"] == "noise"]
assert noise == [{"name": "noise", "owner": "own", "type": "choice", "list": True, "column": True, "kept": False, "default": ["normal"],
                  "choices": ["none", "normal", "lognormal", "ar1", "two-levels"], "help": noise[0]["help"]}], noise
assert [c["name"] for c in said["rows"]["columns"]] == ["number", "level", "noise", "spread", "fault"]
assert said["rows"]["metrics"] == [{"name": "time", "units": "us"}]
END
}

@test "an unknown option: exit 2, a hint on stderr, nothing on stdout" {
    bench --bugdet 1s
    [ "$status" -eq 2 ]
    [ ! -s "$out" ]
    [[ $(<"$err") == *"'--bugdet'"*"'--budget'"* ]]
}

@test "a bad value names the option, the value and what is wanted" {
    bench --level soon
    [ "$status" -eq 2 ]
    [[ $(<"$err") == *"'--level': 'soon' "* ]]
    bench --noise nromal
    [ "$status" -eq 2 ]
    grep -q "'nromal', did you mean 'normal'? Choices: none, normal, lognormal, ar1, two-levels$" "$err"
    bench --min-samples 0
    [ "$status" -eq 2 ]
    grep -q "'0' .* 1 to " "$err"
    [ ! -s "$out" ]
}

@test "a range that does not end is refused, one that does is walked" {
    bench --number 4..1
    [ "$status" -eq 2 ]
    grep -q "'4..1'" "$err"
    bench --csv --number 3..48x4
    [ "$status" -eq 0 ]
    [ "$(cell number 1) $(cell number 2) $(cell number 3)" = "3 12 48" ]
    [ "$(wc -l <"$out")" -eq 4 ]
}

@test "CSV: the header is the parameters and then the columns of docs/schema.md, in order" {
    bench --csv
    [ "$status" -eq 0 ]
    # shellcheck disable=SC2016 # these are backquotes of Markdown
    wanted=$(sed -n '/^<!-- columns:/,/^<!-- end/s/^| `\([a-z0-9_]*\)` |.*/\1/p' docs/schema.md | paste -sd,)
    [ "${wanted#metric,unit,value,}" != "$wanted" ]
    [ "$(head -n 1 "$out")" = "number,level,noise,spread,fault,$wanted" ]
}

@test "JSON: an object a line, with the same cells as CSV, numbers as numbers; what is empty is not there" {
    bench --csv --number 1,7 --noise normal --seed 5
    cp "$out" "$BATS_TEST_TMPDIR/rows.csv"
    bench --json --number 1,7 --noise normal --seed 5
    [ "$status" -eq 0 ]
    python3 - "$out" "$BATS_TEST_TMPDIR/rows.csv" <<'END'
import csv, json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
cells = list(csv.DictReader(open(sys.argv[2])))
assert len(rows) == len(cells) == 2
moving = {"elapsed_s", "time_utc", "steal_percent", "disturbed", "status", "cpu_mhz_low", "cpu_mhz_high"}
for row, want in zip(rows, cells):
    assert row.pop("bench") == "null"
    order = [name for name in want if name in row]
    assert list(row) == order, (list(row), order)
    for name, cell in want.items():
        if name in moving or name.startswith(("ctx_", "faults_")):
            continue
        assert (name in row) == (cell != ""), (name, cell)
        if cell == "":
            continue
        value = row[name]
        if isinstance(value, str):
            assert value == cell, (name, value, cell)
        else:
            assert value == float(cell), (name, value, cell)
    assert isinstance(row["number"], int) and isinstance(row["value"], float) and isinstance(row["samples"], int)
    assert isinstance(row["noise"], str)
END
}

@test "JSON: every benchmark's objects have the columns of its CSV, in their order, and numbers where that has numbers" {
    cd "$BATS_TEST_DIRNAME/../.." || return
    least=(--budget 2ms --warmup 0s --min-samples 2 --max-samples 2)
    # both NAME ARGUMENTS...: two runs, whose figures differ, and perhaps which of them could be measured.
    both()
    {
        "${PLUMB_BIN:-build/bin}/plumb-$1" --json "${least[@]}" "${@:2}" >"$out" 2>"$err" </dev/null || [ $? -lt 5 ]
        "${PLUMB_BIN:-build/bin}/plumb-$1" --csv "${least[@]}" "${@:2}" >"$out.csv" 2>"$err" </dev/null || [ $? -lt 5 ]
        python3 - "$1" "$out" "$out.csv" <<'END'
import csv, json, sys
refuse = lambda word: sys.exit("no JSON: " + word)
rows = [json.loads(line, parse_constant=refuse) for line in open(sys.argv[2], encoding="utf-8")]
cells = list(csv.DictReader(open(sys.argv[3], newline="")))
assert rows and cells
numbers, texts = set(), set()
for row in rows:
    assert row.pop("bench") == sys.argv[1]
    assert [n for n in cells[0] if n in row] == list(row), row
    for name, value in row.items():
        assert isinstance(value, (str, int, float)) and not isinstance(value, bool), name
        (texts if isinstance(value, str) else numbers).add(name)
for cell in cells:
    for name in numbers - texts:
        cell[name] and float(cell[name])
of = lambda r: [str(r.get(n, "")) for n in ("metric", "unit", "size", "op", "direction", "source", "engine", "ranks", "dtype", "backend", "origin")]
assert of(rows[0]) == of(cells[0]), (of(rows[0]), of(cells[0]))
END
    }
    both null --number 1,2
    both memory --op read,triad --size 64K,256K
    both copy --engine memcpy --size 8,64K
    both gemm --size 64 --dtype f32,f64
    both net --size 64K --direction both
    both allreduce --np 2 --ranks 1,2 --size 8,64K --backend ring
    both step --np 2 --compute-time 1ms
    both launch # on a machine without a GPU, a row that says so
}

@test "JSON: a skipped and a wrong row are objects, too; with CSV at once it is refused" {
    bench --json --fault skip
    python3 -c 'import json, sys; r = json.loads(sys.stdin.read()); assert r["status"] == "skipped" and "value" not in r and r["reason"]' <"$out"
    bench --json --csv
    [ "$status" -eq 2 ]
    [[ $(<"$err") == *--csv*--json* ]]
}

@test "a row tells what is known: value inside its interval, counts, stop, origin, when and where" {
    bench --csv --noise normal --spread 2% --seed 5
    [ "$(cell metric)" = time ]
    [ "$(cell unit)" = us ]
    [ "$(cell stop)" = converged ]
    [ "$(cell status)" = ok ]
    [ "$(cell origin)" = simulated ]
    [ "$(cell value)" = "$(cell p50)" ]
    [ "$(cell samples)" -ge 50 ]
    [ "$(cell discarded)" -ge 1 ]
    [ "$(cell inner_repeat)" -eq 1 ]
    [ "$(cell repeat)" -eq 1 ]
    [[ $(cell time_utc) =~ ^20[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-9:]{8}Z$ ]]
    awk -v low="$(cell ci_low)" -v value="$(cell value)" -v high="$(cell ci_high)" \
        'BEGIN { exit !(low <= value && value <= high && value > 98 && value < 102) }'
}

@test "every combination of the lists is a row, the last option fastest" {
    bench --csv --number 1,2 --noise none,normal --level 1ms,2ms
    [ "$status" -eq 0 ]
    [ "$(wc -l <"$out")" -eq 9 ]
    [ "$(awk -F, 'NR > 1 { printf "%s%s%s ", $1, $2, $3 }' "$out")" = \
        "11msnone 11msnormal 12msnone 12msnormal 21msnone 21msnormal 22msnone 22msnormal " ]
}

@test "the same seed gives the same numbers, another seed others" {
    bench --csv --seed 1 --number 1..8
    first=$(cut -d, -f1-10 "$out")
    bench --csv --seed 1 --number 1..8
    [ "$(cut -d, -f1-10 "$out")" = "$first" ]
    bench --csv --seed 2 --number 1..8
    [ "$(cut -d, -f1-10 "$out")" != "$first" ]
}

@test "--repeat measures each point so often, in an order shuffled by the seed" {
    bench --csv --number 1..4+1 --repeat 3 --seed 3
    [ "$(wc -l <"$out")" -eq 13 ]
    for number in 1 2 3 4; do
        [ "$(awk -F, -v n=$number '$1 == n' "$out" | wc -l)" -eq 3 ]
    done
    [ "$(cell repeat 1) $(cell repeat 4) $(cell repeat 5) $(cell repeat 12)" = "1 1 2 3" ]
    order=$(awk -F, 'NR > 1 { printf "%s", $1 }' "$out")
    [ "$order" != 123412341234 ]
    bench --csv --number 1..4+1 --repeat 3 --seed 3
    [ "$(awk -F, 'NR > 1 { printf "%s", $1 }' "$out")" = "$order" ]
}

@test "a point that cannot run is a skipped row with a reason, and good" {
    bench --csv --fault skip
    [ "$status" -eq 0 ]
    [ "$(cell status)" = skipped ]
    [ "$(cell reason)" = "asked to be skipped" ]
    [ -z "$(cell value)$(cell samples)$(cell ci_low)$(cell stop)" ]
}

@test "the table says once why rows are skipped, and how many, the CSV in each" {
    bench --fault skip --number 1,2,3
    [ "$status" -eq 0 ]
    [ "$(grep -c 'asked to be skipped' "$out")" -eq 1 ]
    grep -q '^# skipped: ' "$out"
    [ "$(grep -c '^[123] .* skipped \[simulated\]$' "$out")" -eq 1 ]
    [[ $(tail -n 1 "$out") == '# and 2 more'* ]]
    bench --csv --fault skip --number 1,2,3
    [ "$(grep -c ',skipped,unsupported,asked to be skipped,' "$out")" -eq 3 ]
}

@test "wrong data: exit 1, and the row says wrong" {
    bench --csv --fault wrong
    [ "$status" -eq 1 ]
    [ "$(cell status)" = wrong ]
    [ "$(cell reason)" = "asked to be wrong" ]
}

@test "a point that fails: exit 4, and the points after it still run" {
    bench --csv --fault fail,none
    [ "$status" -eq 4 ]
    [ "$(cell status 1)" = failed ]
    [ -z "$(cell value 1)" ]
    [ "$(cell status 2)" = ok ]
}

@test "an interval that is not narrow enough when time is up: noisy, and says how wide it is" {
    bench --csv --spread 50% --width 0.1% --budget 30ms --sleep 100us
    [ "$status" -eq 0 ]
    [ "$(cell stop)" = time ]
    [ "$(cell status)" = noisy ]
    [ "$(cell width_wanted)" = 0.001 ]
    [ "$(cell noise_kind)" = wide ]
}

@test "two levels are told with their shares" {
    bench --csv --noise two-levels --spread 0.5% --width 0.01% --max-samples 2000
    [ -n "$(cell level_low)" ]
    awk -v low="$(cell level_low)" -v high="$(cell level_high)" -v share="$(cell level_high_share)" \
        'BEGIN { exit !(low > 99 && low < 101 && high > 109 && high < 111 && share > 0.2 && share < 0.4) }'
}

@test "--samples keeps every sample, in the row's unit" {
    bench --csv --number 1,2 --samples "$BATS_TEST_TMPDIR/samples"
    [ "$(head -n 1 "$BATS_TEST_TMPDIR/samples")" = "repeat,row,value,origin,disturbed" ]
    for row in 0 1; do
        kept=$(awk -F, -v row=$row '$2 == row { n++; if ($3 < 90 || $3 > 110) exit 1 } END { print n }' \
            "$BATS_TEST_TMPDIR/samples")
        [ "$kept" -eq "$(cell samples $((row + 1)))" ]
    done
}

@test "--output writes the rows to a file and nothing to stdout" {
    bench --csv --output "$BATS_TEST_TMPDIR/rows"
    [ "$status" -eq 0 ]
    [ ! -s "$out" ]
    [ "$(wc -l <"$BATS_TEST_TMPDIR/rows")" -eq 2 ]
}

@test "files that cannot be written: named, with the reason" {
    bench --output /nonexistent/rows
    [ "$status" -eq 2 ]
    [[ $(<"$err") == *"'/nonexistent/rows': No such file"* ]]
    bench --samples /nonexistent/samples
    [ "$status" -ne 0 ]
    grep -q "'/nonexistent/samples'" "$err"
}

@test "a full disk is an error, not a short table" {
    [ -w /dev/full ] || skip "no /dev/full here"
    "$bin" --budget 100ms --csv >/dev/full 2>"$err" </dev/null && status=0 || status=$?
    [ "$status" -eq 4 ]
    grep -q 'No space left' "$err"
    bench --csv --samples /dev/full
    [ "$status" -eq 4 ]
    grep -q "'/dev/full' are not complete" "$err"
}

@test "without --csv: an aligned table with a header" {
    bench --number 1,2
    [ "$status" -eq 0 ]
    grep -v '^    ' "$out" >"$out.rows" # what has no room behind its row, as what disturbed it, stands under it
    [ "$(wc -l <"$out.rows")" -eq 4 ]
    head -n 1 "$out" | grep -q '^# level 100us, noise normal, spread 1%, fault none' # what is not swept
    sed -n 2p "$out" | grep -qE '^number +metric +value unit +-ci +\+ci samples +limit  status$'
    sed -n 3p "$out.rows" | grep -qE '^1 +time +[0-9.]+ us +-[0-9.]+% +\+[0-9.]+% +[0-9]+ +(ok|noisy)([: ]|$)'
    [ "$(grep -c '\[simulated\]$' "$out")" -eq 2 ]
}

@test "an interrupt keeps what was measured and exits 4" {
    "$bin" --csv --number 1..1000+1 --sleep 2ms --spread 20% --width 0.01% --budget 150ms >"$out" 2>"$err" </dev/null &
    pid=$!
    for _ in $(seq 6000); do
        [ "$(wc -l <"$out")" -lt 3 ] || break
        sleep 0.1
    done
    kill -INT "$pid"
    wait "$pid" && status=0 || status=$?
    [ "$status" -eq 4 ]
    rows=$(wc -l <"$out")
    [ "$rows" -ge 3 ]
    [ "$rows" -lt 1001 ]
    [ "$(tail -c 1 "$out" | od -An -c | tr -d ' ')" = '\n' ]
    columns=$(head -n 1 "$out" | tr -cd , | wc -c)
    [ "$(tail -n 1 "$out" | sed 's/"[^"]*"//g' | tr -cd , | wc -c)" -eq "$columns" ]
}
