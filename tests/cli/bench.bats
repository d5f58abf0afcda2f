#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154 # of variables that the files of this name share
# What every benchmark's command line does, shown on plumb-null, whose samples are made up.

load rows
load bench

@test "--help: what it is, its own options with defaults, the common ones, exit codes" {
    exits 0 bench --help
    [ ! -s "$err" ]
    grep -q '^plumb-null: ' "$out"
    grep -q -- '--level TIME,.. .*\[100us\]$' "$out"
    grep -q -- '--noise none|normal|lognormal|ar1|two-levels,..' "$out"
    grep -q -- '--width SHARE .*\[1%\]$' "$out"
    grep -q -- '-O, --output FILE' "$out"
    grep -q '^exit: 0 .*1 .*2 .*4 ' "$out"
}

@test "no benchmark has an option twice: one of its own hides none that all share" {
    local program
    for program in "${PLUMB_BIN:-build/bin}"/plumb-*; do
        [ -z "$("$program" --help | grep -oE '^ {2}(-., |    )--[a-z0-9-]+' | sed 's/.*--//' | sort | uniq -d | tee /dev/stderr)" ]
        "$program" --help | grep -q -- ' --commands FILE '
    done
}

@test "--describe: JSON that a program can read" {
    exits 0 bench --describe
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
    exits 2 bench --bugdet 1s
    [ ! -s "$out" ]
    [[ $(<"$err") == *"'--bugdet'"*"'--budget'"* ]]
}

@test "a bad value names the option, the value and what is wanted" {
    warned 2 "'--level': 'soon' " bench --level soon
    warned 2 "'nromal'*'normal'* none, normal, lognormal, ar1, two-levels" bench --noise nromal
    warned 2 "'0' * 1 to " bench --min-samples 0
}

@test "CSV: the header is the parameters and then the columns of docs/schema.md, in order" {
    exits 0 bench --csv
    # shellcheck disable=SC2016 # these are backquotes of Markdown
    wanted=$(sed -n '/^<!-- columns:/,/^<!-- end/s/^| `\([a-z0-9_]*\)` |.*/\1/p' docs/schema.md | paste -sd,)
    [ "${wanted#metric,unit,value,}" != "$wanted" ]
    [ "$(head -n 1 "$out")" = "number,level,noise,spread,fault,$wanted" ]
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
    both null --number 1,2 --seed 5
    # of the benchmark that makes its figures up, each cell is that of the CSV, and an empty one is not there
    python3 - "$out" "$out.csv" <<'END'
import csv, json, sys
moving = {"elapsed_s", "time_utc", "steal_percent", "disturbed", "status", "cpu_mhz_low", "cpu_mhz_high"}
for line, want in zip(open(sys.argv[1]), csv.DictReader(open(sys.argv[2]))):
    for name, cell in want.items():
        if name not in moving and not name.startswith(("ctx_", "faults_")):
            value = json.loads(line).get(name, "")
            assert value == (cell if isinstance(value, str) else float(cell)), (name, cell)
END
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
    warned 2 '--csv*--json' bench --json --csv
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
    exits 0 bench --csv --number 1,2 --noise none,normal --level 1ms,2ms
    [ "$(wc -l <"$out")" -eq 9 ]
    [ "$(awk -F, 'NR > 1 { printf "%s%s%s ", $1, $2, $3 }' "$out")" = \
        "11msnone 11msnormal 12msnone 12msnormal 21msnone 21msnormal 22msnone 22msnormal " ]
}

