/* SPDX-License-Identifier: Apache-2.0 */
/* The wires over shared memory: what cannot be shared is refused with its reason. */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "core/clock.h"
#include "core/wire/shm.h"
#include "tests/unit/unit.h"
#include "wire_fixture.h"

static int wait_for_end(struct world *w, void *arg)
{
    uint16_t type;
    size_t len;

    channel_recv(world_channel(w, 0), &type, arg, 0, &len, 20000000000u);
    return 0;
}

TEST(memory_is_of_one_machine)
{
    struct wire_options options = wire_options(2);
    struct wire *f = NULL;
    struct world *w = NULL;
    char error[400];

    options.device = "eth0";
    assert_int_equal(world_fork(&w, 2, wait_for_end, NULL, error, sizeof(error)), 0);
    assert_int_equal(wire_open(&f, &wire_shm, w, &options, error, sizeof(error)), -EOPNOTSUPP);
    assert_non_null(strstr(error, "'eth0'"));
    options.device = NULL;
    assert_int_equal(wire_open(&f, &wire_shm, w, &options, error, sizeof(error)), 0);
    struct world_member *peer = (struct world_member *)(uintptr_t)world_member(w, 1);
    struct world_member *own = (struct world_member *)(uintptr_t)world_member(w, 0);
    snprintf(own->machine, sizeof(own->machine), "this");
    snprintf(peer->machine, sizeof(peer->machine), "that");
    assert_int_equal(wire_link(f, 1, NULL), -EOPNOTSUPP);
    assert_non_null(strstr(f->error, "rank 1 ("));
    peer->machine[0] = 0; /* then join finds out */
    assert_int_equal(wire_link(f, 1, NULL), 0);
    wire_close(f);
    world_close(w);
}

struct strange_address { /* as wire_shm's begins */
    int32_t pid, fd;
    uint64_t map_bytes;
};
static int wrong_fd;
static const struct wire_ops *strange;

static int address_of_another(struct wire_link *l, void *address, size_t *len)
{
    int err = strange->address(l, address, len);
    struct strange_address *c = address;

    if (world_rank(l->worker->wire->world))
        return err;
    c->fd = wrong_fd;
    if (wrong_fd < 9999 && lseek(wrong_fd, 0, SEEK_END) == 0) /* as long as the right one */
        err = ftruncate(wrong_fd, (off_t)c->map_bytes);
    return err;
}

static void join_wrong(const struct wire_ops *right, int fd, int err)
{
    struct wire_outcome outcomes[2];
    struct wire_ops ops = *right;
    struct wire_fixture x = {.ops = &ops, .size = 2, .options = wire_options(2)};

    wrong_fd = fd;
    strange = right;
    ops.address = address_of_another;
    x.options.message_most = 100;
    wire_fixture_run(&x, outcomes);
    assert_int_equal(outcomes[1].rc, err);
    assert_non_null(strstr(outcomes[1].text, "rank 0 ("));
    /* Rank 1 has attached nothing and went: before or after rank 0 looked for its memory. */
    if (outcomes[0].rc != -ECONNRESET && outcomes[0].rc != -EOPNOTSUPP)
        fail_msg("rank 0 said %d: %s", outcomes[0].rc, outcomes[0].text);
    assert_non_null(strstr(outcomes[0].text, "rank 1 ("));
}

/* Memory that is none, too short, or another's. */
TEST(another_process_memory_is_not_taken)
{
    int same_size = memfd_create("other", MFD_CLOEXEC),
        shorter = memfd_create("short", MFD_CLOEXEC);

    assert_int_equal(ftruncate(shorter, 4096), 0);
    join_wrong(&wire_shm, 9999, -EOPNOTSUPP);
    join_wrong(&wire_shm, shorter, -EOPNOTSUPP);
    join_wrong(&wire_shm, same_size, -EPROTO);
    close(same_size);
    close(shorter);
}

