/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory modules from the firmware's SMBIOS table (DSP0134: structure 17, "Memory Device"), and the
 * bandwidth they could give: channels x MT/s x bus width. SMBIOS does not number channels; they are
 * read from the locator strings where every module's names one, and are unknown otherwise.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "harness/probe/facts.h"

static const char table_path[] = "sys/firmware/dmi/tables/DMI";

enum { TABLE_MAX = 1 << 20, TYPE_MODULE = 17, TYPE_END = 127, MODULES_MAX = 1024 };

struct structure {
    const unsigned char *at; /* formatted area, then strings */
    size_t length;           /* of the formatted area */
    const char *strings;
    const char *end; /* of the strings */
};

struct module {
    char channel[160]; /* what of the locators names the channel; "" where nothing does */
    bool socket;       /* they name the socket too */
    unsigned width_bits;
    unsigned mts;
};

static unsigned word_at(const struct structure *s, size_t offset)
{
    return offset + 2 <= s->length ? s->at[offset] | s->at[offset + 1] << 8 : 0;
}

static unsigned byte_at(const struct structure *s, size_t offset)
{
    return offset < s->length ? s->at[offset] : 0;
}

/* The string whose number stands at offset; "" where there is none. */
static void string_at(const struct structure *s, size_t offset, char *buf, size_t size)
{
    unsigned number = byte_at(s, offset);
    const char *at = s->strings;

    buf[0] = '\0';
    if (!number)
        return;
    while (--number && at < s->end)
        at += strnlen(at, (size_t)(s->end - at)) + 1;
    if (at >= s->end)
        return;
    snprintf(buf, size, "%.*s", (int)strnlen(at, (size_t)(s->end - at)), at);
    for (size_t n = strlen(buf); n && isspace((unsigned char)buf[n - 1]); n--)
        buf[n - 1] = '\0';
}

/* The structure at offset; moves offset past its strings. False at the end or where it is cut: at
 * the end, offset is behind the table or the last structure is the one that says so. */
static bool structure_next(const unsigned char *table, size_t size, size_t *offset,
                           struct structure *s)
{
    size_t end;

    if (*offset + 4 > size || table[*offset + 1] < 4 || *offset + table[*offset + 1] > size)
        return false;
    s->at = table + *offset;
    s->length = s->at[1];
    end = *offset + s->length;
    s->strings = (const char *)table + end;
    while (end + 1 < size && (table[end] || table[end + 1]))
        end++;
    if (end + 1 >= size)
        return false;
    s->end = (const char *)table + end;
    *offset = end + 2;
    return s->at[0] != TYPE_END;
}

static const char *const type_names[] = {
    [0x03] = "DRAM",   [0x07] = "RAM",    [0x0f] = "SDRAM",  [0x12] = "DDR",
    [0x13] = "DDR2",   [0x18] = "DDR3",   [0x1a] = "DDR4",   [0x1b] = "LPDDR",
    [0x1c] = "LPDDR2", [0x1d] = "LPDDR3", [0x1e] = "LPDDR4", [0x20] = "HBM",
    [0x21] = "HBM2",   [0x22] = "DDR5",   [0x23] = "LPDDR5", [0x24] = "HBM3"};

/* Size in MiB, or KiB with the top bit set; 0x7fff: see the extended field. 0: an empty slot; -1:
 * the firmware does not know. */
static long long module_bytes(const struct structure *s)
{
    unsigned size = word_at(s, 0x0c);

    if (s->length < 0x0e || size == 0xffff)
        return -1;
    if (size == 0)
        return 0;
    if (size == 0x7fff)
        return (long long)((word_at(s, 0x1c) | word_at(s, 0x1e) << 16) & 0x7fffffff) << 20;
    return size & 0x8000 ? (long long)(size & 0x7fff) << 10 : (long long)size << 20;
}

