/* SPDX-License-Identifier: Apache-2.0 */
/* What is run on a host: see launcher.h and stream.h. The scripts of groups and of checks are in script_group.c. */
#include "harness/hosts/launcher.h"

/*
 * sh -c SCRIPT plumb TOKEN TASK PROGRAM ARGUMENT...
 *
 * In one line, and with a blank behind each '!', so that any login shell hands it on as it is. The secret is
 * read by the shell and given on by its own printf, so that it stands on no command line and in no file.
 * The watcher, `w`, waits for the end of standard input, which is the end of the connection.
 */
const char script_pair[] =
    "t=$1 m=$2 x=$3; shift 3; r=0; h=$(uname -n); " SCRIPT_LAUNCHED
    "[ $m = ranks ] && r=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-${SLURM_PROCID:-0}}}; "
    "b=begin; [ $r = 0 ] || b=peer; "
    "v=$(\"$x\" --version 2>&1 </dev/null); c=$?; v=$(printf \"%s\\n\" \"$v\" | head -n 1); "
    "[ $c = 0 ] || { printf \"plumb-missing %s %s|%s\\n\" $t \"$h\" \"$v\"; exit 127; }; "
    "printf \"plumb-$b %s %s|%s\\n\" $t \"$h\" \"$v\"; "
    "[ $r = 0 ] || exec \"$x\" \"$@\"; "
    "d=; p=; w=; trap \"exit 143\" TERM INT HUP; "
    "trap \"kill \\$p \\$w 2>/dev/null; rm -rf \\\"\\$d\\\"\" EXIT; " SCRIPT_SWEEP
    "[ $m = listen ] || d=$(mktemp -d \"${TMPDIR:-/tmp}/plumb.XXXXXX\") || "
    "{ printf \"plumb-missing %s %s|no folder for its rows\\n\" $t \"$h\"; exit 1; }; " SCRIPT_OWN
    "[ $m = ranks ] || { exec 3<&0; IFS= read -r s; }; "
    "case $m in "
    "ranks) \"$x\" \"$@\" --samples \"$d/s\" >\"$d/r\" & ;; "
    "lead) printf \"%s\\n\" \"$s\" | \"$x\" \"$@\" --samples \"$d/s\" >\"$d/r\" 3<&- & ;; "
    "*) printf \"%s\\n\" \"$s\" | \"$x\" \"$@\" 3<&- & ;; esac; p=$! ; s=; "
    "[ $m = ranks ] || { ( trap - EXIT; while IFS= read -r l; do :; done; kill $p; kill -CONT $p; "
    "for i in 1 2 3; do kill -0 $p || break; sleep 1; done; kill -9 $p; rm -rf \"$d\" ) "
    "<&3 3<&- >/dev/null 2>&1 & w=$! ; }; "
    "wait $p; c=$?; p=; [ $m = listen ] && exit $c; "
    "for f in r s; do : >>\"$d/$f\"; printf \"plumb-$f %s %d\\n\" $t $(wc -c <\"$d/$f\"); "
    "cat \"$d/$f\"; done; printf \"plumb-end %s %d\\n\" $t $c; exit 0";

static const struct {
    const char *script, *word;
} tasks[] = {
    [TASK_CHECK] = {script_check, "check"},       [TASK_LISTEN] = {script_pair, "listen"},
    [TASK_LEAD] = {script_pair, "lead"},          [TASK_RANKS] = {script_pair, "ranks"},
    [TASK_GROUP_LEAD] = {script_group, "lead"},   [TASK_GROUP_JOIN] = {script_group, "join"},
    [TASK_GROUP_RANKS] = {script_group, "ranks"},
};

void script_command(const struct hosts_order *order, struct words *w)
{
    const char *script = tasks[order->task].script;

    if (!order->shown) {
        words_add(w, "sh");
        words_add(w, "-c");
        words_add(w, script);
        words_add(w, "plumb");
        words_add(w, order->token);
        words_add(w, tasks[order->task].word);
    }
    if (!order->shown && script == script_group) {
        words_addf(w, "%u", order->first_rank);
        words_addf(w, "%u", order->n_ranks);
    }
    words_add(w, order->program);
    words_add_all(w, order->arguments);
}
