/* SPDX-License-Identifier: Apache-2.0 */
/* See fake_collective.h. */
#include "tests/unit/fake_collective.h"

#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/collective/data.h"
#include "core/collective/library.h"

struct fake_shared *fake;

struct fake_state {
    unsigned runs, call, step, generation;
    double bytes, messages;
    uint64_t start_ns;    /* 0: test() was called since */
    char *input, *result; /* "fake-far" */
};

void fake_setup(void)
{
    if (!fake)
        fake = mmap(NULL, sizeof(*fake), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (fake == MAP_FAILED)
        abort();
    memset(fake, 0, offsetof(struct fake_shared, vectors));
}

static unsigned rank_of(const struct collective *c)
{
    return c->members[c->me];
}

static bool is_faulty(const struct collective *c, enum fake_fault fault)
{
    return fake->fault == fault && fake->fault_rank == rank_of(c);
}

static int fake_open(struct collective *c)
{
    if (is_faulty(c, FAKE_NO_OPEN))
        return collective_fail(c, -ENODEV, "fake: no device here");
    if (c->me == 0)
        fake->arrived = fake->generation = 0;
    snprintf(c->gpu, sizeof(c->gpu), "%s", fake->gpu);
    c->state = calloc(1, sizeof(struct fake_state));
    return c->state ? collective_host_alloc(c) : -ENOMEM;
}

static void fake_close(struct collective *c)
{
    collective_host_free(c);
    free(c->state);
    c->state = NULL;
}

/* One for each member, itself too, as long as may be. */
static int fake_peers(struct collective *c, unsigned *peers, unsigned *n)
{
    for (*n = 0; *n < c->n; ++*n)
        peers[*n] = *n;
    return 0;
}

static void address_text(uint8_t address[COLLECTIVE_ADDRESS_MAX], unsigned from, unsigned to)
{
    memset(address, (int)(from + 3 * to), COLLECTIVE_ADDRESS_MAX);
    snprintf((char *)address, 64, "from %u to %u", from, to);
}

static int fake_address(struct collective *c, unsigned peer, struct collective_address *address)
{
    address->len = COLLECTIVE_ADDRESS_MAX;
    address_text(address->bytes, c->me, peer);
    return 0;
}

static int fake_join(struct collective *c, const struct collective_address *addresses, unsigned n)
{
    uint8_t wanted[COLLECTIVE_ADDRESS_MAX];

    for (unsigned i = 0; i < n; i++) {
        address_text(wanted, i, c->me);
        if (addresses[i].member != i || addresses[i].len != sizeof(wanted) ||
            memcmp(addresses[i].bytes, wanted, sizeof(wanted)) != 0)
            return collective_fail(c, -EPROTO, "fake: address %u is not what was sent", i);
    }
    if (is_faulty(c, FAKE_STUCK))
        raise(SIGSTOP);
    fake->addresses[rank_of(c)] = n;
    return n == c->n ? 0 : collective_fail(c, -EPROTO, "fake: %u addresses came", n);
}

static void arrive(struct collective *c)
{
    struct fake_state *s = c->state;

    s->generation = atomic_load(&fake->generation);
    if (atomic_fetch_add(&fake->arrived, 1) + 1 == c->n) {
        atomic_store(&fake->arrived, 0);
        atomic_fetch_add(&fake->generation, 1);
    }
}

static bool all_have(struct collective *c)
{
    const struct fake_state *s = c->state;

    return atomic_load(&fake->generation) != s->generation;
}

static int wait_for_all(struct collective *c)
{
    uint64_t begin_ns = clock_now_ns();
    int err = 0;

    while (!err && !all_have(c)) {
        nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
        err = c->attend(c, clock_now_ns() - begin_ns);
    }
    return err;
}

static int fake_barrier(struct collective *c)
{
    arrive(c);
    return wait_for_all(c);
}

static void note_cpu(const struct collective *c)
{
    cpu_set_t set;

    sched_getaffinity(0, sizeof(set), &set);
    fake->bound[rank_of(c)] = CPU_COUNT(&set) == 1 ? (unsigned)sched_getcpu() : ~0u;
    fake->crowded[rank_of(c)] = c->point->crowded;
}

static int leave(void)
{
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = fake->fault_signal};
    struct itimerspec after = {.it_value.tv_sec = fake->fault_after_s};
    timer_t timer;

    if (timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, 0, &after, NULL))
        abort();
    return 0;
}

static bool leaves(const struct collective *c)
{
    const struct fake_state *s = c->state;

    return is_faulty(c, FAKE_LEAVES) && s->runs == fake->fault_run;
}

