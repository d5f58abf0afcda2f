// SPDX-License-Identifier: Apache-2.0
/* What the probe concludes from trees that hold only the evidence. What could not be read is null, with a reason:
 * never 0, none or physical; and nothing that is there is refused for how it looks. */
#include "harness/limits/limits.h"
#include "tests/unit/probe_cases.h"
#include "tests/unit/unit.h"

#define N(list) (sizeof(list) / sizeof(*(list)))

static change_words words[] = {
    {"@metal", "proc/cpuinfo=flags\t\t: fpu sse4_2 avx2"},
    {"@guest", "proc/cpuinfo=flags\t\t: fpu sse4_2 hypervisor avx2"},
    {"@arm", "proc/cpuinfo=Features\t: fp asimd"},
    {"maker=", "sys/class/dmi/id/sys_vendor="},
    {"product=", "sys/class/dmi/id/product_name="},
    {"dmi:", "sys/class/dmi/id/"},
    {"dell", "sys/class/dmi/id/sys_vendor=Dell Inc."},
    {"r760", "sys/class/dmi/id/product_name=PowerEdge R760"},
    {"kthreads", "proc/2/comm=kthreadd"},
    {"ext4", "proc/mounts=/dev/sda1 / ext4 rw 0 0"},
    {"overlay", "proc/mounts=overlay / overlay rw 0 0"},
    {"my:", "proc/self/cgroup="},
    {"init:", "proc/1/cgroup="},
    {"v2:", "sys/fs/cgroup/"},
    {"v1:", "sys/fs/cgroup/cpu,cpuacct/"},
    {"absent=", "plumb/absent="},
    {"tells=", "plumb/net="},
    {"cpu:", "sys/devices/system/cpu/"},
    {"nodes:", "sys/devices/system/node/"},
    {"eth0:", "sys/class/net/eth0/"},
    {"bus5", "sys/bus/pci/devices/0000:00:05.0>../../../devices/pci0000:00/0000:00:05.0"},
    {"bus6", "sys/bus/pci/devices/0000:00:06.0>../../../devices/pci0000:00/0000:00:06.0"},
    {"bus:", "sys/bus/pci/devices/0000:00:05."},
    {"vf:", "sys/devices/pci0000:00/0000:00:05."},
    {"one:", "sys/devices/pci0000:00/0000:00:05.0/"},
    {"two:", "sys/devices/pci0000:00/0000:00:06.0/"},
    {"port:", "sys/class/infiniband/mlx5_0/ports/1/"},
    {"v:", "virtualization."},
    {"l:", "virtualization.limits."},
    {"gpu0:", "gpus.devices.0."},
    {NULL, NULL},
};

/* "kvm", and a machine of its own: no CPU flag of a hypervisor, and a maker and product that are none. */
#define METAL       "@metal|dell|r760|"
#define NONE        "v:hypervisor='none'|v:guest=false"
#define UNKNOWN     "v:hypervisor=null|v:guest=null"
#define IS(name)    "v:hypervisor='" name "'|v:guest=true"
#define CLASS(name) "v:container='" name "'"
/* Of 200 CPUs, as machines number those of one of two sockets. */
/* clang-format off */
#define TEN(t) #t "0," #t "2," #t "4," #t "6," #t "8,"
#define EVERY_SECOND_CPU \
    TEN(10) TEN(11) TEN(12) TEN(13) TEN(14) TEN(15) TEN(16) TEN(17) TEN(18) TEN(19) \
    TEN(20) TEN(21) TEN(22) TEN(23) TEN(24) TEN(25) TEN(26) TEN(27) TEN(28) "290"
/* clang-format on */
#define FOUR_CPUS                                                                                  \
    METAL "cpu:online=0-3|cpu:cpu0/topology/core_cpus=1|cpu:cpu1/topology/core_cpus=2|"            \
          "cpu:cpu2/topology/core_cpus=4|cpu:cpu3/topology/core_cpus=8|"                           \
          "cpu:cpu0/topology/package_cpus=3|cpu:cpu1/topology/package_cpus=3|"                     \
          "cpu:cpu2/topology/package_cpus=c|cpu:cpu3/topology/package_cpus=c|"                     \
          "cpu:cpu0/topology/physical_package_id=0|cpu:cpu1/topology/physical_package_id=0|"       \
          "cpu:cpu2/topology/physical_package_id=1|cpu:cpu3/topology/physical_package_id=1|"
#define CACHES                                                                                     \
    "cpu:cpu0/cache/index0/level=1|cpu:cpu0/cache/index0/type=Data|"                               \
    "cpu:cpu0/cache/index0/shared_cpu_map=1|cpu:cpu1/cache/index0/level=1|"                        \
    "cpu:cpu1/cache/index0/type=Data|cpu:cpu1/cache/index0/shared_cpu_map=2|"                      \
    "cpu:cpu2/cache/index0/level=1|cpu:cpu2/cache/index0/type=Data|"                               \
    "cpu:cpu2/cache/index0/shared_cpu_map=4|cpu:cpu3/cache/index0/level=1|"                        \
    "cpu:cpu3/cache/index0/type=Data|cpu:cpu3/cache/index0/shared_cpu_map=8|"
#define GPU5       "bus5|one:vendor=0x10de|one:device=0x2330|one:class=0x030200|"
#define NVIDIA     GPU5 "one:driver>../../../bus/pci/drivers/nvidia|"
#define REGION(n)  "0x0000001000000000 0x000000" n " 0x000000000014220c\n"
#define NO_REGION  "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
#define SMALL      "0x00000000d0000000 0x00000000d0ffffff 0x0000000000040200\n"
#define SIX(a, b)  SMALL a b NO_REGION NO_REGION NO_REGION
#define OPEN       "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.90.07  Release Build"
#define CLOSED     "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.90.07  Fri May 31"
#define NO_PEERMEM "absent=sys/module/nvidia_peermem\nsys/module/nv_peer_mem|"
#define MLX5                                                                                       \
    "bus6|two:vendor=0x15b3|two:class=0x020700|two:infiniband/mlx5_0/ports/1/state=4: ACTIVE|"     \
    "sys/class/infiniband/mlx5_0>../../devices/pci0000:00/0000:00:06.0/infiniband/mlx5_0|"
#define FOLLOWS(now, width, max, max_width)                                                        \
    METAL "bus5|one:vendor=0x15b3|one:class=0x020000|one:current_link_speed=" now                  \
          "|one:current_link_width=" width "|one:max_link_speed=" max                              \
          "|one:max_link_width=" max_width

