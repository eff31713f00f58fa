/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/diff/diff_rows.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"

/* So many more entries than the context are worth a row that says they are left out. */
#define WORTH_FOLDING 2

void diff_rows_release(struct diff_rows *rows)
{
    free(rows->rows);
    *rows = (struct diff_rows){0};
}

static int add_row(struct diff_rows *rows, struct diff_row row)
{
    if (array_reserve(&rows->rows, &rows->capacity, rows->count + 1))
        return -ENOMEM;
    rows->rows[rows->count++] = row;
    return 0;
}

static int add_common(struct diff_rows *rows, const struct diff_nlr *diff, size_t at, size_t context)
{
    const struct diff_edit *edit = &diff->edits[at];
    size_t count = edit->normal_count, folded = 0, head = 0, tail;
    int r = 0;

    if (context < count) {
        head = at ? context : 0;
        tail = at + 1 < diff->edit_count ? context : 0;
        if (head + tail + WORTH_FOLDING < count)
            folded = count - head - tail;
    }
    for (size_t i = 0; i < count && !r; i++) {
        struct diff_row row = {ROW_COMMON, edit->normal + i, edit->faulty + i, 0, NULL};

        if (folded && i == head) {
            row.kind = ROW_FOLDED;
            row.folded = folded;
            i += folded - 1;
        }
        r = add_row(rows, row);
    }
    return r;
}

/* Entries [normal, normal_end) beside [faulty, faulty_end), as far as either goes. */
static int add_beside(struct diff_rows *rows, enum diff_row_kind kind, size_t normal, size_t normal_end,
                      size_t faulty, size_t faulty_end)
{
    int r = 0;

    while (!r && (normal < normal_end || faulty < faulty_end)) {
        struct diff_row row = {kind, DIFF_NO_ENTRY, DIFF_NO_ENTRY, 0, NULL};

        if (normal < normal_end)
            row.normal = normal++;
        if (faulty < faulty_end)
            row.faulty = faulty++;
        r = add_row(rows, row);
    }
    return r;
}

/* `block` spans a normal edit and the faulty one behind it; *next_loop is the first pair that is not behind.
 */
static int add_changed(struct diff_rows *rows, const struct diff_nlr *diff, const struct diff_edit *block,
                       size_t *next_loop)
{
    size_t normal = block->normal, normal_end = normal + block->normal_count;
    size_t faulty = block->faulty, faulty_end = faulty + block->faulty_count;
    int r = 0;

    for (; !r && *next_loop < diff->loop_count; (*next_loop)++) {
        const struct diff_loop *loop = &diff->loops[*next_loop];

        if (loop->normal >= normal_end)
            break;
        r = add_beside(rows, ROW_CHANGED, normal, loop->normal, faulty, loop->faulty);
        if (!r)
            r = add_row(rows, (struct diff_row){ROW_CHANGED, loop->normal, loop->faulty, 0, loop});
        normal = loop->normal + 1;
        faulty = loop->faulty + 1;
    }
    return r ? r : add_beside(rows, ROW_CHANGED, normal, normal_end, faulty, faulty_end);
}

int diff_rows(const struct diff_nlr *diff, size_t context, struct diff_rows *ret_rows)
{
    struct diff_rows rows = {0};
    size_t next_loop = 0;
    int r = 0;

    for (size_t i = 0; i < diff->edit_count && !r; i++) {
        struct diff_edit edit = diff_nlr_block(diff, &i);

        if (edit.op == DIFF_COMMON)
            r = add_common(&rows, diff, i, context);
        else if (edit.op == DIFF_UNKNOWN)
            r = add_beside(&rows, ROW_UNKNOWN, edit.normal, edit.normal + edit.normal_count, edit.faulty,
                           edit.faulty + edit.faulty_count);
        else
            r = add_changed(&rows, diff, &edit, &next_loop);
    }
    if (r) {
        diff_rows_release(&rows);
        return r;
    }
    *ret_rows = rows;
    return 0;
}
