#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# plumb run --against: two targets in turn, on the null benchmark; what starts them is a script that notes whose turn it is.

bats_require_minimum_version 1.5.0

setup() {
    top="$(cd "$BATS_TEST_DIRNAME/../.." && pwd)"
    bin="${PLUMB_BIN:-$top/build/bin}"
    plumb="$bin/plumb"
    work="$(mktemp -d)"
    cd "$work" || return 1
    # Each has its own benchmark beside it, which notes its launches in `turns`. Leftovers are found by this folder's name.
    for side in one two; do
        mkdir -p "$side"
        cp "$plumb" "$side/plumb"
        cat > "$side/plumb-null" <<END
#!/bin/sh
case " \$* " in
*" --csv "*)
    echo "$side \$*" >> "$work/turns"
    if [ -e "$work/slow-$side" ]; then exec "$work/$side/slow" 30; fi
    ;;
esac
exec "$bin/plumb-null" "\$@"
END
        chmod +x "$side/plumb-null"
        ln -s "$(command -v sleep)" "$side/slow"
    done
    printf 'suite: t\nabout: a test\ndefaults: {repeat: 4, budget: 5ms, warmup: 1ms}\ncases:\n  - {bench: "null", number: [1, 2, 3]}\n' > t.yaml
}

teardown() {
    cd / || return 1
    pkill -KILL -f "$work" 2> /dev/null
    rm -rf "$work"
}

# shellcheck disable=SC2120 # mostly without
in_turn() { # in_turn [OPTION...]
    "$plumb" run t.yaml --of "SIDE=one $work/one/plumb" --against "SIDE=two $work/two/plumb" --out r --no-report "$@"
}

# judged STATUS: is it that of a verdict, whichever this machine gives?
judged() { [ "$1" -eq 0 ] || [ "$1" -eq 1 ] || [ "$1" -eq 3 ]; }

column() { # column FILE NAME
    python3 -c 'import csv, sys
for row in csv.DictReader(open(sys.argv[1])): print(row[sys.argv[2]])' "$1" "$2"
}

# balanced FILE: of the launches "TARGET CASE", in the order in which they ran, each case has both orders alike, and the cases
# begin alike with either target.
balanced() {
    python3 - "$1" <<'END'
import collections, sys
lines = [line.split() for line in open(sys.argv[1])]
first = collections.defaultdict(list)
for one, two in zip(lines[::2], lines[1::2]):
    assert one[1:] == two[1:] and one[0] != two[0], (one, two)
    first[tuple(one[1:])].append(one[0])
assert len(lines) % 2 == 0 and first
names = sorted({line[0] for line in lines})
begin = collections.Counter({name: 0 for name in names})
for case, order in first.items():
    assert all(x != y for x, y in zip(order, order[1:])), (case, order)
    begin[order[0]] += 1
assert abs(begin[names[0]] - begin[names[1]]) <= 1, begin
END
}

# dry_run: what a dry run of both targets prints.
dry_run() {
    "$plumb" run t.yaml --of "$work/one/plumb" --against "$work/two/plumb" --dry-run
}

# launch N: whose is it, one or two?
launch() { dry_run | sed -n "$(($1 + 1))p" | cut -d, -f2 | sed 's/a/one/; s/b/two/'; }

# took_turns: each run says of each launch whether it went first, as in `planned`, a dry run's.
took_turns() {
    for side in a b; do
        sed 1d planned | awk -F, -v side=$side '$2 == side {print $3, $4, NR % 2 ? "first" : "second"}' | sort > want
        python3 -c 'import csv, sys
for row in csv.DictReader(open(sys.argv[1])): print(row["case"], row["repeat"], row["turn"])' r/$side/plan.csv | sort | cmp - want || return 1
    done
}

# in_order: the launches that were noted are those of `planned`, and in that order.
in_order() {
    sed 1d planned | cut -d, -f2,6 | sed 's/,/ /; s/ --budget.*//' | cmp - <(sed 's/^one/a/; s/^two/b/; s/ --budget.*//' turns)
}

left_over() { pgrep -f "$work/(one|two)/"; }

none_left() { # within 10 s
    for _ in $(seq 6000); do
        left_over > /dev/null || return 0
        sleep 0.1
    done
    left_over -a
    return 1
}

wait_for_turns() { # wait_for_turns N
    for _ in $(seq 6000); do
        [ -e turns ] && [ "$(wc -l < turns)" -ge "$1" ] && return 0
        sleep 0.05
    done
    return 1
}

