# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# For bats and for bash: programs run on simulated devices. See README.md here. Call from the repository's root.

# Outside of bats there is no test to skip: say why, and fail.
declare -F skip >/dev/null || skip()
{
    echo "not simulated: $*" >&2
    return 1
}

# sim_folder: the stand-ins that were built with the programs.
sim_folder()
{
    realpath -m "${PLUMB_BIN:-build/bin}/../sim"
}

# simulate MACHINE: from here on programs load the stand-ins, which show the machine of tests/sim/machines/MACHINE.conf,
# or of the file MACHINE. Skips the test where the module or the stand-ins were not built.
simulate()
{
    local sim machine=$1 lt
    sim=$(sim_folder)
    [[ -e $machine ]] || machine=$PWD/tests/sim/machines/$1.conf
    [[ -e $machine ]] || {
        echo "no such machine: '$1'" >&2
        return 1
    }
    [[ -e $sim/libcuda.so.1 ]] || skip "the simulated device was not built (it needs cuda.h): make sim" || return
    [[ -n $(find "$sim/../bin" "$sim/../lib" -name plumb-cuda.so 2>/dev/null) ]] ||
        skip "plumb-cuda.so was not built (it needs nvcc)" || return
    lt=$(find "$sim" -name 'libcublasLt.so.*' | head -n 1)
    export PLUMB_SIM_MACHINE=$machine PLUMB_LIBCUDA=$sim/libcuda.so.1 PLUMB_LIBCUBLASLT=$lt
    export PLUMB_LIBNCCL=$sim/libnccl.so.2
    export LD_LIBRARY_PATH=$sim${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    unset PLUMB_SIM_FAULT
}

# machine GPUS LINES...: the same, of a machine of so many GPUs with these further lines, in $BATS_TEST_TMPDIR/machine.conf.
machine()
{
    printf '%s\n' '[machine]' "gpus = $1" "${@:2}" >"$BATS_TEST_TMPDIR/machine.conf"
    simulate "$BATS_TEST_TMPDIR/machine.conf"
}

# fault SPEC...: faults of the simulated machine, in place of those before.
fault()
{
    local IFS=,
    export PLUMB_SIM_FAULT="$*"
}

# simulate_nvml MACHINE: only the management library, for programs that ask nothing else.
simulate_nvml()
{
    local sim machine=$1
    sim=$(sim_folder)
    [[ -e $machine ]] || machine=$PWD/tests/sim/machines/$1.conf
    [[ -e $sim/libnvidia-ml.so.1 ]] || skip "the simulated device was not built: make sim" || return
    export PLUMB_SIM_MACHINE=$machine LD_LIBRARY_PATH=$sim${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    unset PLUMB_SIM_FAULT
}
