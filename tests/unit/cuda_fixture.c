/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda_fixture.h"

#include <glob.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* A path from the folder of this program, build/tests. */
static const char *beside(const char *path, char *full, size_t len)
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

    assert_true(n > 0);
    self[n] = 0;
    *strrchr(self, '/') = 0;
    assert_true((size_t)snprintf(full, len, "%s/%s", self, path) < len);
    return full;
}

bool cuda_fixture_real(void)
{
    const char *set = getenv("PLUMB_TEST_GPU");

    return set && !strcmp(set, "real");
}

bool cuda_fixture_module(void)
{
    char path[2 * PATH_MAX];

    if (getenv("PLUMB_CUDA_MODULE") ||
        !access(beside("../lib/plumbline/plumb-cuda.so", path, sizeof(path)), R_OK))
        return true;
    print_message("plumb-cuda.so was not built: there is no nvcc here\n");
    return false;
}

/* The one library of that name whatever its version, and an environment variable that names it. */
static bool stand_in(const char *variable, const char *pattern)
{
    char full[2 * PATH_MAX];
    glob_t found;
    bool one = !glob(beside(pattern, full, sizeof(full)), 0, NULL, &found) && found.gl_pathc;

    if (one)
        setenv(variable, found.gl_pathv[0], 1);
    else
        print_message("the simulated device was not built: no %s\n", full);
    globfree(&found);
    return one;
}

bool cuda_fixture_simulate(const char *machine)
{
    char full[2 * PATH_MAX], path[128];

    if (!cuda_fixture_module())
        return false;
    if (cuda_fixture_real())
        return true;
    snprintf(path, sizeof(path), "../../tests/sim/machines/%s.conf", machine);
    setenv("PLUMB_SIM_MACHINE", beside(path, full, sizeof(full)), 1);
    unsetenv("PLUMB_SIM_FAULT");
    return stand_in("PLUMB_LIBCUDA", "../sim/libcuda.so.1") &&
           stand_in("PLUMB_LIBCUBLASLT", "../sim/libcublasLt.so.*");
}

int cuda_fixture_open(const char *machine, struct cuda_fixture *f)
{
    char error[GPU_ERROR_BYTES] = "";
    const char *why = "";

    *f = (struct cuda_fixture){0};
    if (!cuda_fixture_simulate(machine))
        return 0;
    f->gpus = gpus_open();
    f->ops = gpus_module(f->gpus, &why);
    if (f->ops && !gpus_get(f->gpus, 0, &f->gpu, error, sizeof(error)) &&
        !f->ops->stream_open(f->gpu, &f->stream))
        return 0;
    print_message("the module does not start: %s %s\n", why, error);
    gpus_close(f->gpus);
    *f = (struct cuda_fixture){0};
    return -1;
}

void cuda_fixture_close(struct cuda_fixture *f)
{
    if (!f->ops)
        return;
    f->ops->stream_close(f->stream);
    gpus_close(f->gpus);
    *f = (struct cuda_fixture){0};
}

void cuda_fixture_child(void (*fn)(void *arg, char *text, size_t len), void *arg, char *text,
                        size_t len)
{
    static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGSYS};
    int ends[2], status;
    size_t got = 0;
    ssize_t n;

    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
            signal(signals[i], SIG_DFL); /* cmocka's own would go on with the next test here */
        text[0] = 0;
        fn(arg, text, len);
        ssize_t wrote = write(ends[1], text, strlen(text));
        _exit(wrote == (ssize_t)strlen(text) ? 0 : 1);
    }
    close(ends[1]);
    while (got + 1 < len && (n = read(ends[0], text + got, len - 1 - got)) > 0)
        got += (size_t)n;
    text[got] = 0;
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}
