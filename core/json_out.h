/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing JSON, a member or an element at a time, to a stream that the caller checks. `key` is NULL in
 * lists. (Names of jansson, which the harness links, are not taken.) Texts may hold any bytes: what is not UTF-8 becomes '?'.
 */
#ifndef PLUMB_CORE_JSON_OUT_H
#define PLUMB_CORE_JSON_OUT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json_out {
    FILE *out;
    unsigned depth;
    bool more; /* something stands before, in the innermost */
};

void json_out_open(struct json_out *j, const char *key, char bracket);     /* '{' or '[' */
void json_out_close(struct json_out *j, char bracket);                     /* '}' or ']' */
void json_out_text(struct json_out *j, const char *key, const char *text); /* NULL: null */
void json_out_texts(struct json_out *j, const char *key, const char *const *texts, size_t n);
void json_out_real(struct json_out *j, const char *key, double value); /* finite */
void json_out_u64(struct json_out *j, const char *key, uint64_t value);
void json_out_flag(struct json_out *j, const char *key, bool value);

#endif