/* Speed in MT/s: 0xffff means the 32-bit field added in SMBIOS 3.3. */
static unsigned module_mts(const struct structure *s, size_t offset, size_t extended)
{
    unsigned mts = word_at(s, offset);

    return mts == 0xffff ? word_at(s, extended) | word_at(s, extended + 2) << 16 : mts;
}

/* The length of a leading name of a socket, such as "P0", "CPU1", "PROC 2", "NODE 0"; or 0. */
static size_t socket_length(const char *locator)
{
    static const char *const words[] = {"P", "CPU", "PROC", "NODE", "SOCKET"};

    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
        size_t n = strlen(words[i]), digits;

        if (strncasecmp(locator, words[i], n))
            continue;
        n += strspn(locator + n, " _");
        digits = strspn(locator + n, "0123456789");
        if (digits)
            return n + digits;
    }
    return 0;
}

/* The length up to the channel's number or letter, as in "P0 CHANNEL A", "CPU0_Channel3_DIMM1". */
static size_t channel_word_length(const char *locator)
{
    const char *at = strcasestr(locator, "channel");
    size_t digits;

    if (!at)
        return 0;
    at += strlen("channel");
    at += strspn(at, " _-");
    digits = strspn(at, "0123456789");
    if (!digits && !isalpha((unsigned char)*at))
        return 0;
    return (size_t)(at - locator) + (digits ? digits : 1);
}

/*
 * The length up to the channel's letter, as in "CPU1_DIMM_A2", "P1-DIMMA1", "DIMM_B1". A bare "A1"
 * is not taken: there the letter may be the socket.
 */
static size_t channel_letter_length(const char *locator)
{
    const char *at = strcasestr(locator, "dimm");

    if (!at)
        return 0;
    at += strlen("dimm");
    at += strspn(at, "_- ");
    return isupper((unsigned char)at[0]) && isdigit((unsigned char)at[1])
               ? (size_t)(at - locator) + 1
               : 0;
}

/* Keeps of the locators what names the channel, with its socket where one is named. */
static void channel_of(struct module *module, const char *device, const char *bank)
{
    const char *source = bank;
    size_t n = channel_word_length(bank);

    if (!n) {
        source = device;
        n = channel_word_length(device);
    }
    if (!n)
        n = channel_letter_length(device);
    module->socket = socket_length(device) || socket_length(bank);
    if (n)
        snprintf(module->channel, sizeof(module->channel), "%.*s/%.*s", (int)socket_length(device),
                 device, (int)n, source);
}

static const char silent[] = "the firmware does not say";

/* SMBIOS writes 0 for what the firmware does not know. */
static void set_known(json_t *json, const char *key, long long value)
{
    fact_set(json, key, value > 0 ? json_integer(value) : NULL, "%s", silent);
}

static void add_module(json_t *list, const struct structure *s, struct module *module)
{
    char device[64], bank[64], maker[64], part[64];
    unsigned rated = module_mts(s, 0x15, 0x54), running = module_mts(s, 0x20, 0x58);
    unsigned width = word_at(s, 0x0a), type = byte_at(s, 0x12);
    json_t *json = fact_append(list);

    string_at(s, 0x10, device, sizeof(device));
    string_at(s, 0x11, bank, sizeof(bank));
    string_at(s, 0x17, maker, sizeof(maker));
    string_at(s, 0x1a, part, sizeof(part));
    module->width_bits = width == 0xffff ? 0 : width;
    module->mts = running ? running : rated;
    channel_of(module, device, bank);
    fact_set_text(json, "locator", device);
    fact_set_text(json, "bank", bank);
    fact_set_text_or(json, "type",
                     type < sizeof(type_names) / sizeof(*type_names) ? type_names[type] : NULL,
                     "%s", silent);
    set_known(json, "size_bytes", module_bytes(s));
    set_known(json, "rated_mt_s", rated);
    set_known(json, "running_mt_s", running);
    set_known(json, "width_bits", module->width_bits);
    fact_set_text_or(json, "maker", maker, "%s", silent);
    fact_set_text_or(json, "part", part, "%s", silent);
}

