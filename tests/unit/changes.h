// SPDX-License-Identifier: Apache-2.0
/* Files of a tree, and facts, written in one string: "path=text|path=text". "path>target" is a link, "!path" a file
 * that is taken away; a path alone is a folder, or what was not recorded. */
#ifndef PLUMB_TESTS_CHANGES_H
#define PLUMB_TESTS_CHANGES_H

#include "tests/unit/scratch_tree.h"

#include <stdbool.h>

struct change {
    char path[512], value[2048];
    bool known, link;
};

/* Begins of changes and what they stand for; ends with NULL. */
typedef const char *const change_words[2];

static inline void change_text(char *out, size_t size, const char *text, change_words *words)
{
    size_t used = *text == '!' ? (*out = *text++, 1) : 0;

    for (change_words *w = words; w && (*w)[0];)
        if (!strncmp(text, (*w)[0], strlen((*w)[0]))) {
            used += (size_t)snprintf(out + used, size - used, "%s", (*w)[1]);
            text += strlen((*w)[0]);
            w = words;
        } else {
            w++;
        }
    snprintf(out + used, size - used, "%.*s", (int)strcspn(text, "|"), text);
}

/* The next of them; ' stands for ". */
static inline bool next_change(const char **at, struct change *c, change_words *words)
{
    char text[2560];
    size_t n = strcspn(*at, "|");

    change_text(text, sizeof(text), n ? *at : "", words);
    *at += n + ((*at)[n] == '|');
    size_t path = strcspn(text, "=>");
    c->known = text[path];
    c->link = text[path] == '>';
    snprintf(c->path, sizeof(c->path), "%.*s", (int)path, text);
    snprintf(c->value, sizeof(c->value), "%.2047s", text + path + c->known);
    for (char *quote = c->value; (quote = strchr(quote, '\'')); quote++)
        *quote = '"';
    return n > 0;
}

static inline void put_files(const struct scratch *s, const char *files, change_words *words)
{
    struct change c;

    while (next_change(&files, &c, words))
        if (c.path[0] == '!') {
            unlink(scratch_path(s, c.path + 1));
        } else if (c.link) {
            unlink(scratch_path(s, c.path));
            scratch_link(s, c.path, c.value);
        } else if (c.known) {
            strcat(c.value, "\n");
            scratch_put(s, c.path, c.value);
        } else {
            scratch_folder(s, c.path);
        }
}

#endif
