#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tier: long
# plumb-allreduce on one machine: what holds where nothing else runs.

# takes: machine
load rows
load processes
load allreduce

@test "a gap is left out of the time; an overlap is a share" {
    allreduce --np 2 --ranks 2 --size 64K --gap 20ms --budget 400ms
    all_good
    # So few fit into the time with the gap in it, and their own time is without.
    awk -v us="$(of time min)" -v n="$(of time samples)" 'BEGIN { print us, n; exit !(us < 15000 && n <= 20) }'
    allreduce --np 2 --ranks 2 --size 4M --overlap --budget 300ms
    all_good
    # Both at once take no less than one of them, give or take; how much more hangs on what else runs here.
    paste -d' ' <(cells metric) <(cells value) | awk '
        { v[$1] = $2 }
        END { print v["overlap"], v["operation_alone"], v["product_alone"], v["time"]
              if (v["overlap"] >= 160) print "fell short"
              exit !(v["overlap"] != "" && v["overlap"] < 160 && v["product_alone"] > 0 && v["operation_alone"] > 0) }'
}
