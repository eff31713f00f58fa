/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a long operation is doing, for a person who waits for it. The parts that may take long report here; a
 * program that shows it sets a sink. Without one, a report costs one branch.
 */
#ifndef TRACECTL_BASE_PROGRESS_H
#define TRACECTL_BASE_PROGRESS_H

#define PROGRESS_UNKNOWN (-1.0)

/* Gets the reports, in the thread that makes them. `doing` is a literal, such as "placing probes". `share` is
 * what is done of it, from 0 to 1, or PROGRESS_UNKNOWN. */
typedef void progress_sink(const char *doing, double share);

extern progress_sink *progress_to; /* NULL: nobody is waiting. Set by programs, read by progress() only */

/* Reports; may be called often. */
static inline void progress(const char *doing, double share)
{
    if (__builtin_expect(progress_to != 0, 0))
        progress_to(doing, share);
}

#endif
