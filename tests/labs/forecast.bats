#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# plumb forecast in a lab: sums on 2 and 4 hosts say how long sums and steps on 8 take, also behind a core that carries half.

# takes: machine
load env

setup() {
    lab_root
    command -v python3 >/dev/null || skip 'python3 is not installed'
}

@test "8 hosts are forecast from 2 and 4, and a core that carries half of a link is in the interval, or refused" {
    local go
    # other work on this machine makes what it meets longer: one of three goes must hold
    for ((go = 0; go < 3; go++)); do
        run timeout -k 5 1000 scripts/check-forecast lab --hosts 8
        echo "$output"
        [ "$status" -le 1 ] || ! grep -E 'no lab could be made' <<<"$output" || skip 'this kernel makes no lab'
        [ "$status" -ne 0 ] || break
    done
    [ "$status" -eq 0 ]
    [ "$(grep -c '^good' <<<"$output")" -eq 8 ]
}
