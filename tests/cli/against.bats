#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154 # of variables that the files of this name share
# plumb run --against: two targets in turn, on the null benchmark; what starts them is a script that notes whose turn it is.

load common
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
    run -1 "$plumb" run margins.yaml --of "$work/one/plumb" --against "$work/two/plumb" --out r --no-report
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
    reaped 4 $!
    grep -q ' 1 of 24 .* run --resume r' err
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
    run -4 "$plumb" run t.yaml --against "echo no route to guest >&2; exit 255; true" --out r
    [[ "$output" == *"target b "*" no route to guest (status 255)"*": echo no route"* ]] # its own words, and its command
    [ ! -e r ]
    long_suite # the second is gone before it was told all of that
    for words in 't.yaml|echo Welcome;' 'long.yaml|echo Welcome; exit 0;'; do
        told 2 "target b *'Welcome'" "$plumb" run "${words%|*}" --against "${words#*|}" --out r
        [ ! -e r ]
    done
    told 4 'target b *(status 9)' "$plumb" run long.yaml --against "exit 9;" --out r
    [ ! -e r ]
    # shellcheck disable=SC2016 # these scripts expand them
    printf '#!/bin/sh\nkill -KILL $PPID\n' | script two/plumb-null.killer
    # shellcheck disable=SC2016
    sed -i '1a case " $* " in *" --csv "*) [ "$(wc -l < '"$work"'/turns)" -lt 4 ] || exec '"$work"'/two/plumb-null.killer ;; esac' two/plumb-null
    run -4 in_turn
    [[ "$output" == *"target b "*"(status 137)"*" of 24 "*"--resume"* || "$output" == *" of 24 "*"--resume"*"target b "*"(status 137)"* ]]
}

@test "a dry run prints the turns and runs nothing" {
    run -0 --separate-stderr in_turn --dry-run
    [ "$(wc -l <<< "$output")" -eq 25 ]
    [ ! -e turns ] && [ ! -e r ]
}

@test "options that say nothing of a run in turn are refused" {
    for option in "--hosts hosts" "--launcher ssh" "--slots 2" "--repeat 2"; do
        # shellcheck disable=SC2086 # two words
        told 2 --against "$plumb" run t.yaml --against true $option
    done
    told 2 '--of *--against' "$plumb" run t.yaml --of true
}
