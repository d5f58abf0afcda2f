/* SPDX-License-Identifier: Apache-2.0 */
/* The fabric over shared memory: what cannot be shared is refused with its reason. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "fabric_fixture.h"

static int wait_for_end(struct world *w, void *arg)
{
    uint16_t type;
    size_t len;

    channel_recv(world_channel(w, 0), &type, arg, 0, &len, 20000000000u);
    return 0;
}

static void memory_is_of_one_machine(void **state)
{
    struct fabric_options options = fabric_options(2);
    struct fabric *f = NULL;
    struct world *w = NULL;
    char error[400];

    (void)state;
    options.device = "eth0";
    assert_int_equal(world_fork(&w, 2, wait_for_end, NULL, error, sizeof(error)), 0);
    assert_int_equal(fabric_open(&f, &fabric_shm, w, &options, error, sizeof(error)), -EOPNOTSUPP);
    assert_non_null(strstr(error, "'eth0'"));
    options.device = NULL;
    assert_int_equal(fabric_open(&f, &fabric_shm, w, &options, error, sizeof(error)), 0);
    struct world_member *peer = (struct world_member *)(uintptr_t)world_member(w, 1);
    struct world_member *own = (struct world_member *)(uintptr_t)world_member(w, 0);
    snprintf(own->machine, sizeof(own->machine), "this");
    snprintf(peer->machine, sizeof(peer->machine), "that");
    assert_int_equal(fabric_link(f, 1), -EOPNOTSUPP);
    assert_non_null(strstr(f->error, "one machine: rank 1 ("));
    peer->machine[0] = 0; /* then join finds out */
    assert_int_equal(fabric_link(f, 1), 0);
    fabric_close(f);
    world_close(w);
}

struct strange_card { /* as fabric_shm's begins */
    int32_t pid, fd;
    uint64_t map_bytes;
};
static int wrong_fd;

static int card_of_another(struct fabric *f, struct fabric_link *l, void *card, size_t *len)
{
    int err = fabric_shm.card(f, l, card, len);
    struct strange_card *c = card;

    if (world_rank(f->world))
        return err;
    c->fd = wrong_fd;
    if (wrong_fd < 9999 && lseek(wrong_fd, 0, SEEK_END) == 0) /* as long as the right one */
        err = ftruncate(wrong_fd, (off_t)c->map_bytes);
    return err;
}

static void join_wrong(int fd, int err, const char *text)
{
    struct fabric_outcome outcomes[2];
    struct fabric_ops ops = fabric_shm;
    struct fabric_fixture x = {.ops = &ops, .size = 2, .options = fabric_options(2)};

    wrong_fd = fd;
    ops.card = card_of_another;
    x.options.message_most = 100;
    fabric_fixture_run(&x, outcomes);
    assert_int_equal(outcomes[1].rc, err);
    if (!strstr(outcomes[1].text, text) || !strstr(outcomes[1].text, "rank 0 ("))
        fail_msg("'%s' is not in: %s", text, outcomes[1].text);
    /* Rank 1 has attached nothing and went: before or after rank 0 looked for its memory. */
    if (outcomes[0].rc != -ECONNRESET && outcomes[0].rc != -EOPNOTSUPP)
        fail_msg("rank 0 said %d: %s", outcomes[0].rc, outcomes[0].text);
    assert_non_null(strstr(outcomes[0].text, "rank 1 ("));
}

static void another_process_memory_is_not_taken(void **state)
{
    int same_size = memfd_create("other", MFD_CLOEXEC),
        shorter = memfd_create("short", MFD_CLOEXEC);

    (void)state;
    assert_int_equal(ftruncate(shorter, 4096), 0);
    join_wrong(9999, -EOPNOTSUPP, "cannot be opened");
    join_wrong(shorter, -EOPNOTSUPP, "is not its memory");
    join_wrong(same_size, -EPROTO, "is another's");
    close(same_size);
    close(shorter);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_of_one_machine),
        cmocka_unit_test(another_process_memory_is_not_taken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
