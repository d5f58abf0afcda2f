#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2030,SC2031,SC2034,SC2129,SC2154,SC2317,SC2329 # cells reads out, section sets output, the guest calls sections
# plumb-net over RDMA with buffers in a simulated GPU's memory, which crashes a CPU that touches it and gives stale bytes to
# copies that are not flushed before: registered as dma-buf, by address, or refused.

# takes: guest
load env
load sections
load ../cli/rows

setup_file() {
    cd "$BATS_TEST_DIRNAME/../.." || exit
    guest_setup
    [[ -x build/bin/plumb-net ]] || no_guest 'plumb-net is not built'
    local part
    for part in build/lib/plumbline/plumb-{rdma,cuda}.so build/sim/lib{cuda.so.1,nvidia-ml.so.1,rdma-gpu.so}; do
        [[ -e $part ]] || no_guest "${part##*/} is not built (libibverbs-dev, nvcc; make sim)"
    done
    [[ ! -e $BATS_FILE_TMPDIR/no-guest ]] || return 0
    mkdir -p "$BATS_FILE_TMPDIR/job/build/sim"
    cp build/sim/*.so* "$BATS_FILE_TMPDIR/job/build/sim/"
    sections --mesh 2
}

setup() {
    cd "$BATS_TEST_DIRNAME/../.." || exit
    lab_guest
}

# What each section in the guest begins with. PLUMB_SIM_RDMA: how RDMA devices there register a GPU's memory.
in_guest() {
    umask 077
    echo 'a secret of these tests' >secret
    printf '[machine]\ngpus = 1\n[gpu]\nrdma_flush=yes\n' >gpu.conf
    export PLUMB_SIM_MACHINE=$PWD/gpu.conf PLUMB_LIBCUDA=$PWD/build/sim/libcuda.so.1 LD_LIBRARY_PATH=$PWD/build/sim
    listens() { ss -Hltn 'sport = :18515' | grep -q .; }
    serve() {
        LD_PRELOAD=$PWD/build/sim/librdma-gpu.so build/bin/plumb-net --listen 0.0.0.0 --secret-file secret \
            --device rxe0 "$@" >>server 2>&1 &
        for try in $(seq 3000); do listens && return; sleep 0.1; done
        cat server >&2
        exit 9
    }
    net() {
        LD_PRELOAD=$PWD/build/sim/librdma-gpu.so timeout 600 build/bin/plumb-net 10.0.0.1 --secret-file secret --wait 30s \
            --transport rdma --no-cpu --device rxe1 --warmup 100ms --csv "$@"
    }
}

# in_section NAME: what it left, and what its programs said.
in_section() {
    section "$1"
    out=$job/out
    cat "$job/server" "$job/err" 2>/dev/null || true
    cut -c1-2000 "$job/out" 2>/dev/null || true
    [ "$status" -eq 0 ]
    # Last, so that a log's end has it: why a row has no value.
    cells metric verb size status reason 2>/dev/null | grep -vE ' (ok|noisy) ' || true
}

# rows: "metric verb status origin" of what was measured, sorted.
rows() {
    paste -d' ' <(cells metric) <(cells verb) <(cells status) <(cells origin) |
        grep -E '^(bandwidth|latency) ' | sed 's/ noisy / ok /' | sort
}

all='bandwidth read ok simulated
bandwidth send ok simulated
bandwidth write ok simulated
bandwidth write-imm ok simulated
latency read ok simulated
latency send ok simulated
latency write ok simulated
latency write-imm ok simulated'

# every COLUMN PATTERN: each row of a metric that is measured has this.
every() {
    local cell n=0
    while IFS= read -r cell; do
        # shellcheck disable=SC2053 # a pattern is meant
        [[ $cell == $2 ]] || {
            echo "$1 is '$cell', not '$2'"
            return 1
        }
        n=$((n + 1))
    done < <(paste -d'|' <(cells metric) <(cells "$1") | sed -n 's/^\(bandwidth\|latency\)|//p')
    ((n > 0))
}

section_dmabuf() {
    export PLUMB_SIM_RDMA=dmabuf
    serve
    net --memory cuda:0 --peer-memory cuda:0 --pattern bandwidth,latency --verb write,write-imm,read,send --size 3000,300K \
        --budget 300ms --min-samples 5 >out 2>err
}

@test "every verb from and to GPU memory, registered as dma-buf: the data is right" {
    in_section dmabuf
    [ "$(rows | uniq)" = "$all" ]
    every detail '*, cuda:0 by dma-buf*'
    every peer_detail '*, cuda:0 by dma-buf*'
    every value '?*'
}

section_by_address() {
    export PLUMB_SIM_RDMA=peermem
    serve
    net --memory cuda:0 --pattern bandwidth,latency --verb write,write-imm,read,send --size 64K --budget 300ms --min-samples 5 >out 2>err
    net --peer-memory cuda:0 --pattern bandwidth,latency --verb write,write-imm,read,send --size 64K --budget 300ms --min-samples 5 >out2 2>>err
}

@test "GPU memory at one end, registered by address: the data is right, and the latency of write is told by immediate data" {
    in_section by_address
    [ "$(rows)" = "$all" ]
    every detail '*, cuda:0 by peermem*'
    every peer_detail '!(*cuda*)'
    paste -d'|' <(cells metric) <(cells verb) <(cells detail) | grep -q '^latency|write|.*, .*immediate'
    out=${out}2
    [ "$(rows)" = "$all" ]
    every detail '!(*cuda*)'
    every peer_detail '*, cuda:0 by peermem*'
}

section_more_ways() {
    export PLUMB_SIM_RDMA=dmabuf,peermem
    serve --memory cuda:0
    net --memory cuda:0 --pattern bandwidth --verb write,send --size 9M --direction both --min-samples 3 --budget 2s >out 2>err
    net --memory cuda:0 --pattern loaded-latency --verb write,send --size 64 --load-size 64K --completion poll,event \
        --budget 500ms --min-samples 5 >out2 2>>err
}

@test "messages in pieces, loaded latency, both directions, events: from and to GPU memory" {
    in_section more_ways
    every status '@(ok|noisy)'
    every origin simulated
    every peer_detail '*, cuda:0 by dma-buf*'
    out=${out}2
    [ "$(paste -d' ' <(cells metric) <(cells status) <(cells origin) | grep -cE '^loaded_latency (ok|noisy) simulated')" -eq 4 ]
}

section_wrong_data() {
    export PLUMB_SIM_RDMA=dmabuf
    serve
    net --memory cuda:0 --inject corrupt --pattern bandwidth,latency --verb write,read,send --size 64K --budget 300ms --min-samples 5 >out 2>err
    net --peer-memory cuda:0 --inject corrupt --pattern bandwidth,latency --verb write,read,send --size 64K --budget 300ms --min-samples 5 >out2 2>err
    true
}

@test "wrong data in GPU memory is found, at either end" {
    in_section wrong_data
    for out in "$out" "${out}2"; do
        [ "$(cells status | sort | uniq -c | tr -s ' ')" = ' 6 wrong' ]
        [ "$(cells code | sort -u)" = wrong-data ]
    done
}

section_no_way() {
    export PLUMB_SIM_RDMA=
    serve
    net --memory cuda:0 --pattern bandwidth --size 64K --budget 300ms >out 2>err
    net --peer-memory cuda:0 --pattern bandwidth --size 64K --budget 300ms >out2 2>err
    sed -i "s/^rdma_flush.*/dmabuf = no/" gpu.conf
    net --memory cuda:0 --pattern bandwidth --size 64K --budget 300ms >out3 2>err
    net --memory cuda:0 --inline 128 --pattern latency --size 64 --budget 300ms >out4 2>err
    true
}

