/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The interleaving of goroutines as a picture (beside listing 1 of Taheri's dissertation, 2022): a line down
 * for each goroutine, what it did from top to bottom in the order of time, dashed while it waits, and an
 * arrow from who let it continue.
 */
#ifndef TRACECTL_ANALYZER_PICTURE_GO_TIMELINE_H
#define TRACECTL_ANALYZER_PICTURE_GO_TIMELINE_H

#include "analyzer/go/timeline.h"
#include "analyzer/picture/svg.h"

/* `title` is shown, and says which program it is. *ret_svg is in memory from malloc. Fails with -ENOMEM, or
 * with what `places` says. */
int go_timeline_svg(const struct go_timeline *timeline, struct go_place_source places, const char *title,
                    enum svg_form form, char **ret_svg);

#endif
