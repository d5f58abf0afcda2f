#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tier: long
# What scripts/peer-allreduce makes of made-up rounds: 4 hosts, 1 MB, links of 1 MB/s, so that the ring bound is 1.5 s.

load common

setup() {
    cd "$BATS_TEST_DIRNAME/../.." || exit
    rounds=$BATS_TEST_TMPDIR/rounds
    printf '%s\n' "0 ring 1510000" "0 openmpi 1600000" "0 openmpi-ring 1520000" "0 mpi-backend-ring 1525000" \
        "1 ring 1510000" "1 openmpi 1600000" "1 openmpi-ring 1520000" "1 mpi-backend-ring 1525000" \
        "2 ring 1510000" "2 openmpi 1600000" "2 openmpi-ring 1520000" "2 mpi-backend-ring 1525000" >"$rounds"
}

judge() { # CONTENDER...: more of them
    run python3 scripts/lab/judge_allreduce.py "$rounds" 4 1000000 8000000 3 ring openmpi openmpi-ring mpi-backend-ring "$@"
}

@test "all hold" {
    exits 0 judge
    [[ $output != *short* ]]
}

@test "a contender that always fails is said, and no reason to call the rest good" {
    exits 1 judge openmpi-rabenseifner
    [[ $output == *'openmpi-rabenseifner failed in 3 of 3 '*': short'* ]]
    [[ $output == *'(openmpi-ring): 1.0066'*good* ]]
    sed -i '/ ring/d' "$rounds"
    exits 1 judge
    [[ $output == *'ring failed in 3 of 3 '*': short'* ]]
    [[ $output == *'(openmpi-ring): not measured'*': short'* ]]
}

@test "a round that failed leaves the pairs of the others as they are" {
    # Each round twice as slow as the one before: pairs of different rounds would be 2 off.
    awk '{ $3 *= 2 ^ $1 } 1' "$rounds" | grep -v '^0 ring' >"$rounds.slow"
    mv "$rounds.slow" "$rounds"
    exits 1 judge
    [[ $output == *'ring failed in 1 of 3 '*': short'* ]]
    [[ $output == *'(openmpi-ring): 1.0066 (1.0066 to 1.0066) good'* ]]
}

@test "our ring a little below the best is short" {
    sed -i 's/ ring .*/ ring 1526000/' "$rounds"
    exits 1 judge
    [[ $output == *'(openmpi-ring): 0.9961'*short* ]]
}

@test "IMB is judged where it is here, by 2 %" {
    printf '%s\n' '0 imb-ring 1500000' '1 imb-ring 1500000' '2 imb-ring 1500000' >>"$rounds"
    exits 0 judge imb-ring
    [[ $output == *"to IMB's, ring: 1.0167"*good* ]]
    sed -i 's/imb-ring .*/imb-ring 1480000/' "$rounds"
    exits 1 judge imb-ring
    [[ $output == *"to IMB's, ring: 1.0304"*short* ]]
}
