/* SPDX-License-Identifier: Apache-2.0 */
/* allreduce: how long a group of processes takes to sum a vector, and the other collectives, from 1 to N ranks. */
#include <stddef.h>

#include "benches/allreduce/work.h"
#include "core/bench/bench.h"
#include "core/wire/fabric.h"
#include "core/wire/options.h"

#define AT(field)            .offset = offsetof(struct collective_params, field)
#define SWEPT                .flags = OPT_LIST | OPT_COLUMN
#define FITTING              .flags = OPT_LIST | OPT_COLUMN | OPT_SWEEP
#define CHOICE(field, names) .type = OPT_CHOICE, SWEPT, AT(field), .choices = (names)
#define OWN                  "backend=ring,halving,doubling"

static const struct opt_scope by_own = {OWN, "ring, halving and doubling"};
static const struct opt_scope by_tcp = {OWN " transport=tcp", "our own algorithms over TCP"};
static const struct opt_scope by_rdma = {OWN " transport=rdma", "our own algorithms over RDMA"};
static const struct opt_scope by_library = {"backend=mpi,mpi-cuda,nccl",
                                            "the libraries, mpi, mpi-cuda and nccl"};
static const struct opt_scope by_size = {"model!=?*", "vectors of one size, not a --model"};
static const struct opt_scope sums = {"op=allreduce,reduce-scatter", "operations that reduce"};

