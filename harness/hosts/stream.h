/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the script on a host says on its standard output: lines that begin with "plumb-WORD TOKEN", where the
 * token is this launch's own, so that a banner of a login shell or another's words cannot be taken for them.
 *
 *   plumb-begin TOKEN NAME|VERSION    it is there; NAME as the host calls itself
 *   plumb-peer TOKEN NAME|VERSION     so is the second rank
 *   plumb-missing TOKEN NAME|WHY      the program does not start there
 *   plumb-r TOKEN BYTES               rows: so many bytes follow
 *   plumb-s TOKEN BYTES               samples
 *   plumb-end TOKEN STATUS            all is said; the benchmark ended with this status
 *
 * and, asked before anything is measured (check.h):
 *
 *   plumb-begin TOKEN NAME|SECONDS    its clock
 *   plumb-build TOKEN STATUS|VERSION  of each program that was asked for, in this order
 *   plumb-net TOKEN NAME|SPEED|ADDRESS ...   Mb/s, or Gb/s with a G behind it
 *   plumb-done TOKEN |
 */
#ifndef PLUMB_HARNESS_STREAM_H
#define PLUMB_HARNESS_STREAM_H

#include <stdbool.h>
#include <stddef.h>

#define STREAM_TEXT_MAX 256

struct stream_hello {
    bool there;
    char name[STREAM_TEXT_MAX], version[STREAM_TEXT_MAX];
};

/* A whole line "plumb-WORD TOKEN NAME|VERSION" of what has come so far. Characters that are none for people are
 * replaced. */
struct stream_hello stream_hello(const char *text, const char *word, const char *token);

/* The next line "plumb-WORD TOKEN ...": where what follows begins; NULL: there is none. `text` is the whole text, or a place
 * behind its beginning that is an end of a line. */
const char *stream_find(const char *text, const char *word, const char *token);

struct stream_parts {
    const char *rows, *samples; /* within the text */
    size_t n_rows, n_samples;
    int status;
};

/* 0, or -EBADMSG: it is not whole. */
int stream_parts(const char *text, size_t size, const char *token, struct stream_parts *parts);

/* Has its last line come? Cheap, to be asked often. */
bool stream_is_whole(const char *text, size_t size, const char *token);

/* Control characters become '?'. Returns text. */
char *stream_printable(char *text);

#endif
