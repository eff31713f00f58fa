/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a process has mapped: found by the number of its file, and by what its lines mention. */
#include <criterion/criterion.h>
#include <errno.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collector/process/map_lines.h"
#include "collector/process/maps.h"

Test(maps, a_file_is_mapped_by_its_number_alone)
{
    struct stat file;

    cr_assert_eq(stat("/proc/self/exe", &file), 0);
    cr_expect(file_is_mapped(getpid(), file.st_dev, file.st_ino));
    cr_expect_not(file_is_mapped(getpid(), file.st_dev, file.st_ino * 10),
                  "a longer number that begins with it");
    cr_expect_not(file_is_mapped(getpid(), file.st_dev + 1, file.st_ino));
    if (file.st_ino > 9)
        cr_expect_not(file_is_mapped(getpid(), file.st_dev, file.st_ino / 10));
}

Test(maps, mentions_are_of_the_lines_that_are_left)
{
    AUTO_MAP_LINES struct map_lines lines = {0};
    struct map_line line;

    cr_assert_eq(map_lines_open(getpid(), &lines), 0);
    cr_expect(map_lines_mention(&lines, "[stack]"));
    cr_expect_not(map_lines_mention(&lines, "no such mapping"));
    while (map_lines_next(&lines, &line))
        ;
    cr_expect_not(map_lines_mention(&lines, "[stack]"));
}

Test(maps, a_zombie_has_none, .timeout = 60)
{
    struct code_mapping *mappings = NULL;
    size_t count = 0;
    siginfo_t end = {0};
    pid_t pid = fork();

    if (!pid)
        _exit(0);
    cr_assert_eq(waitid(P_PID, (id_t)pid, &end, WEXITED | WNOWAIT), 0);
    cr_expect_eq(process_code_mappings(pid, &mappings, &count, NULL), -ESRCH);
    cr_assert_eq(waitpid(pid, NULL, 0), pid);
}