static const struct fact_case {
    const char *files, *facts; /* facts as JSON writes them; a path alone is no key; ?check=state */
} cases[] = {
    /* Which hypervisor, and whether this is a guest. */
    {METAL, NONE},
    {"@metal|maker=Amazon EC2|product=c7i.metal-24xl", NONE},
    {"@metal|maker=Google|product=Google Compute Engine", NONE},
    {"@arm|maker=Amazon EC2|product=c7g.metal", NONE},
    {"@arm|maker=Amazon EC2|product=c7g.large", IS("nitro")},
    {"@guest|maker=Amazon EC2|product=p5.48xlarge", IS("nitro")},
    {"@arm|maker=oVirt|product=oVirt Node", IS("kvm")},
    {"@arm|maker=Red Hat|product=RHEL|dmi:product_family=RHV", IS("kvm")},
    {"@arm|maker=Scaleway|product=SCW-COPARM1-2C-8G", IS("kvm")},
    {"@metal|maker=Scaleway|product=C2", NONE},
    {"@arm|maker=OpenStack Foundation|product=OpenStack Nova|dmi:chassis_asset_tag=HUAWEICLOUD",
     IS("qemu")},
    {"@guest|maker=Microsoft Corporation|product=Virtual Machine", IS("hyper-v")},
    {"@guest|maker=VMware, Inc.|product=VMware20,1", IS("vmware")},
    {"@metal|maker=VMware, Inc.|product=VMware7,1", IS("vmware")}, /* which hides the CPU flag */
    {"@guest|maker=innotek GmbH|product=VirtualBox", IS("virtualbox")},
    {"@metal|dmi:bios_vendor=innotek GmbH", IS("virtualbox")},
    {"@metal|dmi:board_name=VirtualBox", IS("virtualbox")},
    {"@guest|maker=QEMU|product=Standard PC (i440FX + PIIX, 1996)|plumb/hypervisor-vendor=KVM",
     IS("kvm")},
    /* KVM that poses as Hyper-V for Windows guests. */
    {"@guest|maker=QEMU|product=Standard PC|plumb/hypervisor-vendor=Microsoft", IS("qemu")},
    {"@arm|maker=QEMU|product=KVM Virtual Machine", IS("kvm")},
    {"@arm|maker=QEMU|product=QEMU Virtual Machine", IS("qemu")}, /* under macOS too */
    {"proc/cpuinfo=model name\t: QEMU TCG CPU version 2.5+\nflags\t\t: hypervisor|maker=QEMU|"
     "product=Standard PC (Q35 + ICH9, 2009)",
     IS("qemu-tcg")},
    {"@guest|maker=Cloud Hypervisor|product=cloud", IS("cloud-hypervisor")},
    {"@guest|sys/hypervisor/type=xen", IS("xen")},
    {"@metal|sys/hypervisor/type=xen|proc/xen/capabilities=control_d",
     "v:hypervisor='xen'|v:guest=false"},
    {"proc/device-tree/hypervisor/compatible=linux,kvm", IS("kvm")},
    {"@guest|proc/cmdline=reboot=k virtio_mmio.device=4K@0xd0000000:5", IS("firecracker")},
    {"@guest|sys/bus/acpi/devices/VMGENCTR:00/hid=VMGENCTR", IS("firecracker")},
    {"@arm|maker=Apple Inc.|product=Apple Virtualization Generic Platform", IS("apple")},
    {"@metal|maker=KubeVirt|product=None", IS("kvm")},
    {"@arm|maker=Hetzner|product=vServer", IS("kvm")},
    {"@metal|maker=Tencent Cloud|product=CVM", IS("kvm")},
    {"@metal|maker=Tencent Cloud|product=S5.LARGE8", UNKNOWN},
    {"@metal|maker=Some Cloud|product=Server|dmi:product_version=pc-i440fx-8.2", IS("qemu")},
    /* What would speak against a machine of its own was not read. */
    {"@metal", UNKNOWN},
    {"@metal|dell", UNKNOWN},
    {"@arm|dell|r760", UNKNOWN},
    {"@arm", UNKNOWN},
    {"@guest", "v:hypervisor=null|v:guest=true"},
    /* A device that hypervisors make, one that names its maker, and one whose maker could not be read. */
    {METAL "bus5|one:vendor=0x1af4|one:device=0x1041", UNKNOWN},
    {METAL "sys/bus/virtio/devices/virtio0/device=0x0001", UNKNOWN},
    {METAL "bus5|one:vendor=0x80ee|one:device=0xbeef", IS("virtualbox")},
    {METAL "bus5|one:device=0x1041", UNKNOWN},
    /* Containers; a disk image made from one; services of a host, named by their users. */
    {"kthreads|ext4", CLASS("none")},
    {".dockerenv=|kthreads|ext4", CLASS("none")},
    {"my:0::/system.slice/docker.service|kthreads|ext4", CLASS("none")},
    {"my:0::/system.slice/actions.runner.build-machine-1.service|kthreads|ext4", CLASS("none")},
    {"my:0::/user.slice/docker-test.slice/libpod-conmon-0123456789ab.scope|kthreads|ext4",
     CLASS("none")},
    {".dockerenv=|overlay", CLASS("docker")},
    {"my:0::/docker/0123456789abcdef", CLASS("docker")},
    {"init:0::/system.slice/docker-0123456789ab.scope", CLASS("docker")},
    {"init:5:cpu:/docker/0123456789abcdef", CLASS("docker")},
    {"my:0::/user.slice/libpod-0123456789ab.scope/container", CLASS("podman")},
    {"run/.containerenv=", CLASS("podman")},
    {"init:2:cpu:/kubepods/burstable/pod0a/0123456789abcdef", CLASS("kubernetes")},
    {"my:0::/kubepods.slice/kubepods-pod1.slice", CLASS("kubernetes")},
    {"run/secrets/kubernetes.io/token=x", CLASS("kubernetes")},
    {"init:0::/machine.slice/machine-a.scope/init.scope", CLASS("systemd-nspawn")},
    {"run/systemd/container=systemd-nspawn", CLASS("systemd-nspawn")},
    {"init:0::/lxc.payload.web/init.scope", CLASS("lxc")},
    {"init:7:cpu:/lxc/web", CLASS("lxc")},
    {"kthreads", "v:container=null"},
    {"ext4", "v:container=null"},
    {".dockerenv=|ext4", "v:container=null"},
    {"overlay", "v:container=null"},
    {"overlay|kthreads", "v:container=null"},
    /* The tightest limit on the way up holds, in both versions; "none" is known, and null is not. */
    {"my:0::/a/b|v2:a/b/cpu.max=max 100000|v2:a/cpu.max=150000 100000|v2:a/b/memory.max=8192|"
     "v2:a/memory.max=4096|absent=sys/fs/cgroup/cpu.max\nsys/fs/cgroup/memory.max",
     "l:cpu_quota=1.5|l:memory_bytes=4096"},
    {"my:0::/a|v2:a/cpu.max=max 100000|v2:a/memory.max=max|"
     "absent=sys/fs/cgroup/cpu.max\nsys/fs/cgroup/memory.max",
     "l:cpu_quota='none'|l:memory_bytes='none'"},
    {"my:0::/a/b|v2:a/b/cpu.max=150000 100000|v2:a/b/memory.max=4096|" /* the parent's may be tighter */
     "absent=sys/fs/cgroup/cpu.max\nsys/fs/cgroup/memory.max",
     "l:cpu_quota=null|l:memory_bytes=null"},
    {"proc/uptime=1 1", "l:cpu_quota=null|l:memory_bytes=null|v:container=null"},
    {"my:4:memory:/\n3:cpu,cpuacct:/x|v1:cpu.cfs_quota_us=-1|v1:x/cpu.cfs_quota_us=350000|"
     "v1:x/cpu.cfs_period_us=100000|v2:memory/memory.limit_in_bytes=9223372036854771712",
     "l:cpu_quota=3.5|l:memory_bytes='none'"},
    {"my:3:cpu,cpuacct:/x|v1:cpu.cfs_quota_us=-1|v1:x/cpu.cfs_quota_us=350000", /* no period */
     "l:cpu_quota=null"},
    /* Each controller is in a hierarchy of its own: memory in v1's, cpu in v2's, the other way round; where v2's file
     * was not read, nothing is known. */
    {"my:4:memory:/b\n0::/a|v2:memory/memory.limit_in_bytes=9223372036854771712|"
     "v2:memory/b/memory.limit_in_bytes=2147483648|v2:unified/a/cpu.max=150000 100000|"
     "v2:unified/a/memory.max=4096|absent=sys/fs/cgroup/cpu.max\nsys/fs/cgroup/unified/cpu.max",
     "l:cpu_quota=1.5|l:memory_bytes=2147483648"},
    {"my:3:cpu,cpuacct:/x\n0::/a|v1:cpu.cfs_quota_us=-1|v1:x/cpu.cfs_quota_us=350000|"
     "v1:x/cpu.cfs_period_us=100000|v2:a/cpu.max=100000 100000|v2:a/memory.max=4096|"
     "absent=sys/fs/cgroup/memory.max",
     "l:cpu_quota=3.5|l:memory_bytes=4096"},
    {"my:3:cpu,cpuacct:/x\n0::/a|v1:cpu.cfs_quota_us=-1|v1:x/cpu.cfs_quota_us=350000|"
     "v1:x/cpu.cfs_period_us=100000",
     "l:cpu_quota=3.5|l:memory_bytes=null"},
    {"my:0::/a|v2:a/cpu.max=100000 100000|v2:a/cpu.stat=usage_usec 5\nnr_periods 40\n"
     "nr_throttled 30|absent=sys/fs/cgroup/cpu.max\nsys/fs/cgroup/cpu.stat",
     "l:counters.throttled_periods=30"},
    {"my:0::/a|v2:a/cpu.max=100000 100000|absent=sys/fs/cgroup/cpu.max", "l:counters=null"},
    /* Policies differ on processors with two kinds of cores: the widest range is told. */
    {"cpu:cpufreq/policy0/scaling_governor=performance|cpu:cpufreq/policy0/"
     "cpuinfo_max_freq=3800000|"
     "cpu:cpufreq/policy0/cpuinfo_min_freq=800000|cpu:cpufreq/policy8/scaling_governor=powersave|"
     "cpu:cpufreq/policy8/cpuinfo_max_freq=5000000|cpu:cpufreq/policy8/cpuinfo_min_freq=400000",
     "cpu.clock.max_mhz=5000.0|cpu.clock.min_mhz=400.0|?governor=found"},
    /* Options that move results are told; the rest of the line may hold secrets. */
    {"proc/cmdline=root=/dev/sda1 isolcpus=2-7 token=abc nosmt -- mitigations=off",
     "host.kernel_options=['isolcpus=2-7', 'nosmt']"},
    /* Load and limits. */
    {"proc/loadavg=2.50 1.00 0.50 5/100 4711", "load.average_1min=2.5|load.running_tasks=5"},
    {"proc/loadavg=4.00 1.00 1.00", "load.running_tasks=null"},
    {"proc/loadavg=none", "load.average_1min=null"},
    {"proc/pressure/cpu=some avg10=1.00 avg60=4.25 avg300=0.00 total=1",
     "load.cpu_pressure.percent_60s=4.25"},
    {"proc/pressure/memory=some avg10=1.00 avg60=4.25", "load.cpu_pressure=null"},
    {"proc/stat=cpu  500 50 200 7 7 20 30 100 0 0\ncpu0 1",
     "load.wanted_cpu_seconds=9.0|load.stolen_cpu_seconds=1.0"},
    {"proc/stat=cpu  500 0 200", "load.stolen_cpu_seconds=null"},
    {"proc/vmstat=pswpin 3\npswpout 7", "load.swapped_out_pages=7"},
    {"proc/meminfo=MemTotal: 100 kB\nSwapTotal: 8 kB\nSwapFree: 4 kB", "load.swap_used_bytes=4096"},
    {"proc/meminfo=SwapTotal: 4 kB\nSwapFree: 8 kB", "load.swap_used_bytes=null"},
    {"proc/meminfo=MemTotal: 100 kB\nSwapTotal: 0 kB", "memory.swap_bytes=0"},
    {"plumb/shm=67108864 4096", "process.shared_memory_bytes=67108864"},
    {"plumb/shm=4096 67108864", "process.shared_memory_bytes=null"},
    {"proc/self/limits=Limit Soft\nMax locked memory         65536     unlimited  bytes",
     "process.locked_memory_bytes=65536"},
    {"proc/self/limits=Max open files unlimited 1 f",
     "process.open_files='unlimited'|process.stack_bytes=null"},
    {"proc/self/status=CapEff:\t0000000000004000|proc/self/uid_map=0 0 4294967295",
     "process.may_lock_memory=true"},
    {"proc/self/status=CapEff:\t0000000000004000|proc/self/uid_map=0 1000 1",
     "process.may_lock_memory=false"},
    {"proc/self/status=CapEff:\t0000000000004000", "process.may_lock_memory=null"},
    {"proc/self/status=CapEff:\t0000000000003000", "process.may_lock_memory=false"},
    {"cpu:isolated=2-7", "cpu.isolated_cpus='2-7'"},
    {"cpu:isolated=", "cpu.isolated_cpus=''"},
    {"cpu:isolated=" EVERY_SECOND_CPU, "cpu.isolated_cpus='" EVERY_SECOND_CPU "'"},
    {"cpu:online=0", "cpu.isolated_cpus=null"},
    {"cpu:cpu0/cpuidle/state3/latency=133|cpu:cpu0/cpuidle/state3/disable=1",
     "cpu.idle.states.0.exit_latency_us=133|cpu.idle.states.0.disabled=true"},
    /* Interfaces. Words that are no numbers, and lines that are cut short. */
    {"proc/sys/net/ipv4/tcp_rmem=4096\t131072\t6291456", "tcp.receive_auto_bytes=6291456"},
    {"proc/net/route=Iface\tDestination\tGateway\neth0 0010A8C0 0 1 0 0 0 00FFFFFF 0\n"
     "eth1\t00000000\t0110A8C0\t0003\t0\t0\t0\t00000000\t0",
     "tcp.default_interfaces=['eth1']"},
    {"eth0:mtu=1500|tells=eth0 max_mtu 9000\neth0 rings rx=256 rx_max=4096",
     "network.0.max_mtu=9000|network.0.rings.rx_max=4096|network.0.counters=null|network.0.bond"},
    {"eth0:mtu=1500|tells=eth1 max_mtu 9000", "network.0.max_mtu=null"},
    {"eth0:mtu=1500|tells=eth0 qdisc mq\neth0 qdisc tbf rate_gbits_per_s=1.5\neth0 qdisc mq",
     "network.0.qdiscs=[{'kind': 'mq'}, {'kind': 'tbf', 'rate_gbits_per_s': 1.5}]"},
    {"eth0:mtu=1500|tells=eth0 qdisc netem delay_us=x =1 loss\neth0 qdisc\neth0\n",
     "network.0.qdiscs=[{'kind': 'netem'}]"},
    {"eth0:statistics/rx_dropped=5",
     "network.0.counters.rx_dropped=5|network.0.counters.tx_errors=null"},
    {"eth0:statistics/rx_dropped=5|absent=sys/class/net/eth0/statistics/tx_errors",
     "network.0.counters.tx_errors"},
    {"eth0:queues/rx-0/x=|eth0:queues/rx-1/x=|eth0:queues/tx-0/x=", "network.0.queues.receive=2"},
    {"eth0:mtu=1500|proc/interrupts=   CPU0\n 40:  1 2 PCI-MSI 1-edge  eth0-TxRx-0\n"
     " 41:  0 0  mlx5_comp0@eth0\n 42:  9  9  eth01\n 43: 0 0 eth0-config\nNMI:  1 2 eth0|"
     "proc/irq/40/effective_affinity_list=2|proc/irq/41/effective_affinity_list=5",
     "network.0.interrupts.cpus='2,5'"},
    {"eth0:mtu=1500|proc/interrupts=40: 1 eth0-0\n41: 1 "
     "eth0-1|proc/irq/40/effective_affinity_list=2",
     "network.0.interrupts.cpus=null"},
    {"eth0:bonding/slaves=eth1 eth2|eth0:bonding/mode=balance-rr 0",
     "network.0.bond.members=['eth1', 'eth2']|network.0.bond.mode='balance-rr'"},
    {"eth0:mtu=-5 nonsense", "network.0.mtu=null|network.0.kind=null|network.0.nature='unknown'"},
    {"eth0:mtu=-5", "network.0.mtu=null"},
    /* Processors, caches, nodes. */
    {FOUR_CPUS "proc/device-tree/soc/24091000.qcom/reg=1|cpu:self>.|dmi:subsystem>.",
     "cpu.threads=4|cpu.sockets=2|pci=null|network=null|rdma=null|caches=null|v:container=null|"
     "l:cpu_quota=null|cpu.clock.drivers=null|gpus.devices=null|gpus.nvml=null"},
    {FOUR_CPUS "proc/cpuinfo=system type\t\t: generic-loongson-machine\n\nprocessor\t\t: 0\n"
               "Model Name\t\t: Loongson-3A5000\nFeatures\t\t: cpucfg lam ual fpu lsx lasx",
     "cpu.threads=4|cpu.vendor=null|cpu.model='Loongson-3A5000'|cpu.features.lasx=true|"
     "cpu.model_number=null"},
    {FOUR_CPUS
     "proc/cpuinfo=Processor\t: ARMv7 Processor rev 10 (v7l)\nprocessor\t: 0\n\n"
     "Features\t: swp half thumb vfp neon vfpv3\nCPU implementer\t: 0x41\nCPU part\t: 0xc09",
     "cpu.vendor='ARM'|cpu.model=null|cpu.features.neon=true"},
    {FOUR_CPUS "proc/cpuinfo=processor\t: 0\ncpu\t\t: POWER9 (architected), altivec supported\n\n"
               "model\t\t: IBM,9009-42A",
     "cpu.vendor=null|cpu.model='POWER9 (architected), altivec supported'"},
    /* Clusters of one ARM chip, which older kernels number as packages; and two equal sockets. */
    {FOUR_CPUS "proc/cpuinfo=processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd05\n\n"
               "processor\t: 2\nCPU implementer\t: 0x41\nCPU part\t: 0xd41\n",
     "cpu.sockets=1|cpu.cores=4"},
    {FOUR_CPUS "proc/cpuinfo=processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd05\n|"
               "proc/device-tree/cpus/cpu-map/cluster0/core0/cpu=0",
     "cpu.sockets=1"},
    {FOUR_CPUS "proc/cpuinfo=processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n\n"
               "processor\t: 2\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n",
     "cpu.sockets=2"},
    /* A package whose file lacks, and packages that overlap, of which hwloc drops one. */
    {FOUR_CPUS "!cpu:cpu2/topology/package_cpus|!cpu:cpu3/topology/package_cpus",
     "cpu.sockets=null|cpu.cores=4"},
    {FOUR_CPUS "cpu:cpu2/topology/package_cpus=e|cpu:cpu3/topology/package_cpus=e",
     "cpu.sockets=null"},
    {FOUR_CPUS CACHES, "caches.0.count=4|caches.0.size_bytes=null|caches.0.line_bytes=null"},
    {FOUR_CPUS CACHES "!cpu:cpu2/cache/index0/shared_cpu_map", "caches=null"},
    {METAL "cpu:online=0|cpu:cpu0/topology/core_cpus=1|cpu:cpu0/topology/package_cpus=1|"
           "cpu:cpu0/topology/physical_package_id=0|cpu:cpu0/cache/index0/level=1|"
           "cpu:cpu0/cache/index0/type=Data|cpu:cpu0/cache/index0/shared_cpu_map=1|"
           "cpu:cpu0/cache/index0/size=512K|cpu:cpu0/cache/index0/coherency_line_size=128",
     "caches.0.level=1|caches.0.size_bytes=524288|caches.0.line_bytes=128"},
    /* Memory without CPUs beside two nodes with them: it has none, and not its neighbour's. */
    {FOUR_CPUS "nodes:online=0-2|nodes:node0/cpulist=0-1|nodes:node0/cpumap=3|nodes:node1/cpumap=c|"
               "nodes:node2/cpulist=|nodes:node2/cpumap=0|nodes:node0/distance=10 20 17|"
               "nodes:node1/distance=20 10 28|nodes:node2/distance=17 28 10",
     "numa.nodes.0.cpus='0-1'|numa.nodes.1.cpus='2-3'|numa.nodes.2.cpus=''|"
     "numa.nodes.0.memory_bytes=null|numa.nodes.1.distances=[20, 10, 28]"},
    /* Devices. */
    {METAL "bus5|one:class=0x020000",
     "pci.0.vendor_id=null|pci.0.device_id=null|pci.0.subsystem_vendor_id=null|"
     "pci.0.subsystem_device_id=null|pci.0.driver=null|pci.0.link=null|pci.0.nature='unknown'"},
    /* Virtual functions on a host: by the other's link, by the id, and where nothing tells, not known. */
    {METAL
     "bus5|one:vendor=0x15b3|one:class=0x020000|one:virtfn0>../0000:00:05.1|vf:1|vf:1/"
     "vendor=0x15b3|"
     "vf:1/class=0x020000|vf:2|vf:2/vendor=0x15b3|vf:2/class=0x020000|vf:2/device=0x101e|vf:3|"
     "vf:3/vendor=0x15b3|vf:3/class=0x020000|bus:1>../../../devices/pci0000:00/0000:00:05.1|"
     "bus:2>../../../devices/pci0000:00/0000:00:05.2|bus:3>../../../devices/pci0000:00/"
     "0000:00:05.3",
     "pci.0.nature='physical'|pci.1.nature='sriov-vf'|pci.2.nature='sriov-vf'|pci.3.nature='"
     "unknown'"},
    {FOLLOWS("16.0 GT/s PCIe", "16", "16.0 GT/s PCIe", "16"),
     "pci.0.link.generation=4|pci.0.link.downtrained=false|?pcie-link=fine"},
    {FOLLOWS("8 GT/s", "8", "8 GT/s", "8"), "pci.0.link.generation=3"}, /* before Linux 5.4 */
    {FOLLOWS("8.0 GT/s PCIe", "8", "16.0 GT/s PCIe", "16"),
     "pci.0.link.generation=3|pci.0.link.downtrained=true|?pcie-link=found"},
    {FOLLOWS("16.0 GT/s PCIe", "4", "16.0 GT/s PCIe", "8"), "pci.0.link.downtrained=true"},
    {FOLLOWS("2.5 GT/s PCIe", "2", "2.5 GT/s PCIe", "2"), "pci.0.link.now_gbytes_per_s=0.5"},
    {FOLLOWS("5.0 GT/s PCIe", "8", "5.0 GT/s PCIe", "8"), "pci.0.link.now_gbytes_per_s=4.0"},
    {FOLLOWS("64.0 GT/s PCIe", "16", "64.0 GT/s PCIe", "16"), "pci.0.link.now_gbytes_per_s=118.0"},
    {FOLLOWS("Unknown", "0", "Unknown", "255"), "pci.0.link=null"},
    {FOLLOWS("16.0 GT/s PCIe", "0", "16.0 GT/s PCIe", "16"), "pci.0.link=null"},
    {FOLLOWS("2.5 GT/s PCIe", "63", "16.0 GT/s PCIe", "16"), "pci.0.link=null"},
    {FOLLOWS("nan", "16", "inf", "16"), "pci.0.link=null"},
    /* An adapter for 16 lanes at x8: its port may have no more, but the list does not have the port. */
    {METAL
     "sys/bus/pci/devices/0000:01:00.0>../../../devices/pci0000:00/0000:00:05.0/0000:01:00.0|"
     "one:0000:01:00.0/vendor=0x15b3|one:0000:01:00.0/class=0x020000|"
     "one:0000:01:00.0/current_link_speed=16.0 GT/s PCIe|one:0000:01:00.0/current_link_width=8|"
     "one:0000:01:00.0/max_link_speed=16.0 GT/s PCIe|one:0000:01:00.0/max_link_width=16",
     "pci.0.link.now_width=8|pci.0.link.downtrained=null|pci.0.link.best_width=null|"
     "pci.0.path_gbytes_per_s=null"},
    {METAL "bus5|one:vendor=0x15b3|one:class=0x020000|absent=sys/devices/pci0000:00/0000:00:05.0/"
           "aer_dev_fatal|one:aer_dev_correctable=RxErr 3\nBadTLP 1\nTOTAL_ERR_COR 4|"
           "one:aer_dev_nonfatal=Undefined 0",
     "pci.0.counters.correctable_errors=4|pci.0.counters.nonfatal_errors=null|"
     "pci.0.counters.fatal_errors"},
/* The MTU of RoCE as include/rdma/ib_addr.h takes it from the interface's. */
#define ROCE(mtu)                                                                                  \
    METAL MLX5 "sys/class/net/eth0>../../devices/pci0000:00/0000:00:06.0/net/eth0|"                \
               "two:net/eth0/mtu=" mtu "|port:link_layer=Ethernet|"                                \
               "port:gids/0=fe80:0000:0000:0000:0000:0000:0000:0001|"                              \
               "port:gid_attrs/ndevs/0=eth0|port:counters/link_downed=2"
    {ROCE("1500"), "rdma.0.ports.0.roce_mtu_bytes=1024|rdma.0.ports.0.counters.link_downed=2|"
                   "rdma.0.ports.0.hw_counters=null"},
    {ROCE("4191"), "rdma.0.ports.0.roce_mtu_bytes=2048"},
    {ROCE("4192"), "rdma.0.ports.0.roce_mtu_bytes=4096"},
    {ROCE("300"), "rdma.0.ports.0.roce_mtu_bytes=null"},
#define GID(type)                                                                                  \
    "sys/class/infiniband/rxe0/parent=eth0|sys/class/infiniband/rxe0/ports/1/state=4: ACTIVE|"     \
    "sys/class/infiniband/rxe0/ports/1/link_layer=Ethernet|"                                       \
    "sys/class/infiniband/rxe0/ports/1/gids/0=fe80:0000:0000:0000:0000:0000:0000:0001|"            \
    "sys/class/infiniband/rxe0/ports/1/gid_attrs/types/0=" type
    {GID("IB/RoCE v1"), "?rdma-gid=found"},
    {GID("RoCE v2"), "?rdma-gid=fine"},
    /* GPUs: ways into their memory, */
    {METAL NO_PEERMEM NVIDIA MLX5
     "proc/sys/kernel/osrelease=5.12.0|proc/driver/nvidia/version=" OPEN,
     "gpus.driver_flavour='open'|gpus.gpudirect.dma_buf=true|?gpu-rdma=fine"},
    {METAL NO_PEERMEM NVIDIA MLX5
     "proc/sys/kernel/osrelease=5.11.22|proc/driver/nvidia/version=" OPEN,
     "gpus.gpudirect.dma_buf=null|?gpu-rdma=unknown"},
    {METAL NVIDIA MLX5 "proc/sys/kernel/osrelease=4.18.0-513.el8|sys/module/nvidia_peermem|"
                       "proc/driver/nvidia/version=" OPEN,
     "gpus.gpudirect.dma_buf=null|?gpu-rdma=fine"},
    {METAL NO_PEERMEM NVIDIA MLX5
     "proc/sys/kernel/osrelease=6.8.0|proc/driver/nvidia/version=" CLOSED,
     "gpus.driver_flavour='proprietary'|gpus.gpudirect.dma_buf=false|?gpu-rdma=found"},
    {METAL NVIDIA MLX5 "proc/sys/kernel/osrelease=6.8.0|sys/module/nvidia_peermem|"
                       "proc/driver/nvidia/version=" CLOSED,
     "gpus.gpudirect.dma_buf=false|?gpu-rdma=fine"},
    {METAL NO_PEERMEM NVIDIA MLX5 "proc/sys/kernel/osrelease=6.8.0",
     "gpus.driver_flavour=null|gpus.gpudirect.dma_buf=null|?gpu-rdma=unknown"},
    /* the window, wherever the largest stands; that of virtual functions, behind the first six, is another's; */
    {METAL NVIDIA "one:resource=" SIX(REGION("2fffffffff"), NO_REGION),
     "gpu0:bar1_bytes=137438953472|gpu0:bar1_best_bytes=null"},
    {METAL NVIDIA MLX5
     "one:resource2_resize=000000000000ffc0|one:resource=" SIX(NO_REGION, REGION("100fffffff")),
     "gpu0:bar1_bytes=268435456|gpu0:bar1_best_bytes=34359738368|?gpu-bar=found"},
    {METAL NVIDIA MLX5 "one:resource1_resize=0000000000000100|one:resource=" SIX(
         REGION("100fffffff"), NO_REGION) REGION("3fffffffff"),
     "gpu0:bar1_bytes=268435456|gpu0:bar1_best_bytes=268435456|?gpu-bar=fine"},
    {METAL NVIDIA "one:resource=garbage\n0x0 0xffffffffffffffff 0x0", "gpu0:bar1_bytes=null"},
    {METAL NVIDIA, "gpu0:bar1_bytes=null|gpus.driver_version=null|gpus.peer_memory_module=null"},
    /* pairs, of NVIDIA's; a recording is asked about neither NVML nor CUDA, and that is no finding; */
    {METAL NVIDIA
     "bus6|two:vendor=0x10de|two:class=0x030200|two:driver>../../../bus/pci/drivers/nvidia|"
     "sys/bus/pci/devices/0000:00:07.0>../../../devices/pci0000:00/0000:00:07.0|"
     "sys/devices/pci0000:00/0000:00:07.0/vendor=0x1002|"
     "sys/devices/pci0000:00/0000:00:07.0/class=0x030200",
     "gpus.pairs.0.a='0000:00:05.0'|gpus.pairs.0.b='0000:00:06.0'|gpus.pairs.0.relation='PHB'|"
     "gpus.pairs.0.p2p_read=null|gpus.pairs.1|gpus.cuda.works=null|?gpu-cuda=not applicable"},
    {"dev/nvidia0=", "gpus.devices=null"}, /* that the bus does not show. */
    {"etc/cufile.json={ // words\n 'properties': { 'allow_compat_mode' : false, } }",
     "gpus.gpudirect.storage_compatible=false"},
    {"etc/cufile.json={}", "gpus.gpudirect.storage_compatible=true"},
    {"absent=etc/cufile.json", "gpus.gpudirect.storage_compatible='none'"},
    {"proc/uptime=1 1", "gpus.gpudirect.storage_compatible=null"},
    {"var/run/nvidia-topologyd/virtualTopology.xml=<system/>", "gpus.nccl_topology_file=true"},
    /* What the recording says is not there is known not to be. */
    {FOUR_CPUS "absent=sys/class/infiniband\nsys/devices/system/cpu/cpufreq\nsys/module",
     "rdma=[]|cpu.clock.drivers=[]|gpus.peer_memory_module=false"},
};

