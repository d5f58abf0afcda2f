/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of a history during which other guests took the CPU: for tests. */
#ifndef PLUMB_TESTS_HISTORY_STOLEN_H
#define PLUMB_TESTS_HISTORY_STOLEN_H

#include "history_scene.h"

#define LAUNCHES 3
#define UNSAID   (-1.0)

/* Run i of host "one", of whose launches others took so much: percent, by case and launch. UNSAID: an empty cell. */
static inline void write_stolen(const struct scene *s, unsigned i,
                                double steal[CHECK_CASES][LAUNCHES], char *path, size_t len)
{
    char name[64], line[512], *all = NULL;
    size_t size, n = 0;
    FILE *to = open_memstream(&all, &size);

    write_run(s, "one", i, path, len);
    snprintf(name, sizeof(name), "one-%u/memory.csv", i);
    FILE *rows = fake_run_open(&s->root, name, "r");
    while (fgets(line, sizeof(line), rows)) {
        line[strcspn(line, "\n")] = '\0';
        double percent = n ? steal[(n - 1) / LAUNCHES][(n - 1) % LAUNCHES] : 0;
        fprintf(to, "%s,", line);
        if (!n++)
            fputs("steal_percent", to);
        else if (percent >= 0)
            fprintf(to, "%g", percent);
        fputc('\n', to);
    }
    fclose(rows);
    fclose(to);
    assert_int_equal(n, 1 + CHECK_CASES * LAUNCHES);
    fake_run_write(&s->root, name, all);
    free(all);
}

/* The same, and added; in every launch of the run others took `all`, if that is not UNSAID. */
static inline void add_stolen(const struct scene *s, unsigned i, double all, int standing)
{
    double steal[CHECK_CASES][LAUNCHES];
    char path[128], error[512] = "";

    for (size_t k = 0; k < sizeof(steal) / sizeof(**steal); k++)
        steal[k / LAUNCHES][k % LAUNCHES] = all;
    write_stolen(s, i, steal, path, sizeof(path));
    int err = add_as(s->db, path, standing, NULL, error, sizeof(error));
    if (err == -ENOSYS)
        skip();
    if (err)
        fail_msg("%d: %s", err, error);
}

static inline void read_db(const struct scene *s, struct history *h)
{
    char error[512] = "";
    struct history_db *db = open_db(s->db, false);

    assert_int_equal(history_db_read(db, "", "", NULL, h, error, sizeof(error)), 0);
    history_db_close(db);
}

/* The names of the baselines of a later run. */
static inline size_t baselines(const struct scene *s, size_t most, double limit, size_t *n_taken,
                               char *names, size_t len)
{
    const struct history_run run = {
        .name = "other", .host = "one", .suite = "quick", .started_utc = "2026-02-01T00:00:00Z"};
    struct history_sieve sieve = {.most = most, .steal_limit = limit};
    struct history_db *db = open_db(s->db, false);
    struct history_choice c;
    char error[512] = "";

    assert_int_equal(history_db_choose(db, &run, &sieve, &c, error, sizeof(error)), 0);
    *names = '\0';
    for (size_t i = 0; i < c.n; i++)
        snprintf(names + strlen(names), len - strlen(names), "%s%s", i ? " " : "", c.runs[i].name);
    history_db_close(db);
    *n_taken = c.n_taken;
    size_t n = c.n;
    history_choice_release(&c);
    return n;
}

#endif
