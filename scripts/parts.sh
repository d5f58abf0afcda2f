# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What Plumbline is built, run, tested and linted with: one table for scripts/configure and
# scripts/bootstrap, and how each part is looked for. Sourced, not run.

# name | group | need | how to look for it | packages | what it is for
#
# group:    build, run (has build in it), test (has run in it), lint; gpu, which is looked for by every build but
#           installed only when asked for (scripts/bootstrap --for gpu): it is several GB; services, for tests, whose
#           packages start services of the system (sshd, munge): installed when asked for, and with test where $CI is set.
# need:     must     nothing is built without it
#           opt      something smaller is left out, which the last field names
# how:      cc                   $CC, or cc, compiles and links
#           cmd:A,B              one of these commands
#           lib:PC:HEADER:LIBS   pkg-config's module PC; else HEADER compiles and LIBS link
#           so:A,B               one of these shared libraries, which are opened at run time
#           nvcc                 the CUDA toolkit's compiler and cuda.h; see parts_nvcc
#           cuda:HEADER:NAME     a header beside them, new enough to know this name
#           mpi                  an MPI for C: $MPICC's, or one that is found; see parts_mpi
#           nccl                 nccl.h, there or elsewhere, that knows communicators that do not block
#           file:GLOB            such a file
#           san, fuzzer          a compiler that links these runtimes
# packages: names on Debian 12 and Ubuntu 22.04 to 24.04; in A/B the first that the system knows (for GPUs, A is of
#           NVIDIA's own repository, B of Debian's non-free or Ubuntu's multiverse).
parts_table()
{
    cat <<'END'
compiler|build|must|cc|gcc,libc6-dev|compiles everything
make|build|must|cmd:make|make|drives the build
pkg-config|build|opt|cmd:pkg-config|pkg-config/pkgconf|finds libraries in unusual places
hwloc|build|must|lib:hwloc:hwloc.h:-lhwloc|libhwloc-dev|puts threads and memory where they belong
jansson|build|must|lib:jansson:jansson.h:-ljansson|libjansson-dev|writes and reads JSON, as run.json
libyaml|build|must|lib:yaml-0.1:yaml.h:-lyaml|libyaml-dev|plumb: suites and hardware limits
libcsv|build|must|lib::csv.h:-lcsv|libcsv-dev|plumb: reads rows
SQLite|build|must|lib:sqlite3:sqlite3.h:-lsqlite3|libsqlite3-dev|check, history: results/history.db
libsodium|build|must|lib:libsodium:sodium.h:-lsodium|libsodium-dev|proves a secret between machines
oneDNN|run|opt|so:libdnnl.so.2,libdnnl.so.3|libdnnl2/libdnnl3|gemm: f32, bf16 and int8
OpenBLAS|run|opt|so:libopenblas.so.0|libopenblas0-pthread/libopenblas0|gemm: f64 and f32
MPI|run|opt|mpi|libopenmpi-dev,openmpi-bin|net, allreduce: mpirun, srun; module plumb-mpi.so
libibverbs|build|opt|lib:libibverbs:infiniband/verbs.h:-libverbs|libibverbs-dev|net: RDMA, the module plumb-rdma.so
librdmacm|build|opt|lib:librdmacm:rdma/rdma_cma.h:-lrdmacm|librdmacm-dev|net: RDMA, connections by RDMA CM
rdma-drivers|run|opt|file:/etc/libibverbs.d/*.driver|ibverbs-providers|net: RDMA devices, at run time
CUDA|gpu|opt|nvcc|cuda-toolkit/nvidia-cuda-toolkit|GPUs: the module plumb-cuda.so
cuBLASLt|gpu|opt|cuda:cublasLt.h:CUBLASLT_MATMUL_DESC_FAST_ACCUM|libcublas-dev/nvidia-cuda-dev|GPUs: gemm
NCCL|gpu|opt|nccl|libnccl-dev|test: allreduce by NCCL, simulated
cmocka|test|opt|lib:cmocka:cmocka.h:-lcmocka|libcmocka-dev|test: units
sanitizers|test|opt|san:address,undefined|gcc|test: the command line under ASan and UBSan
TSan|test|opt|san:thread|gcc|test: threads of benchmarks under TSan
bats|test|opt|cmd:bats|bats|test: the command line
libFuzzer|test|opt|fuzzer|clang,libclang-rt-dev/libclang-rt-18-dev/libclang-common-14-dev|test: fuzz targets
python3|test|opt|cmd:python3|python3|test: runs the tests; made-up runs, the browser
git|test|opt|cmd:git|git|test: the commit in a build
browser|test|opt|cmd:chromium,chromium-browser,google-chrome|chromium|test: the report in a browser
fonts|test|opt|file:/usr/share/fonts/truetype/*/*.ttf|fonts-dejavu-core|test: texts on plots
iproute2|test|opt|file:/sbin/tc|iproute2|test: lab-cluster, lab-rdma
qemu|test|opt|cmd:qemu-system-x86_64|qemu-system-x86|test: lab-rdma, RDMA in a guest
perftest|test|opt|cmd:ib_write_bw|perftest|test: RDMA, held against it
MPICH|test|opt|cmd:mpicc.mpich|mpich,libmpich-dev|test: allreduce by MPI 4, which counts in 64 bits
iperf3|test|opt|cmd:iperf3|iperf3|test: TCP, held against it
slurm|services|opt|file:/usr/sbin/slurmctld|slurmctld,slurmd,slurm-client,munge|test: lab-slurm, a real Slurm over hosts of a lab
sshd|services|opt|file:/usr/sbin/sshd|openssh-server|test: lab/sshd, a real ssh between hosts of a lab
sockperf|test|opt|cmd:sockperf|sockperf|test: TCP latency, held against it
clang-format|lint|opt|cmd:clang-format|clang-format|lint: layout; format
clang-tidy|lint|opt|cmd:clang-tidy|clang-tidy|lint: bug patterns
cppcheck|lint|opt|cmd:cppcheck|cppcheck|lint: bug patterns, a second opinion
shellcheck|lint|opt|cmd:shellcheck|shellcheck|lint: shell scripts
codespell|lint|opt|cmd:codespell|codespell|lint: spelling
END
}

