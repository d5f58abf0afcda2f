// SPDX-License-Identifier: Apache-2.0
/* plumb probe [--json] [--sysroot DIR] */
#include "core/exit_code.h"
#include "harness/probe/probe.h"

#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const char usage[] =
    "usage: plumb probe [--json] [--sysroot DIR]\n"
    "\n"
    "Says what this machine is: processor, memory, PCI links, network, GPUs; bare metal or\n"
    "virtual, and why; and what of it will bound the results.\n"
    "\n"
    "  --json         one JSON object on stdout instead of the table (keys: docs/probe.md)\n"
    "  --sysroot DIR  read a tree recorded by scripts/record-machine, not this machine\n"
    "  --help         this text\n"
    "\n"
    "exit status: 0 good, 2 usage error, 4 incomplete: the processor could not\n"
    "be read, or the output not be written whole\n";

static int probe_and_show(const char *sysroot, bool json)
{
    bool complete;
    json_t *machine;
    int rc = probe_machine(sysroot, &machine);

    if (rc) {
        fprintf(stderr,
                "plumb probe: cannot read \"%s\": %s; give the folder that holds the tree's "
                "\"sys\" and \"proc\"\n",
                sysroot ? sysroot : "/", rc == -ENODATA ? "it holds neither" : strerror(-rc));
        return EXIT_USAGE;
    }
    if (json) {
        rc = json_dumpf(machine, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
        putchar('\n');
    } else {
        rc = probe_print(stdout, machine);
    }
    complete = json_is_integer(json_object_get(json_object_get(machine, "cpu"), "threads"));
    json_decref(machine);
    if (!complete)
        fprintf(stderr,
                "plumb probe: the processor could not be read; the rest is as far as it goes\n");
    if (rc || fflush(stdout) || ferror(stdout)) {
        fprintf(stderr, "plumb probe: cannot write the whole output\n");
        return EXIT_INCOMPLETE;
    }
    return complete ? EXIT_GOOD : EXIT_INCOMPLETE;
}

int cmd_probe(int argc, char **argv)
{
    static const struct option options[] = {{"json", no_argument, NULL, 'j'},
                                            {"sysroot", required_argument, NULL, 's'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    const char *sysroot = NULL;
    bool json = false;
    int option;

    optind = 0; /* main has used getopt before us, or a test has */
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (option) {
        case 'j':
            json = true;
            break;
        case 's':
            sysroot = optarg;
            break;
        case 'h':
            fputs(usage, stdout);
            return EXIT_GOOD;
        default:
            fputs("plumb probe: see \"plumb probe --help\"\n", stderr);
            return EXIT_USAGE;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "plumb probe: unexpected \"%s\"; probe takes options only\n", argv[optind]);
        return EXIT_USAGE;
    }
    if (sysroot && !*sysroot) {
        fprintf(stderr, "plumb probe: --sysroot needs a folder\n");
        return EXIT_USAGE;
    }
    return probe_and_show(sysroot, json);
}
