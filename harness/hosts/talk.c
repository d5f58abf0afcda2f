/* SPDX-License-Identifier: Apache-2.0 */
/* Words of launches on other hosts: see talk.h. */
#include "harness/hosts/talk.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/exit_code.h"
#include "core/group/meet.h"
#include "core/group/secret.h"
#include "harness/child.h"
#include "harness/hosts/host_launch.h"

int talk_give_up(struct talk *t, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(t->reason, sizeof(t->reason), format, args);
    va_end(args);
    return HOST_LAUNCH_FAILED;
}

static int ask_own_version(struct talk *t)
{
    const char *argv[] = {t->program, "--version", NULL};
    struct child_result r = {0};
    int err = child_run(&(struct child_spec){.argv = argv, .timeout_ns = t->run->wait_ns}, &r);

    if (!err && r.status)
        err = -ENOEXEC;
    if (!err)
        snprintf(t->version, sizeof(t->version), "%.*s", (int)strcspn(r.out.text, "\n"),
                 r.out.text);
    child_result_release(&r);
    return err;
}

int talk_begin(struct talk *t)
{
    int err = host_token(t->token);

    if (!err)
        err = meet_secret_make(t->secret, sizeof(t->secret));
    if (err)
        return talk_give_up(t, "no random numbers for a secret: %s", strerror(-err));
    err = ask_own_version(t);
    return err ? talk_give_up(t, "'%s' does not say its version: %s", t->program, strerror(-err))
               : 0;
}

void talk_end(struct talk *t)
{
    secret_wipe(t->secret, sizeof(t->secret));
}

/* ssh says why in its last line, mpirun and srun in their first. */
static const char *why_of(const struct hosts_run *run, const struct end *e)
{
    const char *why = run->launcher->ranks ? e->first : e->last;

    return *why ? why : "it ended without a word";
}

void talk_say_unreached(const struct hosts_run *run, const struct end *e, char *text, size_t len)
{
    char by[LAUNCHER_BY_SIZE], hint[LAUNCHER_HINT_SIZE];

    snprintf(text, len, "cannot reach '%s' %s: %s (status %d)%s", e->name, launcher_by(run, by),
             why_of(run, e), e->status, launcher_hint(run, e->name, hint));
}

static int say_unreached(struct talk *t, const struct end *e)
{
    char by[LAUNCHER_BY_SIZE];

    if (t->run->launcher->ranks)
        return talk_give_up(t, "cannot start on %s %s: %s (status %d)", t->where,
                            launcher_by(t->run, by), why_of(t->run, e), e->status);
    talk_say_unreached(t->run, e, t->reason, sizeof(t->reason));
    return HOST_LAUNCH_FAILED;
}

void talk_say_missing(const char *program, const char *host, const struct stream_hello *missing,
                      char *text, size_t len)
{
    snprintf(text, len,
             "'%s' does not start on '%s' (%s): %s; install it there at the same place, or say "
             "where with --remote-dir",
             program, host, missing->name, missing->version);
}

int talk_stopped(struct talk *t, const struct end *e, const char *program)
{
    struct stream_hello missing = stream_hello(e->output.text, "missing", t->token);

    if (missing.there)
        talk_say_missing(program, e->name, &missing, t->reason, sizeof(t->reason));
    else if (!stream_hello(e->output.text, "begin", t->token).there)
        return say_unreached(t, e);
    else
        talk_give_up(t, "on '%s': %s", e->name,
                     *e->last ? e->last : "it ended before its time, without a word");
    return HOST_LAUNCH_FAILED;
}

int talk_mute(struct talk *t, const struct end *e)
{
    char by[LAUNCHER_BY_SIZE];

    return talk_give_up(t, "'%s' does not answer: nothing came from it %s in %.3g s", e->name,
                        launcher_by(t->run, by), (double)t->run->wait_ns * 1e-9);
}

void talk_say_other_build(const char *host, const char *theirs, const char *ours, char *text,
                          size_t len)
{
    char there[STREAM_TEXT_MAX], here[STREAM_TEXT_MAX];

    snprintf(text, len,
             "the version on '%s' differs: it has %s, this machine %s; install the same build on "
             "all hosts",
             host, host_build(theirs, there, sizeof(there)), host_build(ours, here, sizeof(here)));
}

int talk_check_version(struct talk *t, const char *name, const char *version)
{
    char theirs[STREAM_TEXT_MAX], ours[STREAM_TEXT_MAX];

    host_build(version, theirs, sizeof(theirs));
    host_build(t->version, ours, sizeof(ours));
    if (!strcmp(theirs, ours))
        return 0;
    talk_say_other_build(name, version, t->version, t->reason, sizeof(t->reason));
    return HOST_LAUNCH_FAILED;
}

int talk_take_parts(struct talk *t, const struct end *e, const char *program)
{
    struct stream_parts parts;

    if (stream_parts(e->output.text, e->output.size, t->token, &parts))
        return stream_hello(e->output.text, "begin", t->token).there
                   ? talk_give_up(t, "the connection to '%s' broke before its rows had come: %s",
                                  e->name, *e->last ? e->last : "it ended without a word")
                   : talk_stopped(t, e, program);
    if (!exit_has_rows(parts.status))
        return talk_give_up(t, "on '%s' it ended with status %d%s%s", e->name, parts.status,
                            *e->last ? ": " : "", e->last);
    int err = write_all(STDOUT_FILENO, parts.rows, parts.n_rows);
    if (!err)
        err = write_all(CHILD_SAMPLES_FD, parts.samples, parts.n_samples);
    return err ? talk_give_up(t, "cannot hand on the rows of '%s': %s", e->name, strerror(-err))
               : parts.status;
}