# The groups that a group stands for.
parts_groups()
{
    case $1 in
    build) echo build ;;
    run) echo build run ;;
    test) echo "build run test${CI:+ services}" ;;
    services) echo build run test services ;;
    lint) echo build lint ;;
    gpu) echo build gpu ;;
    all) echo "build run test lint${CI:+ services}" ;;
    *) return 1 ;;
    esac
}

# parts_link SOURCE FLAGS...: does this program link?
parts_link()
{
    local source=$1 out status=0
    shift
    out=$(mktemp) || return 1
    "$@" -x c - -o "$out" <<<"$source" >/dev/null 2>&1 || status=1
    rm -f "$out"
    return "$status"
}

# parts_command A,B: the first of these that is there.
parts_command()
{
    local names name
    IFS=, read -ra names <<<"$1"
    for name in "${names[@]}"; do
        command -v "$name" && return 0
    done
    return 1
}

# parts_library PC HEADER LIBS: sets part_cflags and part_libs.
parts_library()
{
    part_cflags='' part_libs=$3
    if [[ -n $1 ]] && pkg-config --exists "$1" 2>/dev/null; then
        part_cflags=$(pkg-config --cflags "$1") part_libs=$(pkg-config --libs "$1")
        part_version=$(pkg-config --modversion "$1")
        return 0
    fi
    local source compiler flags
    source=$(printf '#include <stdio.h>\n#include <%s>\nint main(void) { return 0; }\n' "$2")
    read -ra compiler <<<"${CC:-cc}"
    read -ra flags <<<"$3"
    parts_link "$source" "${compiler[@]}" -Wl,--no-as-needed "${flags[@]}"
}

