#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tier: long
# scripts/bootstrap on made-up parts and with a made-up apt: what it reports, asks for, and makes of failures.

load common

setup()
{
    base=$(mktemp -d) # open to other users, for the test that is one
    chmod 755 "$base"
    tree=$base/tree tools=$base/tools log=$base/log
    mkdir -p "$tree/scripts" "$tree/build" "$tools"
    cp "$BATS_TEST_DIRNAME"/../../scripts/{bootstrap,parts.sh} "$tree/scripts"
    cat >>"$tree/scripts/parts.sh" <<END
parts_table() { cat "$tree/table"; }
END
    cat >"$tree/table" <<'END'
shell|build|must|cmd:sh|sh-package|is there
plotter|run|opt|cmd:plumb-test-plotter|plotter-nox|report: plots
prover|test|opt|cmd:plumb-test-prover|prover-old/prover-new,prover-data|test: proofs
again|test|opt|cmd:plumb-test-prover|prover-data|test: more proofs
polish|lint|opt|cmd:plumb-test-polish|polish|lint: shine
END
    # An apt that knows what is in "known", and installs a program for each package but those in "broken".
    cat >"$tools/apt-cache" <<END
#!/bin/bash
shift
for package in "\$@"; do
    grep -qx "\$package" "$tree/known" 2>/dev/null || continue
    printf '%s:\n  Installed: (none)\n  Candidate: 1.0\n' "\$package"
done
END
    cat >"$tools/apt-get" <<END
#!/bin/bash
echo "apt-get \$*" >>"$log"
if [[ " \$* " == *' update '* ]]; then
    touch "$tree/updated"
    # Without network, apt-get update only fails where it is asked to.
    [[ ! -e "$tree/offline" || " \$* " != *' APT::Update::Error-Mode=any '* ]] || {
        echo "Err:1 http://mirror.example Temporary failure resolving 'mirror.example'"
        exit 100
    }
    exit 0
fi
[[ " \$* " == *' install '* ]] || exit 0
for package in "\$@"; do
    grep -qx "\$package" "$tree/broken" 2>/dev/null && exit 100
done
for package in "\$@"; do
    case \$package in
    plotter-nox) program=plumb-test-plotter ;;
    prover-new) program=plumb-test-prover ;;
    *) continue ;;
    esac
    printf '#!/bin/sh\n' >"$tools/\$program"
    chmod +x "$tools/\$program"
done
END
    cat >"$tools/sudo" <<'END'
