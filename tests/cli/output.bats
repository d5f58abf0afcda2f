#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2086 # options in one variable are several words
# An output that cannot be written is exit 4 with the true cause, whatever was to be written; and what a program does that was started oddly.

load common

setup()
{
    cd "$BATS_TEST_TMPDIR" || exit
    top=$BATS_TEST_DIRNAME/../..
    bin=$(cd "$top" && cd "${PLUMB_BIN:-build/bin}" && pwd)
    printf 'suite: one\nabout: one case\ndefaults: {repeat: 2, budget: 2ms, warmup: 1ms}\ncases:\n  - {bench: "null", number: 1}\n' >one.yaml
    quick="--budget 2ms --warmup 1ms --min-samples 1"
}

# lost PROGRAM WORDS: exits with 4, and says why on stderr; its stdout is a full disk.
lost()
{
    ends 4 timeout 100 "$bin/$1" "${@:2}" >/dev/full 2>err </dev/null || { cat err && return 1; }
    grep -q 'No space left' err || { cat err && return 1; }
}

@test "stdout on a full disk: exit 4 and why, of every command and of every benchmark's forms" {
    local command
    "$bin/plumb" run one.yaml --out r --no-report
    "$bin/plumb" run one.yaml --out s --no-report
    lost plumb --help
    lost plumb --version
    for command in run report compare check history forecast import probe doctor list; do
        lost plumb $command --help
    done
    lost plumb list
    lost plumb run one.yaml --dry-run
    lost plumb report r
    lost plumb compare r s
    lost plumb check r --baseline s
    lost plumb history r s
    lost plumb probe
    lost plumb probe --json
    lost plumb doctor
    for command in --csv --json --help --version --describe ''; do
        lost plumb-null $quick $command
    done
}

@test "a file on a full disk: exit 4 and why" {
    local option
    "$bin/plumb" run one.yaml --out r --no-report
    "$bin/plumb" run one.yaml --out s --no-report
    for option in html markdown csv json; do
        told 4 'No space left' "$bin/plumb" compare r s --$option /dev/full
    done
    for option in markdown json junit; do
        told 4 'No space left' "$bin/plumb" check r --baseline s --$option /dev/full
    done
    run -4 "$bin/plumb" history r s --csv /dev/full
    run -4 "$bin/plumb" report r --markdown /dev/full
    run -4 "$bin/plumb" report r --out nowhere/report
    [[ $output != *"plumb run"* ]]
    for option in output samples; do
        told 4 'No space left' "$bin/plumb-null" $quick --$option /dev/full
    done
}

@test "a page of a history goes into a pipe that is there, and does not replace it" {
    "$bin/plumb" run one.yaml --out r --no-report
    mkfifo page
    timeout 60 cat page >received &
    "$bin/plumb" history r --html page
    wait $!
    [ -p page ]
    grep -q '</html>' received
}

@test "closed standard streams: exit 4, and no file takes their place" {
    ends 4 "$bin/plumb-null" $quick --csv --samples samples >&- 2>err
    [ "$(head -n 1 samples)" = repeat,row,value,origin,disturbed ]
    "$bin/plumb-null" $quick --csv -O rows <&- >&- 2>&-
    [ "$(wc -l <rows)" -eq 2 ]
}

@test "whatever it was started with: no HOME, signals blocked, SIGCHLD ignored, umask 0777, few open files" {
    # shellcheck disable=SC2016 # the words are python's
    python3 - "$bin/plumb" <<'END'
import os, resource, signal, sys
def odd():
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD, signal.SIGALRM, signal.SIGTERM, signal.SIGINT})
    os.umask(0o777)
    resource.setrlimit(resource.RLIMIT_NOFILE, (24, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
import subprocess
done = subprocess.run([sys.argv[1], "run", "one.yaml", "--out", "odd", "--no-report"], preexec_fn=odd, env={}, timeout=100)
assert done.returncode == 0, done
assert len(open("odd/null.csv").readlines()) == 3
assert os.stat("odd").st_mode & 0o700 == 0o700 # root needs no mode
END
}

@test "a limit of file sizes is an error of the write, not a silent end" {
    told 4 'File too large' prlimit --fsize=100 "$bin/plumb" run one.yaml --out small --no-report
}

@test "where nothing was made there is nothing to go on with" {
    [ -w /dev/full ] && [ "$(id -u)" -eq 0 ] || skip "it takes root to mount a small disk"
    mkdir tiny
    mount -t tmpfs -o size=4k none tiny || skip "nothing can be mounted here"
    echo full >tiny/full
    local status=0
    ends 4 "$bin/plumb" run one.yaml --out tiny/r 2>err || status=1
    umount tiny
    [ "$status" -eq 0 ]
    grep -q 'No space left' err
    [ "$(grep -c -e --resume err)" -eq 0 ]
}

@test "loopback that is down is named" {
    unshare -rn true 2>/dev/null || skip "no namespace can be made here"
    told 0 "'lo'" unshare -rn "$bin/plumb-net" --transport tcp --pattern latency --size 8 --budget 2ms --warmup 1ms --csv
}
