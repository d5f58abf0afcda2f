#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016,SC2086,SC2154 # the guest's shell expands it; bats sets stderr
# scripts/lab-rdma: a guest with RDMA devices, and how it ends.

# takes: guest
load ../cli/common
load env

setup_file() {
    cd "$BATS_TEST_DIRNAME/../.." || exit
    guest_setup
}

setup() {
    cd "$BATS_TEST_DIRNAME/../.." || exit
    job=$BATS_TEST_TMPDIR/job
    mkdir -p "$job"
    export XDG_RUNTIME_DIR=$BATS_TEST_TMPDIR # where this test's runs have their folders
}

# guest [OPTIONS --] COMMAND...: output and stderr apart.
guest() {
    local options=(--timeout 250)
    while [[ ${1-} == --* ]]; do
        options+=("$1" "$2")
        shift 2
    done
    run --separate-stderr scripts/lab-rdma run "${options[@]}" "$job" -- "$@"
}

# qemu of this test, by the folder that it was given.
running() { pgrep -f "qemu-system.*[p]ath=$job," >/dev/null; }

not_running() { ! running; }

# No process and no folder is left.
nothing_left() {
    in_time 300 not_running && [ ! -e "$XDG_RUNTIME_DIR/plumb-lab-$UID" ]
}

@test "wrong usage ends with 2; without setup, too, and it says to run that" {
    local words
    for words in '' run "run $job" "run --cpus none $job -- true" "run --nosuch 1 $job -- true" "run $job/none -- true"; do
        run -2 scripts/lab-rdma $words
    done
    run -0 scripts/lab-rdma --help
    command -v qemu-system-x86_64 >/dev/null || skip 'qemu-system-x86 is not installed'
    XDG_CACHE_HOME=$BATS_TEST_TMPDIR/none told 2 'scripts/lab-rdma setup' scripts/lab-rdma run "$job" -- true
}