#!/bin/bash
while [[ $1 == -* ]]; do shift; done
exec "$@"
END
    chmod +x "$tools"/*
    printf '%s\n' plotter-nox prover-new prover-data polish >"$tree/known"
    : >"$log"
}

teardown()
{
    rm -rf "$base"
}

# bootstrap ARGUMENTS...: sets status, and output to stdout and stderr together.
bootstrap()
{
    run env PATH="$tools:$PATH" "$tree/scripts/bootstrap" "$@" </dev/null
}

# What the one apt-get install was asked for.
asked()
{
    sed -n 's/.*--no-install-recommends //p' "$log"
}

@test "all is there: exit 0, silent, and apt is not asked" {
    exits 0 bootstrap --for build
    [ -z "$output" ]
    [ ! -s "$log" ]
}

@test "--check says what is missing, with package and reason, and installs nothing" {
    exits 3 bootstrap --for run --check
    grep -qE '^  plotter +plotter-nox +report: plots$' <<<"$output"
    [[ $output != *prover* ]]
    [ ! -s "$log" ]
    exits 0 bootstrap --for build --check
}

@test "the table of the project: every part has a group, a need, a way to look, a package and a reason" {
    # shellcheck source=scripts/parts.sh
    . "$BATS_TEST_DIRNAME/../../scripts/parts.sh"
    parts_table | awk -F'|' '
        NF != 6 { print "fields: " $0; bad = 1 }
        $2 !~ /^(build|run|test|lint|gpu|services)$/ { print "group: " $0; bad = 1 }
        $3 !~ /^(must|plumb|opt)$/ { print "need: " $0; bad = 1 }
        $4 !~ /^(cc|fuzzer|nvcc|mpi|nccl|(cmd|lib|so|file|cuda|san):.+)$/ { print "how: " $0; bad = 1 }
        $5 !~ /^[a-z0-9.+,\/-]+$/ || $6 == "" { print "package or reason: " $0; bad = 1 }
        END { exit bad }'
}

@test "run: says what and why, then installs just that, without recommended packages" {
    exits 0 bootstrap
    grep -qE '^  plotter +plotter-nox +report: plots$' <<<"$output"
    [ "$(asked)" = plotter-nox ]
    [ ! -e "$tree/updated" ]
    exits 0 bootstrap
    [ -z "$output" ]
    [ "$(grep -c install "$log")" -eq 1 ]
}

@test "what starts services of the system is installed when it is asked for, and in CI" {
    echo 'listener|services|opt|cmd:plumb-test-listener|listener|test: guests' >>"$tree/table"
    echo listener >>"$tree/known"
    unset CI
    exits 0 bootstrap --for all
    [[ "$(asked)" != *listener* && "$output" != *listener* ]]
    exits 3 bootstrap --for services --check
    grep -qE '^  listener +listener +test: guests$' <<<"$output"
    CI=true bootstrap --for test
    [ "$(grep -c 'install.* listener' "$log")" -ge 1 ]
}

@test "a package that the system does not have: lists are fetched, then it is reported and left out" {
    grep -v plotter "$tree/known" >"$tree/fewer"
    mv "$tree/fewer" "$tree/known"
    exits 0 bootstrap --for test
    [ -e "$tree/updated" ]
    grep -q ": plotter-nox" <<<"$output"
    grep -q ': plotter$' <<<"$output"
    [ "$(asked)" = "prover-new prover-data" ]
}

@test "lists that could not be fetched: an error that says so, and not that the system has no such package" {
    grep -v plotter "$tree/known" >"$tree/fewer"
    mv "$tree/fewer" "$tree/known"
    touch "$tree/offline"
    exits 1 bootstrap --for test
    grep -q "| Err:1 .*'mirror.example'$" <<<"$output"
    grep -q 'lists.*: plotter-nox$' <<<"$output"
    [ "$(asked)" = "prover-new prover-data" ]
    exits 0 bootstrap --for test --keep-going
    grep -q ': plotter$' <<<"$output"
}

@test "one package that does not install keeps the others not out, and is an error" {
    echo prover-new >"$tree/broken"
    exits 1 bootstrap --for test
    [ -x "$tools/plumb-test-plotter" ]
    grep -q "'prover-new'" <<<"$output"
    grep -q ': prover again$' <<<"$output"
}

@test "--keep-going makes it a warning, unless nothing can be built without it" {
    echo plotter-nox >"$tree/broken"
    exits 0 bootstrap --keep-going
    grep -q ': plotter' <<<"$output"
    sed -i 's/^plotter|run|opt/plotter|run|must/' "$tree/table"
    exits 1 bootstrap --keep-going
}

@test "neither root nor sudo: prints the line to run, exit 2" {
    [ "$(id -u)" -eq 0 ] || skip "this test changes to another user, which takes root"
    command -v setpriv >/dev/null || skip "setpriv is not installed"
    rm "$tools/sudo"
    printf '#!/bin/sh\nexit 1\n' | script "$tools/sudo"
    chmod -R a+rX "$base"
    run -2 setpriv --reuid 65534 --regid 65534 --clear-groups env PATH="$tools:$PATH" \
        bash -c "cd / && exec $tree/scripts/bootstrap --for test" </dev/null
    run -0 setpriv --reuid 65534 --regid 65534 --clear-groups env PATH="$tools:$PATH" \
        bash -c "cd / && exec $tree/scripts/bootstrap --for test --keep-going" </dev/null
    grep -q ': plotter prover again$' <<<"$output"
    # By the names that this system's apt knows; where it has no lists yet, by Debian's.
    grep -q '^    apt-get update && apt-get install --no-install-recommends plotter-nox prover-data prover-new$' <<<"$output"
    : >"$tree/known"
    run setpriv --reuid 65534 --regid 65534 --clear-groups env PATH="$tools:$PATH" \
        bash -c "cd / && exec $tree/scripts/bootstrap --for test" </dev/null
    grep -q '^    apt-get update && apt-get install --no-install-recommends plotter-nox prover-data prover-old$' <<<"$output"
    [ ! -s "$log" ]
}