@test "the same seed gives the same numbers, another seed others; --samples keeps every one of them, in the row's unit" {
    for seed in 1 1 2; do
        exits 0 bench --csv --seed $seed --number 1,2 --samples "$BATS_TEST_TMPDIR/samples"
        cells value | xargs >>"$BATS_TEST_TMPDIR/values"
    done
    [ "$(uniq -c <"$BATS_TEST_TMPDIR/values" | awk '{ print $1 }' | xargs)" = '2 1' ]
    [ "$(cell unit)" = us ]
    [ "$(awk -F, 'NR > 1 && $3 > 90 && $3 < 110 { n[$2]++ } END { print n[0], n[1] }' "$BATS_TEST_TMPDIR/samples")" = "$(cells samples | xargs)" ]
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

@test "a point that cannot run, one with wrong data, one that fails: each its status and its exit code, and the points after it run" {
    exits 0 bench --csv --fault skip
    [ "$(cell status) $(cell code)" = "skipped unsupported" ]
    [ -n "$(cell reason)" ]
    [ -z "$(cell value)$(cell samples)$(cell ci_low)$(cell stop)" ]
    exits 0 bench --fault skip --number 1,2,3 # a table has the reason once, with how many
    [ "$(grep -c '^ *[123] .* skipped, simulated$' "$out")" -eq 1 ]
    grep -q '^# asked to be skipped$' "$out"
    grep -q '^# and 2 more' "$out"
    [[ $(tail -n 1 "$out") == '# 3 cases: 3 skipped' ]]
    exits 1 bench --csv --fault wrong
    [ "$(cell status)" = wrong ]
    exits 4 bench --csv --fault fail,none
    [ "$(cell status 1) $(cell status 2)" = "failed ok" ]
    [ -z "$(cell value 1)" ]
}

@test "an interval that is not narrow enough when time is up: noisy, and says how wide it is" {
    exits 0 bench --csv --spread 50% --width 0.1% --budget 90ms --sleep 100us
    [ "$(cell stop)" = time ]
    [ "$(cell status)" = noisy ]
    [ "$(cell width_wanted)" = 0.001 ]
    [ "$(cell noise_kind)" = wide ]
}

@test "--output writes the rows to a file and nothing to stdout; files that cannot be written are named" {
    exits 0 bench --csv --output "$BATS_TEST_TMPDIR/rows"
    [ ! -s "$out" ]
    [ "$(wc -l <"$BATS_TEST_TMPDIR/rows")" -eq 2 ]
    warned 2 "'/nonexistent/rows'" bench --output /nonexistent/rows
    bench --samples /nonexistent/samples
    [ "$status" -ne 0 ]
    grep -q "'/nonexistent/samples'" "$err"
}

@test "without --csv: a line a point, aligned, and a sentence; -v tells the rest" {
    exits 0 bench --number 1,2 --level 100us
    [ "$(grep -vc '^#' "$out")" -eq 2 ]
    [ "$(head -n 1 "$out")" = '# level 100us' ] # what was given, and is not swept
    sed -n 2p "$out" | grep -qE '^# +number +time +95 % CI$'
    grep -qE '^ +1 +[0-9.]+ us +[0-9.]+ %  (noisy, )?simulated' "$out"
    tail -n 1 "$out" | grep -qE '^# 2 cases: '
    exits 0 bench --verbose --number 1,2 --level 100us
    [ "$(grep -c ' [0-9]* samples' "$out")" -eq 2 ]
    grep -q 'noise normal, spread 1%, fault none' "$out"
}

@test "an interrupt keeps what was measured and exits 4" {
    "$bin" --csv --number 1..1000+1 --sleep 2ms --spread 20% --width 0.01% --budget 150ms >"$out" 2>"$err" </dev/null &
    pid=$!
    in_time 600 eval "[[ \$(wc -l <'$out') -ge 3 ]]"
    kill -INT "$pid"
    reaped 4 "$pid"
    rows=$(wc -l <"$out")
    [ "$rows" -ge 3 ]
    [ "$rows" -lt 1001 ]
    [ "$(tail -c 1 "$out" | od -An -c | tr -d ' ')" = '\n' ]
    columns=$(head -n 1 "$out" | tr -cd , | wc -c)
    [ "$(tail -n 1 "$out" | sed 's/"[^"]*"//g' | tr -cd , | wc -c)" -eq "$columns" ]
}

@test "while it measures: a harness reads the value so far, and a terminal shows one line, which goes" {
    local slow="--sleep 60ms --warmup 1ms --min-samples 8 --max-samples 8 --number 1,2" estimate=$BATS_TEST_TMPDIR/estimate shown=$BATS_TEST_TMPDIR/shown
    : > "$estimate"
    # shellcheck disable=SC2086 # words
    PLUMB_ESTIMATE=$estimate exits 0 bench $slow
    tr -d '\0' < "$estimate" | grep -qE '^(9|10)[0-9.]* us'
    command script -qec "stty cols 60; '$bin' $slow" /dev/null > "$shown" < /dev/null
    grep -qE $'\r\\[0/2\\] null 1\e\\[K' "$shown"
    grep -qE $'\r\\[1/2\\] null 2  (9|10)[0-9.]* us.* left\e\\[K' "$shown"
    [ "$(tr '\r' '\n' < "$shown" | grep -c '^\[./2\].\{60\}')" -eq 0 ]
    [ "$(grep -c $'\r\e\\[K' "$shown")" -ge 2 ]
}