# long.yaml: t.yaml, but longer than what fits into a pipe.
long_suite()
{
    { cat t.yaml && yes '# a comment that fills the pipe, a line of it' | head -n 3000; } > long.yaml
}

@test "two targets are measured in turn, the one that comes first alternating in each case, with the same data" {
    run in_turn
    judged "$status"
    [ "$(wc -l < turns)" -eq 24 ]
    sed 's/ --budget.*//' turns > order
    balanced order
    # What follows is the same for both of a pair: case, and seed.
    [ "$(awk '{$1 = ""} NR % 2 {first = $0; next} first != $0' turns)" = "" ]
    [ "$(awk '{$1 = ""; print}' turns | sort -u | wc -l)" -eq 12 ]
}

@test "both are run folders like any other, and know of each other" {
    in_turn || judged $?
    for side in a b; do
        [ "$(column r/$side/plan.csv state | sort | uniq -c | tr -s ' ')" = " 12 done" ]
        [ "$(column r/$side/null.csv run | sort -u)" = "r-$side" ]
        [ "$(wc -l < r/$side/samples/null.csv)" -gt 1000 ]
        "$plumb" report "r/$side" --out "rep-$side"
    done
    python3 - <<'END'
import json
for side, other in (("a", "b"), ("b", "a")):
    m = json.load(open("r/%s/run.json" % side))
    assert m["state"] == "complete" and m["run"] == "r-" + side, m["state"]
    assert m["against"]["pair"] == json.load(open("r/a/run.json"))["against"]["pair"]
    assert m["against"]["side"] == side and m["against"]["other"] == other
    assert "SIDE=" in m["against"]["command"], m["against"]
    # How to do it again, which no agent can be told by itself.
    assert m["command"][:4] == ["plumb", "run", "t.yaml", "--of"] and m["command"][-1] == "--no-report", m["command"]
    assert m["machine"]["cpu"], "the machine was not probed"
END
    [ "$(cut -d, -f3-7 r/a/plan.csv)" = "$(cut -d, -f3-7 r/b/plan.csv)" ]
}

# make_slower: slower.py, through which rows become so many times as slow.
make_slower() {
    cat > slower.py <<'END'
import csv, sys
by = float(sys.argv[1])
rows = list(csv.reader(sys.stdin))
out = csv.writer(sys.stdout, lineterminator="\n")
out.writerow(rows[0])
for row in rows[1:]:
    for name in ("value", "ci_low", "ci_high"):
        at = rows[0].index(name)
        row[at] = "%.9g" % (float(row[at]) * by)
    out.writerow(row)
END
}

# margins.yaml: cases with a margin of their own, and one without; nothing varies.
margins_suite() {
    cat > margins.yaml <<'END'
suite: margins
defaults: {budget: 5ms, warmup: 1ms, repeat: 4}
cases:
  - {bench: "null", noise: none, number: [1, 2], margin: 1%}
  - {bench: "null", noise: none, number: 3}
END
}

# margins FOLDER: "CASE MARGIN" of each case of its plan.
margins() {
    column "$1/plan.csv" case | paste -d' ' - <(column "$1/plan.csv" margin) | sort -u
}

# judged_by FOLDER: "MARGIN VERDICT" of each case.
judged_by() {
    "$plumb" compare "$1" --csv verdicts.csv > verdicts || judged $?
    column verdicts.csv margin | paste -d' ' - <(column verdicts.csv verdict) | sort
}

@test "the margin that the suite says of a case is kept on both sides, and the case is judged by it" {
    margins_suite
    # Two is 3 % slower: no news within 5 %, and a loss beyond 1 %.
    make_slower
    cat > two/plumb-null <<END
#!/bin/sh
case " \$* " in
*" --csv "*) "$bin/plumb-null" "\$@" | python3 "$work/slower.py" 1.03 ;;
*) exec "$bin/plumb-null" "\$@" ;;
esac
END
    "$plumb" run margins.yaml --out alone --no-report
    [ "$(margins alone)" = $'1 0.01\n2 0.01\n3 ' ]
    run "$plumb" run margins.yaml --of "$work/one/plumb" --against "$work/two/plumb" --out r --no-report
    [ "$status" -eq 1 ]
    [ "$(margins r/a)" = "$(margins alone)" ]
    [ "$(margins r/b)" = "$(margins alone)" ]
    [ "$(judged_by r)" = $'0.01 worse\n0.01 worse\n0.05 equivalent' ]
}

