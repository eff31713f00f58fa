/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "store/streams/event_reader.h"
#include <errno.h>
#include <stdlib.h>

#include "store/bytes/column_packing.h"
#include "store/bytes/dictionary.h"

static int open_all(struct event_reader *reader, struct bytes_reader *payload, uint64_t events)
{
    const uint8_t *dictionary;
    uint64_t size;
    int code;

    reader->left = reader_varint(payload);
    reader->ns = reader_varint(payload);
    size = reader_varint(payload);
    dictionary = reader_take(payload, size);
    if (!dictionary || reader->left != events || events > reader->format->events_max)
        return -EBADMSG;
    code = dictionary_read(dictionary, size, 1, &reader->ids, &reader->id_count);
    for (int i = 0; i < reader->format->columns && !code; i++) {
        code = column_unpack(payload, events * VARINT_MAX_BYTES, &reader->columns[i]);
        reader->readers[i] = reader_over(reader->columns[i].data, reader->columns[i].size);
    }
    return !code && reader_left(payload) ? -EBADMSG : code;
}

int event_reader_open(struct event_reader *reader, const struct event_format *format, const uint8_t *data,
                      size_t size, uint64_t events)
{
    struct bytes_reader payload = reader_over(data, size);
    uint8_t version = reader_u8(&payload);

    *reader = (struct event_reader){.format = format};
    if (version != format->version)
        return version > format->version ? -ENOTSUP : -EBADMSG;
    return open_all(reader, &payload, events);
}

void event_reader_release(struct event_reader *reader)
{
    for (int i = 0; i < EVENT_COLUMNS_MAX; i++)
        bytes_release(&reader->columns[i]);
    free(reader->ids);
}

bool event_reader_has_failed(const struct event_reader *reader, bool at_end)
{
    for (int i = 0; i < reader->format->columns; i++)
        if (reader->readers[i].failed || (at_end && reader_left(&reader->readers[i])))
            return true;
    return false;
}
