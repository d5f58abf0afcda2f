#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154 # of variables that the files of this name share
# plumb run --against: two targets in turn, on the null benchmark; what starts them is a script that notes whose turn it is.

bats_require_minimum_version 1.5.0
load against

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

# margins.yaml: cases with a margin of their own, and one without; hardly anything varies.
margins_suite() {
    cat > margins.yaml <<'END'
suite: margins
defaults: {budget: 5ms, warmup: 1ms, repeat: 4}
cases:
  - {bench: "null", spread: 0.01%, number: [1, 2], margin: 1%}
  - {bench: "null", spread: 0.01%, number: 3}
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

@test "an interrupt keeps what is there; --resume measures the rest, and nothing twice" {
    slow=slow-$(launch 2)
    touch "$slow"
    in_turn 2> err 3>&- &
    wait_for_turns 2
    pkill -INT -f "^$plumb run t.yaml --of SIDE=one $work/"
    status=0
    wait $! || status=$?
    [ "$status" -eq 4 ]
    grep -q 'interrupted: 1 of 24 .* run --resume r' err
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

@test "a target that cannot be started, dies or talks is named, with what it said" {
    run "$plumb" run t.yaml --against "echo no route to guest >&2; exit 255; true" --out r
    [ "$status" -eq 4 ]
    [[ "$output" == *"target b ended: no route to guest (status 255); "*": echo no route"* ]]
    [ ! -e r ]
    run "$plumb" run t.yaml --against "echo Welcome to the guest;" --out r
    [ "$status" -eq 2 ]
    [[ "$output" == *"target b "*"'Welcome to the guest'"* ]]
    [ ! -e r ]
    # It is gone before it was told all.
    long_suite
    run "$plumb" run long.yaml --against "echo Welcome to the guest; exit 0;" --out r
    [ "$status" -eq 2 ]
    [[ "$output" == *"target b "*"'Welcome to the guest'"* ]]
    run "$plumb" run long.yaml --against "exit 9;" --out r
    [ "$status" -eq 4 ]
    [[ "$output" == *"target b ended: "*"(status 9)"* ]]
    [ ! -e r ]
    # shellcheck disable=SC2016 # these scripts expand them
    printf '#!/bin/sh\nkill -KILL $PPID\n' > two/plumb-null.killer
    chmod +x two/plumb-null.killer
    # shellcheck disable=SC2016
    sed -i '1a case " $* " in *" --csv "*) [ "$(wc -l < '"$work"'/turns)" -lt 4 ] || exec '"$work"'/two/plumb-null.killer ;; esac' two/plumb-null
    run in_turn
    [ "$status" -eq 4 ]
    [[ "$output" == *"target b ended: "*"(status 137)"* ]]
    [[ "$output" == *"of 24 launches "*"--resume"* ]]
}

@test "a dry run prints the turns and runs nothing" {
    run --separate-stderr in_turn --dry-run
    [ "$status" -eq 0 ]
    [ "$(wc -l <<< "$output")" -eq 25 ]
    [ ! -e turns ] && [ ! -e r ]
}

@test "options that say nothing of a run in turn are refused" {
    for option in "--hosts hosts" "--launcher ssh" "--slots 2" "--repeat 2"; do
        # shellcheck disable=SC2086 # two words
        run "$plumb" run t.yaml --against true $option
        [ "$status" -eq 2 ]
        [[ "$output" == *"--against"* ]]
    done
    run "$plumb" run t.yaml --of true
    [ "$status" -eq 2 ]
    [[ "$output" == *"--of "*"--against"* ]]
}