static size_t check_fact(const struct fact_case *c, const json_t *machine, const struct change *f)
{
    const json_t *value = at_path(machine, f->path);
    char *text = value ? json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(12)) : NULL;
    char why[600];
    bool wrong = f->path[0] == '?'
                     ? strcmp(exam_state_name(state_of(machine, f->path + 1)), f->value) != 0
                     : !text != !f->known || (text && strcmp(text, f->value) != 0);

    snprintf(why, sizeof(why), "%s_why", f->path);
    if (json_is_null(value) && !json_is_string(at_path(machine, why)))
        wrong = true;
    if (wrong)
        print_error("case %td: %s is %s\n", c - cases, f->path,
                    f->path[0] == '?' ? exam_state_name(state_of(machine, f->path + 1))
                    : text            ? text
                                      : "not there");
    free(text);
    return wrong;
}

TEST(test_facts)
{
    size_t wrong = 0;

    for (size_t i = 0; i < N(cases); i++) {
        json_t *machine = probe_files(cases[i].files, words);
        const char *facts = cases[i].facts;
        struct change fact;

        while (next_change(&facts, &fact, words))
            wrong += check_fact(&cases[i], machine, &fact);
        json_decref(machine);
    }
    assert_int_equal(wrong, 0);
}

/* By ids, the CPU, and, of a GPU in a guest, the driver's name for it; an id that pci.ids lacks may be a virtual
 * function's. */
