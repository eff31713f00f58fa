/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/record/storing_arguments.h"

#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "cli/common/command.h"
#include "cli/common/retention_arguments.h"
#include "cli/record/record_arguments.h"

enum { KEY_RING_SIZE = 340, KEY_WIRE, KEY_MEMORY, KEY_ON_FULL, KEY_FLUSH_INTERVAL };

static const struct argp_option storing_options[] = {
    {"ring-size", KEY_RING_SIZE, "BYTES", 0, "Size of the ring buffer, a power of two (default 32M)", 5},
    {"wire", KEY_WIRE, "packed|plain", 0,
     "Format of calls and returns in the ring buffer: packed, a byte or less each (the default), or "
     "plain, one record each (always used with --time full and --trigger). The stored run is the same",
     5},
    {"memory", KEY_MEMORY, "BYTES", 0,
     "Memory for compression, of all threads together: 64M, 1G (default: a quarter of the machine's "
     "memory, at most 1G). When it is full, segments are closed early, which takes more bytes per "
     "event; nothing is lost",
     5},
    {"on-full", KEY_ON_FULL, "stop|drop-oldest", 0,
     "When the disk is full: end the recording (stop, the default; the target keeps running), or delete "
     "the oldest runs of the store first (drop-oldest)",
     6},
    {"flush-interval", KEY_FLUSH_INTERVAL, "TIME", 0, "Commit at least this often (default 1s)", 5},
    {0},
};

static size_t parse_size(const char *text, struct argp_state *state)
{
    uint64_t size = 0;

    if (!number_parse_size(text, &size) || size < 4096 || size > 1u << 30 || size & (size - 1))
        argp_error(state, "'%s' is not a power of two from 4K to 1024M", text);
    return (size_t)size;
}

static void parse_on_full(struct record_arguments *arguments, const char *text, struct argp_state *state)
{
    if (strcmp(text, "stop") != 0 && strcmp(text, "drop-oldest") != 0)
        argp_error(state, "--on-full must be stop or drop-oldest, not '%s'", text);
    arguments->recorder.storage.room.drop_oldest = *text == 'd';
}

static error_t parse_storing(int key, char *arg, struct argp_state *state)
{
    struct record_arguments *arguments = state->input;

    switch (key) {
    case KEY_RING_SIZE:
        arguments->recorder.limits.ring_bytes = parse_size(arg, state);
        return 0;
    case KEY_WIRE:
        if (strcmp(arg, "packed") && strcmp(arg, "plain"))
            argp_error(state, "--wire must be packed or plain, not '%s'", arg);
        arguments->recorder.probes.plain_wire = !strcmp(arg, "plain");
        return 0;
    case KEY_MEMORY:
        arguments->recorder.limits.memory_bytes = cli_parse_bytes(arg, state);
        return 0;
    case KEY_FLUSH_INTERVAL:
        arguments->recorder.storage.flush_interval_ns = cli_parse_duration(state, "--flush-interval", arg, 1);
        return 0;
    case KEY_ON_FULL:
        parse_on_full(arguments, arg, state);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp storing_argp = {.options = storing_options, .parser = parse_storing};