@test "each side keeps the margin of its own suite; the smaller one counts" {
    margins_suite
    # b reads another suite: 4 % in place of 1 %, and the other way round.
    run "$plumb" run margins.yaml --against "sed -u 's/margin: 1%/margin: 4%/' | $plumb" --out wider --no-report
    judged "$status"
    sed -i 's/margin: 1%/margin: 4%/' margins.yaml
    run "$plumb" run margins.yaml --against "sed -u 's/margin: 4%/margin: 1%/' | $plumb" --out tighter --no-report
    judged "$status"
    for side in wider/a tighter/b; do
        [ "$(margins $side)" = $'1 0.01\n2 0.01\n3 ' ]
    done
    for side in wider/b tighter/a; do
        [ "$(margins $side)" = $'1 0.04\n2 0.04\n3 ' ]
    done
    for folder in wider tighter; do
        [ "$(judged_by $folder | cut -d' ' -f1)" = $'0.01\n0.01\n0.05' ]
    done
}

@test "it ends with a page that has the verdicts, and both commands" {
    status=0
    "$plumb" run t.yaml --of "SIDE=one $work/one/plumb" --against "SIDE=two $work/two/plumb" --out r > out || status=$?
    judged "$status"
    grep -q "^report: r/report.html$" out
    grep -q "<section id='verdicts'>" r/report.html
    grep -q "<pre class='command'>plumb run t.yaml --of .*--against .*</pre>" r/report.html
    grep -q "measured in turn: .*; A is what &#39;SIDE=one $work/one/plumb&#39; starts, B is what &#39;SIDE=two $work/two/plumb&#39; starts" r/report.html
    "$plumb" compare r > again || true
    cmp <(head -n 1 out) <(head -n 1 again)
}

@test "an interrupt keeps what is there; --resume measures the rest, and nothing twice" {
    slow=slow-$(launch 2)
    touch "$slow"
    in_turn 2> err 3>&- &
    wait_for_turns 2
    pkill -INT -f "^$plumb run t.yaml --of SIDE=one $work/"
    status=0
    wait $! || status=$?
    [ "$status" -eq 4 ]
    grep -q 'interrupted: 1 of 24 launches are kept; go on with: .* run --resume r' err
    none_left
    rm "$slow"
    run "$plumb" run --resume r --no-report
    judged "$status"
    # The launch that was under way is the one that is there twice.
    [ "$(wc -l < turns)" -eq 25 ]
    [ "$(column r/a/plan.csv state | sort -u)" = "done" ]
    [ "$(column r/b/plan.csv state | sort -u)" = "done" ]
    [ "$(column r/b/null.csv case | sort | uniq -c | tr -s ' ' | sort -u | wc -l)" -eq 3 ]
}

@test "a leader that is killed leaves nothing behind, and can be resumed" {
    slow=slow-$(launch 1)
    touch "$slow"
    in_turn 2> err 3>&- &
    wait_for_turns 1
    pkill -KILL -f "^$plumb run t.yaml --of SIDE=one $work/"
    wait $! || true
    none_left
    rm "$slow"
    run "$plumb" run --resume r --no-report
    judged "$status"
    [ "$(column r/a/plan.csv state | sort -u)" = "done" ]
}

@test "a folder that cannot be made is named, with the reason and what to do" {
    (cd /proc && ! "$plumb" run "$work/t.yaml" --against "$plumb" --no-report 2>"$work/err") # nobody makes a folder there
    cat err
    grep -qx "plumb run: cannot make the folder 'results' here: .*; name a folder with --out" err
    run "$plumb" run t.yaml --against "$plumb" --out none/r --no-report
    [ "$status" -ne 0 ]
    [[ "$output" == *"cannot make the folder 'none/r': No such file or directory; name another with --out"* ]]
    run "$plumb" run t.yaml --out none/r --no-report
    [ "$status" -eq 4 ]
    [[ "$output" == *"cannot make the run folder 'none/r': No such file or directory; name another with --out"* ]]
}

