/* SPDX-License-Identifier: Apache-2.0 */
/* What commands have in common: see command.h. */
#include "harness/command.h"

#include <errno.h>
#include <stdio.h>

#include "core/program.h"

int command_run(const struct command *c, int argc, char **argv)
{
    const struct opt *tables[] = {c->table, NULL};
    struct opts o;
    int status = EXIT_USAGE, err = opts_init(&o, tables);

    if (!err)
        err = opts_parse(&o, argc, argv);
    if (!err)
        err = opts_apply(&o, c->table, NULL, c->options);
    if (err) {
        fprintf(stderr, "plumb %s: %s\n", c->name, o.error);
    } else if (*c->help) {
        c->print_help(&o);
        status = EXIT_GOOD;
    } else {
        status = c->run(&o, c->context);
    }
    opts_release(&o);
    return status;
}
