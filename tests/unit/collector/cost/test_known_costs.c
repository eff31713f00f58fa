/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What was measured is known again, bit for bit; what is damaged, old or another's is not. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/cost/known_costs.h"

static char folder[64], path[128];

static void make_folder(void)
{
    snprintf(folder, sizeof(folder), "/tmp/known-costs.XXXXXX");
    cr_assert(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/probe-costs", folder);
}

static void remove_folder(void)
{
    unlink(path);
    rmdir(folder);
}

TestSuite(known_costs, .init = make_folder, .fini = remove_folder);

static struct probe_costs some_costs(void)
{
    struct probe_costs costs = {.loads = true, .delivers = true, .sessions = true};

    for (int i = 0; i < PROBE_COSTS; i++) {
        costs.recorded_ns[i] = 700.25 + i;
        costs.empty_ns[i] = 600.5 + i;
    }
    return costs;
}

static bool taken(void)
{
    struct probe_costs costs;

    return known_costs_read(folder, &costs);
}

/* Overwrites `size` bytes at `offset`. */
static void damage(off_t offset, const void *bytes, size_t size)
{
    int fd = open(path, O_WRONLY);

    cr_assert_eq(pwrite(fd, bytes, size, offset), (ssize_t)size);
    close(fd);
}

Test(known_costs, what_is_kept_is_taken)
{
    struct probe_costs costs = some_costs(), again;

    cr_assert_not(taken());
    known_costs_keep(folder, &costs);
    cr_assert(known_costs_read(folder, &again));
    for (int i = 0; i < PROBE_COSTS; i++) {
        cr_assert_eq(again.recorded_ns[i], costs.recorded_ns[i]);
        cr_assert_eq(again.empty_ns[i], costs.empty_ns[i]);
    }
    cr_assert(again.delivers && again.loads && again.sessions);
}

Test(known_costs, the_latest_counts)
{
    struct probe_costs costs = some_costs(), again;

    known_costs_keep(folder, &costs);
    costs.recorded_ns[0] = 1;
    known_costs_keep(folder, &costs);
    cr_assert(known_costs_read(folder, &again));
    cr_assert_eq(again.recorded_ns[0], 1);
}

Test(known_costs, another_program_measures_anew)
{
    struct probe_costs costs = some_costs();

    known_costs_keep(folder, &costs);
    damage(0, "other", 5);
    cr_assert_not(taken());
}

Test(known_costs, a_cost_that_is_none_is_refused)
{
    const double bad[] = {NAN, INFINITY, 1e9};
    struct probe_costs costs = some_costs();
    struct stat file;

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        known_costs_keep(folder, &costs);
        cr_assert(taken());
        cr_assert_eq(stat(path, &file), 0);
        damage(file.st_size - (off_t)sizeof(bad[i]), &bad[i], sizeof(bad[i]));
        cr_assert_not(taken());
    }
}

Test(known_costs, a_file_of_another_size_is_refused)
{
    struct probe_costs costs = some_costs();
    struct stat file;

    known_costs_keep(folder, &costs);
    cr_assert_eq(stat(path, &file), 0);
    cr_assert_eq(truncate(path, file.st_size - 1), 0);
    cr_assert_not(taken());
    cr_assert_eq(truncate(path, 0), 0);
    cr_assert_not(taken());
}

Test(known_costs, what_others_can_write_is_refused)
{
    struct probe_costs costs = some_costs();

    known_costs_keep(folder, &costs);
    cr_assert_eq(chmod(path, 0620), 0);
    cr_assert_not(taken());
    cr_assert_eq(chmod(path, 0600), 0);
    cr_assert(taken());
}

Test(known_costs, a_link_is_not_followed)
{
    struct probe_costs costs = some_costs();
    char other[160];

    known_costs_keep(folder, &costs);
    snprintf(other, sizeof(other), "%s.other", path);
    cr_assert_eq(rename(path, other), 0);
    cr_assert_eq(symlink(other, path), 0);
    cr_assert_not(taken());
    unlink(other);
}

Test(known_costs, a_folder_that_cannot_be_is_no_failure)
{
    struct probe_costs costs = some_costs();

    known_costs_keep("/proc/none/of/this", &costs);
    cr_assert_not(known_costs_read("/proc/none/of/this", &costs));
}