TEST(test_natures)
{
    static const struct {
        const char *cpu, *id, *subsystem, *class_code, *nature, *kind, *model;
    } natures[] = {
        {METAL, "15b3:101d", "15b3:0043", "020000", "physical", "ethernet", ""},
        {METAL, "1d0f:ec20", "1d0f:ec20", "020000", "physical", "ethernet", ""},
        {"@guest|", "15b3:101d", "15b3:0043", "020000", "passthrough", "ethernet", ""},
        {"@guest|", "15b3:101c", "15b3:0043", "020700", "sriov-vf", "infiniband", ""},
        {"@guest|", "8086:154c", "8086:0000", "020000", "sriov-vf", "ethernet", ""},
        {"@guest|", "8086:1889", "8086:0000", "020000", "sriov-vf", "ethernet", ""},
        {"@guest|", "1414:00ba", "1414:00ba", "020000", "sriov-vf", "ethernet", ""},
        {"@guest|", "1af4:1041", "1af4:1100", "020000", "paravirtual", "ethernet", ""},
        {"@guest|", "15ad:07b0", "15ad:07b0", "020000", "paravirtual", "ethernet", ""},
        {"@guest|", "15ad:0820", "15ad:0820", "028000", "paravirtual", "network", ""},
        {"@guest|", "1d0f:ec20", "1d0f:ec20", "020000", "paravirtual", "ethernet", ""},
        {"@guest|", "1d0f:8061", "1d0f:0000", "010802", "paravirtual", "nvme", ""},
        {"@guest|", "8086:100e", "1af4:1100", "020000", "emulated", "ethernet", ""},
        {"@guest|", "8086:10d3", "15ad:07d0", "020000", "emulated", "ethernet", ""},
        {"@guest|", "1b36:0010", "1af4:1100", "010802", "emulated", "nvme", ""},
        {"@guest|", "1002:740f", "1002:0c34", "038000", "passthrough", "gpu", ""},
        {"@guest|", "19e5:0222", "19e5:0051", "020000", "unknown", "ethernet", ""},
        {"@guest|", "1002:74b5", "1002:0000", "038000", "sriov-vf", "gpu", ""},
        {"@arm|", "15b3:101d", "15b3:0043", "020000", "unknown", "ethernet", ""},
        {"@guest|", "10de:2330", "10de:16c1", "030200", "unknown", "gpu", ""},
        {"@guest|", "10de:2330", "10de:16c1", "030200", "passthrough", "gpu", "A100-PCIE-40GB"},
        {"@guest|", "10de:2330", "10de:16c1", "030200", "passthrough", "gpu", "H100 80GB HBM3"},
        {"@guest|", "10de:2330", "10de:16c1", "030200", "vgpu", "gpu", "GRID T4-16Q"},
        {"@guest|", "10de:2330", "10de:16c1", "030200", "vgpu", "gpu", "NVIDIA A100-4-20C"},
        {"@guest|", "10de:2330", "10de:16c1", "030200", "vgpu", "gpu", "NVIDIA A100-1-5CME"},
        {"@guest|", "10de:2330", "10de:16c1", "030200", "vgpu", "gpu", "GRID M60-1B4"},
        {"@guest|", "10de:2330", "10de:16c1", "030200", "vgpu", "gpu", "NVIDIA L40S-48A"},
    };

    for (size_t i = 0; i < N(natures); i++) {
        char files[1024], model[128] = "";

        if (natures[i].model[0])
            snprintf(model, sizeof(model),
                     "proc/driver/nvidia/gpus/0000:00:05.0/information=Model: \t\t %s\nIRQ: 12",
                     natures[i].model);
        snprintf(files, sizeof(files),
                 "%sbus5|one:vendor=0x%.4s|one:device=0x%.4s|one:subsystem_vendor=0x%.4s|"
                 "one:subsystem_device=0x%.4s|one:class=0x%s|usr/share/misc/pci.ids=1002  AMD\n"
                 "\t740f  Aldebaran\n\t74b5  Aqua VF|%s",
                 natures[i].cpu, natures[i].id, natures[i].id + 5, natures[i].subsystem,
                 natures[i].subsystem + 5, natures[i].class_code, model);
        json_t *machine = probe_files(files, words);
        const json_t *d = at_path(machine, "pci.0"), *gpu = at_path(machine, "gpus.devices.0");
        if (strcmp(text_in(d, "nature"), natures[i].nature) ||
            strcmp(text_in(d, "kind"), natures[i].kind) ||
            (gpu && strcmp(text_in(gpu, "nature"), natures[i].nature)))
            fail_msg("%s %s: %s, %s", natures[i].id, natures[i].model, text_in(d, "nature"),
                     text_in(d, "kind"));
        json_decref(machine);
    }
}

