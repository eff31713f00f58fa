/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/common/progress_line.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/progress.h"
#include "base/text.h"
#include "cli/common/command.h"

#define AGAIN_NS 200000000u
#define ESTIMATE_NS 500000000u /* a step that has taken less says little about the rest */
#define NS_PER_S 1e9

static struct {
    uint64_t begun_ns;         /* of the whole; 0: progress_line_begin() was not called yet */
    uint64_t shown_from_ns;    /* nothing is shown before */
    uint64_t step_ns, seen_ns; /* when the step began; when it was shown last, 0: not yet */
    const char *step;          /* a literal; NULL: there is none */
    bool on_terminal, is_shown;
} line;

/* "2 s left", "5 s"; empty when there is nothing to say yet. */
static void write_time(uint64_t now, double share, char *text, size_t size)
{
    double passed = (double)(now - line.step_ns);

    *text = '\0';
    if (share >= 1 || passed < ESTIMATE_NS)
        return;
    if (share > 0.02)
        snprintf(text, size, ": %.0f s left", passed * (1 - share) / share / NS_PER_S + 0.5);
    else if (passed >= NS_PER_S)
        snprintf(text, size, ": %.0f s", passed / NS_PER_S);
}

static void print_step(uint64_t now)
{
    progress_line_clear();
    text_print(stderr, "tracectl: %.1f s: %s\n", (double)(now - line.begun_ns) / NS_PER_S, line.step);
}

static void show(uint64_t now, double share)
{
    char time[48];

    write_time(now, share, time, sizeof(time));
    text_print(stderr, "\r\033[Ktracectl: %s%s", line.step, time);
    fflush(stderr);
    line.is_shown = true;
}

static void report(const char *doing, double share)
{
    uint64_t now = clock_ns(CLOCK_MONOTONIC);
    bool changes = !line.step || strcmp(line.step, doing) != 0;

    if (changes) {
        line.step = doing;
        line.step_ns = now;
        line.seen_ns = 0;
        if (cli.verbosity > 0)
            print_step(now);
    }
    if (!line.on_terminal || now < line.shown_from_ns || (line.seen_ns && now - line.seen_ns < AGAIN_NS))
        return;
    line.seen_ns = now;
    show(now, share);
}

void progress_line_begin(uint64_t quiet_ns)
{
    const char *terminal = getenv("TERM");
    uint64_t now = clock_ns(CLOCK_MONOTONIC);

    line.on_terminal = isatty(STDERR_FILENO) && terminal && strcmp(terminal, "dumb") != 0;
    if (cli.verbosity < 0 || (!line.on_terminal && cli.verbosity == 0))
        return;
    line.begun_ns = line.begun_ns ? line.begun_ns : now;
    line.shown_from_ns = now + quiet_ns;
    line.step = NULL;
    progress_to = report;
}

void progress_line_clear(void)
{
    if (line.is_shown)
        fputs("\r\033[K", stderr);
    line.is_shown = false;
    line.seen_ns = 0;
}

void progress_line_leave_terminal(void)
{
    progress_line_clear();
    line.on_terminal = false;
}

void progress_line_end(void)
{
    progress_line_clear();
    progress_to = NULL;
}
