/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Functions and threads whose names would do something to a terminal, or break a format: escape sequences,
 * line breaks, bytes that are no UTF-8, characters that change the direction of their line.
 *
 *     hostile_names [SECONDS]     calls them; with SECONDS for that long, "ready" on standard output
 * meanwhile
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

/* The assembler takes any byte of a name between quotes. */
void red(int) __asm__("\"\033[31mred\"");
void bell(int) __asm__("\"\033]0;title\007\"");
void invalid(int) __asm__("\"in\xff\xfevalid\"");
void backwards(int) __asm__(
    "\"a\xe2\x80\xae"
    "b\"");
void markup(int) __asm__("\"<b a='1'>&,;]]>\"");
void returning(int) __asm__("\"back\rforth\"");

static int seconds;

#define CALLED(name) \
    __attribute__((noinline, noclone)) void name(int i) \
    { \
        __asm__ volatile("" ::"r"(i) : "memory"); \
    }

CALLED(red)
CALLED(bell)
CALLED(invalid)
CALLED(backwards)
CALLED(markup)

__attribute__((noinline, noclone)) void returning(int i)
{
    const time_t end = time(NULL) + seconds;

    do {
        red(i);
        bell(i);
        invalid(i);
        backwards(i);
        markup(i);
        usleep(seconds ? 1000 : 0);
    } while (time(NULL) < end);
}

static void *run(void *unused)
{
    prctl(PR_SET_NAME, "\033[2J\nFORGED\xff");
    returning(2);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t thread;

    seconds = argc > 1 ? atoi(argv[1]) : 0;
    prctl(PR_SET_NAME, "a\033]0;x\007\rb");
    pthread_create(&thread, NULL, run, NULL);
    puts("ready");
    fflush(stdout);
    returning(1);
    pthread_join(thread, NULL);
    return 0;
}
