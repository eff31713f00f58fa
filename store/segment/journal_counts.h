/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the journal says of functions and their calls: it keeps these counts, nothing is decoded. */
#ifndef TRACESTORE_JOURNAL_COUNTS_H
#define TRACESTORE_JOURNAL_COUNTS_H

#include "store/db/sqlite.h"
#include "store/segment/journal.h"

struct journal_count {
    int64_t thread_id;
    uint32_t function;
    uint64_t calls; /* not 0 */
};

/* Zero-initialised: empty. */
struct journal_counts {
    struct journal_count *counts; /* by thread_id, then by function */
    size_t count, capacity;
};

#define AUTO_JOURNAL_COUNTS __attribute__((cleanup(journal_counts_release))) struct journal_counts

/* What the open segments of a run's threads hold, in place of what `counts` had. -EBADMSG, -ENOMEM, others.
 */
int journal_counts_read(struct journal_counts *counts, sqlite3 *db, int64_t run_id, struct error *err);
void journal_counts_release(struct journal_counts *counts);

#endif
