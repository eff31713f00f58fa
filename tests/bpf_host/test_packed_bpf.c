/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Packed calls and returns are the plain ones: the kernel side packs, the collector's other half unpacks. */
#include <criterion/criterion.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/wire.h"
#include "collector/uprobe/unpack.h"
#include "tests/bpf_host/kernel_side.h"

#define SP 0x7ffd12345678u
#define SLOTS 4
#define MOST 40000

TestSuite(packed, .init = kernel_reset);

struct generator {
    uint64_t state;
};

static uint32_t below(struct generator *generator, uint32_t limit)
{
    generator->state = generator->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((generator->state >> 33) * limit >> 31);
}

/* ------------------------------------------------------------------------------------ what is read */

/* Records as a translator gets them: those of calls, and of all others the header and what follows. */
struct records {
    struct wire_call_from *records;
    size_t count;
    uint64_t events; /* that came packed */
    uint64_t bytes;  /* of packed records */
};

static struct unpacker unpackers[SLOTS];

static struct records new_records(void)
{
    memset(unpackers, 0, sizeof(unpackers));
    return (struct records){.records = calloc(MOST, sizeof(struct wire_call_from))};
}

static int keep(void *context, const void *record, size_t size)
{
    struct records *kept = context;

    cr_assert_lt(kept->count, MOST);
    memcpy(&kept->records[kept->count++], record,
           size < sizeof(*kept->records) ? size : sizeof(*kept->records));
    return 0;
}

static void unpack_record(struct records *kept, const struct wire_packed *record, size_t size)
{
    struct unpacker *unpacker = &unpackers[record->slot];
    struct unpack_sink sink = {.handle = keep, .context = kept};

    cr_assert_eq(record->chunk, unpacker->chunk);
    unpack_begin(unpacker, record->header.tid);
    cr_assert_eq(unpack_tokens(unpacker, (const uint8_t *)(record + 1), size - sizeof(*record), 0, &sink), 0);
    cr_assert_eq(unpacker->events, record->events);
    cr_assert_eq(unpacker->returns, record->returns);
    cr_assert_eq(unpack_end(unpacker, record->check), 0);
    kept->events += sink.records;
    kept->bytes += size;
}

/* What has come into the ring since `from`. */
static void read_ring(struct records *kept, size_t from)
{
    for (size_t i = from; i < kernel_records(); i++) {
        const struct wire_header *header = kernel_record(i);

        cr_assert_not_null(header);
        if (header->kind == WIRE_PACKED)
            unpack_record(kept, kernel_record(i), kernel_record_size(i));
        else
            keep(kept, header, kernel_record_size(i));
    }
}

/* What stands in the slots. */
static void read_slots(struct records *kept)
{
    struct unpack_sink sink = {.handle = keep, .context = kept};

    for (uint32_t i = 0; i < SLOTS; i++) {
        const struct packed_slot *slot = kernel_packed_slot(i);

        if (!slot->owner)
            continue;
        cr_assert_eq(unpackers[i].chunk, progress_chunk(slot->progress));
        unpack_begin(&unpackers[i], slot->owner);
        cr_assert_eq(unpack_tokens(&unpackers[i], slot->tokens, progress_length(slot->progress),
                                   progress_run(slot->progress), &sink),
                     0);
    }
    kept->events += sink.records;
}

static bool is_call(const struct wire_call_from *record)
{
    uint8_t kind = record->call.header.kind;

    return kind == WIRE_CALL || kind == WIRE_RETURN || kind == WIRE_CALL_FROM;
}

/* The kind of a record, calls being alike. */
static uint8_t kind_at(const struct records *records, size_t index)
{
    uint8_t kind = records->records[index].call.header.kind;

    return kind == WIRE_CALL_FROM ? WIRE_CALL : kind;
}

/* The same but for the time, which is of another run. */
static void expect_same(const struct wire_call_from *a, const struct wire_call_from *b)
{
    cr_assert_eq(a->call.header.kind, b->call.header.kind);
    cr_assert_eq(a->call.header.flags, b->call.header.flags);
    cr_assert_eq(a->call.header.tid, b->call.header.tid);
    if (!is_call(a))
        return;
    cr_assert_eq(wire_sp(&a->call), wire_sp(&b->call));
    cr_assert_eq(a->call.function, b->call.function);
    cr_assert_eq(a->return_address, b->return_address);
    cr_assert_eq(a->gone, b->gone);
}