# The first of these shared libraries that the loader would find.
parts_shared()
{
    local names name folder folders
    IFS=, read -ra names <<<"$1"
    IFS=: read -ra folders <<<"${LD_LIBRARY_PATH:-}"
    for name in "${names[@]}"; do
        for folder in ${folders[@]+"${folders[@]}"}; do
            [[ ! -e ${folder:-.}/$name ]] || {
                echo "$folder/$name"
                return 0
            }
        done
        PATH=$PATH:/sbin:/usr/sbin ldconfig -p 2>/dev/null |
            awk -v name="$name" '$1 == name && !found { print $NF; found = 1 } END { exit !found }' && return 0
    done
    return 1
}

# parts_compiles CFLAGS HEADER NAME: does a C file that includes it, and has a number of this name from it, compile?
parts_compiles()
{
    local flags compiler
    read -ra compiler <<<"${CC:-cc}"
    read -ra flags <<<"$1"
    "${compiler[@]}" ${flags[@]+"${flags[@]}"} -fsyntax-only -include "$2" -x c - \
        <<<"int check = (int)$3;" 2>/dev/null
}

# parts_mpi_wrapper MPICC: sets part_cflags and part_libs to what this wrapper of an MPI adds for the compiler.
parts_mpi_wrapper()
{
    local words word wrapper
    read -ra wrapper <<<"$1"
    read -ra words < <("${wrapper[@]}" -show 2>/dev/null) || return 1
    part_cflags='' part_libs=''
    for word in "${words[@]}"; do
        case $word in
        -I* | -D*) part_cflags+="$word " ;;
        -L* | -l* | -Wl,*) part_libs+="$word " ;;
        esac
    done
}

