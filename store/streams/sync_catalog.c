/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the catalog says of a run's synchronisation: processes, channels, declared functions. */
#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "store/db/store.h"
#include "store/streams/process_streams.h"
#include "store/streams/sync_events.h"

static const char what[] = "cannot read the synchronisation catalog";

/* Reads all rows of `sql` for a run into an array of items of `size` bytes, of which `read` fills one; it is
 * counted as soon as it is begun, so that a half-filled one is freed with the others. */
struct row_list {
    char *items;
    size_t count, capacity, size;
    const char *types; /* of the columns, for db_row() */
    int (*read)(sqlite3_stmt *row, void *item);
};

static int read_rows(struct tracestore *store, int64_t run_id, const char *sql, struct row_list *list,
                     struct error *err)
{
    AUTO_STATEMENT *row = NULL;
    int result = SQLITE_DONE, code = db_prepare(store->db, sql, what, &row, err);

    if (code)
        return code;
    db_bind(row, "i", run_id);
    while ((result = db_row(row, list->types)) == SQLITE_ROW) {
        if (array_reserve_bytes((void **)&list->items, &list->capacity, list->count + 1, list->size))
            return error_no_memory(err), -ENOMEM;
        memset(list->items + list->count * list->size, 0, list->size);
        if (list->read(row, list->items + list->count++ * list->size))
            return error_no_memory(err), -ENOMEM;
    }
    return result == SQLITE_DONE ? 0 : db_fail(store->db, err, what);
}

/* ------------------------------------------------------------------------------------------ processes */

enum { PROCESS, LABEL, EXE, PID, LIBRARY, WHY_NOT, FROM_NS, EVENTS, FROM_START, RUN };

static int read_process(sqlite3_stmt *row, void *item)
{
    struct sync_process *process = item;

    *process = (struct sync_process){
        .process_id = sqlite3_column_int64(row, PROCESS),
        .run_id = sqlite3_column_int64(row, RUN),
        .label = db_text(row, LABEL),
        .exe = db_text(row, EXE),
        .pid = sqlite3_column_int64(row, PID),
        .from_ns = (uint64_t)sqlite3_column_int64(row, FROM_NS),
        .events = (uint64_t)sqlite3_column_int64(row, EVENTS),
        .from_start = sqlite3_column_int(row, FROM_START) != 0,
    };
    if (sqlite3_column_type(row, LIBRARY) != SQLITE_NULL)
        process->library = db_text(row, LIBRARY);
    else
        process->why_not = db_text(row, WHY_NOT);
    return process->label && process->exe && (process->library || process->why_not) ? 0 : -ENOMEM;
}

int sync_processes(struct tracestore *store, int64_t run_id, struct sync_process **ret_processes,
                   size_t *ret_count, struct error *err)
{
    struct row_list list = {.size = sizeof(struct sync_process), .types = "i-tiTTnni", .read = read_process};
    int code = read_rows(
        store, run_id,
        "SELECT s.process_id, " PROCESS_LABEL_SQL("s.process_id") ", coalesce(p.exe, ''), coalesce(p.pid, 0),"
        " library, why_not, from_ns, coalesce((SELECT sum(event_count) FROM main.process_segments g"
        "  WHERE g.process_id = s.process_id AND stream = 2), 0), from_start, s.run_id"
        " FROM main.sync_processes s LEFT JOIN main.processes p USING (process_id) WHERE s.run_id = ?1"
        " ORDER BY s.process_id",
        &list, err);

    if (code) {
        sync_processes_free((struct sync_process *)list.items, list.count);
        return code;
    }
    *ret_processes = (struct sync_process *)list.items;
    *ret_count = list.count;
    return 0;
}

void sync_processes_free(struct sync_process *processes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(processes[i].label);
        free(processes[i].exe);
        free(processes[i].library);
        free(processes[i].why_not);
    }
    free(processes);
}

/* ------------------------------------------------------------------------------------------ channels */

enum { CHANNEL, KIND, NAME, LOCAL, REMOTE, DEVICE, INODE, NET, CHANNEL_FROM_START };