@test "without any way to register it the row is skipped and says what was refused" {
    in_section no_way
    [ "$(cells status) $(cells origin)" = 'skipped simulated' ]
    [[ $(cells reason) == *"'cuda:0' "*"'rxe1:1'"*'ibv_reg_dmabuf_mr: '*'ibv_reg_mr: '*nvidia-peermem* ]]
    out=$job/out2
    row skipped "10.0.0.1*'cuda:0' *'rxe0:1'"
    out=$job/out3
    row skipped dma-buf
    out=$job/out4
    row skipped --inline
}

section_not_as_dmabuf() {
    export PLUMB_SIM_RDMA=peermem
    serve
    net --memory cuda:0 --pattern bandwidth --size 64K --budget 300ms --min-samples 3 >out 2>err
}

@test "a dma-buf that the RDMA device does not take: by address instead" {
    in_section not_as_dmabuf
    every status '@(ok|noisy)'
    every detail '*, cuda:0 by peermem*'
}

# Two GPUs and two devices, without a bus: rail N is GPU N with device N, at both ends. Each rail's both ends are one device.
section_rails() {
    rails() {
        LD_PRELOAD=$PWD/build/sim/librdma-gpu.so timeout 600 build/bin/plumb-net 10.0.0.1 --secret-file secret --wait 30s \
            --transport rdma --no-cpu --pattern bandwidth --size 64K --warmup 100ms --budget 300ms --min-samples 5 --csv "$@"
    }
    export PLUMB_SIM_RDMA=dmabuf
    printf '[machine]\ngpus = 2\n[gpu]\nrdma_flush=yes\n' >gpu.conf
    LD_PRELOAD=$PWD/build/sim/librdma-gpu.so build/bin/plumb-net --listen 0.0.0.0 --secret-file secret >>server 2>&1 &
    for try in $(seq 3000); do listens && break; sleep 0.1; done
    rails --rail rails --memory host,rail --peer-memory rail >out 2>err
    status=$?
    rails --rail 2 --memory rail >out2 2>>err
    build/bin/plumb-net --listen 0.0.0.0 --port 18516 --secret-file secret --device rxe0 >>server 2>&1 &
    PLUMB_SIM_RDMA='' LD_PRELOAD=$PWD/build/sim/librdma-gpu.so build/bin/plumb-net --listen 0.0.0.0 --port 18517 --secret-file secret >>server 2>&1 &
    PLUMB_LIBCUDA=/none build/bin/plumb-net --listen 0.0.0.0 --port 18518 --secret-file secret >>server 2>&1 &
    for try in $(seq 3000); do [[ -n $(ss -Hltn 'sport = :18518') && -n $(ss -Hltn 'sport = :18516') && -n $(ss -Hltn 'sport = :18517') ]] && break; sleep 0.1; done
    rails --port 18516 --rail 1 --memory host >out3 2>>err
    rails --port 18517 --rail 1 --peer-memory rail >out5 2>>err
    rails --port 18518 --rail 1 >out6 2>>err
    PLUMB_SIM_RDMA='' rails --rail 1 --memory rail >out4 2>>err
    return $status
}