# An MPI for C: $MPICC's (no: none), else what pkg-config knows of Open MPI or MPICH, else mpicc's, else where the compiler
# looks. Sets part_cflags, part_libs and part_version.
parts_mpi()
{
    local compiler flags names
    [[ ${MPICC-} != no ]] || return 1
    read -ra compiler <<<"${CC:-cc}"
    if [[ ${MPICC-} ]]; then
        parts_mpi_wrapper "$MPICC" || return 1
    elif ! parts_library ompi-c mpi.h -lmpi; then
        parts_library mpich mpi.h -lmpich || parts_mpi_wrapper mpicc || return 1
    fi
    read -ra flags <<<"$part_cflags $part_libs"
    parts_link '#include <mpi.h>
        int main(void) { return MPI_Init(0, 0); }' "${compiler[@]}" -Wl,--no-as-needed ${flags[@]+"${flags[@]}"} || return 1
    read -ra flags <<<"$part_cflags"
    names=$("${compiler[@]}" ${flags[@]+"${flags[@]}"} -E -dM -include mpi.h -x c /dev/null 2>/dev/null) || return 0
    part_version=$(awk '$2 == "MPICH_VERSION" { gsub(/"/, "", $3); print $3; exit }
        $2 ~ /^OMPI_(MAJOR|MINOR|RELEASE)_VERSION$/ { n[$2] = $3 }
        END { if (length(n) == 3) print n["OMPI_MAJOR_VERSION"] "." n["OMPI_MINOR_VERSION"] "." n["OMPI_RELEASE_VERSION"] }
        ' <<<"$names")
}

# The CUDA compiler: $NVCC (no: none), $CUDA_HOME's, $CUDA_PATH's, PATH's, or where NVIDIA's installer puts it.
parts_nvcc()
{
    local at
    [[ ${NVCC-} != no ]] || return 1
    for at in "${NVCC-}" "${CUDA_HOME:+$CUDA_HOME/bin/nvcc}" "${CUDA_PATH:+$CUDA_PATH/bin/nvcc}" nvcc \
        /usr/local/cuda/bin/nvcc; do
        if [[ $at ]] && command -v "$at"; then
            return 0
        fi
    done
    return 1
}

# parts_cuda_flags NVCC HEADER NAME: how the headers of that toolkit are found; nothing where the compiler knows.
parts_cuda_flags()
{
    local home folder
    home=$(dirname "$(dirname "$(readlink -f "$1")")")
    for folder in "$home/include" "$home"/targets/*-linux/include; do
        if [[ $folder != /usr/include && -e $folder/$2 ]] && parts_compiles "-isystem$folder" "$2" "$3"; then
            echo "-isystem$folder"
            return 0
        fi
    done
    parts_compiles '' "$2" "$3"
}

# parts_nccl_flags NVCC: how nccl.h is found, which wants CUDA's headers: $NCCL_HOME's, beside CUDA's own, or where the
# compiler looks.
parts_nccl_flags()
{
    local cuda folder
    cuda=$(parts_cuda_flags "$1" cuda.h CUDA_VERSION) || return 1
    for folder in "${NCCL_HOME:+$NCCL_HOME/include}" ''; do
        if parts_compiles "${folder:+-isystem$folder} $cuda" nccl.h ncclInProgress; then
            echo "${folder:+-isystem$folder }$cuda"
            return 0
        fi
    done
    return 1
}

# The clang to build fuzz targets with: CC itself where it can.
parts_fuzzer()
{
    local compiler source='int LLVMFuzzerTestOneInput(const char *d, unsigned long n)
        { (void)d; return (int)(n * 0); }'
    for compiler in "${CC:-cc}" clang clang-18 clang-16 clang-15 clang-14; do
        # shellcheck disable=SC2086 # CC may carry options
        if command -v ${compiler%% *} >/dev/null &&
            parts_link "$source" $compiler -fsanitize=fuzzer,address,undefined; then
            echo "$compiler"
            return 0
        fi
    done
    return 1
}

# parts_find HOW: is it there? Sets part_version ('' when not known), part_at, part_cflags, part_libs.
# shellcheck disable=SC2034 # they are for the caller
parts_find()
{
    local how=${1%%:*} rest=${1#*:}
    local compiler
    part_version='' part_at='' part_cflags='' part_libs=''
    case $how in
    cc)
        # shellcheck disable=SC2086 # CC may carry options
        parts_link '#include <stdio.h>
            int main(void) { return puts(""); }' ${CC:-cc}
        ;;
    cmd)
        part_at=$(parts_command "$rest") || return 1
        ;;
    lib)
        IFS=: read -ra compiler <<<"$rest"
        parts_library "${compiler[@]}"
        ;;
    so)
        part_at=$(parts_shared "$rest") || return 1
        ;;
    mpi)
        parts_mpi
        ;;
    nvcc)
        part_at=$(parts_nvcc) && "$part_at" --list-gpu-code >/dev/null 2>&1 || return 1
        part_version=$("$part_at" --version 2>/dev/null | sed -n 's/.*release \([0-9.]*\).*/\1/p')
        [[ $part_version ]] && part_cflags=$(parts_cuda_flags "$part_at" cuda.h CUDA_VERSION)
        ;;
    cuda)
        part_at=$(parts_nvcc) && part_cflags=$(parts_cuda_flags "$part_at" "${rest%%:*}" "${rest#*:}")
        ;;
    nccl)
        part_at=$(parts_nvcc) && part_cflags=$(parts_nccl_flags "$part_at")
        ;;
    file)
        part_at=$(compgen -G "$rest" | head -n 1)
        [[ -n $part_at ]]
        ;;
    san)
        # shellcheck disable=SC2086 # CC may carry options
        parts_link 'int main(void) { return 0; }' ${CC:-cc} "-fsanitize=$rest"
        ;;
    fuzzer)
        part_at=$(parts_fuzzer)
        ;;
    esac
}
