/* SPDX-License-Identifier: Apache-2.0 */
/* Where a machine's facts come from: see doctor.h. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/group/mpi.h"
#include "harness/doctor/doctor.h"
#include "harness/probe/probe.h"

/* The machine of a run's run.json, of "plumb doctor --json", or the object itself. */
static json_t *machine_in(json_t *json)
{
    json_t *machine = json_object_get(json, "machine");

    if (json_is_object(machine)) {
        /* A run keeps these beside the machine: two runs on one machine may differ in them. */
        if (json_object_get(json, "library_settings"))
            json_object_set(machine, "library_settings", json_object_get(json, "library_settings"));
        return json_incref(machine);
    }
    return json_object_get(json, "probe_schema") ? json_incref(json) : NULL;
}

static int load_file(const char *path, json_t **machine, char *error, size_t len)
{
    json_error_t where;
    json_t *json = json_load_file(path, JSON_REJECT_DUPLICATES, &where);

    if (!json && where.line < 0) {
        snprintf(error, len, "cannot read '%s': %s", path, strerror(errno));
        return errno ? -errno : -EIO;
    }
    *machine = json ? machine_in(json) : NULL;
    if (!json)
        snprintf(error, len, "'%s' is damaged: line %d: %s", path, where.line, where.text);
    else if (!*machine)
        snprintf(error, len,
                 "'%s' describes no machine: give a run folder, a recorded tree, or a file of "
                 "plumb probe --json",
                 path);
    json_decref(json);
    return *machine ? 0 : -EBADMSG;
}

static int load_tree(const char *path, uint64_t watch_ns, json_t **machine, char *error, size_t len)
{
    /* Before the probe: other ranks may end while it looks. */
    json_t *rank = path ? NULL : probe_rank((const char *const *)environ);
    int err = probe_machine(path, machine);

    if (!err && rank)
        json_object_set(*machine, "rank", rank);
    json_decref(rank);
    if (!err && !path && watch_ns)
        probe_watch(*machine, (double)watch_ns / 1e9);
    if (!err && !path) {
        json_object_set_new(*machine, "library_settings",
                            probe_settings((const char *const *)environ));
        if (mpi_launched() > 1)
            json_object_set_new(*machine, "launcher", json_string(mpi_launcher()));
    }
    if (err)
        snprintf(error, len, "cannot read '%s': %s", path ? path : "/",
                 err == -ENODATA ? "it is no run folder, and holds neither \"sys\" nor \"proc\""
                                 : strerror(-err));
    return err;
}

int doctor_load(const char *path, uint64_t watch_ns, json_t **machine, char *error, size_t len)
{
    char file[4096];
    struct stat st;

    *machine = NULL;
    if (!path || stat(path, &st) || !S_ISDIR(st.st_mode))
        return path ? load_file(path, machine, error, len)
                    : load_tree(NULL, watch_ns, machine, error, len);
    if ((size_t)snprintf(file, sizeof(file), "%s/run.json", path) < sizeof(file) &&
        !stat(file, &st))
        return load_file(file, machine, error, len);
    return load_tree(path, 0, machine, error, len);
}
