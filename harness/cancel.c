/* SPDX-License-Identifier: Apache-2.0 */
/* See cancel.h. */
#include "harness/cancel.h"

#include <signal.h>
#include <stddef.h>

static volatile int
    cancel; /* set by the signal handler alone: a handler has no other way to speak */

static void on_signal(int number)
{
    (void)number;
    cancel = 1;
}

const volatile int *cancel_on_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal}, before;

    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    if (!sigaction(SIGHUP, NULL, &before) && before.sa_handler != SIG_IGN)
        sigaction(SIGHUP, &action, NULL);
    return &cancel;
}