@test "a target that cannot be started, dies or talks is named, with what it said" {
    run "$plumb" run t.yaml --against "echo no route to guest >&2; exit 255; true" --out r
    [ "$status" -eq 4 ]
    [[ "$output" == *"target b ended: no route to guest (status 255); it was started by: echo no route"* ]]
    [ ! -e r ]
    run "$plumb" run t.yaml --against "echo Welcome to the guest;" --out r
    [ "$status" -eq 2 ]
    [[ "$output" == *"what target b says is no answer of plumb's ('Welcome to the guest'): its command must print nothing else"* ]]
    [ ! -e r ]
    # It is gone before it was told all.
    long_suite
    run "$plumb" run long.yaml --against "echo Welcome to the guest; exit 0;" --out r
    [ "$status" -eq 2 ]
    [[ "$output" == *"what target b says is no answer of plumb's ('Welcome to the guest')"* ]]
    run "$plumb" run long.yaml --against "exit 9;" --out r
    [ "$status" -eq 4 ]
    [[ "$output" == *"target b ended: without a word (status 9)"* ]]
    [ ! -e r ]
    # shellcheck disable=SC2016 # these scripts expand them
    printf '#!/bin/sh\nkill -KILL $PPID\n' > two/plumb-null.killer
    chmod +x two/plumb-null.killer
    # shellcheck disable=SC2016
    sed -i '1a case " $* " in *" --csv "*) [ "$(wc -l < '"$work"'/turns)" -lt 4 ] || exec '"$work"'/two/plumb-null.killer ;; esac' two/plumb-null
    run in_turn
    [ "$status" -eq 4 ]
    [[ "$output" == *"target b ended: "*"(status 137)"* ]]
    [[ "$output" == *"of 24 launches are kept; go on with:"* ]]
}

# until_full PATTERN: until the pipe that is that process's standard input takes no more.
until_full()
{
    local _
    for _ in $(seq 6000); do
        python3 -c 'import os, select, sys
pipe = os.open(f"/proc/{sys.argv[1]}/fd/0", os.O_WRONLY | os.O_NONBLOCK)
sys.exit(bool(select.select([], [pipe], [], 0)[1]))' "$(pgrep -f "$1")" 2> /dev/null && return 0
        sleep 0.05
    done
    return 1
}

@test "a target that does not read holds up no interrupt" {
    long_suite
    "$plumb" run long.yaml --against "exec $work/two/slow 600; " --out r 2> err 3>&- &
    until_full "^$work/two/slow 600"
    pkill -INT -f "^$plumb run long.yaml --against exec $work/"
    started=$SECONDS status=0
    wait $! || status=$?
    [ "$status" -eq 4 ]
    ((SECONDS - started < 300))
    [ ! -e r ]
    none_left
}

@test "a suite that one side cannot plan is an error of that side" {
    rm two/plumb-null two/plumb
    cp "$plumb" two/
    PATH=/usr/bin:/bin run in_turn
    [ "$status" -eq 2 ]
    [[ "$output" == *"target b: t.yaml:3: no benchmark "* ]]
    [ ! -e r ]
}

@test "a dry run prints the turns and runs nothing" {
    run --separate-stderr in_turn --dry-run
    [ "$status" -eq 0 ]
    [ "$(wc -l <<< "$output")" -eq 25 ]
    [ ! -e turns ] && [ ! -e r ]
}

@test "the suites that come with it are balanced in each case, whatever the seed" {
    for suite in quick node gpu net cluster; do
        for seed in 0 1 2 3 4 5 6 7; do
            "$plumb" run $suite --seed $seed --against "$plumb" --dry-run > all
            sed 1d all | cut -d, -f2,3 | tr , ' ' > order
            balanced order
        done
    done
}

@test "turns are taken as a dry run prints them, and are in the plan of both runs" {
    dry_run > planned
    in_turn || judged $?
    in_order
    took_turns
    # Another run has none.
    "$plumb" run t.yaml --out alone --no-report
    [[ "$(head -n 1 alone/plan.csv)" != *turn* ]]
}

# stops_without SIDE: this target dies of a launch that does not find the file `allowed`, and removes it.
stops_without() {
    # shellcheck disable=SC2016 # the script expands it
    sed -i '2i case " $* " in *" --csv "*) rm '"$work"'/allowed 2> /dev/null || exec kill -KILL $PPID ;; esac' "$1/plumb-null"
}

@test "a run that is stopped after each launch, and resumed, goes on in the order that was planned" {
    sed -i 's/repeat: 4/repeat: 3/' t.yaml
    dry_run > planned
    stops_without one
    stops_without two
    touch allowed
    run in_turn
    for done in $(seq 17); do
        [ "$status" -eq 4 ]
        [ "$(wc -l < turns)" -eq "$done" ]
        touch allowed
        run "$plumb" run --resume r --no-report
    done
    judged "$status"
    in_order
    took_turns
}