static int misbehave(struct collective *c)
{
    const struct fake_state *s = c->state;
    uint64_t begin_ns = clock_now_ns();
    int err = 0;

    if (s->runs != fake->fault_run)
        return 0;
    if (is_faulty(c, FAKE_KILLED))
        raise(SIGKILL);
    if (is_faulty(c, FAKE_STOPPED))
        raise(SIGSTOP);
    if (is_faulty(c, FAKE_FAILS))
        return collective_fail(c, -EIO, "fake: the cable is out");
    while (!err && is_faulty(c, FAKE_STILL)) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        err = c->attend(c, clock_now_ns() - begin_ns);
    }
    return err;
}

/* Bytes over the loopback device: a datagram socket to itself. */
static void move_over_lo(uint64_t bytes)
{
    static char text[32768];
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(to);
    int s = socket(AF_INET, SOCK_DGRAM, 0);

    if (s < 0 || bind(s, (void *)&to, sizeof(to)) || getsockname(s, (void *)&to, &len))
        abort();
    for (uint64_t sent = 0; sent < bytes; sent += sizeof(text)) {
        sendto(s, text, sizeof(text), 0, (void *)&to, sizeof(to));
        recv(s, text, sizeof(text), MSG_DONTWAIT);
    }
    close(s);
}

static char *input_of(const struct collective *c, unsigned call)
{
    return (char *)c->input + library_part(c, &c->calls[call]).input;
}

static uint64_t bytes_of(const struct collective *c, uint64_t count)
{
    return count * collective_type_bytes(c->point->type);
}

static int begin_call(struct collective *c, unsigned call)
{
    struct fake_state *s = c->state;
    uint64_t count = collective_input_count(c->point->op, c->calls[call].count, c->n);
    int err = misbehave(c);

    if (err)
        return err;
    s->call = call;
    note_cpu(c);
    memcpy(fake->vectors[c->me], input_of(c, call), bytes_of(c, count));
    if (c->me == 0 && fake->loopback_bytes)
        move_over_lo(fake->loopback_bytes);
    return 0;
}

static bool is_lazy(const struct collective *c)
{
    const struct fake_state *s = c->state;

    return is_faulty(c, FAKE_LAZY) && s->runs >= fake->fault_run;
}

static void combine(struct collective *c, char *result, uint64_t first, uint64_t count)
{
    uint64_t at = bytes_of(c, first);

    memcpy(result, fake->vectors[0] + at, bytes_of(c, count));
    for (unsigned m = 1; m < c->n; m++)
        data_reduce(c->point->type, c->point->sum, result, result, fake->vectors[m] + at, count);
}

/* When all have put their input where all see it. */
static void make_result(struct collective *c)
{
    struct fake_state *s = c->state;
    uint64_t count = c->calls[s->call].count, block = bytes_of(c, count / c->n);
    char *result = (char *)c->result + library_part(c, &c->calls[s->call]).result;
    unsigned before = (c->me + c->n - 1) % c->n;

    if (is_lazy(c))
        return;
    if (c->point->op == COLLECTIVE_ALLREDUCE || c->point->op == COLLECTIVE_REDUCE)
        combine(c, result, 0, count);
    else if (c->point->op == COLLECTIVE_REDUCE_SCATTER)
        combine(c, result, c->me * (count / c->n), count / c->n);
    else if (c->point->op == COLLECTIVE_BROADCAST || c->point->op == COLLECTIVE_SEND_RECEIVE)
        memcpy(result, fake->vectors[c->point->op == COLLECTIVE_BROADCAST ? 0 : before],
               bytes_of(c, count));
    else if (c->point->op == COLLECTIVE_SCATTER)
        memcpy(result, fake->vectors[0] + c->me * block, block);
    for (unsigned m = 0; m < c->n; m++)
        if (c->point->op == COLLECTIVE_ALL_GATHER || c->point->op == COLLECTIVE_GATHER)
            memcpy(result + m * block, fake->vectors[m], block);
        else if (c->point->op == COLLECTIVE_ALL_TO_ALL)
            memcpy(result + m * block, fake->vectors[m] + c->me * block, block);
    if (is_faulty(c, FAKE_WRONG) && s->runs == fake->fault_run)
        data_put(c->point->type, result, 7, data_get(c->point->type, result, 7) + 1);
    s->runs++;
    s->bytes += fake->flow_bytes;
    s->messages++;
}

static int fake_run(struct collective *c, unsigned call)
{
    int err = begin_call(c, call);

    if (!err && leaves(c))
        return leave();
    if (!err)
        err = fake_barrier(c);
    if (err)
        return err;
    make_result(c);
    return fake_barrier(c);
}