static int read_channel(sqlite3_stmt *row, void *item)
{
    struct sync_channel *channel = item;

    *channel = (struct sync_channel){
        .channel = (uint64_t)sqlite3_column_int64(row, CHANNEL),
        .kind = (enum sync_channel_kind)sqlite3_column_int(row, KIND),
        .name = db_text(row, NAME),
        .local = db_text(row, LOCAL),
        .remote = db_text(row, REMOTE),
        .device = (uint64_t)sqlite3_column_int64(row, DEVICE),
        .inode = (uint64_t)sqlite3_column_int64(row, INODE),
        .net = (uint64_t)sqlite3_column_int64(row, NET),
        .from_start = sqlite3_column_int(row, CHANNEL_FROM_START) != 0,
    };
    return channel->name && channel->local && channel->remote ? 0 : -ENOMEM;
}

int sync_channels(struct tracestore *store, int64_t run_id, struct sync_channel **ret_channels,
                  size_t *ret_count, struct error *err)
{
    struct row_list list = {.size = sizeof(struct sync_channel), .types = "nitttiiii", .read = read_channel};
    int code = read_rows(store, run_id,
                         "SELECT channel, kind, name, local, remote, device, inode, net, from_start"
                         " FROM main.sync_channels WHERE run_id = ?1 ORDER BY channel",
                         &list, err);

    if (code) {
        sync_channels_free((struct sync_channel *)list.items, list.count);
        return code;
    }
    *ret_channels = (struct sync_channel *)list.items;
    *ret_count = list.count;
    return 0;
}

void sync_channels_free(struct sync_channel *channels, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(channels[i].name);
        free(channels[i].local);
        free(channels[i].remote);
    }
    free(channels);
}

/* ------------------------------------------------------------------------------------------ functions */

static int read_function(sqlite3_stmt *row, void *item)
{
    struct sync_function *function = item;

    *function = (struct sync_function){
        .number = (uint64_t)sqlite3_column_int64(row, 0),
        .role = db_text(row, 1),
        .name = db_text(row, 2),
    };
    return function->role && function->name ? 0 : -ENOMEM;
}

int sync_functions(struct tracestore *store, int64_t run_id, struct sync_function **ret_functions,
                   size_t *ret_count, struct error *err)
{
    struct row_list list = {.size = sizeof(struct sync_function), .types = "itt", .read = read_function};
    int code = read_rows(
        store, run_id, "SELECT number, role, name FROM main.sync_functions WHERE run_id = ?1 ORDER BY number",
        &list, err);

    if (code) {
        sync_functions_free((struct sync_function *)list.items, list.count);
        return code;
    }
    *ret_functions = (struct sync_function *)list.items;
    *ret_count = list.count;
    return 0;
}

void sync_functions_free(struct sync_function *functions, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(functions[i].role);
        free(functions[i].name);
    }
    free(functions);
}

/* ------------------------------------------------------------------------------------------ call sites */

int sync_site(struct tracestore *store, uint32_t site_id, struct sync_site *ret_site, struct error *err)
{
    AUTO_STATEMENT *row = NULL;
    int result, code = db_prepare(store->db,
                                  "SELECT coalesce(f.demangled, f.name), coalesce(s.file, ''),"
                                  " coalesce(s.line, 0) FROM main.call_sites s"
                                  " LEFT JOIN main.functions f USING (function_id) WHERE site_id = ?1",
                                  what, &row, err);

    if (code)
        return code;
    db_bind(row, "i", (int64_t)site_id);
    result = db_row(row, "Tti");
    if (result != SQLITE_ROW && result != SQLITE_DONE)
        return db_fail(store->db, err, what);
    ret_site->function = result == SQLITE_ROW ? db_text(row, 0) : strdup("");
    ret_site->file = result == SQLITE_ROW ? db_text(row, 1) : strdup("");
    ret_site->line = result == SQLITE_ROW ? sqlite3_column_int(row, 2) : 0;
    if (ret_site->function && ret_site->file)
        return 0;
    sync_site_release(ret_site);
    return error_no_memory(err), -ENOMEM;
}

void sync_site_release(struct sync_site *site)
{
    free(site->function);
    free(site->file);
    *site = (struct sync_site){0};
}
