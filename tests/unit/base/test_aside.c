/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/aside.h"

static int repeat(const void *request, void *reply, size_t room, int *ret_fd)
{
    int length = (int)strlen(request);

    cr_assert_geq(room, (size_t)length);
    memcpy(reply, request, (size_t)length);
    *ret_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return length;
}

static int never(const void *request, void *reply, size_t room, int *ret_fd)
{
    (void)request;
    (void)reply;
    (void)room;
    (void)ret_fd;
    while (pause())
        ;
    return 0;
}

static int spin(const void *request, void *reply, size_t room, int *ret_fd)
{
    (void)request;
    (void)reply;
    (void)room;
    (void)ret_fd;
    for (volatile int i = 0;; i++)
        ;
    return 0;
}

static void expect_repeated(const char *text)
{
    char *copy = NULL;
    int fd = -1;
    const struct aside_job job = {
        .work = repeat, .request = text, .request_size = strlen(text) + 1, .ret_text = &copy, .ret_fd = &fd};

    cr_assert_eq(aside_do(&job), (int)strlen(text));
    cr_assert_str_eq(copy, text);
    cr_assert_geq(fd, 0);
    close(fd);
    free(copy);
}

Test(aside, replies_and_hands_over_descriptors)
{
    expect_repeated("one");
    expect_repeated("another one");
    aside_stop();
    expect_repeated("one after it was stopped");
}

Test(aside, leaves_behind_what_does_not_come_back)
{
    const struct aside_job job = {.work = never, .request = "", .request_size = 1};

    expect_repeated("before");
    cr_assert_eq(aside_do(&job), -ETIMEDOUT);
    expect_repeated("behind");
}

/* It is runnable all the time, and works: that is no wait for a processor. */
Test(aside, leaves_behind_what_only_works)
{
    uint64_t spent = 0;
    const struct aside_job job = {
        .work = spin, .request = "", .request_size = 1, .limit_ns = 200000000, .ret_spent_ns = &spent};

    cr_assert_eq(aside_do(&job), -ETIMEDOUT);
    cr_assert_geq(spent, 200000000);
    expect_repeated("behind");
}
