/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/uprobe/place_lock.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

/* A program that there is not, of this process alone. */
#define DEVICE ((dev_t)77)

static int take(bool alone)
{
    int fd = PLACE_LOCK_NONE;
    int r = place_lock(DEVICE, (ino_t)getpid(), alone, 20, &fd);

    return r ? r : fd;
}

static void init(void)
{
    if (geteuid())
        cr_skip_test("only root can make the file");
}

Test(place_lock, uprobes_are_placed_beside_each_other, .init = init)
{
    int one = take(false), other = take(false);

    cr_assert_geq(one, 0);
    cr_assert_geq(other, 0);
    cr_assert_eq(take(true), -EBUSY);
    close(one);
    cr_assert_eq(take(true), -EBUSY);
    close(other);
    one = take(true);
    cr_assert_geq(one, 0);
    close(one);
}

Test(place_lock, inline_probes_are_placed_alone, .init = init)
{
    int one = take(true), again;

    cr_assert_geq(one, 0);
    cr_assert_eq(take(false), -EBUSY);
    cr_assert_eq(take(true), -EBUSY);
    close(one);
    again = take(false);
    cr_assert_geq(again, 0);
    close(again);
}

Test(place_lock, it_goes_with_its_holder, .init = init)
{
    ino_t inode = (ino_t)getpid();
    int ready[2], fd;
    pid_t child;

    cr_assert_eq(pipe(ready), 0);
    child = fork();
    if (!child) {
        place_lock(DEVICE, inode, true, 20, &fd);
        if (write(ready[1], "", 1) == 1)
            pause();
        _exit(1);
    }
    cr_assert_eq(read(ready[0], &(char){0}, 1), 1);
    cr_assert_eq(take(true), -EBUSY);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    fd = take(true);
    cr_assert_geq(fd, 0);
    close(fd);
}
