/* SPDX-License-Identifier: Apache-2.0 */
/* A command of plumb with one table of options: the code that all of them share. */
#ifndef PLUMB_HARNESS_COMMAND_H
#define PLUMB_HARNESS_COMMAND_H

#include <stdbool.h>

#include "core/option.h"

/* An option of a command's table; where the file says AT(member), offsetof() in its own options. More
 * of struct opt may follow: {OPTION("margin", OPT_FRACTION, margin, "SHARE", "..."), .def = "5%"}. */
#define OPTION(NAME, TYPE, MEMBER, ARG, HELP)                                                      \
    .name = (NAME), .type = (TYPE), .offset = AT(MEMBER), .arg = (ARG), .help = HELP

struct command {
    const char *name;        /* "history" */
    const struct opt *table; /* its offsets are those of *options */
    void *options;           /* filled in */
    const bool *help;        /* the one of them that asks for help */
    void (*print_help)(const struct opts *o);
    int (*run)(const struct opts *o, void *context); /* with the options; the exit status */
    void *context;
};

/* Reads the options; then prints the help, or runs the command. Wrong options are reported on
 * stderr as "plumb NAME: ...". Returns the exit status. */
int command_run(const struct command *c, int argc, char **argv);

#endif