/* The records of each thread, one after the other. */
static void expect_same_threads(const struct records *a, const struct records *b, uint32_t threads)
{
    for (uint32_t tid = 1; tid <= threads; tid++) {
        size_t i = 0, j = 0;

        for (;; i++, j++) {
            while (i < a->count && a->records[i].call.header.tid != tid)
                i++;
            while (j < b->count && b->records[j].call.header.tid != tid)
                j++;
            if (i == a->count || j == b->count)
                break;
            expect_same(&a->records[i], &b->records[j]);
        }
        cr_assert_eq(i, a->count);
        cr_assert_eq(j, b->count, "thread %u has more records in one of them", tid);
    }
}

/* ------------------------------------------------------------------------------------ what is executed */

#define DEPTH_MOST 40

struct thread_model {
    uint64_t sp[DEPTH_MOST];
    uint64_t cookie[DEPTH_MOST];
    bool caught[DEPTH_MOST];
    uint32_t depth;
    uint64_t stack; /* where it begins */
};

static uint64_t cookie_of(uint32_t function)
{
    static const uint64_t kinds[] = {
        0,
        COOKIE_WANT_RETURN_ADDRESS,
        COOKIE_ENTRY_ONLY,
        COOKIE_ENTRY_ONLY | COOKIE_WANT_RETURN_ADDRESS,
        COOKIE_ENTRY_ONLY | COOKIE_CALLS_ONLY,
    };

    return function | kinds[function % 5];
}

/* A call, from one of a few places of the open function. */
static void enter(struct generator *generator, struct thread_model *thread, uint32_t tid, bool irregular)
{
    uint32_t place = below(generator, irregular ? 8 : 2), depth = thread->depth;
    uint64_t caller = depth ? thread->sp[depth - 1] : thread->stack;
    uint32_t from = depth ? (uint32_t)thread->cookie[depth - 1] : 0;
    uint64_t sp = caller - 16 * (1 + from % 7) - (irregular ? 8 * below(generator, 4) : 0);
    uint64_t cookie = cookie_of((from * 3 + place + 1) % 50);

    kernel_set_stack_word(sp, 0x400000 + from * 256 + place * 8);
    thread->sp[depth] = sp;
    thread->cookie[depth] = cookie;
    thread->caught[depth] = !kernel_call(7, tid, sp, cookie);
    thread->depth++;
}

static void leave(struct thread_model *thread, uint32_t tid)
{
    uint32_t depth = --thread->depth;

    if (thread->caught[depth])
        kernel_return(7, tid, thread->sp[depth] + 8, thread->cookie[depth]);
    kernel_set_stack_word(thread->sp[depth], 0xdead);
}

/* Threads call and return by turns, of which some handle signals, switch stacks or do something else. */
static void execute(uint64_t seed, uint32_t threads, size_t steps)
{
    struct generator generator = {seed};
    struct thread_model models[8] = {0};

    kernel_trace(7);
    kernel_set_main_stack(SP + 65536);
    kernel_set_mapping(SP - (1 << 20), SP + 4096, SP + 4000);
    kernel_set_signal_stack(0x10000, 0x1000);
    for (uint32_t i = 0; i < threads; i++)
        models[i].stack = SP - i * 65536;
    for (size_t i = 0; i < steps; i++) {
        uint32_t tid = 1 + below(&generator, threads), what = below(&generator, 1000);
        struct thread_model *thread = &models[tid - 1];

        for (uint32_t more = below(&generator, 20); more--;) {
            if (thread->depth && (thread->depth == DEPTH_MOST || below(&generator, 2)))
                leave(thread, tid);
            else
                enter(&generator, thread, tid, seed % 2);
        }
        if (what < 5)
            kernel_call(7, tid, 0x10800, 3); /* on the signal stack */
        else if (what < 10)
            kernel_call(7, tid, 0x7f0000000000 + tid, 5); /* on a stack far away, at an odd place */
        else if (what < 12)
            kernel_call(7, tid, thread->stack - 8, 0xfffffffe); /* a function with too large a number */
        else if (what < 100)
            kernel_tick();
    }
}

static void run_both(uint64_t seed, uint32_t threads, size_t steps, unsigned slots, size_t room)
{
    struct records plain = new_records(), packed;

    kernel_reset();
    kernel_set_room(room ? room : 1u << 30, 4096);
    execute(seed, threads, steps);
    read_ring(&plain, 0);
    kernel_reset();
    packed = new_records();
    kernel_set_packing(slots);
    execute(seed, threads, steps);
    read_ring(&packed, 0);
    read_slots(&packed);
    expect_same_threads(&plain, &packed, threads);
    cr_assert_eq(packed.count, plain.count);
    if (slots >= threads) {
        size_t chunks = kernel_records();

        cr_assert_geq(packed.events, plain.count - 1);
        cr_assert_lt(chunks, plain.count / 20, "%zu records for %zu events", chunks, plain.count);
    }
    free(plain.records);
    free(packed.records);
}

