/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of leader and agent: see wire.h. */
#include "harness/against/wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "harness/text.h"

json_t *wire_text(const char *text)
{
    json_t *valid = json_string(text);
    char *copy;

    if (valid || !(copy = strdup(text)))
        return valid;
    for (char *c = copy; *c; c++)
        if ((unsigned char)*c >= 0x80)
            *c = '?';
    valid = json_string(copy);
    free(copy);
    return valid;
}

int wire_send(int fd, json_t *message)
{
    char *text = message ? json_dumps(message, JSON_COMPACT) : NULL;
    int err = text ? write_all(fd, text, strlen(text)) : -ENOMEM;

    if (!err)
        err = write_all(fd, "\n", 1);
    free(text);
    json_decref(message);
    return err;
}

json_t *wire_launch(const struct launch *l)
{
    json_t *margin = l->margin > 0 ? json_real(l->margin) : NULL;

    return json_pack("{s:i, s:i, s:s, s:s, s:I, s:o*}", "case", (int)l->case_number, "repeat",
                     (int)l->repeat, "bench", l->bench, "arguments", l->arguments, "timeout_ns",
                     (json_int_t)l->timeout_ns, "margin", margin);
}

int wire_take_launch(const json_t *message, struct launch *l)
{
    const char *bench, *arguments;
    json_int_t timeout_ns;
    double margin = 0;
    int number, repeat;

    if (json_unpack((json_t *)message, "{s:i, s:i, s:s, s:s, s:I, s?F}", "case", &number, "repeat",
                    &repeat, "bench", &bench, "arguments", &arguments, "timeout_ns", &timeout_ns,
                    "margin", &margin) ||
        number < 1 || repeat < 1 || timeout_ns < 1)
        return -EBADMSG;
    if (json_object_get(message, "margin") && !(margin > 0 && margin < 1))
        return -EBADMSG;
    *l = (struct launch){.case_number = (unsigned)number,
                         .repeat = (unsigned)repeat,
                         .bench = strdup(bench),
                         .arguments = strdup(arguments),
                         .from = strdup(""),
                         .to = strdup(""),
                         .hosts = strdup(""),
                         .timeout_ns = (uint64_t)timeout_ns,
                         .margin = margin};
    return l->bench && l->arguments && l->from && l->to && l->hosts ? 0 : -ENOMEM;
}
