/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/order/kept_order.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "store/db/db.h"

static const char write_what[] = "cannot keep where threads are";
static const char read_what[] = "cannot read where threads were";

/* ---------------------------------------------------------------------------------------------- writing */

struct writing {
    sqlite3 *db;
    int64_t run_id;
    const struct order_tree *order;
    sqlite3_stmt *node, *iteration, *thread;
};

static int64_t or_null(uint64_t value, uint64_t none)
{
    return value == none ? -1 : (int64_t)value;
}

static int run_bound(struct writing *writing, sqlite3_stmt *statement, int bound, struct error *err)
{
    return bound == SQLITE_OK ? db_step(writing->db, statement, write_what, err)
                              : db_fail(writing->db, err, write_what);
}

static int write_iterations(struct writing *writing, uint32_t node, const struct order_point *point,
                            struct error *err)
{
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < point->depth; i++)
        if (point->iterations[i].known)
            r = run_bound(writing, writing->iteration,
                          db_bind(writing->iteration, "iiii", writing->run_id, (int64_t)node, (int64_t)i,
                                  (int64_t)point->iterations[i].count),
                          err);
    return r;
}

static int write_node(struct writing *writing, uint32_t node, struct error *err)
{
    const struct order_tree *order = writing->order;
    const struct sample_place *place = order_tree_place(order, node);
    const struct sample_image *image =
        place->image == SAMPLE_NO_IMAGE ? NULL : &order->set->images[place->image];
    uint32_t parent = order->tree->nodes[node].parent, number = order->nodes[node].point;
    const struct order_point none = {0}, *point = number == PREFIX_NONE ? &none : &order->points[number];
    int bound =
        db_bind(writing->node, "iinTTttnnnii", writing->run_id, (int64_t)node, parent ? (int64_t)parent : -1,
                image ? sample_text(order->set, image->path) : NULL,
                image ? sample_text(order->set, image->build_id) : NULL,
                sample_text(order->set, place->function), sample_text(order->set, place->file),
                or_null(place->line, 0), or_null(place->address, SAMPLE_NO_ADDRESS),
                or_null(place->entry, SAMPLE_NO_ADDRESS), (int64_t)place->flags, (int64_t)point->depth);
    int r = run_bound(writing, writing->node, bound, err);

    return r == 0 ? write_iterations(writing, node, point, err) : r;
}

/* The threads whose stacks end at a node are its first ones. */
static int write_threads(struct writing *writing, uint32_t node, struct error *err)
{
    const struct sample_set *set = writing->order->set;
    const struct prefix_node *at = &writing->order->tree->nodes[node];
    size_t ends = at->first_child == PREFIX_NONE ? at->count : at->ends;
    int r = 0;

    for (size_t i = 0; r == 0 && i < ends; i++) {
        uint32_t number = writing->order->tree->threads[at->first + i];
        const struct sample_thread *thread = &set->threads[number];

        r = run_bound(writing, writing->thread,
                      db_bind(writing->thread, "iiiintttin", writing->run_id, (int64_t)number,
                              (int64_t)thread->process, (int64_t)thread->tid,
                              thread->rank == SAMPLE_NO_RANK ? (int64_t)-1 : (int64_t)thread->rank,
                              sample_text(set, thread->label), sample_text(set, thread->name),
                              sample_text(set, thread->state), (int64_t)thread->flags,
                              node ? (int64_t)node : (int64_t)-1),
                      err);
    }
    return r;
}

static int prepare(struct writing *writing, struct error *err)
{
    int r = db_prepare(
        writing->db, "INSERT INTO main.end_nodes VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
        write_what, &writing->node, err);

    if (r == 0)
        r = db_prepare(writing->db, "INSERT INTO main.end_iterations VALUES (?1, ?2, ?3, ?4)", write_what,
                       &writing->iteration, err);
    if (r == 0)
        r = db_prepare(writing->db,
                       "INSERT INTO main.end_threads VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
                       write_what, &writing->thread, err);
    return r;
}

