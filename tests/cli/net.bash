# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154 # tests read what setup sets
# What the files of tests of this name share: net.bats, net-long.bats.

setup()
{
    cd "$BATS_TEST_DIRNAME/../.." || exit
    bin=${PLUMB_BIN:-$PWD/build/bin}/plumb-net
    out=$BATS_TEST_TMPDIR/out err=$BATS_TEST_TMPDIR/err secret=$BATS_TEST_TMPDIR/secret
    quick="--csv --budget 200ms --warmup 50ms"
    (umask 077 && echo "a secret of more than 16 characters" >"$secret")
    port=$((20000 + (BASHPID % 20000)))
    unset PLUMB_SECRET_FILE
}

teardown()
{
    if [ -n "${server:-}" ]; then
        kill -9 "$server" 2>/dev/null || true
    fi
}

net() { measure "$@"; }

# serve: a listener in the background, ready when this returns; sets server.
serve()
{
    "$bin" --listen loopback --port "$port" --secret-file "$secret" "$@" 2>"$BATS_TEST_TMPDIR/served" 3>&- &
    server=$!
    for _ in $(seq 6000); do
        grep -q "listening on" "$BATS_TEST_TMPDIR/served" && return
        sleep 0.1
    done
    cat "$BATS_TEST_TMPDIR/served"
    return 1
}

# of COLUMN VALUE COLUMN: cells of the second column in rows where the first has that value.
of() { paste -d'|' <(cells "$1") <(cells "$3") | awk -F'|' -v v="$2" '$1 == v { print $2 }'; }

no_process() {
    for _ in $(seq 6000); do
        pgrep -f "^$bin .*$1" >/dev/null || return 0
        sleep 0.1
    done
    pgrep -fa "^$bin .*$1"
    return 1
}
