/* SPDX-License-Identifier: Apache-2.0 */
/* Choices that a run keeps: see gpu_choice.h. */
#include "core/hw/gpu_choice.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/hw/gpu.h"

#define HASH_DIGITS 16

/* The driver's release, "580.65.06": its version in gpu_facts is that of its interface. */
#define RELEASE_FILE "/sys/module/nvidia/version"

static uint64_t hash_text(uint64_t hash, const char *text)
{
    do
        hash = gpu_hash(hash, (unsigned char)*text);
    while (*text++);
    return hash;
}

static uint64_t hash_release(uint64_t hash)
{
    char line[64] = "";
    FILE *file = fopen(RELEASE_FILE, "re");

    if (file) {
        if (!fgets(line, sizeof(line), file))
            line[0] = 0;
        fclose(file);
    }
    return hash_text(hash, line);
}

static uint64_t conditions_of(struct gpu *gpu, const char *problem, const char *what)
{
    const struct gpu_facts *facts = &gpu_base(gpu)->facts;
    uint64_t hash = hash_text(1, facts->name);

    hash = hash_text(hash, facts->uuid);
    hash = hash_text(hash, facts->address);
    hash = gpu_hash(hash, (uint64_t)facts->driver_version);
    hash = gpu_hash(hash, (uint64_t)facts->toolkit_version);
    hash = gpu_hash(hash, facts->sms);
    return hash_text(hash_text(hash_release(hash), problem), what);
}

const char *gpu_choice_print(struct gpu *gpu, const char *problem, const char *what,
                             char text[GPU_CHOICE_BYTES])
{
    snprintf(text, GPU_CHOICE_BYTES, "%.*s@%016" PRIx64, GPU_CHOICE_BYTES - HASH_DIGITS - 2, what,
             conditions_of(gpu, problem, what));
    return text;
}

bool gpu_choice_read(struct gpu *gpu, const char *problem, const char *text,
                     char what[GPU_CHOICE_BYTES])
{
    char again[GPU_CHOICE_BYTES];
    size_t n = strcspn(text, "@");

    snprintf(what, GPU_CHOICE_BYTES, "%.*s", (int)n, text);
    return text[n] && !strcmp(gpu_choice_print(gpu, problem, what, again), text);
}

int gpu_choice_parse(const char *text, void *value, char *error, size_t len)
{
    size_t what = strcspn(text, "@"),
           hash = strspn(text + what + (text[what] != 0), "0123456789abcdef");

    *(const char **)value = text;
    if (!strcmp(text, GPU_CHOICE_AUTO) ||
        (what && text[what] && hash == HASH_DIGITS && !text[what + 1 + hash] &&
         strlen(text) < GPU_CHOICE_BYTES && !strpbrk(text, " ,")))
        return 0;
    snprintf(error, len, "'%s' is neither " GPU_CHOICE_AUTO " nor a choice of an earlier launch",
             text);
    return -EINVAL;
}
