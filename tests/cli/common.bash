# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # the command sets status, tests set out and err
# For all bats files of tests/cli and tests/labs.

bats_require_minimum_version 1.5.0 # of run's options

# exits STATUS COMMAND...: the command, which sets status, ends with this one; or we see what it left.
exits()
{
    "${@:2}"
    [ "$status" -eq "$1" ] || {
        echo "exit $status instead of $1: ${*:2}"
        echo "${output-}"
        cut -c 1-600 ${out:+"$out"} ${err:+"$err"} </dev/null
        return 1
    }
}

# in_time SECONDS COMMAND...: until it succeeds.
in_time()
{
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        ((SECONDS < end)) || return 1
        sleep 0.1
    done
}

# told STATUS PATTERN COMMAND...: by bats' run: it ends with this status, and what it prints has the pattern in it.
told()
{
    run "-$1" "${@:3}"
    # shellcheck disable=SC2053 # a pattern is meant
    [[ $output == *$2* ]] || { echo "$output" && echo "no '$2'" && return 1; }
}

# warned STATUS PATTERN COMMAND...: the command ends as with exits, and stderr, the file $err, has the pattern in it, or anything;
# wrong usage, 2, leaves nothing on stdout.
warned()
{
    exits "$1" "${@:3}"
    # shellcheck disable=SC2053
    [[ -s $err && $(<"$err") == *$2* ]] || { cat "$err" && echo "no '$2'" && return 1; }
    [[ $1 -ne 2 || ! -s $out ]] || { cat "$out" && return 1; }
}

# ends STATUS COMMAND...: it ends with that status.
ends()
{
    local got=0
    "${@:2}" || got=$?
    [ "$got" -eq "$1" ] || { echo "exit $got instead of $1: ${*:2}" >&2 && return 1; }
}

# reaped STATUS PID: this child ends with that status.
reaped()
{
    status=0
    wait "$2" || status=$?
    [ "$status" -eq "$1" ] || { echo "exit $status instead of $1" && return 1; }
}

# script FILE: makes it a program, of stdin.
script() { cat >"$1" && chmod +x "$1"; }
