/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which calls were open at the end of the run, and which threads had got least far. */
#include "analyzer/order/order_words.h"
#include "analyzer/picture/order_picture.h"
#include "analyzer/report/parts.h"
#include "base/cleanup.h"

enum { MOST_BOXES = 60 };

static void write_doubts(struct report *report)
{
    const struct recorded_sample *ends = report->input->ends;

    if (ends->uncertain)
        html_paragraph(
            report->out, "note",
            "Of %zu of %zu threads the innermost calls may have returned unseen: their returns were "
            "inferred.",
            ends->uncertain, ends->set->thread_count);
    if (ends->unplaced)
        html_paragraph(report->out, "note",
                       "Of %zu open calls it is not known where in their callers they were made: there is no "
                       "order there.",
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
                "Calls that had not returned, merged from the first ones on; where threads part, those that "
                "have got least far come first.");
    if (undrawn)
        html_paragraph(report->out, "note",
                       "Left out for want of room: %zu branches. tracectl stat gives all.", undrawn);
    write_doubts(report);
    return 0;
}
