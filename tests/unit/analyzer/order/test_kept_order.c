/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "analyzer/order/kept_order.h"
#include "base/error.h"
#include "store/db/db.h"
#include "store/writer/writer.h"

static char folder[] = "/tmp/tracectl-kept-XXXXXX";
static struct tracestore *store;
static int64_t run_id;

static void begin(void)
{
    const struct trace_run_description run = {.name = "kept", .command = "", .options = "-p 1"};
    struct trace_writer *writer;
    char path[64];

    cr_assert_not_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/store.db", folder);
    cr_assert_eq(tracestore_open(path, TRACESTORE_CREATE, &store, NULL), 0);
    cr_assert_eq(trace_writer_begin(store, &run, NULL, &writer, NULL), 0);
    run_id = trace_writer_run_id(writer);
    cr_assert_eq(trace_writer_end(writer, 1, 0, NULL), 0);
    trace_writer_free(writer);
}

static void end(void)
{
    char command[64];

    tracestore_free(store);
    snprintf(command, sizeof(command), "rm -r %s", folder);
    cr_assert_eq(system(command), 0);
}

/* Two threads that part in main, one whose stack is not known; code of no file, so that nothing is read. */
static struct sample_set *three_threads(void)
{
    struct sample_place places[3] = {{.entry = 0x100, .address = 0x110, .line = 7},
                                     {.entry = 0x100, .address = 0x120, .flags = SAMPLE_AFTER_GAP},
                                     {.entry = SAMPLE_NO_ADDRESS, .address = SAMPLE_NO_ADDRESS}};
    struct sample_set *set;
    uint32_t numbers[3];

    cr_assert_eq(sample_set_new(&set), 0);
    for (int i = 0; i < 3; i++) {
        struct sample_thread thread = {
            .process = 40, .tid = 41 + i, .rank = i ? i : SAMPLE_NO_RANK, .flags = i ? SAMPLE_INCOMPLETE : 0};
        const uint32_t row[2] = {(uint32_t)(i % 2), 2};
        char label[16];

        snprintf(label, sizeof(label), "5.%d", i);
        cr_assert_eq(sample_set_text(set, label, &thread.label), 0);
        cr_assert_eq(sample_set_text(set, "sleeping", &thread.state), 0);
        places[i].image = SAMPLE_NO_IMAGE;
        if (i == 0)
            cr_assert_eq(sample_set_image(set, "/nowhere/a", "/nowhere/a", "1f", &places[i].image), 0);
        cr_assert_eq(sample_set_text(set, i == 2 ? NULL : "main", &places[i].function), 0);
        cr_assert_eq(sample_set_place(set, &places[i], &numbers[i]), 0);
        cr_assert_eq(numbers[i], (uint32_t)i);
        cr_assert_eq(sample_set_thread(set, &thread, row, i == 2 ? 0 : 2), 0);
    }
    return set;
}

static void keep_three(const struct sample_set *set)
{
    AUTO_ORDER_TREE struct order_tree *order = NULL;
    const struct order_source source = {0};

    cr_assert_eq(order_tree_new(set, &source, true, &order, NULL), 0);
    cr_assert_eq(kept_order_write(store, run_id, order, NULL), 0);
}

static const struct kept_thread *thread_of(const struct kept_order *kept, pid_t tid)
{
    for (size_t i = 0; i < kept->thread_count; i++)
        if (kept->threads[i].thread.tid == tid)
            return &kept->threads[i];
    cr_assert_fail("no thread %d", (int)tid);
    return NULL;
}

Test(kept_order, is_read_as_it_was_written, .init = begin, .fini = end)
{
    AUTO_SAMPLE_SET struct sample_set *set = three_threads(), *got = NULL;
    struct kept_order kept;

    cr_assert_eq(sample_set_new(&got), 0);
    cr_assert_eq(kept_order_read(store, run_id, got, &kept, NULL), 0);
    cr_assert_eq(kept.thread_count, 0, "nothing was kept yet");
    keep_three(set);
    cr_assert_eq(kept_order_read(store, run_id, got, &kept, NULL), 0);
    cr_assert_eq(kept.thread_count, 3);
    cr_assert_eq(kept.node_count, 4);
    for (size_t i = 0; i < 2; i++) {
        const struct kept_thread *thread = thread_of(&kept, 41 + (pid_t)i);
        const struct kept_node *inner = &kept.nodes[thread->node], *outer = &kept.nodes[inner->parent];
        const struct sample_place *place = &got->places[outer->place], *was = sample_place_of(set, i, 0);

        cr_expect_eq(thread->thread.process, 40);
        cr_expect_eq(thread->thread.rank, set->threads[i].rank);
        cr_expect_eq(thread->thread.flags, set->threads[i].flags);
        cr_expect_str_eq(sample_text(got, thread->thread.state), "sleeping");
        cr_expect_eq(outer->parent, PREFIX_NONE);
        cr_expect_eq(got->places[inner->place].address, SAMPLE_NO_ADDRESS);
        cr_expect_str_eq(sample_text(got, place->function), "main");
        cr_expect(place->address == was->address && place->entry == was->entry && place->line == was->line &&
                  place->flags == was->flags);
        cr_expect_eq(place->image == SAMPLE_NO_IMAGE, was->image == SAMPLE_NO_IMAGE);
    }
    cr_expect_eq(thread_of(&kept, 43)->node, PREFIX_NONE, "no stack");
    cr_expect_str_eq(sample_text(got, got->images[0].build_id), "1f");
    kept_order_release(&kept);
}

Test(kept_order, rows_that_do_not_fit_are_refused, .init = begin, .fini = end)
{
    static const char *const changes[] = {
        "UPDATE end_nodes SET parent = node WHERE node = 2",
        "UPDATE end_nodes SET parent = -1 WHERE node = 2",
        "UPDATE end_nodes SET node = 9 WHERE node = 4",
        "UPDATE end_nodes SET depth = 9 WHERE node = 1",
        "UPDATE end_nodes SET depth = -1 WHERE node = 1",
        "UPDATE end_threads SET node = 5 WHERE node IS NOT NULL",
        "UPDATE end_threads SET node = -1 WHERE node IS NOT NULL",
        "INSERT INTO end_iterations SELECT run_id, 1, 0, 3 FROM runs",
        "INSERT INTO end_iterations SELECT run_id, 7, 0, 3 FROM runs",
    };
    AUTO_SAMPLE_SET struct sample_set *set = three_threads();
    sqlite3 *db = tracestore_db(store);

    keep_three(set);
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        AUTO_SAMPLE_SET struct sample_set *got = NULL;
        struct kept_order kept;
        struct error err = {0};

        cr_assert_eq(sample_set_new(&got), 0);
        cr_assert_eq(db_begin(db, "test", NULL), 0);
        cr_assert_eq(db_exec(db, changes[i], "test", &err), 0, "%s: %s", changes[i], err.message);
        cr_expect_eq(kept_order_read(store, run_id, got, &kept, &err), -EBADMSG, "%s", changes[i]);
        cr_expect_eq(kept.thread_count + kept.node_count, 0);
        db_rollback(db);
    }
}
