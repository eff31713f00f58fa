/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The virtual tables hb_edges, critical_sections and cascades (docs/cascade.md). Each query reads the runs
 * that it names and builds what `tracectl cascade` builds, so it must name them.
 */
#ifndef TRACECTL_ANALYZER_CASCADE_VTAB_CASCADE_H
#define TRACECTL_ANALYZER_CASCADE_VTAB_CASCADE_H

#include "store/api/tracestore.h"

/* Registers the tables on the store's connection; the store must outlive it. Returns an SQLite result code.
 */
int cascade_register_vtabs(struct tracestore *store);

#endif
