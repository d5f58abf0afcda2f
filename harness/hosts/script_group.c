/* SPDX-License-Identifier: Apache-2.0 */
/* What is run on a host for a group, and what is asked of it before: see launcher.h, stream.h and check.h. As script.c
 * says: in one line, with a blank behind each '!', and the secret is on no command line and in no file. */
#include "harness/hosts/launcher.h"

/*
 * sh -c SCRIPT plumb TOKEN MODE FIRST COUNT PROGRAM ARGUMENT...
 *
 * MODE lead: rank 0; join: COUNT ranks from FIRST on, each told its number and the secret; ranks: the one that mpirun or srun
 * started. What a rank writes to standard error comes out with "plumb-rank R " in front, through a FIFO each, so that the ranks are
 * this shell's own children and end when it says so. The launcher ends all ranks when one ends badly: one that was killed stays a while, so that rank 0 can say
 * who it was.
 */
const char script_group[] =
    "t=$1 m=$2 f=$3 n=$4 x=$5; shift 5; h=$(uname -n); b=begin; " SCRIPT_LAUNCHED
    "[ $m = ranks ] && f=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-${SLURM_PROCID:-0}}} && n=1 && "
    "[ $f != 0 ] && b=peer; "
    "v=$(\"$x\" --version 2>&1 </dev/null); c=$?; v=$(printf \"%s\\n\" \"$v\" | head -n 1); "
    "[ $c = 0 ] || { printf \"plumb-missing %s %s|%s\\n\" $t \"$h\" \"$v\"; exit 127; }; "
    "d=; p=; q=; w=; trap \"exit 143\" TERM INT HUP; "
    "trap \"kill \\$p \\$w 2>/dev/null; rm -rf \\\"\\$d\\\"\" EXIT; " SCRIPT_SWEEP
    "d=$(mktemp -d \"${TMPDIR:-/tmp}/plumb.XXXXXX\") || "
    "{ printf \"plumb-missing %s %s|no folder for its rows\\n\" $t \"$h\"; exit 1; }; "
    "printf \"plumb-$b %s %s|%s\\n\" $t \"$h\" \"$v\"; " SCRIPT_OWN
    "[ $m = ranks ] || { exec 3<&0; IFS= read -r s; }; "
    "i=$f; while [ $i -lt $((f + n)) ]; do mkfifo \"$d/e$i\" || exit 1; "
    "( trap - EXIT; exec 3<&-; while IFS= read -r l || [ -n \"$l\" ]; do "
    "printf \"plumb-rank %s %s\\n\" $i \"$l\" >&2; done ) <\"$d/e$i\" >/dev/null & q=\"$q $! \"; "
    "case $m$i in "
    "lead0) printf \"%s\\n\" \"$s\" | \"$x\" \"$@\" --samples \"$d/s\" >\"$d/r\" "
    "2>\"$d/e$i\" 3<&- "
    "& ;; "
    "ranks0) \"$x\" \"$@\" --samples \"$d/s\" >\"$d/r\" 2>\"$d/e$i\" & ;; "
    "ranks*) \"$x\" \"$@\" >/dev/null 2>\"$d/e$i\" & ;; "
    "*) printf \"%s\\n\" \"$s\" | \"$x\" \"$@\" --rank $i >/dev/null 2>\"$d/e$i\" 3<&- & ;; esac; "
    "p=\"$p $! \"; i=$((i + 1)); done; s=; "
    "( trap - EXIT; if [ $m = ranks ]; then [ -d /proc/$PPID ] || exit 0; "
    "while [ -d /proc/$PPID ] && [ -d /proc/$$ ]; do sleep 5; done; "
    "else while IFS= read -r l; do :; done <&3; fi; exec 3<&-; kill $p; kill -CONT $p; "
    "for i in 1 2 3; do a=; for k in $p; do kill -0 $k && a=1; done; [ \"$a\" ] || break; sleep 1; "
    "done; "
    "kill -9 $p; kill $q; rm -rf \"$d\" ) >/dev/null 2>&1 & w=$! ; "
    "c=0; for k in $p; do wait $k; e=$?; [ $c != 0 ] || c=$e; done; p=; wait $q; "
    "[ $m = join ] && exit $c; "
    "[ $f = 0 ] || { [ $c -gt 128 ] && { sleep 7; exit $c; }; exit 0; }; "
    "for k in r s; do : >>\"$d/$k\"; printf \"plumb-$k %s %d\\n\" $t $(wc -c <\"$d/$k\"); "
    "cat \"$d/$k\"; done; printf \"plumb-end %s %d\\n\" $t $c; exit 0";

/*
 * sh -c SCRIPT plumb TOKEN check PROGRAM...
 *
 * The clock first, next to the beginning; then each program's version, and the interfaces that are not down, with what the kernel
 * says of their speed: of what has a device, or is made of others. What veth and tun say is made up.
 */
const char script_check[] =
    "t=$1; shift 2; h=$(uname -n); printf \"plumb-begin %s %s|%s\\n\" $t \"$h\" \"$(date "
    "+%s.%N)\"; "
    "for x in \"$@\"; do v=$(\"$x\" --version 2>&1 </dev/null); c=$?; "
    "printf \"plumb-build %s %s|%s\\n\" $t $c \"$(printf \"%s\\n\" \"$v\" | head -n 1)\"; done; "
    "for i in /sys/class/net/*; do n=${i##*/}; [ $n = lo ] && continue; "
    "o=; [ -r $i/operstate ] && read -r o <$i/operstate; [ \"$o\" = down ] && continue; "
    "s=; for f in $i/device $i/lower_*; do [ -e $f ] && s=$(cat $i/speed 2>/dev/null); done; "
    "a=$(ip -o addr show dev $n scope global 2>/dev/null | while read -r z y k b l; do "
    "printf \"%s \" ${b%/*}; done); "
    "printf \"plumb-net %s %s|%s|%s\\n\" $t $n \"$s\" \"$a\"; done; "
    "for i in /sys/class/infiniband/*/ports/*; do [ -r $i/rate ] || continue; "
    "n=${i#/sys/class/infiniband/}; read -r s k <$i/rate; "
    "printf \"plumb-net %s %s|%s|\\n\" $t ${n%%/*}:${n##*/} ${s}G; done; "
    "printf \"plumb-done %s |\\n\" $t; exit 0";