/* One call copies what both ends have posted: they must agree on it. The other end waits in vain. */
static int send_longer(struct wire_party *p)
{
    struct wire_link *l = wire_link_to(p, !p->rank);
    static char data[100];
    int err = p->rank ? wire_receive(l, data, 9) : wire_send(l, data, 8);

    err = err ? err : wire_until(p, l, p->rank ? 0 : 8, p->rank ? 9 : 0);
    if (err == (p->rank ? -EMSGSIZE : -ECONNRESET) && strstr(p->wire->error, "rank "))
        p->outcome = (struct wire_outcome){0};
    return p->outcome.rc;
}

TEST(attached_ends_agree_on_lengths)
{
    const struct wire_ops *wires[WIRES_MAX];
    struct wire_fixture x = {
        .ops = &wire_cma, .size = 2, .options = wire_options(2), .run = send_longer};

    if (wire_fixture_wires(wires) < WIRES_MAX)
        skip();
    assert_string_equal(wire_fixture_fault(&x), "");
}

static unsigned long attacher; /* who may read this process's memory, as the system was last told */

/* Stands for libc's. */
int prctl(int option, ...)
{
    unsigned long a[4];
    va_list args;

    va_start(args, option);
    for (int i = 0; i < 4; i++)
        a[i] = va_arg(args, unsigned long);
    va_end(args);
    if (option == PR_SET_PTRACER)
        attacher = a[0];
    return (int)syscall(SYS_prctl, option, a[0], a[1], a[2], a[3]);
}

/* It comes to nothing: its peer has no memory. */
static int open_another(struct wire_party *p)
{
    const struct wire_shm_address none = {.pid = 1};
    const void *addresses[] = {&none};
    struct wire_options options = wire_options(2);
    char error[WIRE_ERROR_BYTES] = "";
    struct wire *other = NULL;
    int err;

    if (attacher != (unsigned long)wire_shm_link_of(&p->wire->links[0])->pid)
        return wire_fault(p, -EINVAL, "the only peer may not attach");
    err = wire_open(&other, &wire_cma, p->world, &options, error, sizeof(error));
    if (err || (err = wire_link(other, !p->rank, NULL)) < 0)
        return wire_fault(p, err, "no second wire: %s", error);
    wire_join(other, addresses, (const size_t[]){sizeof(none)});
    bool for_both = attacher == PR_SET_PTRACER_ANY;
    wire_close(other);
    return for_both && attacher ? 0 : wire_fault(p, -EINVAL, "one wire's peer may not attach");
}

TEST(two_wires_of_a_process_let_both_peers_attach)
{
    const struct wire_ops *wires[WIRES_MAX];
    struct wire_fixture x = {
        .ops = &wire_cma, .size = 2, .options = wire_options(2), .run = open_another};

    if (wire_fixture_wires(wires) < WIRES_MAX)
        skip();
    assert_string_equal(wire_fixture_fault(&x), "");
    assert_true(attacher == 0);
}

/* Many short ones around the end of the ring, now and then a longer one between them: none is taken for another. */
static int stream_of_shorts(struct wire_party *p)
{
    struct wire_link *l = wire_link_to(p, !p->rank);
    unsigned char data[4096];
    uint64_t moved = 0;
    int err = 0;

    for (unsigned i = 0; i < 5000 && !err; i++) {
        size_t bytes = i % 97 == 5 ? 4001 : 1 + i * 31 % 60;
        for (size_t k = 0; k < bytes && !p->rank; k++)
            data[k] = (unsigned char)(i * 13 + k * 5);
        err = p->rank ? wire_receive(l, data, bytes) : wire_send(l, data, bytes);
        moved += bytes;
        err = err ? err : wire_until(p, l, p->rank ? 0 : moved, p->rank ? moved : 0);
        for (size_t k = 0; k < bytes && p->rank && !err; k++)
            if (data[k] != (unsigned char)(i * 13 + k * 5))
                err = wire_fault(p, -EINVAL, "message %u of %zu: byte %zu", i, bytes, k);
    }
    return err;
}

TEST(a_stream_of_short_messages_is_right)
{
    struct wire_fixture x = {
        .ops = &wire_shm, .size = 2, .options = wire_options(2), .run = stream_of_shorts};

    x.options.message_most = 4096;
    assert_string_equal(wire_fixture_fault(&x), "");
}
