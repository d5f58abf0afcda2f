# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154 # tests read what setup sets
# What the files of tests of this name share: crosscheck.bats, crosscheck-long.bats.

setup()
{
    cd "$BATS_TEST_DIRNAME/../.." || exit
    top=$PWD
    work=$BATS_TEST_TMPDIR/w
    mkdir -p "$work/bin" "$work/path"
    cp "${PLUMB_BIN:-build/bin}/plumb" tests/witness/plumb-net "$work/bin/" # our programs are looked for beside plumb
    cp tests/witness/plumb-net "$work/bin/plumb-allreduce"
    cp tests/witness/plumb-net "$work/bin/plumb-copy"
    plumb=$work/bin/plumb
    export FAKE_LOG=$work/log FAKE_OURS=1 FAKE_VALUE=8e9
    : >"$FAKE_LOG"
    out=$BATS_TEST_TMPDIR/out err=$BATS_TEST_TMPDIR/err
}

# fakes NAME...: witnesses on PATH.
fakes()
{
    local name
    for name; do
        cp "$top/tests/witness/fake" "$work/path/$name"
    done
}

# check ARGUMENTS...: with none but the fakes on PATH; sets status, and leaves stdout and stderr in $out and $err.
check()
{
    status=0
    PATH=$work/path:$tools timeout 1000 "$plumb" crosscheck --seconds 1 --out "$work/results" "$@" >"$out" 2>"$err" \
        </dev/null || status=$?
}

# What the fakes themselves need, without this machine's own witnesses.
setup_file()
{
    tools=$BATS_FILE_TMPDIR/tools
    export tools
    mkdir -p "$tools"
    ln -s "$(python3 -c 'import os; print(os.path.realpath("/proc/self/exe"))')" "$tools/python3"
    ln -s "$(command -v env)" "$(command -v sh)" "$(command -v timeout)" "$(command -v sleep)" "$tools/"
}

# nothing_left: no process of the fakes is there any more.
nothing_left()
{
    for _ in $(seq 6000); do
        ! pgrep -f "$work/path/" >"$BATS_TEST_TMPDIR/left" && return
        sleep 0.1
    done
    cat "$BATS_TEST_TMPDIR/left"
    return 1
}

# says PATTERN: the output, its lines joined.
says()
{
    tr -s ' \n' ' ' <"$out" | grep -q -- "$1" || {
        cat "$out" "$err"
        return 1
    }
}
