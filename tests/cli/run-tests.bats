#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# scripts/run-tests on made-up test programs: what counts as passed, failed and skipped, and its last line.

setup()
{
    tree=$BATS_TEST_TMPDIR/tree
    mkdir -p "$tree/scripts" "$tree/build/tests" "$tree/tests/unit" "$tree/tests/cli" "$tree/tests/fuzz"
    cp "$BATS_TEST_DIRNAME/../../scripts/run-tests" "$tree/scripts"
    printf 'HAVE_CMOCKA := yes\nHAVE_BATS := yes\nPLUMB := yes\n' >"$tree/build/config.mk"
}

# program NAME: a unit test program that does what stdin says.
program()
{
    touch "$tree/tests/unit/$1.c"
    { echo '#!/bin/bash' && cat; } >"$tree/build/tests/$1"
    chmod +x "$tree/build/tests/$1"
}

# bats_file [NAME]: a bats file of what stdin says, where %test stands for what would begin a case of this very file.
bats_file()
{
    sed 's/^%/@/' >"$tree/tests/cli/${1-some}.bats"
}

# run_tests [SUITE/...]: of one suite, the units where it is not said.
run_tests()
{
    [ $# -gt 0 ] || set -- --only 'units/*'
    run env MAKE="${fake_make:-true}" TEST_TIMEOUT="${limit:-120}" FUZZ_SECONDS=1 "$tree/scripts/run-tests" "$@" </dev/null
}

last_line_is()
{
    [ "${lines[-1]}" = "$1" ] || {
        echo "$output"
        false
    }
}

@test "cases that pass are counted; the last line is the sum" {
    program test_one <<<'printf "1..2\nok 1 - a\nok 2 - b\n"'
    program test_two <<<'printf "1..1\nok 1 - c\n"'
    run_tests
    [ "$status" -eq 0 ]
    last_line_is '3 passed, 0 failed, 0 skipped'
}

@test "a run of all shows what the sources have grown to, and how long a whole build took; neither is judged" {
    program test_one <<<'printf "1..1\nok 1 - a\n"'
    printf '#!/bin/sh\necho "house $*"\nexit 1\n' >"$tree/scripts/house"
    chmod +x "$tree/scripts/house"
    echo 'HAVE_CMOCKA := yes' >"$tree/build/config.mk"
    run_tests --only '*'
    [ "$status" -eq 0 ]
    grep -qE '^house --short --test-seconds [0-9]+ --make-seconds [0-9]+$' <<<"$output"
    [[ ${lines[-1]} == '1 passed, 0 failed, '* ]]
    mkdir -p "$tree/build/obj" && touch "$tree/build/obj/x.o"
    run_tests --only '*'
    grep -qE '^house --short --test-seconds [0-9]+$' <<<"$output"
    run_tests
    [[ $output != *house* ]]
}

@test "a case that fails: exit 1, and its output is shown whole" {
    program test_one <<<'printf "1..2\nok 1 - a\nnot ok 2 - b\n# 1 is not 2\n"; exit 1'
    run_tests
    [ "$status" -eq 1 ]
    grep -q '^    | # 1 is not 2$' <<<"$output"
    grep -q '^  units/test_one: 1 failed' <<<"$output"
    last_line_is '1 passed, 1 failed, 0 skipped'
}

@test "a skip is no pass, and its reason is told (as cmocka says it)" {
    program test_one <<<'printf "1..2\nok 1 - a\none CPU only\nnot ok 2 # SKIP b\n"'
    run_tests
    [ "$status" -eq 0 ]
    grep -q '^  units/test_one, b: one CPU only$' <<<"$output"
    last_line_is '1 passed, 0 failed, 1 skipped'
}

@test "a skip of bats, and one without a reason" {
    bats_file <<'END'
%test "good" { true; }
%test "none here" { skip "no card"; }
%test "silent" { skip; }
END
    run_tests --only 'cli/*'
    [ "$status" -eq 0 ]
    grep -q '^  cli/some, none here: no card$' <<<"$output"
    grep -q '^  cli/some, silent: no reason given$' <<<"$output"
    last_line_is '1 passed, 0 failed, 2 skipped'
}

@test "a bats case that fails" {
    bats_file <<<'%test "bad" { echo what I saw; false; }'
    run_tests --only 'cli/*'
    [ "$status" -eq 1 ]
    grep -q 'what I saw' <<<"$output"
    last_line_is '0 passed, 1 failed, 0 skipped'
}

@test "a program that crashes: what it had not told of has failed" {
    program test_one <<<'printf "1..3\nok 1 - a\n"; kill -SEGV $$'
    run_tests
    [ "$status" -eq 1 ]
    grep -q 'ended by signal 11' <<<"$output"
    last_line_is '1 passed, 2 failed, 0 skipped'
}

@test "a program that crashes before it says a word" {
    program test_one <<<'kill -ABRT $$'
    run_tests
    [ "$status" -eq 1 ]
    last_line_is '0 passed, 1 failed, 0 skipped'
}

@test "a program that hangs is stopped and has failed" {
    program test_one <<<'printf "1..2\nok 1 - a\n"; exec sleep 60'
    limit=1
    run_tests
    [ "$status" -eq 1 ]
    grep -q 'still running after 1 s' <<<"$output"
    last_line_is '1 passed, 1 failed, 0 skipped'
}

@test "a program that runs no case has failed" {
    program test_one <<<'exit 0'
    run_tests
    [ "$status" -eq 1 ]
    last_line_is '0 passed, 1 failed, 0 skipped'
}

@test "a program that fails though each case is good (a leak, say) has failed" {
    program test_one <<<'printf "1..1\nok 1 - a\n"; echo leaked >&2; exit 23'
    run_tests
    [ "$status" -eq 1 ]
    grep -q '| leaked$' <<<"$output"
    last_line_is '1 passed, 1 failed, 0 skipped'
}

@test "a group whose setup fails has failed" {
    program test_one <<<'printf "1..1\nnot ok 0 - g [  FAILED  ] GROUP SETUP\n# ok - g\n"; exit 1'
    run_tests
    [ "$status" -eq 1 ]
    last_line_is '0 passed, 1 failed, 0 skipped'
}

@test "a program that was not built has failed" {
    touch "$tree/tests/unit/test_gone.c"
    run_tests
    [ "$status" -eq 1 ]
    last_line_is '0 passed, 1 failed, 0 skipped'
}

@test "a build that fails has failed, though old programs pass" {
    program test_one <<<'printf "1..1\nok 1 - a\n"'
    printf '#!/bin/sh\necho "x.c:1: error: no"\nexit 2\n' >"$tree/make"
    chmod +x "$tree/make"
    fake_make=$tree/make
    run_tests
    [ "$status" -eq 1 ]
    grep -q 'x.c:1: error: no' <<<"$output"
    [[ ${lines[-1]} =~ ^1\ passed,\ [1-9][0-9]*\ failed,\ 0\ skipped$ ]]
}

@test "nothing to run is no success" {
    run_tests
    [ "$status" -eq 1 ]
    last_line_is '0 passed, 0 failed, 0 skipped'
}

@test "without cmocka, bats or plumb: skipped, with the reason" {
    printf 'HAVE_BATS := yes\n' >"$tree/build/config.mk"
    program test_one <<<'printf "1..1\nok 1 - a\n"'
    bats_file <<<'%test "good" { true; }'
    run_tests --only '*'
    [ "$status" -eq 0 ]
    grep -q 'units/test_one: cmocka is not installed' <<<"$output"
    [[ ${lines[-1]} =~ ^1\ passed,\ 0\ failed,\ [1-9][0-9]*\ skipped$ ]]
    printf 'HAVE_CMOCKA := yes\n' >"$tree/build/config.mk"
    echo '#include "harness/table.h"' >"$tree/tests/unit/test_one.c"
    run_tests --only '*'
    grep -q 'units/test_one: plumb is left out' <<<"$output"
    grep -q 'cli/some: bats is not installed' <<<"$output"
    [ "$status" -eq 1 ] # nothing was run at all
}

@test "a bats that is too old for these files: skipped, with the reason" {
    mkdir "$tree/tools"
    printf '#!/bin/sh\necho Bats 1.2.1\n' >"$tree/tools/bats"
    chmod +x "$tree/tools/bats"
    bats_file <<<'%test "good" { true; }'
    PATH="$tree/tools:$PATH" run_tests --only 'cli/*'
    grep -q '^  cli/some: bats 1.2.1 is too old: it takes 1.4$' <<<"$output"
    last_line_is '0 passed, 0 failed, 1 skipped'
}

@test "--only runs what matches, --list runs nothing" {
    program test_one <<<'printf "1..1\nok 1 - a\n"'
    program test_two <<<'exit 1'
    run_tests --only 'units/*one*'
    [ "$status" -eq 0 ]
    last_line_is '1 passed, 0 failed, 0 skipped'
    run_tests --list
    [ "$status" -eq 0 ]
    grep -qx 'units/test_two' <<<"$output"
}

# meeting NAME OTHER: a bats file that passes where the file OTHER runs beside it.
meeting()
{
    bats_file "$1" <<END
%test "meets $2" {
    touch "$tree/$1.here"
    for try in \$(seq 900); do
        [ ! -e "$tree/$2.here" ] || return 0
        sleep 0.1
    done
    false
}
END
}

# hermit NAME TAKES: a bats file that passes where none of its kind runs beside it.
hermit()
{
    bats_file "$1" <<END
# takes: $2
%test "alone" {
    mkdir "$tree/place"
    sleep 0.5
    rmdir "$tree/place"
}
END
}

@test "bats files run beside each other, as many as are asked for" {
    meeting one two
    meeting two one
    TEST_JOBS=2 run_tests --only 'cli/*'
    [ "$status" -eq 0 ] || { echo "$output"; false; }
    last_line_is '2 passed, 0 failed, 0 skipped'
}

@test "one file at once where that is asked for" {
    hermit one ''
    hermit two ''
    TEST_JOBS=1 run_tests --only 'cli/*'
    [ "$status" -eq 0 ]
    last_line_is '2 passed, 0 failed, 0 skipped'
}

# crowd NAME N [LINE]: a bats file that passes where N of its kind run at once.
crowd()
{
    bats_file "$1" <<END
${3-}
%test "with others" {
    touch "$tree/here.$1"
    for try in \$(seq 900); do
        [ "\$(find "$tree" -maxdepth 1 -name 'here.*' | wc -l)" -lt $2 ] || return 0
        sleep 0.1
    done
    false
}
END
}

@test "files that wait run beside as many as compute" {
    crowd one 4
    crowd two 4
    crowd three 4 '# waits: for time-outs'
    crowd four 4 '# waits: for peers'
    TEST_JOBS=2 run_tests --only 'cli/*'
    [ "$status" -eq 0 ] || { echo "$output"; false; }
    last_line_is '4 passed, 0 failed, 0 skipped'
}

@test "units that wait say so in C" {
    crowd one 3
    crowd two 3
    program test_three <<END
touch "$tree/here.three"
for try in \$(seq 900); do
    [ "\$(find "$tree" -maxdepth 1 -name 'here.*' | wc -l)" -lt 3 ] || exec printf '1..1\nok 1 - a\n'
    sleep 0.1
done
END
    echo '/* waits: for time-outs */' >"$tree/tests/unit/test_three.c"
    TEST_JOBS=2 run_tests --only '[cu]*i*/*'
    [ "$status" -eq 0 ] || { echo "$output"; false; }
    [[ ${lines[-1]} == '3 passed, 0 failed, '* ]]
}

@test "files that compute run no more at once than are asked for, and one at once is one, whether it waits or not" {
    local name
    for name in one two three; do
        hermit $name ''
        sed -i "s|mkdir \(.*\)|mkdir \1 2>/dev/null \|\| mkdir \1.2|; s|rmdir \(.*\)|rmdir \1.2 2>/dev/null \|\| rmdir \1|" \
            "$tree/tests/cli/$name.bats"
    done
    TEST_JOBS=2 run_tests --only 'cli/*'
    last_line_is '3 passed, 0 failed, 0 skipped'
    for name in one two three; do
        hermit $name ''
        sed -i 's/^# takes:.*/# waits: for time-outs/' "$tree/tests/cli/$name.bats"
    done
    TEST_JOBS=1 run_tests --only 'cli/*'
    last_line_is '3 passed, 0 failed, 0 skipped'
}

@test "tests run beside the build with sanitizers, and those that it builds after it" {
    echo 'HAVE_SANITIZERS := yes' >>"$tree/build/config.mk"
    mkdir -p "$tree/build-san/tests"
    program test_one <<<"touch '$tree/ran'; printf '1..1\\nok 1 - a\\n'"
    cat >"$tree/make" <<END
#!/bin/bash
[[ \$* == *SAN=1* ]] || exit 0
for try in \$(seq 900); do
    [[ ! -e $tree/ran ]] || break
    sleep 0.1
done
[[ -e $tree/ran ]] || exit 2
cp "$tree/build/tests/test_one" "$tree/build-san/tests/"
END
    chmod +x "$tree/make"
    fake_make=$tree/make
    TEST_JOBS=2 run_tests --only 'units*'
    [ "$status" -eq 0 ] || { echo "$output"; false; }
    grep -q '^ok    build/units-san .* built ' <<<"$output"
    last_line_is '2 passed, 0 failed, 0 skipped'
}

@test "two files that take the same do not run beside each other" {
    hermit one 'paper lab'
    hermit two 'lab'
    hermit three 'lab'
    TEST_JOBS=3 run_tests --only 'cli/*'
    [ "$status" -eq 0 ]
    last_line_is '3 passed, 0 failed, 0 skipped'
}

@test "nothing runs beside a file that takes the machine" {
    hermit one machine
    hermit two ''
    hermit three machine
    TEST_JOBS=3 run_tests --only 'cli/*'
    [ "$status" -eq 0 ]
    last_line_is '3 passed, 0 failed, 0 skipped'
}

# late NAME GOES: a bats file that passes from that go on, with a line of what it takes on stdin.
late()
{
    local takes
    takes=$(cat)
    bats_file "$1" <<END
$takes
%test "in time" {
    echo go >>"$tree/$1.goes"
    echo "${3-fell short}, this is go \$(wc -l <"$tree/$1.goes")"
    [ "\$(wc -l <"$tree/$1.goes")" -ge $2 ]
}
END
}

@test "a file that takes the machine is run once more where it fell short, that is said, and the second counts" {
    late one 2 <<<'# takes: machine'
    run_tests --only 'cli/*'
    [ "$status" -eq 0 ] || { echo "$output"; false; }
    grep -q '^again cli/one .* 1 fell short' <<<"$output"
    grep -q '    | .*fell short, this is go 1' <<<"$output"
    grep -q '^run twice:' <<<"$output"
    grep -q '^  cli/one: 1 fell short the first time, other guests took [0-9.]* % of the CPUs' <<<"$output"
    last_line_is '1 passed, 0 failed, 0 skipped'
}

@test "twice at most; and never one that does not take the machine" {
    late one 3 <<<'# takes: machine'
    late two 2 <<<'# takes: lab'
    run_tests --only 'cli/*'
    [ "$status" -eq 1 ]
    [ "$(wc -l <"$tree/one.goes")" -eq 2 ]
    [ "$(wc -l <"$tree/two.goes")" -eq 1 ]
    grep -q '    | .*this is go 2' <<<"$output"
    last_line_is '0 passed, 2 failed, 0 skipped'
}

@test "wrong data, a crash or a time-out is no noise: once, also of a file that takes the machine" {
    late wrong 2 'above the link' <<<'# takes: machine'
    late crash 2 <<<$'# takes: machine\n%test "dies" { echo fell short; kill -KILL $PPID $$; }'
    late both 2 <<<$'# takes: machine\n%test "another" { false; }'
    run_tests --only 'cli/*'
    [ "$status" -eq 1 ]
    [ "$(cat "$tree"/*.goes | wc -l)" -eq "$(find "$tree" -name '*.goes' | wc -l)" ]
    grep -q '^FAIL  cli/wrong' <<<"$output"
    grep -q '^FAIL  cli/crash' <<<"$output"
    grep -q '^FAIL  cli/both' <<<"$output"
}

@test "a test that leaves a file in the tree of a checkout has failed; the runner itself leaves none" {
    git -C "$tree" init -q
    printf 'build/\n' >"$tree/.gitignore"
    touch "$tree/known"
    git -C "$tree" add known .gitignore
    git -C "$tree" -c user.name=a -c user.email=a@b commit -qm a
    touch "$tree/mine"
    echo changed >"$tree/known"
    program test_one <<<'printf "1..1\nok 1 - a\n"'
    run_tests
    [ "$status" -eq 0 ]
    program test_two <<<'touch left.over; printf "1..1\nok 1 - b\n"'
    run_tests
    [ "$status" -eq 1 ]
    grep -q '^    | left in the tree by a test: left.over$' <<<"$output"
    last_line_is '2 passed, 1 failed, 0 skipped'
    rm "$tree/left.over"
    program test_two <<<'echo more >>known; printf "1..1\nok 1 - b\n"'
    run_tests
    [ "$status" -eq 1 ]
    grep -q '^    | left in the tree by a test: known ' <<<"$output"
}

@test "what other guests took of the CPUs is kept of each file, as a number" {
    program test_one <<<'printf "1..1\nok 1 - a\n"'
    run_tests
    grep -qx '[0-9]*\.[0-9]' "$tree/build/test-logs/units.test_one.log.steal"
}

@test "files that took longest are told, with the CPU time of what they started" {
    bats_file busy <<'END'
%test "busy" {
    awk 'BEGIN { for (i = 0; i < 20000000; i++) x += i }'
}
END
    bats_file idle <<<'%test "idle" { sleep 2; }'
    TEST_JOBS=2 run_tests --only 'cli/*'
    [ "$status" -eq 0 ] || { echo "$output"; false; }
    sed -n '/^longest/,/files$/p' <<<"$output" >"$tree/table"
    cat "$tree/table"
    [ "$(wc -l <"$tree/table")" -eq 5 ] # with the build, and their sum
    awk 'NR > 1 && NF == 3 { if (NR > 2 && $1 > last) exit 1; last = $1 }' "$tree/table"
    awk '$3 == "cli/busy" && $2 >= 0.2 { found = 1 } END { exit !found }' "$tree/table"
    awk '$3 == "cli/idle" && $1 >= 2 { found = 1 } END { exit !found }' "$tree/table"
}

@test "a fuzz target without seeds, and one that finds something, have failed" {
    printf 'HAVE_LIBFUZZER := yes\nPLUMB := yes\n' >"$tree/build/config.mk"
    mkdir -p "$tree/build-fuzz/fuzz" "$tree/tests/fuzz/corpus/bad"
    touch "$tree/tests/fuzz/fuzz_bad.c" "$tree/tests/fuzz/fuzz_bare.c" "$tree/tests/fuzz/corpus/bad/seed"
    printf '#!/bin/sh\necho "ERROR: heap-buffer-overflow"\nexit 77\n' >"$tree/build-fuzz/fuzz/fuzz_bad"
    printf '#!/bin/sh\necho "stat::number_of_executed_units: 9"\n' >"$tree/build-fuzz/fuzz/fuzz_bare"
    chmod +x "$tree"/build-fuzz/fuzz/*
    run_tests --only 'fuzz/*'
    [ "$status" -eq 1 ]
    grep -q 'heap-buffer-overflow' <<<"$output"
    grep -q 'no seeds in tests/fuzz/corpus/bare' <<<"$output"
    last_line_is '0 passed, 2 failed, 0 skipped'
}

@test "a fuzz target that tried nothing has failed, one that tried something passed" {
    printf 'HAVE_LIBFUZZER := yes\nPLUMB := yes\n' >"$tree/build/config.mk"
    mkdir -p "$tree/build-fuzz/fuzz" "$tree/tests/fuzz/corpus/idle" "$tree/tests/fuzz/corpus/good"
    touch "$tree"/tests/fuzz/{fuzz_idle.c,fuzz_good.c,corpus/idle/seed,corpus/good/seed}
    printf '#!/bin/sh\necho "stat::number_of_executed_units: 0"\n' >"$tree/build-fuzz/fuzz/fuzz_idle"
    printf '#!/bin/sh\necho "stat::number_of_executed_units: 9"\n' >"$tree/build-fuzz/fuzz/fuzz_good"
    chmod +x "$tree"/build-fuzz/fuzz/*
    run_tests --only 'fuzz/*'
    [ "$status" -eq 1 ]
    last_line_is '1 passed, 1 failed, 0 skipped'
}
