/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The functions of a segment in `segments.functions` (docs/trace-format.md): each that one of its events
 * names, with the number of its calls, in ascending order of their ids, and a checksum behind them. One or
 * two bytes a function, where a row of a table takes ten.
 */
#ifndef TRACESTORE_CALL_LIST_H
#define TRACESTORE_CALL_LIST_H

#include "store/segment/function_set.h"
#include "store/segment/segment.h"

/* Puts functions in ascending order of their ids. */
void call_list_sort(struct function_calls *functions, size_t count);

/* Appends the list to `out`; puts `functions`, each of which is named once, in order. -ENOMEM. */
int call_list_pack(struct function_calls *functions, size_t count, struct bytes *out);

/* A list that is being read; it borrows the bytes. */
struct call_list_reader {
    struct bytes_reader bytes;
    uint32_t function; /* the one read last, 0: none yet */
};

/* A reader without anything to read. */
static inline struct call_list_reader call_list_empty(void)
{
    return (struct call_list_reader){.bytes = reader_over(NULL, 0)};
}

/* -EBADMSG: its checksum is wrong. */
int call_list_open(const uint8_t *data, size_t size, struct call_list_reader *ret_list);

/* 0 with the next function, 1 at the end, -EBADMSG. */
int call_list_next(struct call_list_reader *list, struct function_calls *ret_function);

/* Whether the segment may have an event of one of the functions: it has, or the list is damaged. */
bool call_list_may_name(const uint8_t *data, size_t size, const struct function_set *functions);

#endif