static int fake_start(struct collective *c, unsigned call)
{
    struct fake_state *s = c->state;
    int err = begin_call(c, call);

    s->step = 0;
    if (!err)
        arrive(c);
    s->start_ns = clock_now_ns();
    return err;
}

static void note_test(const struct collective *c)
{
    struct fake_state *s = c->state;
    uint64_t ns = clock_now_ns() - s->start_ns;

    if (s->start_ns && rank_of(c) == 0 && ns > fake->first_test_ns)
        fake->first_test_ns = ns;
    s->start_ns = 0;
}

static int fake_test(struct collective *c, bool *done)
{
    struct fake_state *s = c->state;

    *done = false;
    note_test(c);
    if (!all_have(c))
        return 0;
    if (s->step++) {
        *done = true;
        return 0;
    }
    make_result(c);
    arrive(c);
    return 0;
}

static int fake_write(struct collective *c, uint64_t offset, const void *from, size_t bytes)
{
    struct fake_state *s = c->state;

    memcpy(s->input + offset, from, bytes);
    return 0;
}

static int fake_read(struct collective *c, uint64_t offset, void *to, size_t bytes)
{
    struct fake_state *s = c->state;

    memcpy(to, s->result + offset, bytes);
    return 0;
}

/* Where c->input and c->result may not be touched. */
static int far_open(struct collective *c)
{
    int err = fake_open(c);
    struct fake_state *s = c->state;

    if (err)
        return err;
    s->input = c->input;
    s->result = c->result;
    c->input = c->result = NULL;
    return 0;
}

static int far_run(struct collective *c, unsigned call)
{
    const struct fake_state *s = c->state;

    c->input = s->input;
    c->result = s->result;
    int err = fake_run(c, call);
    c->input = c->result = NULL;
    return err;
}

/* A library that calls nobody back. */
static int no_attend(struct collective *c, uint64_t still_ns)
{
    (void)c;
    (void)still_ns;
    return 0;
}

static int deaf_barrier(struct collective *c)
{
    int (*attend)(struct collective * c, uint64_t still_ns) = c->attend;

    c->attend = no_attend;
    int err = fake_barrier(c);
    c->attend = attend;
    return err;
}

static int deaf_run(struct collective *c, unsigned call)
{
    int (*attend)(struct collective * c, uint64_t still_ns) = c->attend;

    c->attend = no_attend;
    int err = fake_run(c, call);
    c->attend = attend;
    return err;
}

/* No link of it is dead. */
static int fake_unheard(struct collective *c, uint64_t for_ns)
{
    (void)c, (void)for_ns;
    return 0;
}

static void fake_tell(struct collective *c, struct collective_report *told)
{
    const struct fake_state *s = c->state;

    snprintf(told->algorithm, sizeof(told->algorithm), "through memory");
    told->n_facts = 2;
    told->facts[0] = (struct wire_fact){"retransmits", "count", s->messages};
    told->facts[1] = (struct wire_fact){"rtt", "us", 5};
    if (!fake->device[0])
        return;
    told->n_flows = 1;
    told->flows[0] = (struct collective_flow){
        .out_bytes = s->bytes, .in_bytes = s->bytes, .exact = 1, .other_node = fake->other_node};
    memcpy(told->flows[0].device, fake->device, sizeof(fake->device));
}

#define COMMON                                                                                     \
    .own = true, .peers = fake_peers, .address = fake_address, .join = fake_join,                  \
    .barrier = fake_barrier, .unheard = fake_unheard, .tell = fake_tell, .close = fake_close

static const struct collective_ops table[] = {
    {.name = "fake",
     COMMON,
     .open = fake_open,
     .run = fake_run,
     .start = fake_start,
     .test = fake_test},
    {.name = "fake-blocking", COMMON, .open = fake_open, .run = fake_run},
    {.name = "fake-far",
     COMMON,
     .device_memory = true,
     .open = far_open,
     .run = far_run,
     .write = fake_write,
     .read = fake_read},
    /* Which waits in a library, as far as the session knows. */
    {.name = "fake-library",
     .peers = fake_peers,
     .address = fake_address,
     .join = fake_join,
     .barrier = fake_barrier,
     .tell = fake_tell,
     .close = fake_close,
     .open = fake_open,
     .run = fake_run},
    {.name = "fake-deaf",
     .blocks = true,
     .peers = fake_peers,
     .address = fake_address,
     .join = fake_join,
     .barrier = deaf_barrier,
     .tell = fake_tell,
     .close = fake_close,
     .open = fake_open,
     .run = deaf_run},
};

const struct collective_ops *fake_find(const char *name)
{
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        if (!strcmp(name, table[i].name))
            return &table[i];
    return NULL;
}
