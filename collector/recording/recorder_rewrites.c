/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/recording/recorder_rewrites.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/error.h"
#include "collector/recording/recorder_records.h"

int recorder_note_rewrite(struct recorder *recorder, const struct wire_rewrite *record, struct error *err)
{
    if (recorder->closing) {
        recorder_let_go(recorder, &record->header, (pid_t)record->tgid);
        return 0;
    }
    if (array_reserve(&recorder->rewrites, &recorder->rewrite_capacity, recorder->rewrite_count + 1))
        return error_no_memory(err);
    recorder->rewrites[recorder->rewrite_count++] = *record;
    return 0;
}

static int serve(struct recorder *recorder, const struct wire_rewrite *record, struct error *err)
{
    bool left, in_time;
    int r = loader_rewrite(recorder->loader, record, &left, err);

    in_time = recorder_let_go(recorder, &record->header, (pid_t)record->tgid);
    return r || !left || in_time
               ? r
               : trace_writer_loss(recorder->writer, clock_ns(CLOCK_REALTIME), 0,
                                   record->copies
                                       ? "a program could copy its code before its probes were gone"
                                       : "a program changed its code before its probes were gone",
                                   err);
}

int recorder_serve_rewrites(struct recorder *recorder, struct error *err)
{
    int r = 0;

    for (size_t i = 0; i < recorder->rewrite_count && !r; i++) {
        const struct wire_rewrite record = recorder->rewrites[i]; /* more may come meanwhile */

        r = serve(recorder, &record, err);
    }
    recorder->rewrite_count = 0;
    return r;
}