/*
 * Distinct channels; 0 and why where the locators do not settle it. More than two modules on one
 * would mean that we took something else for the channel.
 */
static unsigned count_channels(const struct module *modules, size_t count, bool one_socket,
                               const char **why)
{
    unsigned channels = 0;

    *why = "the modules' locators name no channel";
    for (size_t i = 0; i < count; i++) {
        unsigned seen = 0;

        if (!modules[i].channel[0])
            return 0;
        if (!one_socket && !modules[i].socket) {
            *why = "the modules' locators name channels but not sockets";
            return 0;
        }
        for (size_t k = 0; k < i; k++)
            seen += !strcmp(modules[i].channel, modules[k].channel);
        if (seen >= 2) {
            *why = "more than two modules share what looks like a channel's name";
            return 0;
        }
        channels += !seen;
    }
    return channels;
}

static void set_bandwidth(json_t *memory, const struct module *modules, size_t count,
                          bool one_socket)
{
    const char *why;
    unsigned channels = count_channels(modules, count, one_socket, &why);
    double each = 0;

    /* MT/s x bits / 8 of the slowest module: an interleaved channel runs at the pace of its slowest.
     */
    for (size_t i = 0; i < count; i++) {
        double own = modules[i].mts * 1e6 * modules[i].width_bits / 8 / 1e9;

        each = i == 0 || own < each ? own : each;
    }
    fact_set(memory, "channels", channels ? json_integer(channels) : NULL, "%s", why);
    if (channels && each > 0)
        fact_set_real(memory, "peak_gbytes_per_s", channels * each);
    else if (each > 0)
        fact_set_unknown(memory, "peak_gbytes_per_s",
                         "channels unknown; %zu modules of %.1f GB/s bound it at %.1f GB/s", count,
                         each, (double)count * each);
    else
        fact_set_unknown(memory, "peak_gbytes_per_s",
                         "the firmware gives no speed or width for the modules");
}

static void memory_unknown(json_t *memory, const char *why)
{
    fact_set_unknown(memory, "modules|module_slots|channels|peak_gbytes_per_s", "%s", why);
}

static void read_modules(const struct probe *p, json_t *memory, const unsigned char *table,
                         size_t size)
{
    bool one_socket = fact_integer(p->machine, "cpu.sockets", 2) == 1;
    struct module *modules = xcalloc(MODULES_MAX, sizeof(*modules));
    json_t *list = fact_list(memory, "modules");
    size_t offset = 0, count = 0;
    long long slots = 0;
    struct structure s = {0};

    while (count < MODULES_MAX && structure_next(table, size, &offset, &s)) {
        if (s.at[0] != TYPE_MODULE)
            continue;
        slots++;
        if (module_bytes(&s))
            add_module(list, &s, &modules[count++]);
    }
    if (offset != size && !(s.at && s.at[0] == TYPE_END)) {
        memory_unknown(memory, "the firmware's table is cut short");
        free(modules);
        return;
    }
    fact_set_number(memory, "module_slots", slots);
    if (count && probe_on_metal(p))
        set_bandwidth(memory, modules, count, one_socket);
    else if (count)
        fact_set_unknown(memory, "channels|peak_gbytes_per_s", "%s",
                         p->guest_known ? "the hypervisor makes up the memory modules"
                                        : "whether a hypervisor made the modules up is not known");
    else
        fact_set_unknown(memory, "modules|channels|peak_gbytes_per_s",
                         "the firmware's table lists no module");
    free(modules);
}

void probe_dmi_memory(struct probe *p, json_t *memory)
{
    unsigned char *table = xrealloc(NULL, TABLE_MAX);
    char why[SYS_LINE];
    size_t size = 0;
    int rc = sys_read(p->root, (char *)table, TABLE_MAX, &size, "%s", table_path);

    if (rc) {
        snprintf(why, sizeof(why), "/%s: %s", table_path, fact_errno(rc));
        memory_unknown(memory, why);
    } else {
        read_modules(p, memory, table, size);
    }
    free(table);
}
