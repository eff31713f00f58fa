/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Rows between SQLite and PostgreSQL, in the binary form of COPY (PostgreSQL's manual, "COPY", "Binary Format"): a head,
 * for each row the number of its fields and for each field its length, -1 for NULL, and its bytes, numbers in network
 * order; and -1 in place of a number of fields at the end. */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "collector/fleet/fleet_tables.h"
#include "collector/fleet/fleet_text.h"

#define SEND_BYTES ((size_t)1 << 18) /* so many are sent at once */

static const char signature[11] = "PGCOPY\n\377\r\n";
enum { HEAD_BYTES = sizeof(signature) + 8 };

static const char what_in[] = "cannot write to the fleet";
static const char what_out[] = "cannot read the fleet";

/* ------------------------------------------------------------------------------------------ to the fleet */

static int add_16(struct bytes *out, int16_t value)
{
    uint16_t network = htobe16((uint16_t)value);

    return bytes_add(out, &network, sizeof(network));
}

static int add_32(struct bytes *out, int32_t value)
{
    uint32_t network = htobe32((uint32_t)value);

    return bytes_add(out, &network, sizeof(network));
}

static int add_64(struct bytes *out, uint64_t value)
{
    uint64_t network = htobe64(value);

    return add_32(out, sizeof(network)) || bytes_add(out, &network, sizeof(network)) ? -ENOMEM : 0;
}

static int add_text(struct bytes *out, sqlite3_stmt *row, int column)
{
    AUTO_BYTES text = {0};
    const char *raw = (const char *)sqlite3_column_text(row, column);

    return fleet_text_encode(raw, (size_t)sqlite3_column_bytes(row, column), &text) ||
                   add_32(out, (int32_t)text.size) || bytes_add(out, text.data, text.size)
               ? -ENOMEM
               : 0;
}

static int add_field(struct bytes *out, sqlite3_stmt *row, int column, char type)
{
    double number;
    uint64_t bits;

    if (sqlite3_column_type(row, column) == SQLITE_NULL)
        return add_32(out, -1);
    switch (type | 0x20) {
    case 't':
        return add_text(out, row, column);
    case 'b':
        return add_32(out, sqlite3_column_bytes(row, column)) ||
                       bytes_add(out, sqlite3_column_blob(row, column),
                                 (size_t)sqlite3_column_bytes(row, column))
                   ? -ENOMEM
                   : 0;
    case 'd':
        number = sqlite3_column_double(row, column);
        memcpy(&bits, &number, sizeof(bits));
        return add_64(out, bits);
    default:
        return add_64(out, (uint64_t)sqlite3_column_int64(row, column));
    }
}

static int send(struct fleet *fleet, struct bytes *out, struct error *err)
{
    int result = out->size ? PQputCopyData(fleet->connection, (const char *)out->data, (int)out->size) : 1;

    out->size = 0;
    return result == 1 ? 0 : fleet_fail(fleet, NULL, err, what_in);
}

static int send_rows(struct fleet *fleet, sqlite3 *db, sqlite3_stmt *row, const char *types,
                     struct bytes *out, struct error *err)
{
    int columns = (int)strlen(types), result = SQLITE_DONE, code = 0;

    while (!code && (result = db_row(row, types)) == SQLITE_ROW) {
        if (add_16(out, (int16_t)columns))
            return error_no_memory(err);
        for (int i = 0; i < columns && !code; i++)
            code = add_field(out, row, i, types[i]) ? error_no_memory(err) : 0;
        if (!code && out->size >= SEND_BYTES)
            code = send(fleet, out, err);
    }
    return code || result == SQLITE_DONE ? code : db_fail(db, err, what_in);
}

/* The end of a COPY of either direction: what the server says of it. */
static int end_copy(struct fleet *fleet, const char *what, struct error *err)
{
    int code = 0;

    for (PGresult *result; (result = PQgetResult(fleet->connection));) {
        if (PQresultStatus(result) != PGRES_COMMAND_OK && !code)
            code = fleet_fail(fleet, result, err, what);
        else
            PQclear(result);
    }
    return code;
}

int fleet_copy_in(struct fleet *fleet, const char *copy, sqlite3 *db, const char *sql, const char *types,
                  struct error *err)
{
    AUTO_STATEMENT *row = NULL;
    AUTO_BYTES out = {0};
    PGresult *result;
    int code = db_prepare(db, sql, what_in, &row, err), ended;

    if (code)
        return code;
    result = PQexec(fleet->connection, copy);
    if (PQresultStatus(result) != PGRES_COPY_IN)
        return fleet_fail(fleet, result, err, what_in);
    PQclear(result);
    if (bytes_add(&out, signature, sizeof(signature)) || add_32(&out, 0) || add_32(&out, 0))
        code = error_no_memory(err);
    if (!code)
        code = send_rows(fleet, db, row, types, &out, err);
    if (!code && add_16(&out, -1))
        code = error_no_memory(err);
    if (!code)
        code = send(fleet, &out, err);
    PQputCopyEnd(fleet->connection, code ? "given up" : NULL);
    ended = end_copy(fleet, what_in, code ? NULL : err);
    return code ? code : ended;
}

/* ------------------------------------------------------------------------------------------ from the fleet */

static int64_t take_number(struct bytes_reader *reader, size_t size)
{
    uint64_t value = 0;

    for (size_t i = 0; i < size; i++)
        value = value << 8 | reader_u8(reader);
    return size == 2 ? (int16_t)value : size == 4 ? (int32_t)value : (int64_t)value;
}

/* Binds the next field. -EBADMSG, -ENOMEM. */
static int bind_field(struct bytes_reader *reader, sqlite3_stmt *insert, int parameter, char type)
{
    int64_t size = take_number(reader, 4);
    AUTO_BYTES text = {0};
    const uint8_t *data;
    uint64_t bits;
    double number;

    if (size == -1)
        return sqlite3_bind_null(insert, parameter) == SQLITE_OK ? 0 : -EBADMSG;
    if (reader->failed || size < 0 || (size_t)size > reader_left(reader))
        return -EBADMSG;
    if ((type | 0x20) == 'i' || (type | 0x20) == 'n')
        return size == 8 && sqlite3_bind_int64(insert, parameter, take_number(reader, 8)) == SQLITE_OK
                   ? 0
                   : -EBADMSG;
    if ((type | 0x20) == 'd') {
        bits = (uint64_t)take_number(reader, 8);
        memcpy(&number, &bits, sizeof(number));
        return size == 8 && sqlite3_bind_double(insert, parameter, number) == SQLITE_OK ? 0 : -EBADMSG;
    }
    data = reader_take(reader, (size_t)size);
    if ((type | 0x20) == 'b')
        return sqlite3_bind_blob64(insert, parameter, size ? (const void *)data : "", (uint64_t)size,
                                   SQLITE_TRANSIENT)
                   ? -ENOMEM
                   : 0;
    if (fleet_text_decode((const char *)data, (size_t)size, &text))
        return -ENOMEM;
    return sqlite3_bind_text64(insert, parameter, text.size ? (const char *)text.data : "", text.size,
                               SQLITE_TRANSIENT, SQLITE_UTF8)
               ? -ENOMEM
               : 0;
}

/* The rows in one piece of what the server sends, which holds whole rows; the first one has the head before them. */
static int insert_rows(struct bytes_reader *reader, sqlite3 *db, sqlite3_stmt *insert, const char *types,
                       struct error *err)
{
    int columns = (int)strlen(types);

    while (reader_left(reader)) {
        int64_t count = take_number(reader, 2);
        int code = 0;

        if (count == -1)
            return 0;
        if (reader->failed || count != columns)
            return error_say(err, -EBADMSG, "%s: a row has %lld columns instead of %d", what_out,
                             (long long)count, columns);
        for (int i = 0; i < columns && !code; i++)
            code = bind_field(reader, insert, i + 1, types[i]);
        if (code)
            return code == -ENOMEM ? error_no_memory(err)
                                   : error_say(err, code, "%s: a row is not of its form", what_out);
        code = db_step(db, insert, what_out, err);
        if (code)
            return code;
    }
    return 0;
}

static int insert_piece(char *piece, int size, bool first, sqlite3 *db, sqlite3_stmt *insert,
                        const char *types, struct error *err)
{
    struct bytes_reader reader = reader_over((const uint8_t *)piece, (size_t)size);

    if (first && (size < HEAD_BYTES || memcmp(piece, signature, sizeof(signature)) != 0))
        return error_say(err, -EBADMSG, "%s: the server does not send rows as PostgreSQL does", what_out);
    if (first)
        reader_take(&reader, HEAD_BYTES);
    return insert_rows(&reader, db, insert, types, err);
}

int fleet_copy_out(struct fleet *fleet, const char *copy, sqlite3 *db, sqlite3_stmt *insert,
                   const char *types, struct error *err)
{
    PGresult *result = PQexec(fleet->connection, copy);
    bool first = true;
    char *piece;
    int size, code = 0, ended;

    if (PQresultStatus(result) != PGRES_COPY_OUT)
        return fleet_fail(fleet, result, err, what_out);
    PQclear(result);
    while ((size = PQgetCopyData(fleet->connection, &piece, 0)) > 0) {
        if (!code)
            code = insert_piece(piece, size, first, db, insert, types, err);
        first = false;
        PQfreemem(piece);
    }
    ended = end_copy(fleet, what_out, code ? NULL : err);
    return code ? code : ended;
}