@test "a rail's number is a GPU with its adapter at each end; a rail that is not there, or is claimed twice, is skipped or refused" {
    in_section rails
    seen=$(paste -d' ' <(cells metric) <(cells rail) <(cells rail_gpu) <(cells rail_device) <(cells carrier_device) <(cells memory) \
        <(cells peer_memory) <(cells gpu_direct) <(cells origin) | grep '^bandwidth ')
    [ "$seen" = 'bandwidth 0 cuda:0 rxe0:1 rxe0:1 host rail yes simulated
bandwidth 0 cuda:0 rxe0:1 rxe0:1 rail rail yes simulated
bandwidth 1 cuda:1 rxe1:1 rxe1:1 host rail yes simulated
bandwidth 1 cuda:1 rxe1:1 rxe1:1 rail rail yes simulated' ]
    every peer_detail '*cuda:[01] by dma-buf*'
    [ "$(paste -d' ' <(cells metric) <(cells rail) <(cells peer_detail) | grep -c '^bandwidth 1 rxe1:1.*cuda:1 by')" -eq 2 ]
    out=$job/out2
    row skipped 'rail 2: '
    out=$job/out3
    row failed '--device rxe0*rail 1 '
    out=$job/out4
    [ "$(cells status) $(cells rail) $(cells rail_gpu) $(cells gpu_direct)" = 'skipped 1 cuda:1 refused' ]
    row skipped 'cannot be registered'
    out=$job/out5
    [ "$(cells gpu_direct)" = refused ]
    row skipped '10.0.0.1*cannot be registered'
    out=$job/out6
    row skipped '10.0.0.1*rail 1 *no GPU'
}

section_rail_report() {
    export PLUMB_SIM_RDMA=
    printf '[machine]\ngpus = 2\n[gpu]\nrdma_flush=yes\n' >gpu.conf
    printf 'suite: rails\ndefaults: {repeat: 1, budget: 200ms, warmup: 100ms, min-samples: 5}\ncases:\n' >rails.yaml
    printf -- '  - {bench: net, transport: rdma, pattern: bandwidth, size: 64K, rail: rails, no-cpu: true%s}\n' \
        '' ', memory: rail, peer-memory: rail' >>rails.yaml
    LD_PRELOAD=$PWD/build/sim/librdma-gpu.so build/bin/plumb run ./rails.yaml --out run >out 2>err
}

@test "the answer of a run names the rails that have no GPUDirect, each with its adapter and its GPU" {
    in_section rail_report
    text=$(tr -s ' \n' ' ' <"$out")
    [[ $text == *'rail 0 (rxe0:1, cuda:0'*GPUDirect*'rail 1 (rxe1:1, cuda:1'*GPUDirect* ]]
}
