/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a rank that is led: see ending.h. */
#include "benches/allreduce/ending.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/exit_code.h"
#include "core/group/notice.h"
#include "core/hw/nic.h"

#define LATE_NS 10000000000u /* after rank 0 should have noticed */

static void say(const struct member *m, const char *why)
{
    char name[WORLD_NAME_MAX + 32];

    fprintf(stderr, "%s: %s: this process ends\n",
            world_name(m->world, world_rank(m->world), name, sizeof(name)), why);
}

static void blame(const struct member *m, unsigned rank, int err, const char *why)
{
    struct notice lost = pulse_notice(m->pulse, rank, err);
    char name[WORLD_NAME_MAX + 32];

    notice_send(&lost, "%s: %s: this process ends",
                world_name(m->world, world_rank(m->world), name, sizeof(name)), why);
}

int ending_heed(const struct member *m)
{
    char text[COLLECTIVE_ERROR_BYTES];
    unsigned leader = 0;
    int err = pulse_lost(m->pulse, &leader, 1, &leader, text, sizeof(text));

    if (err && pulse_stood_still(m->pulse))
        say(m, text);
    else if (err)
        blame(m, leader, err, text);
    return err;
}

/* Where rank 0 has ended, what it said is the reason. */
int ending_untaken(const struct member *m, struct channel *channel)
{
    if (!ending_heed(m))
        say(m, channel_error(channel));
    return -ECONNRESET;
}

/* Whose own link is down is cut off itself. */
void ending_cut(const struct member *m, struct channel *channel)
{
    const struct sockaddr_storage *own = &world_member(m->world, world_rank(m->world))->address;
    char why[160] = "", text[192];

    if (strcmp(world_group(m->world), "sock") != 0)
        return;
    bool cut = own->ss_family != AF_UNSPEC && nic_is_cut((const void *)own, why, sizeof(why));
    snprintf(text, sizeof(text), "it is cut off: %s", why);
    say(m, cut ? text : channel_error(channel));
}

/* Nobody can be told: who led is lost, or should have noticed. */
int ending_await(struct member *m)
{
    uint64_t still_ns = member_still_ns(m);
    bool lost = ending_heed(m) != 0;
    char why[128];

    if (!lost && still_ns < __atomic_load_n(&m->limit_ns, __ATOMIC_RELAXED) + LATE_NS)
        return 0;
    snprintf(why, sizeof(why), "'%s' has not ended after %.0f s", m->point.backend,
             (double)still_ns / 1e9);
    if (!lost)
        say(m, why);
    fflush(stderr);
    _exit(EXIT_INCOMPLETE);
}
