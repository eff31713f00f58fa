/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>

#include "collector/tracer/record_queue.h"

static uint32_t seen[8];
static unsigned seen_count;
static int answer;

static int on_record(void *context, const void *data, size_t size)
{
    const struct wire_exit *record = data;

    (void)context;
    cr_assert_eq(size, sizeof(*record));
    cr_assert_lt(seen_count, 8u);
    seen[seen_count++] = record->header.tid;
    return answer;
}

static bool is_readable(const struct record_queue *queue)
{
    struct pollfd wakeup = {.fd = queue->wakeup, .events = POLLIN};

    return poll(&wakeup, 1, 0) == 1;
}

static void put(struct record_queue *queue, uint32_t tid)
{
    const struct wire_exit record = {.header = {.kind = WIRE_EXIT, .tid = tid}};

    cr_assert(record_queue_put(queue, &record, sizeof(record)));
}

Test(record_queue, in_order_and_up_to_a_limit)
{
    struct record_queue queue;

    cr_assert_eq(record_queue_init(&queue), 0);
    cr_expect(!is_readable(&queue));
    cr_expect_eq(record_queue_consume(&queue, 10, on_record, NULL), 0);
    put(&queue, 1);
    put(&queue, 2);
    put(&queue, 3);
    cr_expect(is_readable(&queue));
    cr_expect_eq(record_queue_consume(&queue, 2, on_record, NULL), 2);
    put(&queue, 4); /* while some are left of those before */
    cr_expect_eq(record_queue_consume(&queue, 10, on_record, NULL), 2);
    cr_expect(!is_readable(&queue));
    for (uint32_t i = 0; i < 4; i++)
        cr_expect_eq(seen[i], i + 1);
    cr_expect_eq(record_queue_bytes(&queue), 4 * sizeof(struct wire_exit));
    cr_expect_eq(record_queue_lost(&queue), 0);
    record_queue_release(&queue);
}

Test(record_queue, a_reader_ends_its_round)
{
    struct record_queue queue;

    cr_assert_eq(record_queue_init(&queue), 0);
    put(&queue, 1);
    put(&queue, 2);
    put(&queue, 3);
    answer = 1;
    cr_expect_eq(record_queue_consume(&queue, 10, on_record, NULL), 1);
    answer = -EIO;
    cr_expect_eq(record_queue_consume(&queue, 10, on_record, NULL), -EIO);
    answer = 0;
    cr_expect_eq(record_queue_consume(&queue, 10, on_record, NULL), 1);
    cr_expect_eq(seen[2], 3);
    record_queue_release(&queue);
}

Test(record_queue, what_is_no_record_is_lost)
{
    static const uint8_t long_one[100];
    struct record_queue queue;

    cr_assert_eq(record_queue_init(&queue), 0);
    cr_expect(!record_queue_put(&queue, long_one, sizeof(long_one)));
    cr_expect_eq(record_queue_lost(&queue), 1);
    cr_expect_eq(record_queue_consume(&queue, 10, on_record, NULL), 0);
    record_queue_release(&queue);
}
