#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A real slurmctld and slurmd over the hosts of a lab: what srun starts finds itself, and the batch job measures its nodes.

# takes: cluster
# waits: for a queue
load env
load ../cli/rows

setup_file() { between_file; }

setup() {
    cd "$BATS_TEST_DIRNAME/../.." || exit
    [[ -x build/bin/plumb-allreduce && -e build/lib/plumbline/plumb-mpi.so ]] || skip 'plumb-allreduce or its MPI module is not built'
    PATH=$PATH:/usr/sbin
    command -v slurmctld slurmd srun munged >/dev/null || skip 'Slurm is not installed (scripts/bootstrap --for services)'
    lab_cluster 2 --rate 1gbit
    scripts/lab-slurm up || { echo 'Slurm did not come up' && return 1; }
    out=$BATS_TEST_TMPDIR/out
}

teardown() {
    cd "$BATS_TEST_DIRNAME/../.." || exit
    lab_names
    [[ $EUID -ne 0 ]] || scripts/lab-slurm down
    lab_clean
}

slurm() { timeout -k 5 1000 scripts/lab-slurm exec "$@"; }

@test "ranks that srun starts are one world, over our ring and over the library" {
    slurm srun -N2 -n2 --mpi=pmix "$PWD/build/bin/plumb-allreduce" --who >"$out"
    [ "$(tail -n +2 "$out" | wc -l)" -eq 2 ]
    [ "$(cells host | sort | xargs)" = "node0 node1" ]
    slurm srun -N2 -n2 --mpi=pmix "$PWD/build/bin/plumb-allreduce" --backend ring,mpi --transport tcp --size 64K --ranks 2 \
        --budget 300ms --min-samples 5 --csv >"$out" 2>"$out.err" || { cat "$out.err" && false; }
    [ "$(cells status | grep -cE 'wrong|failed|skipped')" -eq 0 ]
    [ "$(cells backend | sort -u | xargs)" = "mpi ring" ]
}

@test "the batch job runs a suite over its nodes, and leaves a report" {
    local folder=$BATS_TEST_TMPDIR/run
    cat >"$BATS_TEST_TMPDIR/brief.yaml" <<'END'
suite: brief
about: one case between the nodes
defaults: {repeat: 1, timeout: 60s, budget: 200ms, warmup: 50ms}
cases:
  - {bench: allreduce, backend: ring, transport: tcp, size: 64K}
END
    slurm sbatch -N2 --wait --output="$BATS_TEST_TMPDIR/job" --chdir="$PWD" scripts/plumb.sbatch "$BATS_TEST_TMPDIR/brief.yaml" \
        --out "$folder" --launcher-args '--mpi=pmix' || { cat "$BATS_TEST_TMPDIR/job" && false; }
    cat "$BATS_TEST_TMPDIR/job"
    [ -s "$folder/report.html" ]
    out=$folder/allreduce.csv
    [ "$(cells ranks | sort -u | xargs)" = 2 ]
}
