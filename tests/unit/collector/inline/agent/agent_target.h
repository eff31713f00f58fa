/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The agent, mapped into this process as into a target, and a reader of what is recorded. */
#ifndef TRACECTL_TESTS_AGENT_TARGET_H
#define TRACECTL_TESTS_AGENT_TARGET_H

#include <criterion/criterion.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collector/inline/reader.h"

enum { RINGS = 4 * AGENT_CHUNK_BYTES, CALLS_MAX = 8192 };

/* What the reader has handed on: functions, and losses as minus their number. And whose they were. */
static int64_t told[CALLS_MAX];
static uint32_t told_of[CALLS_MAX];
static uint64_t told_at[CALLS_MAX]; /* 0: no time */
static size_t told_count;

static int on_calls(void *context, uint32_t tid, const struct agent_record *records, const uint64_t *times,
                    size_t count)
{
    (void)context;
    for (size_t i = 0; i < count; i++) {
        told_of[told_count] = tid;
        told_at[told_count] = times ? times[i] : 0;
        told[told_count++] = records[i].function;
    }
    return 0;
}

static int on_lost(void *context, uint32_t tid, uint64_t calls)
{
    (void)context;
    told_of[told_count] = tid;
    told[told_count++] = -(int64_t)calls;
    return 0;
}

#define FUNCTIONS 1000000

static struct agent_area *area;
static struct agent_reader *reader;
static uint8_t *head; /* as a target has it mapped */
static uint32_t told_tickets;

static void clear_slots(void)
{
    __asm__ volatile("movq $0,%%fs:%c0; movq $0,%%fs:%c1; movl $0,%%fs:%c2"
                     :
                     : "i"(AGENT_CURSOR), "i"(AGENT_OWNER), "i"(AGENT_SHARED)
                     : "memory");
}

static void begin_with(const struct agent_sink *sink, bool timed)
{
    const struct agent_expected expected = {.first = 1, .functions = FUNCTIONS};
    int agent = agent_file_new();
    void *apart;

    told_count = told_tickets = 0;
    cr_assert_eq(agent_area_new(RINGS, timed, &area, NULL), 0);
    cr_assert_eq(agent_reader_new(area, sink, &expected, &reader), 0);
    head = mmap(NULL, AGENT_STUBS_OFFSET, PROT_READ, MAP_SHARED, area->head_fd, 0);
    cr_assert_neq(head, MAP_FAILED);
    cr_assert_neq(mmap(head + AGENT_SLOW_OFFSET, AGENT_CODE_BYTES, PROT_READ | PROT_EXEC,
                       MAP_PRIVATE | MAP_FIXED, agent, 0),
                  MAP_FAILED);
    close(agent);
    cr_assert_neq(mmap(head + AGENT_KEY_OFFSET, AGENT_KEY_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
                  MAP_FAILED);
    cr_assert_eq(madvise(head + AGENT_KEY_OFFSET, AGENT_KEY_BYTES, MADV_WIPEONFORK), 0);
    cr_assert_neq(mmap(head + AGENT_FILTERED_OFFSET, AGENT_FILTERED_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
                  MAP_FAILED);
    apart = mmap(NULL, area->apart_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, area->data_fd, 0);
    cr_assert_neq(apart, MAP_FAILED);
    agent_area_placed(area, (uint64_t)apart, (uint64_t)head);
    clear_slots();
}

static inline void begin(void)
{
    begin_with(&(struct agent_sink){.calls = on_calls, .lost = on_lost}, false);
}

static void end(void)
{
    clear_slots();
    munmap((void *)(area->head->chunks - AGENT_COUNTS_BYTES), area->apart_bytes);
    munmap(head, AGENT_STUBS_OFFSET);
    agent_reader_free(reader);
    agent_area_free(area);
}

#define STATUS_FLAGS 0x8d5u /* which the stub restores */

/* A stub's slow path, where the program goes through a string backwards. */
static void call_agent(uint32_t function)
{
    void *entry = head + AGENT_SLOW_OFFSET;
    uint64_t flags_before, flags_after;

    __asm__ volatile(
        "lea -128(%%rsp),%%rsp\n\t"
        "std\n\t"
        "pushfq; pop %0\n\t"
        "mov %2,%%ecx\n\t"
        "lea 128(%%rsp),%%rdx\n\t"
        "call *%3\n\t"
        "pushfq; pop %1\n\t"
        "cld\n\t"
        "lea 128(%%rsp),%%rsp"
        : "=&r"(flags_before), "=&r"(flags_after)
        : "r"(function), "r"(entry)
        : "rcx", "rdx", "memory", "cc");
    cr_assert_eq(flags_before & ~STATUS_FLAGS, flags_after & ~STATUS_FLAGS);
}

/* As the kernel side does, which has seen who took slots. */
static void tell_claims(uint32_t tid)
{
    while (told_tickets < area->counts->tickets)
        cr_assert_eq(agent_reader_claim(reader, ++told_tickets, tid), 0);
}

static inline uint32_t own_name(void)
{
    return (uint32_t)syscall(SYS_gettid) + ((const struct agent_key *)(head + AGENT_KEY_OFFSET))->key;
}

static inline void read_claimed(uint64_t now)
{
    cr_assert_eq(agent_reader_sample(reader, now), 0);
    cr_assert_eq(agent_reader_read(reader), 0);
}

static inline void read_all(uint64_t now)
{
    tell_claims((uint32_t)syscall(SYS_gettid));
    read_claimed(now);
}

#endif
