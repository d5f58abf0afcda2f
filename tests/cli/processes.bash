# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# For bats: processes that a test looks for before it does something to them.

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
