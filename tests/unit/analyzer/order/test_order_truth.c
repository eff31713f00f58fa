/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The order against the truth: random programs tell at random moments where they are, as a debugger would see
 * it, and when that was. Of any two moments of a run the analysis may say that there is no order, or that it
 * depends on iterations which it does not know; but whatever it says for certain must agree with the time.
 *
 * ORDER_PROGRAMS=N tries N programs instead of a few, ORDER_VERBOSE=1 tells what share of the pairs was
 * ordered.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/order/order_tree.h"
#include "tests/unit/analyzer/order_programs.h"

#define PAIRS 1000

struct share {
    size_t pairs, certain, assumed, open, wrong;
};

static char folder[] = "/tmp/tracectl-order-XXXXXX";

static void run(const char *command, ...) __attribute__((format(printf, 1, 2)));
static void run(const char *command, ...)
{
    char line[PATH_MAX];
    va_list arguments;

    va_start(arguments, command);
    vsnprintf(line, sizeof(line), command, arguments);
    va_end(arguments);
    cr_assert_eq(system(line), 0, "%s", line);
}

/* ---------------------------------------------------------------------------------------------- a set */

/* Registers that calls preserve, by DWARF number, and words of the frame. */
static int read_value(void *context, size_t thread, size_t frame, const struct frame_value *value,
                      int64_t *ret_value)
{
    static const unsigned numbers[] = {3, 6, 12, 13, 14, 15};
    const struct told_run *told = context;
    const struct told_sample *sample = &told->samples[thread];
    const struct told_frame *at = &sample->frames[sample->count - 1 - frame];
    int64_t offset = value->offset + (int64_t)at->word_count * 8;
    uint64_t raw = 0;

    if (value->kind == FRAME_REGISTER) {
        for (size_t i = 0; i < 6; i++)
            if (numbers[i] == value->number) {
                *ret_value = value->size == 4 ? (int32_t)at->registers[i] : (int64_t)at->registers[i];
                return 0;
            }
        return -ENODATA;
    }
    if (value->kind != FRAME_CFA || offset < 0 || (uint64_t)offset + value->size > at->word_count * 8)
        return -ENODATA;
    memcpy(&raw, (const char *)at->words + offset, value->size);
    *ret_value = value->size == 4 ? (int32_t)raw : (int64_t)raw;
    return 0;
}

static void fill(struct sample_set *set, const char *program, const struct told_run *told)
{
    struct sample_thread thread = {.rank = SAMPLE_NO_RANK};
    struct sample_place place = {.entry = SAMPLE_NO_ADDRESS};
    uint32_t row[64];

    cr_assert_eq(sample_set_image(set, program, program, NULL, &place.image), 0);
    for (size_t i = 0; i < told->count; i++) {
        const struct told_sample *sample = &told->samples[i];

        for (size_t k = 0; k < sample->count; k++) {
            place.address = sample->frames[sample->count - 1 - k].address - 1;
            cr_assert_eq(sample_set_place(set, &place, &row[k]), 0);
        }
        cr_assert_eq(sample_set_thread(set, &thread, row, sample->count), 0);
    }
}

/* ---------------------------------------------------------------------------------------------- checking */

static void explain(const struct order_tree *order, const struct told_run *told, size_t a, size_t b,
                    const struct order_answer *answer)
{
    size_t numbers[] = {a, b};

    for (size_t i = 0; i < 2; i++) {
        const struct told_sample *sample = &told->samples[numbers[i]];

        fprintf(stderr, "time %lu:", (unsigned long)sample->time);
        for (size_t k = sample->count; k-- > 0;)
            fprintf(stderr, " 0x%lx", (unsigned long)sample->frames[k].address - 1);
        fputc('\n', stderr);
    }
    fprintf(stderr, "said: relation %d, loop %d of its function\n", answer->relation, (int)answer->loop);
}

static void check_pair(const struct order_tree *order, const struct told_run *told, size_t a, size_t b,
                       struct share *share)
{
    struct order_answer answer;

    cr_assert_eq(order_tree_compare(order, (uint32_t)a, (uint32_t)b, &answer), 0);
    share->pairs++;
    if (answer.relation == ORDER_BEHIND || answer.relation == ORDER_AHEAD) {
        bool before = told->samples[a].time < told->samples[b].time;

        if (answer.assumed) {
            share->assumed++;
        } else if ((answer.relation == ORDER_BEHIND) == before) {
            share->certain++;
        } else {
            explain(order, told, a, b, &answer);
            share->wrong++;
        }
        return;
    }
    /* Two moments are never the same point in the same iteration of everything. */
    share->open++;
}

static void check_run(const char *program, unsigned seed, struct share *share)
{
    AUTO_SAMPLE_SET struct sample_set *set = NULL;
    AUTO_ORDER_TREE struct order_tree *order = NULL;
    struct told_run told;
    const struct frame_source frames = {&told, read_value};
    const struct order_source source = {.frames = &frames};
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/told", folder);
    run("%s %u %s", program, seed, path);
    told_run_read(path, &told);
    cr_assert_eq(sample_set_new(&set), 0);
    fill(set, program, &told);
    cr_assert_eq(order_tree_new(set, &source, true, &order, NULL), 0);
    for (size_t i = 0; told.count > 1 && i < PAIRS; i++) {
        size_t a = (size_t)rand() % told.count, b = (size_t)rand() % told.count;

        if (a != b)
            check_pair(order, &told, a, b, share);
    }
    told_run_release(&told);
}

static void check_program(unsigned seed, const char *flags, struct share *share)
{
    char *text = order_program(seed), program[PATH_MAX], source[PATH_MAX];
    AUTO_FCLOSE FILE *out = NULL;

    snprintf(program, sizeof(program), "%s/program", folder);
    snprintf(source, sizeof(source), "%s/program.c", folder);
    out = fopen(source, "w");
    cr_assert(out && fputs(text, out) >= 0 && fflush(out) == 0);
    free(text);
    run("%s -w -o %s %s", flags, program, source);
    check_run(program, seed + 1, share);
    if (share->wrong)
        run("cp %s %s/wrong && cp %s %s/wrong.c", program, folder, source, folder);
}

Test(order, never_contradicts_the_time)
{
    static const char *const flags[] = {"gcc -O0 -g", "gcc -O2 -g", "gcc -O2", "clang -O0 -g",
                                        "clang -O2 -g"};
    const char *wanted = getenv("ORDER_PROGRAMS");
    unsigned programs = wanted ? (unsigned)atoi(wanted) : 2;
    struct share all = {0};

    cr_assert_not_null(mkdtemp(folder));
    srand(1);
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        struct share share = {0};

        for (unsigned seed = 1; seed <= programs; seed++)
            check_program(seed + (unsigned)i * 1000, flags[i], &share);
        if (getenv("ORDER_VERBOSE"))
            fprintf(stderr,
                    "%-12s %6zu pairs: %5.1f %% ordered, %5.1f %% assumed, %5.1f %% without, %zu wrong\n",
                    flags[i], share.pairs, 100.0 * (double)share.certain / (double)share.pairs,
                    100.0 * (double)share.assumed / (double)share.pairs,
                    100.0 * (double)share.open / (double)share.pairs, share.wrong);
        all.pairs += share.pairs;
        all.certain += share.certain;
        all.wrong += share.wrong;
    }
    if (!all.wrong)
        run("rm -r %s", folder);
    cr_assert_eq(all.wrong, 0, "%zu of %zu pairs are wrong: see %s", all.wrong, all.pairs, folder);
    cr_assert_gt(all.certain, all.pairs / 4);
}
