#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tier: long
# shellcheck disable=SC2154 # of variables that the files of this name share
# plumb run --against: two targets in turn, on the null benchmark; what starts them is a script that notes whose turn it is.

load common
load against

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

@test "both are run folders like any other, know of each other, and have the turns that a dry run prints" {
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
    assert m["machine"]["cpu"]
END
    [ "$(cut -d, -f3-7 r/a/plan.csv)" = "$(cut -d, -f3-7 r/b/plan.csv)" ]
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
    started=$SECONDS
    reaped 4 $!
    ((SECONDS - started < 300))
    [ ! -e r ]
    none_left
}

# stops_without SIDE: this target dies of a launch that does not find the file `allowed`, and removes it.
stops_without() {
    # shellcheck disable=SC2016 # the script expands it
    sed -i '2i case " $* " in *" --csv "*) rm '"$work"'/allowed 2> /dev/null || exec kill -KILL $PPID ;; esac' "$1/plumb-null"
}

@test "a run that is stopped after each launch, and resumed, goes on in the order that was planned" {
    sed -i 's/repeat: 4/repeat: 2/' t.yaml
    dry_run > planned
    stops_without one
    stops_without two
    touch allowed
    run in_turn
    for done in $(seq 11); do
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

@test "two runs whose plans do not belong together are damaged" {
    in_turn || judged $?
    sed -i '2s/,[a-z]*$/,second/' r/a/plan.csv r/b/plan.csv
    told 5 "'r'" "$plumb" run --resume r --no-report
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
    run -1 --separate-stderr "$plumb" compare r/a r/b
    [ "$told" = "$output" ]
    pairs() { column pairs.csv by_pairs | sort -u; } # does the comparison take the launches for pairs?
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
    run -1 "$plumb" compare lost/a lost/b --csv pairs.csv
    [ "$(pairs) $(column pairs.csv a_launches | uniq -c | xargs) $(column pairs.csv b_launches | uniq -c | xargs)" = 'yes 3 6 3 6' ]
    [ "$(grep -c ',1 of 8 .* B ' pairs.csv)" -eq 3 ]
    # The same data, not known to be pairs: nothing can be said.
    sed -i 's/"pair": "[^"]*"/"pair": "another"/' r/a/run.json
    run -3 "$plumb" compare r/a r/b --csv pairs.csv
    [ "$(pairs)" = no ]
}