static const struct opt options[] = {
    {.name = "np",
     .type = OPT_U64,
     AT(np),
     .max = WORLD_RANKS_MAX,
     .arg = "N",
     .help = "processes; unless given, as many as mpirun or srun started, or as --ranks asks for, "
             "or a few on this machine"},
    {.name = "rank",
     .type = OPT_U64,
     AT(rank),
     .def = "0",
     .max = WORLD_RANKS_MAX - 1,
     .help = "this process' number, where each is started by itself: see --listen and --leader"},
    {.name = "listen",
     .letter = 'l',
     .type = OPT_STRING,
     AT(listen),
     .arg = "ADDR",
     .help =
         "rank 0: wait on this address (0.0.0.0: all) for the others; 'loopback': this machine"},
    {.name = "leader",
     .type = OPT_STRING,
     AT(leader),
     .arg = "HOST",
     .help = "ranks 1 and on: where rank 0 listens"},
    {.name = "port",
     .letter = 'p',
     .type = OPT_U64,
     AT(port),
     .def = "18515",
     .max = 65535,
     .help = "that rank 0 listens on"},
    {.name = "secret-file",
     .type = OPT_STRING,
     AT(secret_file),
     .arg = "FILE",
     .help = "all ranks' secret, 16 characters or more in one line ('-': stdin); "
             "$PLUMB_SECRET_FILE"},
    {.name = "wait",
     .type = OPT_DURATION,
     AT(wait_ns),
     .def = "60s",
     .help = "for all ranks to come"},
    {.name = "who",
     .type = OPT_FLAG,
     AT(who),
     .help = "list the ranks and their hosts as CSV, and measure nothing"},
    {.name = "backend",
     CHOICE(backend, collective_names),
     .def = "ring",
     .help = "ring, halving, doubling: our own algorithms; mpi, nccl: the library's; mpi-cuda: "
             "MPI's in a GPU's memory"},
    {.name = "transport",
     .type = OPT_CHOICE,
     FITTING,
     AT(transport),
     .choices = (fabric_names),
     .def = "shm",
     .scope = &by_own,
     .help = "what carries the messages of our own; between machines tcp and rdma unless given"},
    {.name = "device",
     .type = OPT_STRING,
     SWEPT,
     AT(device),
     .arg = "NIC",
     .help = "interface or RDMA device (mlx5_0:1), the same at every rank unless its own command "
             "line says another; 'a+b': the ranks of a machine take them in turn; of a library: "
             "what must have carried the bytes, 'a+b': together"},
    {.name = "op", CHOICE(op, collective_ops_names), .def = "allreduce", .help = "the operation"},
    {.name = "dtype",
     .letter = 'd',
     CHOICE(dtype, collective_type_names),
     .def = "f32",
     .expand = collective_type_words,
     .help = "of an element; nccl-tests' names (float, half, ...) are known, too"},
    {.name = "redop",
     .letter = 'o',
     .type = OPT_CHOICE,
     FITTING,
     AT(redop),
     .choices = (collective_sum_names),
     .def = "sum",
     .scope = &sums,
     .help = "how elements are reduced"},
    {.name = "size",
     .letter = 's',
     .type = OPT_SIZE,
     FITTING,
     AT(size),
     .def = "8,1K,64K,1M,16M",
     .min = 1,
     .max = COLLECTIVE_BYTES_MAX,
     .scope = &by_size,
     .help = "of the vector, as nccl-tests has it: of all-gather the result's, of reduce-scatter "
             "the input's"},
    {.name = "min-bytes",
     .letter = 'b',
     .type = OPT_SIZE,
     AT(least),
     .def = "0",
     .max = COLLECTIVE_BYTES_MAX,
     .help = "sizes from this on, to --max-bytes, by --step-factor or --step-bytes"},
    {.name = "max-bytes",
     .letter = 'e',
     .type = OPT_SIZE,
     AT(most),
     .def = "0",
     .max = COLLECTIVE_BYTES_MAX,
     .help = "the largest of them"},
    {.name = "step-factor",
     .letter = 'f',
     .type = OPT_U64,
     AT(factor),
     .def = "0",
     .max = 1024,
     .help = "between two of them; 0: 2"},
    {.name = "step-bytes",
     .letter = 'i',
     .type = OPT_SIZE,
     AT(step),
     .def = "0",
     .max = COLLECTIVE_BYTES_MAX,
     .help = "the same, added"},
    {.name = "ranks",
     .type = OPT_U64,
     .flags = OPT_LIST | OPT_COLUMN | OPT_SPLITS,
     AT(ranks),
     .def = "0",
     .max = WORLD_RANKS_MAX,
     .help = "of the communicator; 0: 1, 2, 4, ... and all of them, in one launch"},
    {.name = "fill",
     CHOICE(fill, collective_fills),
     .def = "node",
     .help = "which ranks a communicator takes, and their order: a node whole before the next, or "
             "one of each node in turn"},
    {.name = "scaling",
     CHOICE(scaling, collective_scalings),
     .def = "weak",
     .help = "weak: every communicator reduces a vector of this size; strong: the size divided by "
             "its ranks"},
    {.name = "in-place",
     .type = OPT_FLAG,
     .flags = OPT_COLUMN,
     AT(in_place),
     .help = "input and result are one buffer"},
    {.name = "segment",
     .type = OPT_SIZE,
     FITTING,
     AT(segment),
     .def = "0",
     .max = 1ull << 30,
     .scope = &by_own,
     .help = "what messages are cut to, so that one is passed on before all of it has come; 0: "
             "chosen"},
    {.name = "algorithm",
     .type = OPT_STRING,
     FITTING,
     AT(algorithm),
     .arg = "NAME",
     .scope = &by_library,
     .help = "asked of the library; unless given, its own choice: see the column `chosen`"},
    {.name = "gap",
     .type = OPT_DURATION,
     SWEPT,
     AT(gap_ns),
     .def = "0",
     .help = "pause between operations, left out of their time; 0: back to back"},
    {.name = "overlap",
     .type = OPT_FLAG,
     .flags = OPT_COLUMN,
     AT(overlap),
     .help =
         "non-blocking, beside a matrix product that takes as long alone: the time of both, and "
         "the share that overlaps"},
    {.name = "model",
     .type = OPT_STRING,
     SWEPT,
     AT(model),
     .arg = "NAME",
     .help = "all gradients of this model (configs/models: resnet50, vgg16, bert-large, gpt2-xl) "
             "as one operation, fused to buckets; --size then says nothing"},
    {.name = "bucket",
     .type = OPT_SIZE,
     FITTING,
     AT(bucket),
     .def = "25M",
     .min = 1,
     .max = 1ull << 34,
     .scope = &(const struct opt_scope){"model=?*", "a --model"},
     .help = "of a model's gradients"},
    WIRE_OPT_BUFFER(FITTING, AT(buffer_bytes), .scope = &by_tcp),
    WIRE_OPT_CONGESTION(FITTING, AT(congestion), .scope = &by_tcp,
                        .help = "congestion control; unless given, the system's"),
    WIRE_OPT_BUSY_POLL(FITTING, AT(busy_poll_us), .scope = &by_tcp),
    WIRE_OPT_DATA_PORT(AT(data_port),
                       .help = "first port for the ranks' TCP connections, for firewalls; 0: any"),
    WIRE_OPT_MTU(FITTING, AT(mtu), .scope = &by_rdma),
    WIRE_OPT_GID_INDEX(FITTING, AT(gid_index), .scope = &by_rdma),
    WIRE_OPT_COMPLETION(FITTING, AT(completion), .scope = &by_rdma,
                        .help = "how a rank learns of it: it polls, or sleeps until an event"),
    {.name = "iterations",
     .letter = 'n',
     .type = OPT_U64,
     AT(iterations),
     .def = "0",
     .help =
         "ends after so many operations, neither sooner nor, unless --budget says so, later; 0: "
         "when it has converged"},
    {.name = "warmup-iterations",
     .letter = 'w',
     .type = OPT_U64,
     AT(warmups),
     .def = "1",
     .help = "0: no warm-up; else it is for as long as --warmup says"},
    {.name = "check",
     .letter = 'c',
     .type = OPT_U64,
     AT(verify),
     .def = "1",
     .help = "taken and left aside: results are always compared, outside of what is timed"},
    {.name = "no-cpu",
     .type = OPT_FLAG,
     AT(no_cpu),
     .help = "leave out what the CPUs spend, and the second that the idle machines are watched"},
    {.name = "inject",
     .type = OPT_CHOICE,
     .flags = OPT_HIDDEN,
     AT(inject),
     .def = "none",
     .choices = collective_injects,
     .help = "for tests: spoil the data, claim another path, leave a rank out; all must be found"},
    {.name = "sizes-chosen", .type = OPT_FLAG, .flags = OPT_HIDDEN, AT(sizes_chosen), .help = ""},
    {.name = NULL},
};

