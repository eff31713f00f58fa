/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* CMPdiffNLR: how two threads relate, in the normal run against in the faulty one. */
#include "analyzer/diff/compare_pair.h"

#include <errno.h>
#include <string.h>

#include "analyzer/diff/compare.h"

void pair_comparison_release(struct pair_comparison *pair)
{
    diff_nlr_release(&pair->diffs[0]);
    diff_nlr_release(&pair->diffs[1]);
}

double diff_nlr_share(const struct diff_nlr *diff)
{
    return diff->compared ? (double)diff->changed / (double)diff->compared : 0;
}

static const struct thread_loops *find_thread(const struct run_loops *run, const char *label)
{
    for (size_t i = 0; i < run->thread_count; i++)
        if (!strcmp(run->threads[i].label, label))
            return &run->threads[i];
    return NULL;
}

/* The entries that a changed edit is about. */
static struct nlr_sequence edit_entries(const struct pair_comparison *pair, size_t run,
                                        const struct diff_edit *edit)
{
    if (edit->op == DIFF_FAULTY)
        return (struct nlr_sequence){pair->threads[run][1]->loops.elements + edit->faulty,
                                     edit->faulty_count};
    return (struct nlr_sequence){pair->threads[run][0]->loops.elements + edit->normal, edit->normal_count};
}

static bool is_change(const struct diff_edit *edit)
{
    return edit->op == DIFF_NORMAL || edit->op == DIFF_FAULTY;
}

/* Whether the changed edits of the one run come in the other one, too, in their order: `other` saw all that
 * there is. */
static bool has_own_change(const struct pair_comparison *pair, size_t run)
{
    const struct diff_nlr *mine = &pair->diffs[run], *other = &pair->diffs[!run];
    size_t at = 0;

    if (other->unknown)
        return false;
    for (size_t i = 0; i < mine->edit_count; i++) {
        struct nlr_sequence entries = edit_entries(pair, run, &mine->edits[i]);
        bool found = false;

        if (!is_change(&mine->edits[i]))
            continue;
        while (at < other->edit_count && !found) {
            const struct diff_edit *edit = &other->edits[at++];
            struct nlr_sequence others = edit_entries(pair, !run, edit);

            found = edit->op == mine->edits[i].op && others.count == entries.count &&
                    nlr_same(others.elements, entries.elements, entries.count);
        }
        if (!found)
            return true;
    }
    return false;
}

int compare_pair(const struct loop_summary *summary, const char *first, const char *second,
                 struct pair_comparison *ret_pair)
{
    struct pair_comparison pair = {0};
    int r = 0;

    for (size_t run = 0; run < 2 && !r; run++) {
        const struct thread_loops **threads = pair.threads[run];

        threads[0] = find_thread(summary_run(summary, run), first);
        threads[1] = find_thread(summary_run(summary, run), second);
        if (!threads[0] || !threads[1])
            r = -ENOENT;
        else
            r = diff_nlr(&summary->table, &(struct diff_side){&threads[0]->loops, threads[0]->incomplete},
                         &(struct diff_side){&threads[1]->loops, threads[1]->incomplete}, &pair.diffs[run]);
    }
    if (r) {
        pair_comparison_release(&pair);
        return r;
    }
    pair.unknown = pair.diffs[0].unknown || pair.diffs[1].unknown;
    pair.changed = has_own_change(&pair, 0) || has_own_change(&pair, 1);
    *ret_pair = pair;
    return 0;
}