Test(packed, what_comes_out_is_what_plain_records_say)
{
    for (uint64_t seed = 1; seed <= 24; seed++)
        run_both(seed, 1 + seed % 3, 350, SLOTS, 0);
}

Test(packed, threads_without_a_slot_have_plain_records)
{
    run_both(3, 3, 300, 1, 0);
    run_both(4, 2, 300, 0, 0);
}

Test(packed, a_slot_is_given_back_at_the_end_and_used_again)
{
    struct records packed = new_records();

    kernel_set_packing(1);
    kernel_trace(7);
    for (uint32_t tid = 7; tid < 60; tid++) {
        kernel_call(7, tid, SP, 1);
        kernel_return(7, tid, SP + 8, 1);
        cr_assert_eq(kernel_free_slots(), 0);
        kernel_exit(7, tid, 0, 0, 0);
        cr_assert_eq(kernel_free_slots(), 1);
    }
    read_ring(&packed, 0);
    cr_assert_eq(packed.events, 106);
    for (uint32_t i = 0; i < 53; i++) {
        cr_assert_eq(kind_at(&packed, 3 * i), WIRE_CALL);
        cr_assert_eq(packed.records[3 * i + 1].call.header.kind, WIRE_RETURN);
        cr_assert_eq(packed.records[3 * i + 2].call.header.kind, WIRE_EXIT);
        for (uint32_t j = 0; j < 3; j++)
            cr_assert_eq(packed.records[3 * i + j].call.header.tid, i + 7);
    }
    free(packed.records);
}

/* The last thread of a process may be past its end before another one is. */
Test(packed, the_end_of_a_process_comes_behind_the_calls_of_all_its_threads)
{
    struct records packed = new_records();

    kernel_set_packing(2);
    kernel_trace(7);
    kernel_call(7, 7, SP, 1);
    kernel_call(7, 8, SP - 65536, 2);
    kernel_exit(7, 7, 1, 0, 0);
    cr_assert_eq(kernel_free_slots(), 2);
    kernel_exit(7, 8, 1, 0, 0);
    cr_assert_eq(kernel_free_slots(), 2, "it is not given back twice");
    read_ring(&packed, 0);
    cr_assert_eq(packed.count, 3);
    cr_assert_eq(packed.records[2].call.header.kind, WIRE_EXIT);
    free(packed.records);
}

Test(packed, other_records_of_the_thread_come_behind_what_it_has_packed)
{
    struct records packed = new_records();

    kernel_set_packing(2);
    kernel_trace(7);
    kernel_call(7, 7, SP, 1);
    kernel_fork(7, 7, 9, 9);
    kernel_call(7, 7, SP - 16, 2);
    kernel_exec(7, 7);
    kernel_call(7, 7, SP, 3);
    kernel_exit(7, 7, 1, 0, 0);
    read_ring(&packed, 0);
    cr_assert_eq(packed.count, 6);
    for (size_t i = 0; i < 6; i++)
        cr_assert_eq(kind_at(&packed, i),
                     ((uint8_t[]){WIRE_CALL, WIRE_FORK, WIRE_CALL, WIRE_EXEC, WIRE_CALL, WIRE_EXIT})[i]);
    free(packed.records);
}

/* ------------------------------------------------------------------------------------ losses */

