# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154 # tests read what setup sets
# What the files of tests of this name share: net.bats, net-long.bats.

setup()
{
    paths_of net
    secret=$BATS_TEST_TMPDIR/secret
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
    in_time 600 grep -q "listening on" "$BATS_TEST_TMPDIR/served" || { cat "$BATS_TEST_TMPDIR/served" && return 1; }
}

# of COLUMN VALUE COLUMN: cells of the second column in rows where the first has that value.
of() { paste -d'|' <(cells "$1") <(cells "$3") | awk -F'|' -v v="$2" '$1 == v { print $2 }'; }

no_process() { in_time 600 eval "! pgrep -fa '^$bin .*$1'"; }
