/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/go/usages.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"

enum go_op go_usage_operation(const struct go_usage *usage)
{
    static const enum go_op operations[][GO_SLEEP + 1] = {
        [GO_CHANNEL] = {[GO_MAKE] = GO_OP_CHAN_MAKE,
                        [GO_SEND] = GO_OP_CHAN_SEND,
                        [GO_RECV] = GO_OP_CHAN_RECV,
                        [GO_RANGE] = GO_OP_CHAN_RANGE,
                        [GO_CLOSE] = GO_OP_CHAN_CLOSE,
                        [GO_SELECT] = GO_OP_SELECT},
        [GO_GOROUTINE] = {[GO_GO] = GO_OP_GO},
        [GO_MUTEX] = {[GO_LOCK] = GO_OP_MUTEX_LOCK,
                      [GO_TRYLOCK] = GO_OP_MUTEX_TRYLOCK,
                      [GO_UNLOCK] = GO_OP_MUTEX_UNLOCK},
        [GO_RWMUTEX] = {[GO_LOCK] = GO_OP_RWMUTEX_LOCK,
                        [GO_TRYLOCK] = GO_OP_RWMUTEX_TRYLOCK,
                        [GO_UNLOCK] = GO_OP_RWMUTEX_UNLOCK,
                        [GO_RLOCK] = GO_OP_RWMUTEX_RLOCK,
                        [GO_TRYRLOCK] = GO_OP_RWMUTEX_TRYRLOCK,
                        [GO_RUNLOCK] = GO_OP_RWMUTEX_RUNLOCK},
        [GO_WAITGROUP] = {[GO_ADD] = GO_OP_WAITGROUP_ADD,
                          [GO_DONE] = GO_OP_WAITGROUP_DONE,
                          [GO_WAIT] = GO_OP_WAITGROUP_WAIT,
                          [GO_GO] = GO_OP_GO},
        [GO_COND] = {[GO_WAIT] = GO_OP_COND_WAIT,
                     [GO_SIGNAL] = GO_OP_COND_SIGNAL,
                     [GO_BROADCAST] = GO_OP_COND_BROADCAST},
        [GO_ONCE] = {[GO_DO] = GO_OP_ONCE_DO},
        [GO_TIME] = {[GO_SLEEP] = GO_OP_SLEEP},
    };

    return operations[usage->object][usage->operation];
}

/* The lines and directions of a model's cases, side by side. */
struct case_columns {
    int *lines;
    bool *sends;
};

static void case_columns_release(struct case_columns *columns)
{
    free(columns->lines);
    free(columns->sends);
}

static void describe(const struct go_model *model, const struct go_usage *usage,
                     const struct case_columns *columns, struct go_usage_description *ret_description)
{
    size_t first = usage->case_count ? (size_t)(usage->cases - model->cases) : 0;

    for (size_t i = 0; i < usage->case_count; i++) {
        columns->lines[first + i] = (int)usage->cases[i].line;
        columns->sends[first + i] = usage->cases[i].send;
    }
    *ret_description = (struct go_usage_description){
        .function = usage->function,
        .file = usage->file,
        .line = (int)usage->line,
        .operation = go_usage_operation(usage),
        .standard = usage->standard,
        .blocks = usage->blocks,
        .case_lines = columns->lines + first,
        .case_sends = columns->sends + first,
        .case_count = usage->case_count,
    };
}

int go_usages_store(const struct go_model *model, struct trace_writer *writer, int64_t image_id,
                    struct error *err)
{
    CLEANUP(case_columns_release)
    struct case_columns columns = {
        .lines = calloc(model->case_count + 1, sizeof(*columns.lines)),
        .sends = calloc(model->case_count + 1, sizeof(*columns.sends)),
    };
    AUTO_FREE struct go_usage_description *usages = calloc(model->count + 1, sizeof(*usages));
    size_t count = 0;

    if (!columns.lines || !columns.sends || !usages)
        return error_no_memory(err), -ENOMEM;
    for (size_t i = 0; i < model->count; i++)
        if (!model->usages[i].standard && go_usage_operation(&model->usages[i]))
            describe(model, &model->usages[i], &columns, &usages[count++]);
    return count ? trace_writer_go_usages(writer, image_id, usages, count, err) : 0;
}

void go_usages_rows_free(struct go_usage_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(rows[i].case_lines);
        free(rows[i].case_sends);
    }
    free(rows);
}

static int copy_cases(const struct go_usage *usage, struct go_usage_row *row)
{
    row->case_lines = calloc(usage->case_count + 1, sizeof(*row->case_lines));
    row->case_sends = calloc(usage->case_count + 1, sizeof(*row->case_sends));
    if (!row->case_lines || !row->case_sends)
        return -ENOMEM;
    for (size_t i = 0; i < usage->case_count; i++) {
        row->case_lines[i] = (int)usage->cases[i].line;
        row->case_sends[i] = usage->cases[i].send;
    }
    row->case_count = usage->case_count;
    return 0;
}

int go_usages_rows(const struct go_model *model, struct go_usage_row **ret_rows, size_t *ret_count)
{
    struct go_usage_row *rows = calloc(model->count + 1, sizeof(*rows));
    size_t count = 0;

    for (size_t i = 0; rows && i < model->count; i++) {
        const struct go_usage *usage = &model->usages[i];

        if (usage->standard || !go_usage_operation(usage))
            continue;
        rows[count] = (struct go_usage_row){.usage_id = (int64_t)count + 1,
                                            .function = (char *)usage->function,
                                            .file = (char *)usage->file,
                                            .line = (int)usage->line,
                                            .operation = go_usage_operation(usage),
                                            .blocks = usage->blocks};
        if (copy_cases(usage, &rows[count++])) {
            go_usages_rows_free(rows, count);
            rows = NULL;
        }
    }
    if (!rows)
        return -ENOMEM;
    *ret_rows = rows;
    *ret_count = count;
    return 0;
}
