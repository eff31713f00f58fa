/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a timeline says, in words. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/go/timeline.h"
#include "base/cleanup.h"
#include "base/path.h"

/* Boyer and Moore's vote: the file of more than half of the rows, where there is one. */
int go_timeline_file(const struct go_timeline *timeline, struct go_place_source places, const char **ret_file)
{
    const char *file = NULL;
    size_t lead = 0;

    for (size_t i = 0; i < timeline->row_count; i++) {
        struct go_place place;
        int r = places.find(places.context, timeline->rows[i].site, &place);

        if (r < 0)
            return r;
        if (timeline->rows[i].moment == GO_MOMENT_TEST || !*place.file)
            continue;
        if (!lead)
            file = place.file;
        lead += strcmp(file, place.file) ? -1 : 1;
    }
    *ret_file = file;
    return 0;
}

/* " :21", " main.go:21", "" */
static int put_place(FILE *out, struct go_place_source places, uint32_t site, const char *file)
{
    struct go_place place = {"", "", 0};
    int r = site ? places.find(places.context, site, &place) : 0;

    if (r < 0)
        return r;
    if (file && !strcmp(place.file, file))
        fprintf(out, " :%d", place.line);
    else if (*place.file)
        fprintf(out, " %s:%d", path_file_name(place.file), place.line);
    return 0;
}

static const char *reason_text(const struct go_timeline *timeline, int64_t reason)
{
    const struct go_program *program = timeline->program;
    bool known = reason >= 0 && (uint64_t)reason < program->wait_reason_count;

    return known && program->wait_reasons[reason] ? program->wait_reasons[reason] : "";
}

/* ------------------------------------------------------------------------------------------ rows */

/* The operation's word: a send or a receive that does not wait is a select of one case with a default. */
static void put_operation(FILE *out, const struct go_timeline_row *row)
{
    bool one_case = (row->flags & GO_FLAG_TRY) &&
                    (row->operation == GO_OP_CHAN_SEND || row->operation == GO_OP_CHAN_RECV);

    fputs(go_op_name(one_case ? GO_OP_SELECT : row->operation), out);
}

static void put_result(FILE *out, const struct go_timeline_row *row)
{
    switch (row->operation) {
    case GO_OP_SELECT:
        if (row->result < 0)
            fputs(", default", out);
        else
            fprintf(out, ", case %" PRId64 " (%s)", row->result, row->result_sends ? "send" : "recv");
        break;
    case GO_OP_CHAN_SEND:
    case GO_OP_CHAN_RECV:
        if (row->flags & GO_FLAG_TRY)
            fprintf(out, ", %s",
                    !row->result                        ? "default"
                    : row->operation == GO_OP_CHAN_SEND ? "send"
                                                        : "recv");
        break;
    case GO_OP_MUTEX_TRYLOCK:
    case GO_OP_RWMUTEX_TRYLOCK:
    case GO_OP_RWMUTEX_TRYRLOCK:
        fputs(row->result ? ", taken" : ", not taken", out);
        break;
    default:
        break;
    }
}

static void put_woken(FILE *out, const struct go_timeline_row *row)
{
    if (row->woken)
        fprintf(out, ", wakes g%" PRIu64, row->other);
    if (row->woken > 1)
        fprintf(out, " and %u more", row->woken - 1);
}

static int put_operates(FILE *out, const struct go_timeline_row *row, struct go_place_source places,
                        const char *file)
{
    int r;

    put_operation(out, row);
    if (row->operation == GO_OP_GO)
        fprintf(out, " g%" PRIu64, row->other);
    r = put_place(out, places, row->site, file);
    if (row->has_result)
        put_result(out, row);
    put_woken(out, row);
    if (row->blocked)
        fputs(row->operation == GO_OP_SLEEP ? ", sleeps" : ", blocks", out);
    return r;
}

static void put_goes_on(FILE *out, const struct go_timeline_row *row)
{
    fputs("continues", out);
    if (row->other)
        fprintf(out, " (woken by g%" PRIu64 ")", row->other);
    if (row->has_result)
        put_result(out, row);
}

static int put_test(FILE *out, const struct go_timeline_row *row, struct go_place_source places)
{
    struct go_place place = {"", "", 0};
    int r = places.find(places.context, row->site, &place);

    fprintf(out, "runs %s", r == 0 && *place.function ? place.function : "a test");
    return r;
}

