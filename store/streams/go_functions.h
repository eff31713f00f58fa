/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The functions that goroutine events name, from the lists in process_segments: no segment is decoded. */
#ifndef TRACESTORE_GO_FUNCTIONS_H
#define TRACESTORE_GO_FUNCTIONS_H

#include "store/db/db.h"
#include "store/segment/census.h"

/* Takes the functions that the goroutine events of a run (0: of all runs) name into `functions`, without
 * calls. A store without such events has none. -EBADMSG: a list is damaged. */
int go_functions_take(sqlite3 *db, int64_t run_id, struct census *functions, struct error *err);

#endif
