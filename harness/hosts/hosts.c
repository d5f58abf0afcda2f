/* SPDX-License-Identifier: Apache-2.0 */
/* Which hosts are this machine, and where the others are: see hosts.h. */
#include "harness/hosts/hosts.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <math.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/group/meet.h"
#include "core/option.h"
#include "harness/text.h"

/* ---- Reading hosts files ---- */

#define BLANKS " \t\r"
#define DIGITS "0123456789"
#define WORDS  "slots=N, max_slots=N or address=ADDR"
#define NAME_SET                                                                                   \
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" DIGITS                                  \
    ".-_@:%" /* none of them means anything to a shell */

struct reader {
    const char *file;
    int line;
    struct hosts *hosts;
    char *error;
    size_t len;
};

__attribute__((format(printf, 2, 3))) static int refuse(const struct reader *r, const char *format,
                                                        ...)
{
    int n = snprintf(r->error, r->len, "%s:%d: ", r->file, r->line);
    va_list args;

    va_start(args, format);
    if (n >= 0 && (size_t)n < r->len)
        vsnprintf(r->error + n, r->len - (size_t)n, format, args);
    va_end(args);
    return -EINVAL;
}

static bool is_number(const char *text)
{
    return *text && !text[strspn(text, DIGITS)];
}

static int read_slots(const struct reader *r, const char *word, const char *number, unsigned *slots)
{
    unsigned long n = is_number(number) ? strtoul(number, NULL, 10) : 0;

    if (!is_number(number))
        return refuse(r, "'%.64s': slots is a number", word);
    if (n < 1 || n > HOSTS_SLOTS_MAX)
        return refuse(r, "'%.64s': a host has 1 to %d slots", word, HOSTS_SLOTS_MAX);
    *slots = (unsigned)n;
    return 0;
}

/* "node:4" is MPICH's form of slots; several colons are an IPv6 address. Sets *number to the text
 * behind the colon. Returns the name. */
static char *without_slots(char *word, const char **number)
{
    char *colon = strchr(word, ':'), *close;

    if (*word == '[' && (close = strchr(word, ']')) != NULL) {
        if (!close[1] || (close[1] == ':' && is_number(close + 2))) {
            *number = close[1] ? close + 2 : NULL;
            *close = 0;
            return word + 1;
        }
    } else if (colon && colon == strrchr(word, ':') && is_number(colon + 1)) {
        *number = colon + 1;
        *colon = 0;
    }
    return word;
}

static int check_name(const struct reader *r, const char *name)
{
    const char *colon = strchr(name, ':');

    if (!*name || *name == '-' || name[strspn(name, NAME_SET)] || strlen(name) >= HOSTS_NAME_MAX)
        return refuse(r, "'%.64s' is no host: a name, user@name or an address", name);
    if (colon && colon == strrchr(name, ':'))
        return refuse(r, "'%.64s': after ':' comes a number of slots", name);
    return 0;
}

/* What a line says of its host. */
struct said {
    const char *name, *address;
    unsigned slots;
};

static int read_word(const struct reader *r, const char *word, struct said *said)
{
    static const char *const keys[] = {"slots", "max_slots", "max-slots", "address", NULL};
    const char *value = strchr(word, '=');
    char key[32];

    snprintf(key, sizeof(key), "%.*s", value ? (int)(value - word) : (int)strlen(word), word);
    bool known = false;
    for (size_t i = 0; keys[i]; i++)
        known |= !strcmp(key, keys[i]);
    if (!known) {
        const char *near = opts_nearest(key, keys);
        return refuse(r, "unknown word '%.64s'%s%s%s; a host may have " WORDS, word,
                      near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "");
    }
    if (!strcmp(key, "address")) {
        said->address = value ? value + 1 : "";
        return check_name(r, said->address);
    }
    if (!strcmp(key, "slots"))
        return read_slots(r, word, value ? value + 1 : "", &said->slots);
    return value && is_number(value + 1) ? 0 : refuse(r, "'%.64s': %s is a number", word, key);
}

static int read_first(const struct reader *r, char *word, struct said *said)
{
    const char *number = NULL;
    int err = check_name(r, said->name = without_slots(word, &number));

    return err || !number ? err : read_slots(r, said->name, number, &said->slots);
}

