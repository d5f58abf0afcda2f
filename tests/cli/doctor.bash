# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154 # tests read what setup sets
# What the files of tests of this name share: doctor.bats, doctor-long.bats.

setup_file()
{
    make -s -C "$BATS_TEST_DIRNAME/../.." machines
}

setup()
{
    cd "$BATS_TEST_DIRNAME/../.." || exit
    plumb=${PLUMB:-$(realpath "${PLUMB_BIN:-build/bin}")/plumb} machines=build/machines
    out=$BATS_TEST_TMPDIR/out err=$BATS_TEST_TMPDIR/err
}

# doctor ARGUMENTS...: sets status, and leaves stdout and stderr in $out and $err.
doctor()
{
    status=0
    "$plumb" doctor "$@" >"$out" 2>"$err" </dev/null || status=$?
}

# found CHECK: how many findings it has in $out, which is of --json.
found()
{
    python3 -c 'import json, sys; print(sum(r["check"] == sys.argv[2] and r["state"] == "found"
        for r in json.load(open(sys.argv[1]))["results"]))' "$out" "$1"
}

# hosts_of_trees HOST=MACHINE...: hosts by a stand-in for ssh; plumb on each of them sees a copy of the machine's tree.
hosts_of_trees()
{
    cd "$BATS_TEST_TMPDIR" || return 1
    mkdir bin trees
    for pair; do
        cp -r "$top/$machines/${pair#*=}/root" "trees/${pair%%=*}"
        echo "${pair%%=*}" >>hosts
    done
    cat >rsh <<END
#!/bin/sh
host=\$1
shift
[ "\$host" != gone ] || { echo "no route to host" >&2; exit 255; }
HOST=\$host exec sh -c "\$*"
END
    cat >bin/plumb <<END
#!/bin/sh
[ "\$1" = --version ] && exec "$plumb" --version
exec "$plumb" "\$@" --sysroot "$BATS_TEST_TMPDIR/trees/\$HOST"
END
    chmod +x rsh bin/plumb
}

# over_hosts ARGUMENTS...
over_hosts()
{
    status=0
    "$plumb" doctor --hosts hosts --rsh ./rsh --remote-dir "$BATS_TEST_TMPDIR/bin" "$@" >"$out" 2>"$err" ||
        status=$?
}
