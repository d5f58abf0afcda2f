/* SPDX-License-Identifier: Apache-2.0 */
/* Plots by gnuplot: see plot.h. */
#include "harness/report/plot.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/text.h"
#include "harness/child.h"

#define GNUPLOT_TIMEOUT_NS 120000000000ull

/* The one of a bundle, beside this program, however that was started. New text or NULL. */
static char *gnuplot_beside(void)
{
    char own[4096], *program = NULL;
    ssize_t n = readlink("/proc/self/exe", own, sizeof(own) - 1);

    own[n > 0 ? n : 0] = 0;
    char *slash = strrchr(own, '/');
    if (slash && asprintf(&program, "%.*s/gnuplot", (int)(slash - own), own) < 0)
        return NULL;
    if (program && !access(program, X_OK))
        return program;
    free(program);
    return NULL;
}

/* New text, or NULL when it is neither there nor in a folder of PATH. */
static char *find_gnuplot(void)
{
    char *beside = gnuplot_beside();

    return beside ? beside : path_program("gnuplot");
}

/* The script names its files without a folder. The shell, and not gnuplot, goes there: it takes the
 * folder's name as it is. */
static int run_script(const char *program, const char *folder, const char *script, char *error,
                      size_t len)
{
    const char *argv[] = {"/bin/sh", "-c", "cd -- \"$0\" && exec \"$1\" -d \"$2\"", folder, program,
                          script,    NULL};
    struct child_spec spec = {.argv = argv, .timeout_ns = GNUPLOT_TIMEOUT_NS};
    struct child_result result = {0};
    int err = child_run(&spec, &result);

    if (err) {
        snprintf(error, len, "cannot run \"%s\": %s", program, strerror(-err));
    } else if (result.timed_out || result.status) {
        err = -EIO;
        snprintf(error, len, "gnuplot %s: %.*s",
                 result.timed_out ? "did not end in time" : "failed", (int)len / 2,
                 result.err.text);
    }
    child_result_release(&result);
    return err;
}

static int run_gnuplot(const char *folder, char *error, size_t len)
{
    char *program = find_gnuplot();
    int err = program ? 0 : -ENOENT;

    if (err)
        snprintf(error, len, "there is no gnuplot: install the package gnuplot-nox");
    if (!err)
        err = run_script(program, folder, PLOT_SCRIPT, error, len);
    free(program);
    return err;
}

static int write_script(const struct plot *plots, size_t n, const char *folder, char *error,
                        size_t len)
{
    char *path = NULL;
    FILE *out;
    int err = 0;

    if (asprintf(&path, "%s/" PLOT_SCRIPT, folder) < 0)
        return -ENOMEM;
    out = fopen(path, "we");
    if (out) {
        plot_script_write(out, plots, n);
        err = stream_finish(out);
    } else {
        err = -errno;
    }
    if (err)
        snprintf(error, len, "cannot write \"%s\": %s", path, strerror(-err));
    free(path);
    return err;
}

int plot_draw(const struct plot *plots, size_t n, const char *folder, char *error, size_t len)
{
    int err;

    if (!n)
        return 0;
    err = write_script(plots, n, folder, error, len);
    return err ? err : run_gnuplot(folder, error, len);
}