const struct bench bench = {
    .name = "allreduce",
    .help =
        "sums of vectors over a group of processes, and the other collectives, from 1 to N ranks",
    .about =
        "On one machine `plumb-allreduce --np 4`; under a launcher `mpirun -np 8 plumb-allreduce`\n"
        "or `srun`; without one, a rank each: `--np 4 --rank 0 --listen 0.0.0.0 --secret-file F` "
        "and\n"
        "`--np 4 --rank R --leader HOST --secret-file F`. Every communicator of --ranks is "
        "measured\n"
        "in the one launch. `time` is the slowest rank's; algbw is the vector's bytes over it; "
        "busbw\n"
        "is algbw x 2(n-1)/n for allreduce, (n-1)/n for reduce-scatter, all-gather and all-to-all, "
        "1 "
        "for\n"
        "broadcast and send-receive: what each wire carries where none carries anything twice, to "
        "be\n"
        "compared with the wire. Data are whole numbers whose sums are exact; every element of "
        "every\n"
        "rank's result is compared. The system's counters of every NIC prove which way the bytes "
        "went.",
    .needs = "group",
    .options = options,
    .params_size = sizeof(struct collective_params),
    .rows = &bench_rows,
    .defaults = collective_bench_defaults,
    .instead = collective_bench_instead,
    .wanted = collective_bench_wanted,
    .open = collective_bench_open,
    .close = collective_bench_close,
    .setup = collective_bench_setup,
    .begin = collective_bench_begin,
    .sample = collective_bench_sample,
    .check = collective_bench_check,
    .evidence = collective_bench_evidence,
    .teardown = collective_bench_teardown,
    .backends = collective_bench_backends,
};
