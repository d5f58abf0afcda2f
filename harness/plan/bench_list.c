/* SPDX-License-Identifier: Apache-2.0 */
/* What benchmarks there are: see bench_info.h. */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/plan/bench_info.h"

#define PREFIX       "plumb-"
#define PROGRAMS_MAX 64

int program_folder(char *path, size_t len)
{
    ssize_t n = readlink("/proc/self/exe", path, len - 1);

    if (n < 0)
        return -errno;
    path[n] = 0;
    char *slash = strrchr(path, '/');
    if (slash)
        *slash = 0;
    return 0;
}

/* Calls fn for the program's own folder, then each of PATH, until it returns non-zero. */
static int each_folder(int (*fn)(const char *folder, void *arg), void *arg)
{
    char own[4096];
    const char *env = getenv("PATH");
    int stop = program_folder(own, sizeof(own)) ? 0 : fn(own, arg);
    char *path = strdup(env ? env : ""), *save = path;

    for (char *folder; !stop && (folder = strsep(&save, ":")) != NULL;)
        if (*folder)
            stop = fn(folder, arg);
    free(path);
    return stop;
}

struct finding {
    const char *name;
    char *path;
};

static int find_in(const char *folder, void *arg)
{
    struct finding *f = arg;

    if (asprintf(&f->path, "%s/" PREFIX "%s", folder, f->name) < 0) {
        f->path = NULL;
        return 1;
    }
    if (!access(f->path, X_OK))
        return 1;
    free(f->path);
    f->path = NULL;
    return 0;
}

char *bench_find_program(const char *name)
{
    struct finding f = {.name = name};

    if (!*name || strchr(name, '/'))
        return NULL;
    each_folder(find_in, &f);
    return f.path;
}

/* A program that was found, and what came of asking it. */
struct program {
    const char *name; /* within path */
    char *path;       /* bench_info_ask() takes it over */
    struct bench_info info;
    char error[512];
    int err;
    pthread_t thread;
    bool runs; /* in a thread of its own */
};

struct programs {
    struct program all[PROGRAMS_MAX];
    size_t n;
};

static void *ask_program(void *arg)
{
    struct program *p = arg;

    p->err = bench_info_ask(p->name, p->path, NULL, &p->info, p->error, sizeof(p->error));
    return NULL;
}

static bool is_known(const struct programs *programs, const char *name)
{
    for (size_t i = 0; i < programs->n; i++)
        if (!strcmp(programs->all[i].name, name))
            return true;
    return false;
}

static int find_programs(const char *folder, void *arg)
{
    struct programs *programs = arg;
    struct dirent **entries;
    int n = scandir(folder, &entries, NULL, alphasort);

    for (int i = 0; i < n; i++) {
        const char *name = entries[i]->d_name + strlen(PREFIX);
        char *path = NULL;
        if (!strncmp(entries[i]->d_name, PREFIX, strlen(PREFIX)) && *name && !strchr(name, '.') &&
            !is_known(programs, name) && programs->n < PROGRAMS_MAX &&
            asprintf(&path, "%s/%s", folder, entries[i]->d_name) >= 0) {
            if (access(path, X_OK)) {
                free(path);
            } else {
                name = strrchr(path, '/') + 1 + strlen(PREFIX);
                programs->all[programs->n++] = (struct program){.name = name, .path = path};
            }
        }
        free(entries[i]);
    }
    if (n >= 0)
        free(entries);
    return 0;
}

/* All at once: to look for its devices may cost a program a second, and most of it is waiting. */
static void ask_all(struct programs *programs)
{
    for (size_t i = 0; i < programs->n; i++) {
        struct program *p = &programs->all[i];
        p->runs = !pthread_create(&p->thread, NULL, ask_program, p);
    }
    for (size_t i = 0; i < programs->n; i++) {
        struct program *p = &programs->all[i];
        if (p->runs)
            pthread_join(p->thread, NULL);
        else
            ask_program(p);
    }
}

static int add_problem(struct bench_list *list, const char *error)
{
    char *problems = NULL;

    if (asprintf(&problems, "%s%s\n", list->problems ? list->problems : "", error) < 0)
        return -ENOMEM;
    free(list->problems);
    list->problems = problems;
    return 0;
}

static int take_programs(struct bench_list *list, struct programs *programs)
{
    int err = 0;

    list->benches = calloc(programs->n + 1, sizeof(*list->benches));
    for (size_t i = 0; i < programs->n; i++) {
        struct program *p = &programs->all[i];
        if (!p->err && list->benches)
            list->benches[list->n++] = p->info;
        else if (!p->err)
            bench_info_release(&p->info);
        else if (!err)
            err = add_problem(list, p->error);
    }
    return list->benches ? err : -ENOMEM;
}

int bench_list_load(struct bench_list *list)
{
    struct programs *programs = calloc(1, sizeof(*programs));

    *list = (struct bench_list){0};
    if (!programs)
        return -ENOMEM;
    each_folder(find_programs, programs);
    ask_all(programs);
    int err = take_programs(list, programs);
    free(programs);
    if (err)
        bench_list_release(list);
    return err;
}

void bench_list_release(struct bench_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        bench_info_release(&list->benches[i]);
    free(list->benches);
    free(list->problems);
    *list = (struct bench_list){0};
}

const struct bench_info *bench_list_find(const struct bench_list *list, const char *name)
{
    for (size_t i = 0; i < list->n; i++)
        if (!strcmp(list->benches[i].name, name))
            return &list->benches[i];
    return NULL;
}