/* Names of loopback are one host; another one for it is a host of its own, for rehearsals. */
static bool is_same(const struct host *h, const struct said *said)
{
    static const char *const loopback[] = {"localhost", "127.0.0.1", "::1"};
    bool is_loopback[2] = {false, false};

    for (size_t i = 0; i < 3; i++) {
        is_loopback[0] |= !strcmp(h->name, loopback[i]);
        is_loopback[1] |= !strcmp(said->name, loopback[i]);
    }
    return !strcmp(h->name, said->name) ||
           (is_loopback[0] && is_loopback[1] && !h->address && !said->address);
}

/* A host may be listed again, since some schedulers write a line for each slot, but not with
 * another address. */
static int take_host(const struct reader *r, const struct said *said)
{
    struct hosts *hosts = r->hosts;
    size_t at = 0;

    const char *user = strchr(said->name, '@');
    const char *target = said->address ? said->address : user ? user + 1 : said->name;
    const char *why = meet_refuse_host(target);
    if (why)
        return refuse(r, "'%.64s' %s%s", target, why,
                      said->address ? "" : ", or address=ADDR beside it");
    while (at < hosts->n && !is_same(&hosts->all[at], said))
        at++;
    bool again = at < hosts->n;
    if (!again && at == HOSTS_MAX)
        return refuse(r, "over %d hosts", HOSTS_MAX);
    if (!again)
        hosts_add(hosts, said->name, said->address, r->line);
    struct host *h = &hosts->all[at];
    if (said->address && (!h->address || strcmp(h->address, said->address) != 0))
        return refuse(r, "'%s' has another address in line %d", said->name, h->line);
    h->slots = again ? h->slots + said->slots : said->slots;
    return 0;
}

static int read_line(const struct reader *r, char *line)
{
    struct said said = {.slots = 1};
    char *save = line, *word;
    int err = 0;

    line[strcspn(line, "#")] = 0;
    while (!err && (word = strsep(&save, BLANKS)) != NULL)
        if (*word)
            err = said.name ? read_word(r, word, &said) : read_first(r, word, &said);
    return err || !said.name ? err : take_host(r, &said);
}

int hosts_parse(const char *name, const char *text, struct hosts *hosts, char *error, size_t len)
{
    struct reader r = {.file = name, .hosts = hosts, .error = error, .len = len};
    char *copy = xstrdup(text), *save = copy, *line;
    int err = 0;

    *hosts = (struct hosts){0};
    while (!err && (line = strsep(&save, "\n")) != NULL) {
        r.line++;
        err = read_line(&r, line);
    }
    if (err)
        hosts_release(hosts);
    free(copy);
    return err;
}

int hosts_load(const char *path, struct hosts *hosts, char *error, size_t len)
{
    struct buffer text = {0};
    int err = file_read(path, HOSTS_FILE_MAX, &text);

    *hosts = (struct hosts){0};
    if (err)
        snprintf(error, len, "cannot read the hosts in '%s': %s", path, strerror(-err));
    else
        err = hosts_parse(path, text.text, hosts, error, len);
    buffer_release(&text);
    return err;
}

void hosts_add(struct hosts *hosts, const char *name, const char *address, int line)
{
    *ARRAY_ADD(hosts->all, hosts->n) = (struct host){
        .name = xstrdup(name),
        .address = address ? xstrdup(address) : NULL,
        .slots = 1,
        .line = line,
        .offset_s = NAN,
    };
}

char *hosts_names(const struct hosts *hosts)
{
    struct buffer names = {0};

    buffer_text(&names, "");
    for (size_t i = 0; i < hosts->n; i++) {
        buffer_text(&names, i ? ";" : "");
        buffer_text(&names, hosts->all[i].name);
    }
    return names.text;
}

const struct host *hosts_find(const struct hosts *hosts, const char *name)
{
    for (size_t i = 0; i < hosts->n; i++)
        if (!strcmp(hosts->all[i].name, name))
            return &hosts->all[i];
    return NULL;
}

unsigned hosts_slots(const struct hosts *hosts)
{
    unsigned slots = 0;

    for (size_t i = 0; i < hosts->n; i++)
        slots += hosts->all[i].slots;
    return slots;
}

const char *host_problem(const struct host *host, const char *bench)
{
    if (host->problem)
        return host->problem;
    for (size_t i = 0; i < host->n_programs; i++)
        if (!strcmp(host->programs[i].bench, bench))
            return host->programs[i].problem;
    return NULL;
}

