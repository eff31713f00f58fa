/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Threads that find no chunk wait for the collector, which lives, does not, or has ended. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/time.h>

#include "base/clock.h"
#include "tests/unit/collector/inline/agent/agent_target.h"

#define AN_HOUR 3600000000000ull

static uint32_t self;
static uint64_t waited_ns;

static uint64_t now(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

static int on_waited(void *context, uint32_t tid, uint64_t ns)
{
    (void)context;
    cr_assert_eq(tid, self);
    waited_ns += ns;
    return 0;
}

static void begin_waiting(void)
{
    begin_with(&(struct agent_sink){.calls = on_calls, .lost = on_lost, .waited = on_waited}, false);
    self = (uint32_t)syscall(SYS_gettid);
    waited_ns = 0;
    agent_area_let_wait(area);
}

static uint32_t capacity(void)
{
    return (uint32_t)(agent_area_records(area) * area->chunk_count);
}

static void fill_all(void)
{
    for (uint32_t i = 1; i <= capacity(); i++)
        call_agent(i);
}

static uint64_t lost_so_far(void)
{
    return agent_area_chunk(area, (uint32_t)area->chunk_count - 1)->lost_after;
}

static void until_one_waits(void)
{
    while (!__atomic_load_n(&area->counts->waiting, __ATOMIC_ACQUIRE))
        sched_yield();
}

static bool ended;

static void *collect(void *unused)
{
    (void)unused;
    while (!__atomic_load_n(&ended, __ATOMIC_ACQUIRE)) {
        until_one_waits();
        agent_area_alive(area, now());
        tell_claims(self);
        read_claimed(now());
        agent_area_wake(area);
    }
    return NULL;
}

static void expect_all(uint32_t calls)
{
    tell_claims(self);
    read_claimed(now());
    cr_assert_eq(told_count, calls);
    for (uint32_t i = 0; i < calls; i++)
        cr_assert_eq(told[i], i + 1);
}

/* More calls than there is room for, and none is lost. */
Test(waiting, a_thread_waits_for_the_collector)
{
    uint32_t calls = CALLS_MAX - 5;
    pthread_t collector;

    begin_waiting();
    ended = false;
    cr_assert_eq(pthread_create(&collector, NULL, collect, NULL), 0);
    for (uint32_t i = 1; i <= calls; i++)
        call_agent(i);
    __atomic_store_n(&ended, true, __ATOMIC_RELEASE);
    __atomic_store_n(&area->counts->waiting, 1, __ATOMIC_RELEASE);
    pthread_join(collector, NULL);
    expect_all(calls);
    cr_assert_eq(agent_reader_end_all(reader), 0);
    cr_assert_gt(waited_ns, 0u);
    end();
}

Test(waiting, it_does_not_wait_for_a_collector_that_gives_no_sign_of_life)
{
    begin_waiting();
    fill_all();
    agent_area_alive(area, now());
    call_agent(1);
    cr_assert_eq(lost_so_far(), 1);
    cr_assert_eq(area->counts->waiting, 1, "it has waited");
    tell_claims(self);
    cr_assert_eq(agent_reader_end_all(reader), 0);
    cr_assert_eq(waited_ns, AGENT_PATIENCE_NS);
    end();
}

static void ignore(int signal)
{
    (void)signal;
}

/* It is interrupted ten times as often as a wait may last. */
Test(waiting, nor_if_signals_interrupt_it)
{
    const struct itimerval often = {{0, 10000}, {0, 10000}};

    begin_waiting();
    fill_all();
    signal(SIGALRM, ignore);
    setitimer(ITIMER_REAL, &often, NULL);
    agent_area_alive(area, now());
    call_agent(1);
    cr_assert_eq(lost_so_far(), 1);
    end();
}

/* The kernel side marks the area when the thread asks. */
Test(waiting, it_does_not_wait_where_it_must_not_make_system_calls)
{
    begin_waiting();
    area->head->area = 3;
    ((uint64_t *)(head + AGENT_FILTERED_OFFSET))[3] = 1;
    fill_all();
    agent_area_alive(area, now() + AN_HOUR);
    call_agent(1);
    cr_assert_eq(lost_so_far(), 1);
    cr_assert_eq(area->counts->waiting, 0);
    end();
}

static void *fill_and_lose(void *unused)
{
    (void)unused;
    clear_slots();
    fill_all();
    call_agent(1);
    call_agent(2);
    return NULL;
}

Test(waiting, the_end_of_the_recording_wakes_it)
{
    pthread_t thread;

    begin_waiting();
    agent_area_alive(area, now() + AN_HOUR);
    cr_assert_eq(pthread_create(&thread, NULL, fill_and_lose, NULL), 0);
    until_one_waits();
    agent_area_quiet(area);
    pthread_join(thread, NULL);
    cr_assert_eq(lost_so_far(), 0, "it is no loss then");
    end();
}

static void *call_once(void *unused)
{
    (void)unused;
    clear_slots();
    call_agent(1);
    return NULL;
}

/* As many threads as there are chunks, each in its own, and one more. */
Test(waiting, it_does_not_wait_for_chunks_that_are_all_in_use)
{
    pthread_t threads[4], one_more;

    begin_waiting();
    agent_area_alive(area, now() + AN_HOUR);
    for (size_t i = 0; i < 4; i++) {
        cr_assert_not(agent_reader_starves(reader));
        cr_assert_eq(pthread_create(&threads[i], NULL, call_once, NULL), 0);
        pthread_join(threads[i], NULL);
        cr_assert_eq(agent_reader_claim(reader, ++told_tickets, 100 + (uint32_t)i), 0);
        read_claimed(now());
    }
    cr_assert(agent_reader_starves(reader));
    cr_assert_eq(pthread_create(&one_more, NULL, call_once, NULL), 0);
    until_one_waits();
    agent_area_starve(area, true);
    pthread_join(one_more, NULL);
    cr_assert_eq(area->counts->unplaced, 1);
    end();
}
