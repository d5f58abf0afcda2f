# SPDX-License-Identifier: Apache-2.0
"""nccl-tests' all_reduce_perf, a peer of scripts/peer-gpu: where it is, how it is built, started and read.

What is said of it here was read in its sources, versions 2.9 to 2.19. -g GPUs of one process have a rank each, whose operations
are in one group call. A rank in each process wants a build with MPI: without it each is a world of its own. Its ranks share a GPU where NCCL_TESTS_DEVICE names it to all of them, and NCCL lets them where
each has another NCCL_HOSTID. A vector that is smaller than its largest one is moved on in its buffers from call to call: one
size in a run, so that each call has the same vector, as ours have.
"""
import glob
import os
import re
import shutil
import subprocess

SOURCE = "https://github.com/NVIDIA/nccl-tests"
NAMES = ("all_reduce_perf", "all_reduce_perf_mpi")
NO_BARRIER = "wait after each inner iteration (-m), no barrier"  # what it says of -z 2 where it knows it
RANK = 'rank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-${PMIX_RANK:-}}}; : "${rank:?it says no number of a rank}"; '


class Absent(Exception):
    """It cannot run here: why, and what to do."""


class NoFigure(Exception):
    """What it printed is not what was asked for."""


class WrongData(Exception):
    """It ran, and found elements that are not what they must be."""


def how_to_get():
    return f"no nccl-tests: git clone {SOURCE}, and give its folder by --nccl-tests, which builds it where nvcc is"