static int write_tree(struct writing *writing, struct error *err)
{
    int r = prepare(writing, err);

    for (uint32_t node = 0; r == 0 && node < writing->order->tree->node_count; node++) {
        if (node)
            r = write_node(writing, node, err);
        if (r == 0)
            r = write_threads(writing, node, err);
    }
    sqlite3_finalize(writing->node);
    sqlite3_finalize(writing->iteration);
    sqlite3_finalize(writing->thread);
    return r;
}

int kept_order_write(struct tracestore *store, int64_t run_id, const struct order_tree *order,
                     struct error *err)
{
    struct writing writing = {.db = tracestore_db(store), .run_id = run_id, .order = order};
    int r = db_begin(writing.db, write_what, err);

    if (r < 0)
        return r;
    r = write_tree(&writing, err);
    if (r < 0) {
        db_rollback(writing.db);
        return r;
    }
    return db_commit(writing.db, write_what, err);
}

/* ---------------------------------------------------------------------------------------------- reading */

enum { NODE, PARENT, IMAGE, BUILD_ID, FUNCTION, FILE_NAME, LINE, ADDRESS, ENTRY, FLAGS, DEPTH };
enum { PID, TID, RANK, LABEL, NAME, STATE, THREAD_FLAGS, THREAD_NODE };

struct reading {
    sqlite3 *db;
    int64_t run_id;
    struct sample_set *set;
    struct kept_order *kept;
};

static const char *text_at(sqlite3_stmt *row, int column)
{
    return (const char *)sqlite3_column_text(row, column);
}

static uint64_t number_at(sqlite3_stmt *row, int column, uint64_t null)
{
    return sqlite3_column_type(row, column) == SQLITE_NULL ? null
                                                           : (uint64_t)sqlite3_column_int64(row, column);
}

static int read_place(struct sample_set *set, sqlite3_stmt *row, struct kept_node *node)
{
    struct sample_place place = {.image = SAMPLE_NO_IMAGE,
                                 .line = (uint32_t)number_at(row, LINE, 0),
                                 .address = number_at(row, ADDRESS, SAMPLE_NO_ADDRESS),
                                 .entry = number_at(row, ENTRY, SAMPLE_NO_ADDRESS),
                                 .flags = (unsigned)number_at(row, FLAGS, 0)};
    const char *image = text_at(row, IMAGE);

    if ((image && sample_set_image(set, image, image, text_at(row, BUILD_ID), &place.image) < 0) ||
        sample_set_text(set, text_at(row, FUNCTION), &place.function) < 0 ||
        sample_set_text(set, text_at(row, FILE_NAME), &place.file) < 0)
        return -ENOMEM;
    node->point.address = place.address;
    return sample_set_place(set, &place, &node->place);
}

/* Nodes are numbered from 1, a parent's number is less than its children's. */
static int read_node(struct reading *reading, sqlite3_stmt *row)
{
    struct kept_order *kept = reading->kept;
    uint64_t number = number_at(row, NODE, 0), parent = number_at(row, PARENT, 0);
    struct kept_node node = {.parent = parent ? (uint32_t)parent - 1 : PREFIX_NONE,
                             .point.depth = (uint32_t)number_at(row, DEPTH, 0)};

    if (number != kept->node_count + 1 || parent >= number || number >= PREFIX_NONE ||
        node.point.depth > ORDER_LOOPS_MAX)
        return -EBADMSG;
    if (read_place(reading->set, row, &node) < 0 ||
        array_reserve(&kept->nodes, &kept->node_capacity, kept->node_count + 1) < 0)
        return -ENOMEM;
    kept->nodes[kept->node_count++] = node;
    return 0;
}