/* In a full ring what was packed stays in the slot, and what comes then is lost, at its place. */
Test(packed, losses_are_counted_where_they_happen)
{
    struct generator generator = {5};
    struct records packed = new_records();
    uint64_t lost_calls = 0, lost_returns = 0, calls = 0, returns = 0;
    bool caught = false;

    kernel_set_packing(1);
    kernel_trace(7);
    kernel_set_main_stack(SP + 65536);
    for (int round = 0; round < 40; round++) {
        size_t before = kernel_records();

        kernel_set_room(round % 2 ? 2 : 0, 0); /* what waits, and a loss behind it */
        for (int i = 0; i < 800; i++) {        /* without any rule */
            if (caught && below(&generator, 2)) {
                kernel_return(7, 7, SP - 8 * below(&generator, 4000), 1);
                returns++;
            } else {
                caught |= !kernel_call(7, 7, SP - 8 * below(&generator, 4000), below(&generator, 900));
                calls++;
            }
        }
        read_ring(&packed, before);
    }
    kernel_set_room(3, 3);
    kernel_exit(7, 7, 1, 0, 0);
    packed = (struct records){packed.records, 0, 0, 0};
    memset(unpackers, 0, sizeof(unpackers));
    read_ring(&packed, 0);
    for (size_t i = 0; i < packed.count; i++) {
        const struct wire_lost *lost = (const void *)&packed.records[i];

        lost_calls += lost->header.kind == WIRE_LOST ? lost->calls : 0;
        lost_returns += lost->header.kind == WIRE_LOST ? lost->returns : 0;
        calls -= is_call(&packed.records[i]) && lost->header.kind != WIRE_RETURN;
        returns -= lost->header.kind == WIRE_RETURN;
    }
    cr_assert_gt(lost_calls, 100);
    cr_assert_gt(lost_returns, 100);
    cr_assert_eq(calls, lost_calls);
    cr_assert_eq(returns, lost_returns);
    cr_assert_eq(kernel_losing_threads(), 0);
    free(packed.records);
}

Test(packed, a_thread_that_ends_in_a_full_ring_leaves_its_slot_behind)
{
    struct records packed = new_records();
    const struct wire_header *header;

    kernel_set_packing(1);
    kernel_trace(7);
    kernel_call(7, 7, SP, 1);
    kernel_set_room(0, 1);
    kernel_exit(7, 7, 1, 0, 0);
    header = kernel_record(0);
    cr_assert_eq(header->kind, WIRE_EXIT);
    cr_assert(header->flags & WIRE_LEFT_BEHIND);
    cr_assert_eq(kernel_free_slots(), 0);
    cr_assert_eq(kernel_packed_slot(0)->owner, 7);
    cr_assert(kernel_packed_slot(0)->left_behind);
    read_slots(&packed);
    cr_assert_eq(packed.count, 1);
    kernel_set_packing(0);
    kernel_trace(7);
    kernel_call(7, 7, SP, 1);
    cr_assert_eq(progress_run(kernel_packed_slot(0)->progress), 0);
    read_slots(&packed);
    cr_assert_eq(packed.count, 1, "another thread with its id does not write into it");
    free(packed.records);
}

/* ------------------------------------------------------------------------------------ looking into slots */

Test(packed, what_was_read_out_of_the_slot_is_not_read_again_out_of_the_record)
{
    struct records plain = new_records(), packed;

    kernel_set_room(1u << 30, 0);
    execute(9, 2, 300);
    read_ring(&plain, 0);
    kernel_reset();
    packed = new_records();
    kernel_set_packing(2);
    execute(9, 2, 300);
    /* Each record is preceded by looks at some of its beginnings. */
    for (size_t i = 0; i < kernel_records(); i++) {
        const struct wire_packed *record = kernel_record(i);
        const uint8_t *tokens = (const uint8_t *)(record + 1);
        struct unpacker *unpacker = &unpackers[record->slot];
        struct unpack_sink sink = {.handle = keep, .context = &packed};
        size_t length = kernel_record_size(i) - sizeof(*record);

        unpack_begin(unpacker, record->header.tid);
        /* A run is all that a look can break. */
        if (length && tokens[0] < TOKEN_LONG_RUN && tokens[0] > 2) {
            cr_assert_eq(unpack_tokens(unpacker, tokens, 0, 1, &sink), 0);
            cr_assert_eq(unpack_tokens(unpacker, tokens, 0, 3, &sink), 0);
            cr_assert_eq(sink.records, 3);
        }
        unpack_record(&packed, record, kernel_record_size(i));
    }
    read_slots(&packed);
    read_slots(&packed);
    expect_same_threads(&plain, &packed, 2);
    free(plain.records);
    free(packed.records);
}

/* ------------------------------------------------------------------------------------ recordings */

/* Packs the events of a recorded chunk and expects the recorded tokens. */
static void pack_again(const struct records *events, size_t from, const struct wire_packed *record,
                       size_t size)
{
    size_t before = kernel_records();

    for (size_t i = from; i < events->count; i++) {
        const struct wire_call_from *call = &events->records[i];
        const struct wire_event event = {
            .sp = wire_sp(&call->call),
            .function = call->call.function,
            .kind = call->call.header.kind,
            .flags = call->call.header.flags,
            .return_address = call->return_address,
            .gone = call->gone,
        };

        cr_assert_eq(kernel_pack(0, &event, call->call.header.ns), 1);
    }
    cr_assert_eq(kernel_flush(0), 1);
    cr_assert_eq(kernel_records(), before + 1);
    cr_assert_eq(kernel_record_size(before), size);
    cr_assert_arr_eq((const char *)kernel_record(before) + sizeof(*record), (const char *)(record + 1),
                     size - sizeof(*record));
}

