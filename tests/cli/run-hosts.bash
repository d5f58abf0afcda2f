# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154 # tests read what setup sets
# What the files of tests of this name share: run-hosts.bats, run-hosts-long.bats; and run-cluster.bats.

# An empty folder with a stand-in for ssh. A host may have commands of its own in fake/HOST, and a plumb and benchmarks in other/HOST.
hosts_here() {
    top="$(cd "$BATS_TEST_DIRNAME/../.." && pwd)"
    bin="${PLUMB_BIN:-$top/build/bin}"
    plumb="$bin/plumb"
    work="$(mktemp -d)"
    cd "$work" || return 1
    export TMPDIR="$work/tmp"
    mkdir tmp bin # the command line of what this test starts holds $work: it is how leftovers are found
    ln -s "$bin/plumb" bin/plumb
    script rsh <<'END'
#!/bin/sh
host=$1
shift
echo "$host" >> called
case $host in
gone) echo "rsh: connect to host gone: No route to host" >&2; exit 255 ;;
mute) exec sleep 300 ;;
esac
[ -d "fake/$host" ] && PATH=$PWD/fake/$host:$PATH
[ -d "other/$host" ] && set -- "$(echo "$*" | sed "s:$PWD/bin/:$PWD/other/$host/:g")"
exec sh -c "$*"
END
}

setup() {
    hosts_here || return 1
    export out="$work/r/net.csv"
    ln -s "$bin"/plumb-net bin/plumb-net
    printf 'alpha slots=2 address=127.0.0.1\nbeta address=127.0.0.1\n' > hosts
    suite '{bench: net, transport: tcp, pattern: latency, size: [8, 64], no-cpu: "true"}'
}

suite() { # suite CASE...: t.yaml
    printf 'suite: t\nabout: a test\ndefaults: {repeat: 1, budget: 20ms, warmup: 20ms}\ncases:\n' > t.yaml
    printf '  - %s\n' "$@" >> t.yaml
}

teardown() {
    cd / || return 1
    [ -z "$work" ] || pkill -KILL -f "$work/" || true # what a test that failed left running
    rm -rf "$work"
}

over_hosts() { # over_hosts [OPTION...]: into r
    "$plumb" run t.yaml --hosts hosts --rsh ./rsh --remote-dir "$work/bin" --host-wait 5m --out r --no-report "$@"
}

# secrets_of CONNECTIONS SECRETS COMMAND...: over so many connections it sends so many secrets, which are on no command line and in no file.
secrets_of() {
    script rsh <<'END'
#!/bin/sh
shift
echo "$*" >> commands
tee -a secrets | sh -c "$*"
END
    "${@:3}" || return 1
    [ "$(grep -cE '^[0-9a-f]{64}$' secrets) $(sort -u secrets | wc -l)" = "$1 $2" ] || { cat secrets && return 1; }
    ! grep -rlFf secrets commands r tmp
}

left_over() { pgrep -f "$work/bin/plumb-net"; }

none_left() { # an agent asks, waits and kills
    in_time 1800 eval '! left_over > /dev/null' || { left_over -a && return 1; }
}

# agent_of FIRST: the process that holds the connection to the host of this rank.
agent_of() { pgrep -f "^$work/bin/plumb agent .*\"first\":$1,"; }