/* A capability list at 0x40: power management, then PCI Express, with payloads of 256 bytes, read requests of 4096,
 * and relaxed ordering; root alone reads all of it. */
TEST(test_device_control)
{
    unsigned char config[256] = {[6] = 0x10,    [0x34] = 0x40, [0x40] = 1,   [0x41] = 0x60,
                                 [0x60] = 0x10, [0x68] = 0x30, [0x69] = 0x50};

    for (int whole = 0; whole < 2; whole++) {
        const struct change facts[] = {{"pci.0.max_payload_bytes", "256", true, false},
                                       {"pci.0.max_read_request_bytes", "4096", true, false},
                                       {"pci.0.relaxed_ordering", "true", true, false}};
        struct scratch s;

        scratch_open(&s);
        put_files(&s, METAL "bus5|one:vendor=0x15b3|one:class=0x020000", words);
        scratch_bytes(&s, "sys/devices/pci0000:00/0000:00:05.0/config", config, whole ? 256 : 64);
        json_t *machine = probe_and_close(&s);
        for (size_t i = 0; i < N(facts); i++)
            if (whole)
                assert_int_equal(check_fact(&cases[0], machine, &facts[i]), 0);
            else
                assert_true(json_is_null(at_path(machine, facts[i].path)));
        json_decref(machine);
    }
}

