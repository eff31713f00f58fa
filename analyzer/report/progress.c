/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which calls were open at the end of the run, and which threads had got least far. */
#include "analyzer/order/order_words.h"
#include "analyzer/picture/order_picture.h"
#include "analyzer/report/parts.h"
#include "base/cleanup.h"
#include "base/error.h"

enum { MOST_BOXES = 60 };

static void write_doubts(struct report *report)
{
    const struct recorded_sample *ends = report->input->ends;

    if (ends->uncertain)
        html_paragraph(
            report->out, "note",
            "In %zu of %zu threads the innermost calls may already have returned: returns were inferred.",
            ends->uncertain, ends->set->thread_count);
    if (ends->unplaced)
        html_paragraph(report->out, "note",
                       "For %zu open calls the position in the caller is unknown, so they have no order.",
                       ends->unplaced);
}

int report_progress(struct report *report, struct error *err)
{
    const struct order_picture picture = {report->input->order, false, MOST_BOXES, SVG_INLINE};
    size_t undrawn = 0;
    AUTO_FREE char *svg = order_picture_svg(&picture, &undrawn);
    AUTO_FREE char *words = NULL;

    if (!svg || order_words(report->input->order, &words) < 0)
        return error_no_memory(err);
    html_paragraph(report->out, NULL, "At the end of %s: %s.",
                   report_run(report, report->input->run_count - 1)->name, words);
    html_figure(report->out, svg,
                "Open calls, merged from the outermost; where call paths diverge, the least advanced "
                "threads come first.");
    if (undrawn)
        html_paragraph(report->out, "note", "Omitted: %zu branches. tracectl stat prints all.", undrawn);
    write_doubts(report);
    return 0;
}