void hosts_release(struct hosts *hosts)
{
    for (size_t i = 0; i < hosts->n; i++) {
        struct host *h = &hosts->all[i];
        for (size_t k = 0; k < h->n_programs; k++) {
            free(h->programs[k].path);
            free(h->programs[k].version);
            free(h->programs[k].problem);
        }
        free(h->programs);
        json_decref(h->networks);
        free(h->name);
        free(h->address);
        free(h->problem);
        free(h->calls);
    }
    free(hosts->all);
    *hosts = (struct hosts){0};
}

static bool numeric(const struct sockaddr *a, char text[HOSTS_ADDRESSES])
{
    size_t size =
        a->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);

    return (a->sa_family == AF_INET || a->sa_family == AF_INET6) &&
           !getnameinfo(a, (socklen_t)size, text, HOSTS_ADDRESSES, NULL, 0, NI_NUMERICHOST);
}

static bool is_loopback(const char *address)
{
    return !strncmp(address, "127.", 4) || !strcmp(address, "::1");
}

/* The first address of a name. 0 or getaddrinfo()'s code. */
static int look_up(const char *name, char address[HOSTS_ADDRESSES])
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    int code = getaddrinfo(name, NULL, &hints, &found);

    if (!code && (!numeric(found->ai_addr, address) || !strncmp(address, "0.", 2)))
        code = EAI_FAIL;
    if (found)
        freeaddrinfo(found);
    return code;
}

/* Does an interface of this machine have it? */
static bool is_own(const struct ifaddrs *own, const char *address)
{
    char text[HOSTS_ADDRESSES];

    for (; own; own = own->ifa_next)
        if (own->ifa_addr && numeric(own->ifa_addr, text) && !strcmp(text, address))
            return true;
    return false;
}

static bool is_own_name(const char *name)
{
    char own[HOSTS_NAME_MAX] = "";

    if (!strcmp(name, "localhost"))
        return true;
    if (gethostname(own, sizeof(own) - 1) || !*own)
        return false;
    size_t short_len = strcspn(own, ".");
    return !strcasecmp(name, own) ||
           (strlen(name) == short_len && !strncasecmp(name, own, short_len));
}

/* Another user of this machine is reached as another machine would be. */
void hosts_mark_here(struct hosts *hosts)
{
    struct ifaddrs *own = NULL;
    char address[HOSTS_ADDRESSES];

    if (getifaddrs(&own))
        own = NULL;
    for (size_t i = 0; i < hosts->n; i++) {
        struct host *h = &hosts->all[i];
        h->here = !strchr(h->name, '@') &&
                  (is_own_name(h->name) || (!look_up(h->name, address) && is_own(own, address)));
    }
    if (own)
        freeifaddrs(own);
}

static int look_up_one(struct host *h, bool alone, char *error, size_t len)
{
    const char *at = strchr(h->name, '@'), *name = at ? at + 1 : h->name;
    char address[HOSTS_ADDRESSES];
    int code = h->address ? 0 : look_up(name, address);

    if (code) {
        snprintf(error, len,
                 "host '%s': its address is not known here (%s): write it in the hosts file, '%s "
                 "address=ADDR'",
                 h->name, gai_strerror(code), h->name);
        return -EINVAL;
    }
    if (!h->address)
        h->address = xstrdup(address);
    if (!is_loopback(h->address) || alone)
        return 0;
    snprintf(error, len,
             "host '%s': '%s' is an address of loopback, where no other host reaches it: write "
             "another in the hosts file, '%s address=ADDR'",
             h->name, h->address, h->name);
    return -EINVAL;
}

/* Loopback is right where all of them are one machine: its own names, or all on loopback. */
static bool all_on_loopback(const struct hosts *hosts)
{
    char address[HOSTS_ADDRESSES];

    for (size_t i = 0; i < hosts->n; i++) {
        const struct host *h = &hosts->all[i];
        const char *is = h->address;
        if (!is && !look_up(h->name, address))
            is = address;
        if (!h->here && (!is || !is_loopback(is)))
            return false;
    }
    return true;
}

int hosts_look_up(struct hosts *hosts, char *error, size_t len)
{
    bool alone = all_on_loopback(hosts);
    int err = 0;

    for (size_t i = 0; !err && i < hosts->n; i++)
        err = look_up_one(&hosts->all[i], alone, error, len);
    return err;
}