/* ---- a switch below a switch, whose link is at x8 */

#define ROOT_PORT "sys/devices/pci0000:00/0000:00:01.0"
#define UPPER     ROOT_PORT "/0000:01:00.0"
#define LEFT      UPPER "/0000:02:00.0/0000:03:00.0"
#define RIGHT     UPPER "/0000:02:01.0/0000:06:00.0"
#define GPU       LEFT "/0000:04:00.0/0000:05:00.0"

static void put_switches(const struct scratch *s)
{
    static const struct {
        const char *path, *class_code, *vendor;
    } functions[] = {{ROOT_PORT, "060400", "1000"},
                     {UPPER, "060400", "1000"},
                     {UPPER "/0000:02:00.0", "060400", "1000"},
                     {UPPER "/0000:02:01.0", "060400", "1000"},
                     {UPPER "/0000:02:02.0", "060400", "1000"},
                     {RIGHT, "060400", "1000"},
                     {LEFT, "060400", "1000"},
                     {LEFT "/0000:04:00.0", "060400", "1000"},
                     {LEFT "/0000:04:01.0", "060400", "1000"},
                     {RIGHT "/0000:07:00.0", "060400", "1000"},
                     {GPU, "030200", "10de"},
                     {LEFT "/0000:04:01.0/0000:0a:00.0", "020700", "15b3"},
                     {RIGHT "/0000:07:00.0/0000:08:00.0", "020700", "15b3"},
                     {UPPER "/0000:02:02.0/0000:0c:00.0", "020700", "15b3"}};

    put_files(s, METAL "absent=" GPU "/driver", words);
    for (size_t i = 0; i < N(functions); i++) {
        const char *path = functions[i].path;
        char files[1536];

        snprintf(files, sizeof(files),
                 "sys/bus/pci/devices/%s>../../../%s|%s/class=0x%s|%s/vendor=0x%s|"
                 "%s/current_link_speed=16.0 GT/s PCIe|%s/max_link_speed=16.0 GT/s PCIe|"
                 "%s/current_link_width=%s|%s/max_link_width=16",
                 strrchr(path, '/') + 1, path + strlen("sys/"), path, functions[i].class_code, path,
                 functions[i].vendor, path, path, path, strcmp(path, LEFT) ? "16" : "8", path);
        put_files(s, files, words);
    }
}

