#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016 # the made-up tests expand it
# sanitizers: no, since it starts no program of the build
# scripts/run-tests on made-up test programs: what counts as passed, failed and skipped, tiers, order, and its last line.

load common

setup()
{
    tree=$BATS_TEST_TMPDIR/tree
    mkdir -p "$tree/scripts" "$tree/build/tests" "$tree/tests/unit" "$tree/tests/cli" "$tree/tests/labs" "$tree/tests/fuzz"
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

# bats_file FOLDER/NAME: a bats file of what stdin says, where %test stands for what would begin a case of this very file.
bats_file()
{
    sed 's/^%/@/' >"$tree/tests/$1.bats"
}

run_tests()
{
    run env MAKE="${fake_make:-true}" TEST_TIMEOUT="${limit:-600}" FUZZ_SECONDS=1 "$tree/scripts/run-tests" "$@" </dev/null
    echo "$output"
}

last_line_is()
{
    [ "${lines[-1]}" = "$1" ]
}

# sums_up LINE ARGUMENTS...: what is run ends with this line
sums_up()
{
    run_tests "${@:2}"
    last_line_is "$1"
}

says()
{
    grep -qE -- "$1" <<<"$output"
}

@test "passes, failures and skips of cmocka and bats are counted; a failure's output and a skip's reason are shown" {
    program test_one <<<'printf "1..3\nok 1 - a\nnot ok 2 - b\n# 1 is not 2\none CPU only\nnot ok 3 # SKIP c\n"; exit 1'
    bats_file cli/some <<'END'
%test "good" { true; }
%test "none here" { skip "no card"; }
%test "silent" { skip; }
%test "bad" { echo what I saw; false; }
END
    exits 1 run_tests
    says '^    \| # 1 is not 2$'
    says 'what I saw'
    says 'test_one, c: one CPU only$'
    says 'cli/some, none here: no card$'
    says 'cli/some, silent: '
    last_line_is '2 passed, 2 failed, 3 skipped'
}

@test "a program that crashes, dies silently, runs no case, fails though its cases pass, or was not built has failed" {
    program test_crash <<<'printf "1..3\nok 1 - a\n"; kill -SEGV $$'
    program test_dies <<<'kill -ABRT $$'
    program test_empty <<<'exit 0'
    program test_leak <<<'printf "1..1\nok 1 - a\n"; echo leaked >&2; exit 23'
    program test_setup <<<'printf "1..1\nnot ok 0 - g [  FAILED  ] GROUP SETUP\n# ok - g\n"; exit 1'
    touch "$tree/tests/unit/test_gone.c"
    exits 1 run_tests
    says 'ended by signal 11'
    says '\| leaked$'
    last_line_is '2 passed, 7 failed, 0 skipped'
}

@test "a program that hangs is stopped and has failed, with all that it started" {
    program test_one <<END
printf "1..2\nok 1 - a\n"
sleep 3000 &
echo \$! >"$tree/pid"
wait
END
    limit=1 exits 1 run_tests
    says 'after 1 s'
    last_line_is '1 passed, 1 failed, 0 skipped'
    while kill -0 "$(cat "$tree/pid")" 2>/dev/null; do sleep 0.1; done
}

@test "a build that fails has failed, though old programs pass; nothing to run is no success" {
    exits 1 run_tests
    last_line_is '0 passed, 0 failed, 0 skipped'
    program test_one <<<'printf "1..1\nok 1 - a\n"'
    printf '#!/bin/sh\necho "x.c:1: error: no"\nexit 2\n' | script "$tree/make"
    fake_make=$tree/make exits 1 run_tests
    says 'x.c:1: error: no'
    last_line_is '1 passed, 1 failed, 0 skipped'
}

@test "without cmocka or bats, or with a bats that is too old: skipped, with the reason" {
    printf 'HAVE_BATS := yes\n' >"$tree/build/config.mk"
    program test_one <<<'printf "1..1\nok 1 - a\n"'
    bats_file cli/some <<<'%test "good" { true; }'
    exits 0 run_tests
    says 'units/test_one: cmocka '
    printf 'HAVE_CMOCKA := yes\n' >"$tree/build/config.mk"
    run_tests
    says 'cli/some: bats '
    printf 'HAVE_BATS := yes\n' >"$tree/build/config.mk"
    mkdir "$tree/tools"
    printf '#!/bin/sh\necho Bats 1.2.1\n' | script "$tree/tools/bats"
    PATH="$tree/tools:$PATH" run_tests --only cli/some
    says 'cli/some: bats 1.2.1 '
    last_line_is '0 passed, 0 failed, 1 skipped'
}

@test "the short tier, the long one, one line over both; --only looks in both, --list runs nothing" {
    printf 'HAVE_SANITIZERS := yes\n' >>"$tree/build/config.mk"
    bats_file cli/quick <<<'%test "a" { [[ ${PLUMB_BIN-} != */tree/build-san/bin || $ASAN_OPTIONS == *log_path* ]]; }'
    bats_file cli/slow <<<$'# tier: long\n%test "b" { true; }'
    bats_file labs/big <<<'%test "c" { true; }'
    bats_file labs/small <<<$'# tier: short\n# sanitizers: no, as a lab\n%test "d" { true; }'
    sums_up '3 passed, 1 failed, 0 skipped' --tier long --add # before the short one
    run_tests
    says 'make test-all'
    last_line_is '2 passed, 0 failed, 0 skipped'
    run_tests --tier long --add
    says '^ok    san/quick'
    last_line_is '5 passed, 0 failed, 0 skipped'
    sums_up '1 passed, 0 failed, 0 skipped' --only big
    run_tests --list
    [ "$output" = $'cli/quick\nlabs/small' ]
}

@test "what a sanitizer reports fails a test whose cases all pass" {
    printf 'HAVE_SANITIZERS := yes\n' >>"$tree/build/config.mk"
    bats_file cli/quick <<<'%test "a" { [ ! "${PLUMB_SAN_LOG-}" ] || echo heap-use-after-free >"$PLUMB_SAN_LOG.77"; }'
    exits 1 run_tests --only '*quick'
    says 'FAIL  san/quick'
    says '\| # heap-use-after-free'
    last_line_is '2 passed, 1 failed, 0 skipped'
}

@test "--repeat runs each so many times and says how often it passed; --busy burns all CPUs meanwhile" {
    program test_one <<END
echo go >>"$tree/goes"
printf '1..1\n%s 1 - a\n' "\$([ "\$(wc -l <"$tree/goes")" -eq 2 ] && echo not ok || echo ok)"
pgrep -c -f 'while kill -0' >>"$tree/loops"
END
    TEST_JOBS=1 exits 1 run_tests --only test_one --repeat 3 --busy
    says 'units/test_one: 2 of 3 passed'
    [ "$(head -n 1 "$tree/loops")" -ge "$(nproc)" ]
}

# crowd NAME N [LINE]: a bats file that passes where N of its kind run at once; it waits for them 90 s.
crowd()
{
    bats_file "cli/$1" <<END
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

# hermit NAME LINE: a bats file that passes where none of its kind runs beside it.
hermit()
{
    bats_file "cli/$1" <<END
$2
%test "alone" {
    mkdir "$tree/place"
    sleep 0.5
    rmdir "$tree/place"
}
END
}

@test "as many files at once as are asked for, and those that wait besides" {
    crowd one 4
    crowd two 4
    crowd three 4 '# waits: for time-outs'
    crowd four 4 '# waits: for peers'
    TEST_JOBS=2 sums_up '4 passed, 0 failed, 0 skipped'
    rm "$tree"/tests/cli/*
    hermit one ''
    hermit two '# waits: for peers'
    TEST_JOBS=1 sums_up '2 passed, 0 failed, 0 skipped'
}

@test "two files that take the same, or one that takes the machine, do not run beside others" {
    hermit one '# takes: paper lab'
    hermit two '# takes: lab'
    TEST_JOBS=3 sums_up '2 passed, 0 failed, 0 skipped'
    hermit one '# takes: machine'
    hermit two ''
    TEST_JOBS=3 sums_up '2 passed, 0 failed, 0 skipped'
}

# late NAME GOES LINE [WORDS]: a bats file that passes from that go on.
late()
{
    bats_file "cli/$1" <<END
$3
%test "in time" {
    echo go >>"$tree/$1.goes"
    echo "${4-fell short}, this is go \$(wc -l <"$tree/$1.goes")"
    [ "\$(wc -l <"$tree/$1.goes")" -ge $2 ]
}
END
}

@test "only a file that takes the machine and fell short is run once more; beside other work it is then skipped" {
    late one 2 '# takes: machine'
    late wrong 2 '# takes: machine' 'above the link'
    late two 2 '# takes: lab'
    run_tests
    says '^again cli/one .* 1 fell short'
    [ "$(cat "$tree"/*.goes | wc -l)" -eq 4 ]
    last_line_is '1 passed, 2 failed, 0 skipped'
    rm "$tree"/tests/cli/* "$tree"/*.goes
    late one 3 '# takes: machine'
    sed -i 's/^    echo go/    sleep 2\n&/' "$tree/tests/cli/one.bats" # time to see what others take
    run_tests --busy
    [ "$(wc -l <"$tree/one.goes")" -eq 2 ]
    says 'cli/one: .* twice, .*[0-9]+ % of the CPUs'
    last_line_is '0 passed, 0 failed, 1 skipped'
}

@test "a test that leaves or changes a file in the tree of a checkout has failed; the runner itself leaves none" {
    git -C "$tree" init -q
    printf 'build/\n' >"$tree/.gitignore"
    touch "$tree/known"
    git -C "$tree" add known .gitignore
    git -C "$tree" -c user.name=a -c user.email=a@b commit -qm a
    touch "$tree/mine"
    echo changed >"$tree/known"
    program test_one <<<'printf "1..1\nok 1 - a\n"'
    exits 0 run_tests
    program test_two <<<'touch left.over; echo more >>known; printf "1..1\nok 1 - b\n"'
    exits 1 run_tests
    says "a test left 'left.over'"
    says "a test left 'known "
    last_line_is '2 passed, 1 failed, 0 skipped'
}

@test "the slowest files are listed, with the CPU time of what they started" {
    bats_file cli/busy <<'END'
%test "busy" {
    awk 'BEGIN { for (i = 0; i < 20000000; i++) x += i }'
}
END
    bats_file cli/idle <<<'%test "idle" { sleep 2; }'
    TEST_JOBS=2 run_tests
    awk '$3 == "cli/busy" && $2 >= 0.2 { found = 1 } END { exit !found }' <<<"$output"
    awk '$3 == "cli/idle" && $1 >= 2 { found = 1 } END { exit !found }' <<<"$output"
    says '^build [0-9]+ s \([0-9]+ CPU s\), tests [0-9]+ s \([0-9]+ CPU s\)$'
}

@test "a fuzz target that found something, has no seeds or tried nothing has failed" {
    printf 'HAVE_LIBFUZZER := yes\nPLUMB := yes\n' >"$tree/build/config.mk"
    mkdir -p "$tree/build-fuzz/fuzz" "$tree"/tests/fuzz/corpus/{bad,idle,good}
    touch "$tree"/tests/fuzz/fuzz_{bad,bare,idle,good}.c "$tree"/tests/fuzz/corpus/{bad,idle,good}/seed
    printf '#!/bin/sh\necho "ERROR: heap-buffer-overflow"\nexit 77\n' >"$tree/build-fuzz/fuzz/fuzz_bad"
    printf '#!/bin/sh\necho "stat::number_of_executed_units: 0"\n' >"$tree/build-fuzz/fuzz/fuzz_idle"
    for name in bare good; do
        printf '#!/bin/sh\necho "stat::number_of_executed_units: 9"\n' >"$tree/build-fuzz/fuzz/fuzz_$name"
    done
    chmod +x "$tree"/build-fuzz/fuzz/*
    exits 1 run_tests --only 'fuzz/*'
    says 'heap-buffer-overflow'
    says 'tests/fuzz/corpus/bare'
    last_line_is '1 passed, 3 failed, 0 skipped'
}