/* tests/bpf_host/recorded/NAME.packed: records of one slot, each behind its length in 32 bits, as the kernel
 * wrote them when a server was recorded. */
static void recording_is_packed_alike(const char *name)
{
    struct records events = new_records();
    char path[128], bytes[4096] __attribute__((aligned(8)));
    uint32_t size;
    FILE *file;

    kernel_set_packing(1);
    kernel_trace(7);
    snprintf(path, sizeof(path), "tests/bpf_host/recorded/%s.packed", name);
    file = fopen(path, "r");
    cr_assert_not_null(file, "%s", path);
    while (fread(&size, sizeof(size), 1, file) == 1) {
        struct wire_packed *record = (void *)bytes;
        size_t from = events.count;

        cr_assert_leq(size, sizeof(bytes));
        cr_assert_eq(fread(bytes, size, 1, file), 1);
        record->slot = 0;
        unpack_record(&events, record, size);
        pack_again(&events, from, record, size);
    }
    fclose(file);
    cr_assert_gt(events.events, 10000);
    cr_assert_lt(events.bytes, events.events, "less than a byte for each event");
    free(events.records);
}

Test(packed, redis_server)
{
    recording_is_packed_alike("redis-server");
}

Test(packed, nginx)
{
    recording_is_packed_alike("nginx");
}

/* ------------------------------------------------------------------------------------ damage */

static int count(void *context, const void *record, size_t size)
{
    const struct wire_header *header = record;

    cr_assert(header->kind >= WIRE_CALL && header->kind <= WIRE_CALL_FROM);
    cr_assert_eq(size,
                 header->kind == WIRE_CALL_FROM ? sizeof(struct wire_call_from) : sizeof(struct wire_call));
    ++*(size_t *)context;
    return 0;
}

/* Of a chunk of which one byte is another one: refused, or nothing like it by its check. */
Test(packed, a_damaged_chunk_is_noticed)
{
    size_t noticed = 0, tried = 0;

    kernel_set_packing(1);
    execute(2, 1, 120);
    cr_assert_gt(kernel_records(), 0);
    for (size_t at = 0; at < kernel_record_size(0) - sizeof(struct wire_packed); at++) {
        struct unpacker *unpacker = calloc(1, sizeof(*unpacker));
        uint8_t damaged[4096];
        size_t events = 0, size = kernel_record_size(0);
        struct unpack_sink sink = {.handle = count, .context = &events};
        const struct wire_packed *record = (const void *)damaged;

        memcpy(damaged, kernel_record(0), size);
        damaged[sizeof(*record) + at] ^= (uint8_t)(1 + at % 255);
        unpack_begin(unpacker, 1);
        noticed += unpack_tokens(unpacker, damaged + sizeof(*record), size - sizeof(*record), 0, &sink) ||
                   unpack_end(unpacker, record->check);
        tried++;
        free(unpacker);
    }
    cr_assert_geq(noticed * 100, tried * 97, "%zu of %zu", noticed, tried);
}

Test(packed, tokens_that_cannot_be_are_refused)
{
    static const struct {
        uint8_t bytes[12];
        size_t length;
    } cases[] = {
        {{TOKEN_RUN}, 1},                          /* nothing is known yet */
        {{TOKEN_KNOWN, 3}, 2},                     /* nor has a number */
        {{TOKEN_LONG_RUN}, 1},                     /* cut off */
        {{TOKEN_EVENT, 1, 0}, 3},                  /* cut off */
        {{TOKEN_TIME_SINCE, 1, 0, 0, 0}, 5},       /* since when? */
        {{TOKEN_TIME, 1, 0, 0, 0, 0, 0, 0, 0}, 9}, /* of nothing: by the check */
        {{0xff}, 1},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct unpacker *unpacker = calloc(1, sizeof(*unpacker));
        size_t events = 0;
        struct unpack_sink sink = {.handle = count, .context = &events};
        int r = unpack_tokens(unpacker, cases[i].bytes, cases[i].length, 0, &sink);

        cr_assert(r || unpack_end(unpacker, predict_check(&unpacker->predictor)), "case %zu", i);
        cr_assert_eq(events, 0);
        free(unpacker);
    }
}