/* The limit's value; 0: there is none. */
static double limit_of(const json_t *limits, const char *key)
{
    const json_t *limit;
    size_t i;

    json_array_foreach (limits, i, limit)
        if (!strcmp(text_in(limit, "key"), key))
            return json_number_value(json_object_get(limit, "value"));
    return 0;
}

/* Two links on the way up, each told once, and how near the adapters are. The slow one above the GPU limits its
 * copies, 16 x 8 / 8 x 128/130 GB/s, though an idle GPU's own link at 2.5 GT/s is slower. */
TEST(test_switch_below_a_switch)
{
    static const char *const relations[] = {"PXB", "PIX", "PXB"};
    char err[1024] = "";
    struct limits *figures = limits_load("configs", NULL, err, sizeof(err));

    assert_non_null(figures);
    for (int idle = 0; idle < 2; idle++) {
        struct scratch s;
        json_t *limits;

        scratch_open(&s);
        put_switches(&s);
        if (idle)
            scratch_put(&s, GPU "/current_link_speed", "2.5 GT/s PCIe");
        json_t *machine = probe_and_close(&s);
        const json_t *gpu = at_path(machine, "pci.0");
        assert_string_equal(text_in(gpu, "address"), "0000:05:00.0");
        assert_int_equal(json_array_size(json_object_get(gpu, "uplinks")), 2);
        assert_string_equal(text_in(at_path(gpu, "uplinks.0"), "device"), "0000:03:00.0");
        assert_string_equal(text_in(at_path(gpu, "uplinks.1"), "device"), "0000:01:00.0");
        const json_t *pairs = json_object_get(machine, "proximity");
        assert_int_equal(json_array_size(pairs), 3);
        for (size_t i = 0; i < 3; i++)
            assert_string_equal(text_in(json_array_get(pairs, i), "relation"), relations[i]);
        assert_true(finds(machine, "pcie-link"));
        assert_int_equal(limits_machine(figures, machine, &limits), 0);
        assert_float_equal(limit_of(limits, "pcie.0000:05:00.0.gbytes_per_s"), 31.508, 1e-3);
        assert_float_equal(limit_of(limits, "pcie.0000:05:00.0.path_gbytes_per_s"), 15.754, 1e-3);
        assert_true(limit_of(limits, "pcie.0000:08:00.0.path_gbytes_per_s") == 0);
        json_decref(limits);
        json_decref(machine);
    }
    limits_free(figures);
}