static int read_iteration(struct reading *reading, sqlite3_stmt *row)
{
    uint64_t number = number_at(row, 0, 0), depth = number_at(row, 1, UINT64_MAX);
    struct order_point *point;

    if (number == 0 || number > reading->kept->node_count)
        return -EBADMSG;
    point = &reading->kept->nodes[number - 1].point;
    if (depth >= point->depth)
        return -EBADMSG;
    point->iterations[depth] = (struct order_iteration){.known = true, .count = number_at(row, 2, 0)};
    return 0;
}

static int read_thread(struct reading *reading, sqlite3_stmt *row)
{
    struct kept_order *kept = reading->kept;
    uint64_t node = number_at(row, THREAD_NODE, 0);
    struct kept_thread read = {.thread = {.process = (pid_t)number_at(row, PID, 0),
                                          .tid = (pid_t)number_at(row, TID, 0),
                                          .rank = sqlite3_column_type(row, RANK) == SQLITE_NULL
                                                      ? SAMPLE_NO_RANK
                                                      : sqlite3_column_int(row, RANK),
                                          .flags = (unsigned)number_at(row, THREAD_FLAGS, 0)},
                               .node = node ? (uint32_t)node - 1 : PREFIX_NONE};

    if (node > kept->node_count)
        return -EBADMSG;
    if (sample_set_text(reading->set, text_at(row, LABEL), &read.thread.label) < 0 ||
        sample_set_text(reading->set, text_at(row, NAME), &read.thread.name) < 0 ||
        sample_set_text(reading->set, text_at(row, STATE), &read.thread.state) < 0 ||
        array_reserve(&kept->threads, &kept->thread_capacity, kept->thread_count + 1) < 0)
        return -ENOMEM;
    kept->threads[kept->thread_count++] = read;
    return 0;
}

static int read_rows(struct reading *reading, const char *sql, const char *types,
                     int (*read_row)(struct reading *reading, sqlite3_stmt *row), struct error *err)
{
    AUTO_STATEMENT *rows = NULL;
    int step = SQLITE_DONE, r = db_prepare(reading->db, sql, read_what, &rows, err);

    if (r < 0)
        return r;
    if (db_bind(rows, "i", reading->run_id) != SQLITE_OK)
        return db_fail(reading->db, err, read_what);
    while (r == 0 && (step = db_row(rows, types)) == SQLITE_ROW)
        r = read_row(reading, rows);
    if (r == -ENOMEM)
        return error_no_memory(err), r;
    if (r < 0)
        return error_say(err, r, "%s: the rows of run %lld are inconsistent", read_what,
                         (long long)reading->run_id);
    return step == SQLITE_DONE ? 0 : db_fail(reading->db, err, read_what);
}

int kept_order_read(struct tracestore *store, int64_t run_id, struct sample_set *set,
                    struct kept_order *ret_kept, struct error *err)
{
    struct reading reading = {.db = tracestore_db(store), .run_id = run_id, .set = set, .kept = ret_kept};
    int r;

    memset(ret_kept, 0, sizeof(*ret_kept));
    r = read_rows(&reading,
                  "SELECT node, parent, image, build_id, function, file, line, address, entry, flags, "
                  "depth FROM main.end_nodes WHERE run_id = ?1 ORDER BY node",
                  "nNTTTTNIInn", read_node, err);
    if (r == 0)
        r = read_rows(&reading, "SELECT node, depth, finished FROM main.end_iterations WHERE run_id = ?1",
                      "nnn", read_iteration, err);
    if (r == 0)
        r = read_rows(&reading,
                      "SELECT pid, tid, rank, label, name, state, flags, node FROM main.end_threads "
                      "WHERE run_id = ?1 ORDER BY thread",
                      "iiItttnN", read_thread, err);
    if (r < 0)
        kept_order_release(ret_kept);
    return r;
}

void kept_order_release(struct kept_order *kept)
{
    free(kept->nodes);
    free(kept->threads);
    memset(kept, 0, sizeof(*kept));
}