static const char *fatal_text(int64_t fatal)
{
    switch (fatal) {
    case GO_FATAL_DEADLOCK:
        return "fatal error: all goroutines are asleep";
    case GO_FATAL_PANIC:
        return "fatal error: panic";
    default:
        return "fatal error";
    }
}

static int put_row(FILE *out, const struct go_timeline *timeline, const struct go_timeline_row *row,
                   struct go_place_source places, const char *file)
{
    switch (row->moment) {
    case GO_MOMENT_BEGINS:
        fputs("begins", out);
        return 0;
    case GO_MOMENT_OPERATES:
        return put_operates(out, row, places, file);
    case GO_MOMENT_BLOCKS:
        fprintf(out, "blocks (%s)", reason_text(timeline, row->value));
        return 0;
    case GO_MOMENT_GOES_ON:
        put_goes_on(out, row);
        return 0;
    case GO_MOMENT_DELAYED:
        fputs("delayed by tracectl", out);
        return put_place(out, places, row->site, file);
    case GO_MOMENT_TEST:
        return put_test(out, row, places);
    case GO_MOMENT_PANICS:
        fputs("panics", out);
        return 0;
    case GO_MOMENT_FATAL:
        fputs(fatal_text(row->value), out);
        return 0;
    case GO_MOMENT_EXITS:
        fprintf(out, "ends the process, status %" PRId64, row->value);
        return 0;
    case GO_MOMENT_ENDS:
        fputs("ends", out);
        return 0;
    default:
        fprintf(out, "%" PRId64 " events are missing here", row->value);
        return 0;
    }
}

/* Closes a stream that writes into *text; frees the text after a failure. */
static int finish(FILE *out, int r, char **text)
{
    bool incomplete = ferror(out);

    if ((fclose(out) || incomplete) && !r)
        r = -ENOMEM;
    if (r < 0) {
        free(*text);
        *text = NULL;
    }
    return r;
}

int go_timeline_words(const struct go_timeline *timeline, const struct go_timeline_row *row,
                      struct go_place_source places, const char *file, char **ret_text)
{
    size_t size;
    FILE *out = open_memstream(ret_text, &size);

    return out ? finish(out, put_row(out, timeline, row, places, file), ret_text) : -ENOMEM;
}

/* ------------------------------------------------------------------------------------------ columns */

static int put_end(FILE *out, const struct go_timeline *timeline, const struct go_timeline_column *column,
                   struct go_place_source places, const char *file)
{
    static const char *const states[] = {
        [GO_STATE_UNKNOWN] = "unknown", [GO_STATE_RUNNABLE] = "able to run", [GO_STATE_RUNNING] = "running",
        [GO_STATE_BLOCKED] = "waiting", [GO_STATE_ENDED] = "over",
    };
    const char *reason = reason_text(timeline, column->wait_reason);

    fputs(column->stuck ? "stuck" : states[column->state], out);
    if (column->state != GO_STATE_BLOCKED)
        return 0;
    fprintf(out, "%s%s", *reason ? ": " : "", reason);
    return put_place(out, places, column->waits_at, file);
}

int go_timeline_end_words(const struct go_timeline *timeline, const struct go_timeline_column *column,
                          struct go_place_source places, const char *file, char **ret_text)
{
    size_t size;
    FILE *out = open_memstream(ret_text, &size);

    return out ? finish(out, put_end(out, timeline, column, places, file), ret_text) : -ENOMEM;
}

/* What a goroutine does by name. The wrapper that the compiler puts around a call says less than the function
 * of its first operation. */
static int find_name(const struct go_timeline_column *column, struct go_place_source places,
                     const char **ret_name)
{
    struct go_place begins = {"", "", 0}, first = {"", "", 0};
    int r = column->function ? places.find(places.context, column->function, &begins) : 0;

    if (!r && column->first_site && strstr(begins.function, ".gowrap"))
        r = places.find(places.context, column->first_site, &first);
    if (r < 0)
        return r;
    *ret_name = *first.function ? first.function : *begins.function ? begins.function : "?";
    return 0;
}

int go_timeline_head(const struct go_timeline_column *column, struct go_place_source places, char **ret_text)
{
    const char *name = "main";
    int r = column->goroutine == 1 ? 0 : find_name(column, places, &name);

    if (r < 0)
        return r;
    return asprintf(ret_text, "g%" PRIu64 " %s", column->goroutine, name) < 0 ? -ENOMEM : 0;
}