@test "a guest has its devices, each on a link, writes to the job folder alone, and its command's output and status come out" {
    lab_guest
    guest --devices 2 --mtu 1500 sh -c 'cat /sys/class/infiniband/rxe0/ports/1/state; ulimit -l; echo "$1" >made
        touch /usr/no 2>/dev/null || echo read-only
        ip -4 -br addr show dummy1; cat /sys/class/net/dummy1/mtu; ls /sys/class/infiniband
        echo aside >/dev/stderr; exit 7' sh 'two  words $x'
    [ "$status" -eq 7 ]
    [ "$(printf '%s\n' "${lines[@]:0:3}")" = '4: ACTIVE
unlimited
read-only' ]
    [[ ${lines[3]} == dummy1*10.0.1.1/24* ]]
    [ "$(printf '%s\n' "${lines[@]:4}")" = '1500
rxe0
rxe1' ]
    [ "$stderr" = aside ]
    [ "$(cat "$job/made")" = 'two  words $x' ]
    [ "$(ls -A "$job")" = made ]
    nothing_left
}

@test "a guest that dies: 125, with its last words" {
    lab_guest
    exits 125 guest sh -c 'echo before; echo c >/proc/sysrq-trigger; sleep 1000'
    [ "$output" = before ]
    [[ $stderr == *panic* ]]
    nothing_left
}

@test "a command that does not end: 124 in time" {
    local began seconds
    lab_guest
    for seconds in 15 40 100; do # until the guest has come up by then
        began=$SECONDS
        exits 124 guest --timeout "$seconds" sh -c 'echo begun; exec sleep 1000'
        [[ $stderr == *" after $seconds s"* ]]
        ((SECONDS - began < seconds + 25))
        [ ! "$output" ] || break
    done
    [ "$output" = begun ]
    nothing_left
}

# fake_qemu HANGING: a qemu in $PATH whose first so many boots hang before the guest says anything; it counts all boots in $boots.
fake_qemu() {
    local real
    real=$(command -v qemu-system-x86_64)
    boots=$BATS_TEST_TMPDIR/boots
    mkdir -p "$BATS_TEST_TMPDIR/path"
    script "$BATS_TEST_TMPDIR/path/qemu-system-x86_64" <<END
#!/bin/sh
echo booted >>"$boots"
[ "\$(wc -l <"$boots")" -gt $1 ] || exec sleep 1000
exec "$real" "\$@"
END
    PATH=$BATS_TEST_TMPDIR/path:$PATH
}

@test "a guest that hangs in its boot is booted afresh, and its command runs once" {
    lab_guest
    fake_qemu 1
    guest --silent 20 sh -c 'echo ran >>ran; echo aside >&2; exit 7'
    echo "$status: $output; $stderr"
    [ "$status" -eq 7 ]
    [ "$(cat "$job/ran")" = ran ]
    [ "$(wc -l <"$boots")" -eq 2 ]
    [[ $stderr == *" 20 s"*aside ]]
    nothing_left
}

@test "a guest that always hangs in its boot: three boots, all within --timeout" {
    local began=$SECONDS
    lab_guest
    fake_qemu 1000
    guest --silent 1 --timeout 6 sh -c 'echo ran >>ran'
    echo "$status: $output; $stderr"
    [ "$status" -eq 124 ]
    ((SECONDS - began < 60))
    [ "$(wc -l <"$boots")" -eq 3 ]
    [[ $stderr == *" 2"*" after 6 s"* ]]
    [ ! -e "$job/ran" ]
    nothing_left
}

@test "a boot that is given up just as it ends: the command runs once all the same" {
    lab_guest
    fake_qemu 0
    for _ in 1 2 3; do # a second of silence: each boot may be given up, or none
        guest --silent 1 sh -c 'echo ran >>ran; sleep 2'
        echo "$status: $output; $stderr"
        [ "$status" -eq 0 ]
        [ "$(cat "$job/ran")" = ran ]
        rm "$job/ran"
    done
    nothing_left
}

@test "killed before the guest opens its output: no reader of it stays" {
    local pid signal
    lab_guest
    fake_qemu 1000
    reads() { pgrep -f "^cat $XDG_RUNTIME_DIR/[p]lumb-lab" >/dev/null; }
    not_reads() { ! reads; }
    for signal in TERM KILL; do
        scripts/lab-rdma run "$job" -- true 3>&- &
        pid=$!
        in_time 300 test -e "$boots"
        reads
        rm "$boots"
        kill -$signal "$pid"
        wait "$pid" || true
        in_time 300 not_reads
    done
}

@test "killed by TERM or by KILL: no guest stays; the next run tidies up, and what it leaves running does not keep its guest up" {
    local pid signal
    lab_guest
    for signal in TERM KILL; do
        scripts/lab-rdma run "$job" -- sleep 1000 3>&- &
        pid=$!
        in_time 300 running
        kill -$signal "$pid"
        wait "$pid" || true
        in_time 300 not_running
    done
    [ -e "$XDG_RUNTIME_DIR/plumb-lab-$UID" ] # nobody can tidy up after KILL
    guest sh -c 'sleep 1000 & echo done'
    echo "$status: $output; $stderr"
    [ "$status" -eq 0 ]
    [ "$output" = 'done' ]
    nothing_left
}

@test "with-build: this checkout's programs run by the names that they have here, and all of a long output comes out" {
    lab_guest
    [[ -x build/bin/plumb-null ]] || skip 'build/bin/plumb-null is not built'
    run -0 --separate-stderr scripts/lab-rdma with-build --timeout 100 -- sh -c 'pwd; build/bin/plumb-null --version; command -v plumb-null; seq 100000'
    [ "${lines[0]}" = /job ]
    [ "${lines[1]}" = "$(build/bin/plumb-null --version | head -n 1)" ]
    [ "$(grep -nx /job/build/bin/plumb-null <<<"$output" | cut -d: -f1)" -eq $((${#lines[@]} - 100000)) ]
    [ "${lines[-100000]}" = 1 ]
    [ "${lines[-1]}" = 100000 ]
}

@test "siw: iWARP, where it was set up" {
    local why
    lab_guest
    why=$(guest_siw) || skip "$why"
    run -0 --separate-stderr scripts/lab-rdma run --siw --timeout 100 "$job" -- ls /sys/class/infiniband
    [ "$output" = siw0 ]
}

@test "siw: where its source cannot be downloaded, setup says so, and the guest stays as it was" {
    local cache=$BATS_TEST_TMPDIR/cache/plumbline/lab-rdma
    lab_guest
    mkdir -p "${cache%/*}" "$BATS_TEST_TMPDIR/path"
    cp -al "${XDG_CACHE_HOME:-$HOME/.cache}/plumbline/lab-rdma" "$cache"
    find "$cache" -name 'siw.ko*' -delete
    printf '#!/bin/sh\nexit 100\n' | script "$BATS_TEST_TMPDIR/path/apt-get"
    export XDG_CACHE_HOME=$BATS_TEST_TMPDIR/cache PATH=$BATS_TEST_TMPDIR/path:$PATH
    run -2 scripts/lab-rdma setup --siw
    guest_setup
    lab_guest
    run -1 guest_siw
    [[ $output == siw* ]]
    run -2 scripts/lab-rdma run --siw "$job" -- true
    [[ $output == *'scripts/lab-rdma setup --siw' ]]
}
