# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# For bats: processes that a test looks for before it does something to them.

# A process that is lost, stopped, hangs or is late is named within 10 s: the constants of which these are made are held to it when they are compiled. A test adds
# what a machine may take that others use: it is to tell "named in time" from "at the end of its budget, or never".
export NAMED_S=240

# at_work TICKS PID...: has each of them used so much CPU time, in hundredths of a second? To be there is not to be at work: who has used more
# than a start takes is past it, on however busy a machine.
at_work()
{
    local ticks=$1 pid
    shift
    for pid; do
        cat "/proc/$pid/stat" 2>/dev/null
    done | awk -v ticks="$ticks" -v n=$# '$14 + $15 >= ticks { past++ } END { exit past < n }'
}

# until_at_work PATTERN: process $victim, the one whose command line matches, is past its start; $said: a file to show where it never is.
until_at_work()
{
    local _
    for _ in $(seq 6000); do
        victim=$(pgrep -f "$1") && at_work 30 "$victim" && return 0
        sleep 0.2
    done
    cat "${said-said}"
    return 1
}
