/* SPDX-License-Identifier: Apache-2.0 */
/* plumb check: its files, and what goes to stdout. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "harness/check/cmd.h"

struct writer {
    const char *path, *mode;
    int (*write)(FILE *out, const struct check_result *r);
};

static int write_file(struct check_command *c, const struct check_result *r, const struct writer *w)
{
    bool to_stdout = !strcmp(w->path, "-");
    FILE *out = to_stdout ? stdout : fopen(w->path, w->mode);
    int err = out ? w->write(out, r) : -errno;

    if (out && fflush(out) && !err)
        err = -errno;
    if (out && !to_stdout && fclose(out) && !err)
        err = -errno;
    if (err)
        snprintf(c->error, sizeof(c->error), "cannot write '%.400s': %s", w->path, strerror(-err));
    return err;
}

/* A step of GitHub has a page of its own, which grows. */
int check_write(struct check_command *c, const struct check_result *r)
{
    const struct check_options *o = &c->options;
    const char *summary = o->github ? getenv("GITHUB_STEP_SUMMARY") : NULL;
    const struct writer writers[] = {{o->junit, "we", output_junit},
                                     {o->markdown, "we", output_markdown},
                                     {o->json, "we", output_json},
                                     {o->github ? "-" : NULL, "we", output_github},
                                     {summary && *summary ? summary : NULL, "ae", output_markdown}};
    bool text = true;
    int err = 0;

    for (size_t i = 0; i < 3; i++)
        text = text && !(writers[i].path && !strcmp(writers[i].path, "-"));
    /* What others write must not be lost for one that cannot be written. */
    for (size_t i = 0; i < sizeof(writers) / sizeof(*writers); i++)
        if (writers[i].path) {
            int one = write_file(c, r, &writers[i]);
            err = err ? err : one;
        }
    if (text)
        output_text(stdout, r);
    return err;
}
