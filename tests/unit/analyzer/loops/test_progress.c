/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>
#include <string.h>

#include "analyzer/loops/progress.h"
#include "tests/unit/analyzer/streams.h"

enum { MOST = 6 };

/* The threads do what the texts say (streams.h). */
static void measure(const char *const *texts, struct thread_progress *progress)
{
    struct thread_loops threads[MOST] = {0};
    struct run_loops run = {.threads = threads};
    struct loop_table table = {0};

    for (; texts[run.thread_count]; run.thread_count++) {
        struct thread_loops *thread = &threads[run.thread_count];

        thread->loops = reduce_text(&table, texts[run.thread_count]);
        thread->gap_count = strchr(texts[run.thread_count], '?') != NULL;
    }
    cr_assert_eq(progress_of_run(&run, progress), 0);
    for (size_t i = 0; i < run.thread_count; i++)
        free(threads[i].loops.elements);
    loop_table_release(&table);
}

static void expect(const struct thread_progress *progress, size_t peers, uint64_t iterations,
                   uint64_t furthest)
{
    cr_assert_eq(progress->known, peers > 0);
    cr_assert_eq(progress->peers, peers);
    cr_assert_eq(progress->iterations, iterations);
    cr_assert_eq(progress->furthest, furthest);
}

Test(progress, is_relative_to_peers_of_the_same_loop)
{
    const char *const texts[] = {"XABABABABABY", "XABABAB", "BABABABA", "XABABABAB", NULL};
    struct thread_progress progress[MOST];

    measure(texts, progress); /* [A B]^5, [A B]^3, [B A]^4, [A B]^4 */
    expect(&progress[0], 2, 5, 5);
    expect(&progress[1], 2, 3, 5);
    expect(&progress[2], 0, 0, 0); /* nobody else begins with [B A] */
    expect(&progress[3], 2, 4, 5);
    cr_assert_eq(progress[0].loop, progress[1].loop);
}

Test(progress, later_loops_count_where_peers_have_them)
{
    const char *const texts[] = {"AAAAXBBBBYCCC", "AAAAXBB", "AAAAXBBBBB", NULL};
    struct thread_progress progress[MOST];

    measure(texts, progress); /* A^4 B^4 C^3, A^4 B B, A^4 B^5: nobody else has C in a loop */
    expect(&progress[0], 2, 8, 9);
    expect(&progress[1], 2, 4, 9);
    expect(&progress[2], 2, 9, 9);
}

Test(progress, a_loop_that_comes_twice_is_one_thread)
{
    const char *const texts[] = {"AAAXAAAXY", "BBB", NULL};
    struct thread_progress progress[MOST];

    measure(texts, progress);
    expect(&progress[0], 0, 0, 0);
    expect(&progress[1], 0, 0, 0);
}

Test(progress, is_unknown_where_events_are_missing_or_no_loop_is)
{
    const char *const texts[] = {"AAAAA", "AAA?AA", "XYZ", "AAAA", "", NULL};
    struct thread_progress progress[MOST];

    measure(texts, progress);
    expect(&progress[0], 1, 5, 5);
    expect(&progress[1], 0, 0, 0);
    expect(&progress[2], 0, 0, 0);
    expect(&progress[3], 1, 4, 5);
    expect(&progress[4], 0, 0, 0);
}