/* ---- secrets, and lists of any length */

/* Addresses identify people's machines, and an environment holds secrets: none may reach the object. */
TEST(test_secrets_stay_out)
{
    static const char environment[] = "SECRET=mine\0container=lxc\0TERM=x\0";
    static const char *const secrets[] = {"22:33", "SERIAL", "11112222", "bbbb", "5678", "SECRET"};
    struct scratch s;

    scratch_open(&s);
    put_files(&s,
              "eth0:address=02:11:22:33:44:55|eth0:type=1|dmi:product_serial=SERIAL-1|"
              "dmi:product_uuid=11112222-3333|sys/class/infiniband/mlx5_0/node_guid=aaaa:bbbb|"
              "port:gids/0=fe80:0000:0000:0000:1234:5678:9abc:def0",
              words);
    scratch_bytes(&s, "proc/1/environ", environment, sizeof(environment) - 1);
    json_t *machine = probe_and_close(&s);
    assert_string_equal(text_in(json_object_get(machine, "virtualization"), "container"), "lxc");
    assert_int_equal(json_array_size(json_object_get(machine, "rdma")), 1);
    assert_int_equal(json_array_size(json_object_get(machine, "network")), 1);
    char *dump = json_dumps(machine, 0);
    for (size_t i = 0; i < N(secrets); i++)
        assert_null(strstr(dump, secrets[i]));
    free(dump);
    json_decref(machine);
}

TEST(test_distances_are_whole)
{
    char text[4096] = "";
    struct scratch s;

    scratch_open(&s);
    put_files(&s, FOUR_CPUS "nodes:node0/cpulist=0-3", words);
    for (int i = 0; i < 1000; i++)
        strcat(text, "10 ");
    scratch_put(&s, "sys/devices/system/node/node0/distance", text);
    json_t *machine = probe_and_close(&s);
    assert_int_equal(json_array_size(at_path(machine, "numa.nodes.0.distances")), 1000);
    json_decref(machine);
}