@test "of a pair whose first launch was lost with the power both are measured again, in their order" {
    dry_run > planned
    in_turn || judged $?
    # The rows of the first launch of the fourth pair did not reach the disk; its partner is on the other side.
    lost=$(sed -n 8p planned | cut -d, -f2)
    partner=$(sed -n 9p planned | cut -d, -f2)
    python3 - "r/$lost/null.csv" "$(sed -n 8p planned | cut -d, -f3,4)" <<'END'
import csv, sys
rows = list(csv.reader(open(sys.argv[1])))
at = [rows[0].index("case"), rows[0].index("repeat")]
rows = [row for row in rows if ",".join(row[i] for i in at) != sys.argv[2]]
csv.writer(open(sys.argv[1], "w"), lineterminator="\n").writerows(rows)
END
    [ "$(wc -l < "r/$lost/null.csv")" -eq 12 ]
    : > turns
    run "$plumb" run --resume r --no-report
    judged "$status"
    [ "$(cut -d' ' -f1 turns | sed 's/one/a/; s/two/b/' | tr -d '\n')" = "$lost$partner" ]
    took_turns
    for side in a b; do
        [ "$(column r/$side/plan.csv state | sort -u)" = "done" ]
        # Nothing is there twice.
        for file in r/$side/null.csv r/$side/samples/null.csv; do
            [ "$(column "$file" case | paste -d, - <(column "$file" repeat) | uniq | wc -l)" -eq 12 ]
        done
    done
}

@test "a run of a version that kept no record goes on as it was begun: along the plan" {
    in_turn || judged $?
    # ... as such a version left it after two pairs.
    python3 - <<'END'
import csv, json
for folder in ("r/a", "r/b"):
    plan = list(csv.DictReader(open(folder + "/plan.csv")))
    names = [name for name in plan[0] if name != "turn"]
    for row in plan[2:]:
        row.update(state="todo", rows="0000")
    with open(folder + "/plan.csv", "w") as out:
        table = csv.DictWriter(out, names, lineterminator="\n", extrasaction="ignore")
        table.writeheader()
        table.writerows(plan)
    meta = json.load(open(folder + "/run.json"))
    meta["against"]["order"] = "ABBA"
    json.dump(meta, open(folder + "/run.json", "w"))
END
    : > turns
    run "$plumb" run --resume r --no-report
    judged "$status"
    [ "$(cut -d' ' -f1 turns | sed 's/one/a/; s/two/b/' | tr -d '\n')" = abbaabbaabbaabbaabba ]
}

@test "two runs whose plans do not belong together are damaged" {
    in_turn || judged $?
    sed -i '2s/,[a-z]*$/,second/' r/a/plan.csv r/b/plan.csv
    run "$plumb" run --resume r --no-report
    [ "$status" -eq 5 ]
    [[ "$output" == *"'r' is damaged: its two runs have other plans"* ]]
}

@test "where whoever goes second is slower, each case has it on both sides alike, and says where" {
    # Nothing else varies: 100 us for the one that goes first, 106 us for the other.
    for side in one two; do
        cat > "$side/plumb-null" <<END
#!/bin/sh
case " \$* " in
*" --csv "*)
    echo "$side" >> "$work/turns"
    [ \$((\$(wc -l < "$work/turns") % 2)) -eq 1 ] || exec "$bin/plumb-null" "\$@" --level 106us
    ;;
esac
exec "$bin/plumb-null" "\$@"
END
    done
    cat > t.yaml <<'END'
suite: t
defaults: {budget: 5ms, warmup: 1ms}
cases:
  - {bench: "null", noise: none, number: [1, 2, 3, 4, 5, 6, 7], repeat: 4}
  - {bench: "null", noise: none, number: [8, 9, 10, 11], repeat: 5}
END
    in_turn || judged $?
    python3 - <<'END'
import collections, csv, math
logs = collections.defaultdict(lambda: {"a": [], "b": []})
for side in ("a", "b"):
    turns = {(row["case"], row["repeat"]): row["turn"] for row in csv.DictReader(open("r/%s/plan.csv" % side))}
    for row in csv.DictReader(open("r/%s/null.csv" % side)):
        value, turn = float(row["value"]), turns[row["case"], row["repeat"]]
        assert (turn, round(value)) in (("first", 100), ("second", 106)), (side, row["case"], row["repeat"], turn, value)
        logs[row["case"]][side].append(math.log(value))
