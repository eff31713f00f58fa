/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The backend of probes in files where there can be none: every site is refused. */
#ifndef TRACECTL_COLLECTOR_BACKEND_NO_FILE_PROBES_H
#define TRACECTL_COLLECTOR_BACKEND_NO_FILE_PROBES_H

#include "collector/backend/backend.h"

/* It has no state, and is never freed. */
struct backend *no_file_probes(void);

#endif
