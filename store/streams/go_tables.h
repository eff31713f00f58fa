/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the readers of goroutine events in store/ share: the iterator with its range, and how a process is
 * called. */
#ifndef TRACESTORE_GO_TABLES_H
#define TRACESTORE_GO_TABLES_H

#include "store/db/sqlite.h"
#include "store/streams/go_events.h"
#include "store/streams/process_iter.h"

/* SQL: the number of a process, P of P.gN: that of its threads' labels; of one without threads its rank, or
 * its place among the run's processes. */
#define GO_PROCESS_LABEL(process) \
    "coalesce((SELECT substr(label, 1, instr(label, '.') - 1) FROM main.threads t" \
    " WHERE t.process_id = " process \
    " LIMIT 1)," \
    " (SELECT rank FROM main.processes p WHERE p.process_id = " process \
    ")," \
    " (SELECT count(*) FROM main.processes p JOIN main.processes q ON q.run_id = p.run_id" \
    " AND q.process_id < p.process_id WHERE p.process_id = " process "))"

#endif