changes = {}
for case, of in logs.items():
    n = len(of["a"])
    assert n == len(of["b"])
    changes[case] = (sum(of["b"]) - sum(of["a"])) / n
    # Of an odd number one is left over.
    assert abs(abs(changes[case]) - n % 2 * math.log(1.06) / n) < 1e-9, (case, changes[case])
assert len(changes) == 11 and abs(sum(changes.values())) < 1e-9, changes
END
}

@test "options that say nothing of a run in turn are refused" {
    for option in "--hosts hosts" "--launcher ssh" "--slots 2" "--repeat 2"; do
        # shellcheck disable=SC2086 # two words
        run "$plumb" run t.yaml --against true $option
        [ "$status" -eq 2 ]
        [[ "$output" == *"does not go with --against"* ]]
    done
    run "$plumb" run t.yaml --of true
    [ "$status" -eq 2 ]
    [[ "$output" == *"--of is the reference of --against"* ]]
}

@test "an agent by itself says what it is for, and takes nothing that is no message" {
    run bash -c "echo '{\"ask\": \"launch\"}' | '$plumb' run --agent"
    [[ "$output" == *'"error":"a launch without a plan"'* ]]
    run bash -c "echo 'what?' | '$plumb' run --agent"
    [[ "$output" == *'"error":"this is no message for an agent of plumb"'* ]]
    run bash -c "echo '{\"ask\": \"plan\", \"protocol\": 99}' | '$plumb' run --agent"
    [[ "$output" == *"another protocol"* ]]
    # An older one asks rightly, but would lose the margins.
    cat > order <<'END'
{"ask": "plan", "protocol": 2, "suite": "t", "seed": 1, "config": "suite: t\ncases:\n  - {bench: 'null', margin: 1%}\n"}
END
    run bash -c "sed 's/: 2/: 1/' order | '$plumb' run --agent"
    [[ "$output" == '{"error":"this plumb speaks another protocol'* ]]
    run --separate-stderr bash -c "'$plumb' run --agent < order"
    [[ "$output" == '{"protocol":2,'*'"margin":0.01'* ]]
}

@test "a target that is slower is told, though the level drifts more than that" {
    # Each round of the suite (3 cases, 2 targets) is 10 % slower than the one before, on both; target two another 8 %.
    make_slower
    for side in one two; do
        cat > "$side/plumb-null" <<END
#!/bin/sh
case " \$* " in
*" --csv "*)
    echo "$side" >> "$work/turns"
    by=\$(awk -v own=$([ $side = two ] && echo 1.08 || echo 1) 'END { print own * 1.1 ^ int((NR - 1) / 6) }' "$work/turns")
    "$bin/plumb-null" "\$@" | python3 "$work/slower.py" "\$by"
    exit
    ;;
esac
exec "$bin/plumb-null" "\$@"
END
    done
    sed -i 's/repeat: 4/repeat: 8/' t.yaml
    # Without the page, too, it ends with the verdicts, and with their exit code.
    run --separate-stderr in_turn
    told=$output
    [ "$status" -eq 1 ]
    [ ! -e r/report.html ]
    run --separate-stderr "$plumb" compare r/a r/b
    echo "$output"
    [ "$status" -eq 1 ]
    [ "$told" = "$output" ]
    [[ "$output" == *"measured in turn: each launch of B stood next to one of A"* ]]
    # A launch that is lost on one side takes its partner with it, and no other. (By themselves, the launches differ by more than the loss.)
    cp -r r lost
    python3 - <<'END'
import csv
for side, repeat in (("a", "1"), ("b", "6")):
    path = "lost/%s/null.csv" % side
    rows = list(csv.reader(open(path)))
    at = {name: i for i, name in enumerate(rows[0])}
    for row in rows[1:]:
        if row[at["repeat"]] == repeat:
            row[at["status"]], row[at["value"]] = "failed", ""
    csv.writer(open(path, "w"), lineterminator="\n").writerows(rows)
END
    run "$plumb" compare lost/a lost/b
    echo "$output"
    [ "$status" -eq 1 ]
    [[ "$output" == *"some launches of B failed in 3 cases"* ]]
    # The same data, not known to be pairs: nothing can be said.
    sed -i 's/"pair": "[^"]*"/"pair": "another"/' r/a/run.json
    run "$plumb" compare r/a r/b
    [ "$status" -eq 3 ]
    [[ "$output" != *"measured in turn"* ]] || [[ "$output" == *"or both measured in turn"* ]]
}