def nvcc():
    """The CUDA compiler, looked for as scripts/parts.sh does."""
    homes = [os.path.join(os.environ[name], "bin", "nvcc") for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    for at in [os.environ.get("NVCC"), *homes, "nvcc", "/usr/local/cuda/bin/nvcc"]:
        if at and at != "no" and shutil.which(at):
            return os.path.realpath(shutil.which(at))
    return None


def codes():
    """The machine code of this machine's GPU, which takes a sixth of the time of all."""
    try:
        said = subprocess.run(["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True, timeout=20).stdout.split()
    except (OSError, subprocess.TimeoutExpired):
        said = []
    found = sorted({word.replace(".", "") for word in said if re.fullmatch(r"\d+\.\d", word)})
    return " ".join(f"-gencode=arch=compute_{code},code=sm_{code}" for code in found)


def home_of(library, folder):
    """A folder to be NCCL_HOME, or nothing: PyPI's package has the library without the name that a linker looks for."""
    include = os.path.join(os.path.dirname(os.path.dirname(library)), "include")
    if not os.path.exists(os.path.join(include, "nccl.h")):
        return None
    home = os.path.join(folder, "nccl")
    os.makedirs(os.path.join(home, "lib"))
    os.symlink(include, os.path.join(home, "include"))
    for name in ("libnccl.so", "libnccl.so.2"):
        os.symlink(os.path.realpath(library), os.path.join(home, "lib", name))
    return home


def build_command(folder):
    """make's words: one program of the eleven; with MPI where its compiler is, which knows its own headers and libraries."""
    out, words = os.path.join(os.path.abspath(folder), "build"), []
    compiler = nvcc()
    if compiler:
        words += [f"CUDA_HOME={os.path.dirname(os.path.dirname(compiler))}"]
    if os.environ.get("NCCL_HOME"):
        words += [f"NCCL_HOME={os.environ['NCCL_HOME']}"]
    if shutil.which("mpicxx"):
        words += ["MPI=1", "CXX=mpicxx"]
    code = codes()
    if code:
        words += [f"NVCC_GENCODE={code}"]
    return ["make", "-C", os.path.join(folder, "src"), f"-j{os.cpu_count() or 1}", "CUDARTLIB=cudart_static", *words,
            f"BUILDDIR={out}", os.path.join(out, NAMES[0])]


def built_in(folder):
    return [path for name in NAMES for path in (os.path.join(folder, "build", name), os.path.join(folder, name))
            if shutil.which(path)]


def find(given, run):
    """Programs that may do: given, a program, or a folder with its sources, where it is built by run(words) if it is not."""
    if not given:
        found = [path for path in map(shutil.which, NAMES) if path]
    elif os.path.isdir(given):
        found = built_in(given)
        if not found and os.path.exists(os.path.join(given, "src", "all_reduce.cu")):
            if not nvcc():
                raise Absent(f"'{given}' is not built, and there is no nvcc here: set CUDA_HOME")
            run(build_command(given))
            found = built_in(given)
    else:
        beside = [os.path.join(os.path.dirname(given), name) for name in NAMES]
        found = [path for path in dict.fromkeys([given, *beside]) if shutil.which(path)]
    if not found:
        raise Absent(how_to_get() if not given else f"'{given}' is no program, and no folder with one or with its sources")
    return found


def linked(program, env):
    """Libraries by name, with their paths, or None for one that is not here. Nothing of what is no ELF file."""
    said = subprocess.run(["ldd", program], env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    return {name: None if path.startswith("not ") else path
            for name, path in re.findall(r"^\s*(\S+) => (not found|\S+)", said, re.M)}


def choose(programs, ranks, mpirun, env, spread=False):
    """The one of them that can run with so many ranks."""
    why = ""
    ranks = 1 if spread else ranks  # of processes
    if ranks > 1 and not shutil.which(mpirun):
        raise Absent(f"no MPI: '{mpirun}' is not here, by which nccl-tests starts {ranks} ranks; one rank alone is compared")
    able = []
    for program in programs:
        libraries = linked(program, env)
        lost = [name for name, path in libraries.items() if not path]
        if lost:
            why = f"'{program}' needs {', '.join(lost)}, not found here"
        elif ranks > 1 and libraries and not any(name.startswith("libmpi") for name in libraries):
            why = f"'{program}' is built without MPI: build it with MPI=1 CXX=mpicxx"
        else:
            able.append(program)
    if not able:
        raise Absent(why)
    return able[0]


def environment(library, folder, spread=False):
    """Of its processes. The same NCCL as ours is in library: a link to it, in a folder that is looked into first."""
    env = {name: value for name, value in os.environ.items() if name != "NCCL_HOSTID" and not name.startswith("NCCL_TESTS_")}
    if not spread:
        env["NCCL_TESTS_DEVICE"] = "0"
    if library:
        link = os.path.join(folder, "libnccl.so.2")
        if not os.path.lexists(link):
            os.symlink(os.path.realpath(library), link)
        env["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, [folder, env.get("LD_LIBRARY_PATH")]))
    # Open MPI binds each rank to a CPU unless told otherwise, and NCCL's own threads with it; a small machine has fewer slots.
    for name in ("OMPI_MCA_hwloc_base_binding_policy", "PRTE_MCA_hwloc_default_binding_policy"):
        env.setdefault(name, "none")
    for name in ("OMPI_MCA_rmaps_base_oversubscribe", "OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"):
        env.setdefault(name, "1")
    env.setdefault("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe")
    return env


def share_settings(env):
    """What it sets itself, of both sides. From NCCL's headers 2.28 on it has nvlinkCentricSched, which NCCL heeds from compute
    capability 10.0 on, and which this variable overrides."""
    env.setdefault("NCCL_NVLINK_UTIL_CENTRIC_SCHED_ENABLE", "1")


def command(program, ranks, size, iterations, mpirun, spread=False):
    """Each operation is waited for, as ours, with no barrier in its time (-z 2); the slowest rank's (-a 3); data are checked.
    spread: a GPU for each rank, all in one process."""
    words = [program, "-b", str(size), "-e", str(size), "-d", "float", "-o", "sum", "-g", str(ranks if spread else 1), "-z", "2",
             "-a", "3", "-c", "1", "-n", str(iterations), "-w", str(max(5, iterations // 4))]
    if ranks == 1 or spread:
        return words
    return [mpirun, "-np", str(ranks), "sh", "-c", RANK + 'export NCCL_HOSTID="peer-rank-$rank"; exec "$0" "$@"', *words]


def library_of(text):
    """'2.28.9', as it says which NCCL it runs with."""
    found = re.search(r"nccl-library=(\d+)", text)
    if not found:
        raise NoFigure("it does not say which NCCL it runs with: take nccl-tests 2.17.4 or newer")
    number = int(found.group(1))
    unit = 10000 if number >= 10000 else 1000
    return f"{number // unit}.{number % unit // 100}.{number % 100}"


def check_ranks(text, ranks, spread):
    """A process for each, or one for all."""
    found = re.findall(r"^#\s+Rank\s+(\d+)\s.*\bPid\s+(\d+)\s.*\bdevice\s", text, re.M)
    seen = [int(word) for word, _ in found]
    if ranks > 1 and seen and set(seen) == {0}:
        raise NoFigure("its processes do not see each other, each is a world of its own: it is built without MPI, or for "
                       "another than mpirun's")
    if sorted(seen) != list(range(ranks)):
        raise NoFigure(f"it shows {len(seen)} of {ranks} ranks")
    processes, wanted = len({pid for _, pid in found}), 1 if spread else ranks
    if processes != wanted:
        raise NoFigure(f"its {ranks} ranks are in {processes} process{'es' * (processes > 1)}, and ours in {wanted}")
    if ranks > 1 and NO_BARRIER not in text:
        raise NoFigure("its time would have a barrier in it: take nccl-tests 2.18.1 or newer, which know -z 2")


def number(word):
    try:
        return float(word)
    except ValueError:
        raise NoFigure(f"'{word}' stands where a number should") from None


def precise(word):
    """A time, where its digits are enough to tell 2 % from 0."""
    value = number(word)
    step = 10.0 ** -len(word.partition(".")[2]) if "e" not in word.lower() else value
    if not value > 0 or step > value / 200:
        raise NoFigure(f"it gives the time as '{word.strip()}' us, which is too few digits")
    return value


def figures(text, size):
    """us, by place. Columns are those of its own header: there was no root once, and there may be more."""
    header = re.search(r"^#\s+size\s+count\s.*$", text, re.M)
    columns = header.group().split()[1:] if header else []
    at = [i for i, name in enumerate(columns) if name == "time"]
    wrong = [i for i, name in enumerate(columns) if name == "#wrong"]
    if len(at) != 2 or len(wrong) != 2:
        raise NoFigure("its header has not the columns time and #wrong twice")
    rows = [line.split() for line in text.splitlines() if re.match(r"\s*\d+\s+\d+\s+float\s+sum\s", line)]
    if [row[0] for row in rows] != [str(size)] or len(rows[0]) < len(columns):
        raise NoFigure(f"it has not one whole line for {size} bytes")
    elements = [number(rows[0][i]) for i in wrong]
    if any(elements):
        raise WrongData(f"{sum(elements):g} wrong elements of {size} bytes, by its own check")
    return {place: rows[0][i] for place, i in zip(("out of place", "in place"), at)}


def read(text, ranks, size, spread=False):
    """us, as printed, out of place and in place, and its NCCL's version."""
    check_ranks(text, ranks, spread)
    times = figures(text, size)
    found = re.search(r"^# Out of bounds values\s*:\s*(\d+)", text, re.M)
    if not found:
        raise NoFigure("its output stops before its end")
    if int(found.group(1)):
        raise WrongData(f"{found.group(1)} out of bounds, by its own check")
    return times, library_of(text)


def library_in_python(python):
    """NCCL of a Python environment with torch, or nothing."""
    script = "import nvidia; print(*nvidia.__path__, sep='\\n')"
    said = subprocess.run([python, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    found = [path for folder in said.splitlines() for path in sorted(glob.glob(glob.escape(folder) + "/*/lib/libnccl.so.2"))]
    return found[0] if found else None
