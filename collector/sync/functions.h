/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is recorded of synchronisation: functions of the C library, functions that the user declares, and
 * system calls.
 */
#ifndef TRACECTL_COLLECTOR_SYNC_FUNCTIONS_H
#define TRACECTL_COLLECTOR_SYNC_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/wire.h"
#include "store/streams/sync_events.h"

struct error;

/* A function whose calls are events. */
struct sync_function_spec {
    const char *name;      /* as the image spells it, or demangled, with or without its parameters */
    uint8_t kind;          /* enum sync_event_kind */
    uint8_t phase;         /* enum sync_phase: AT, or BEGIN; BEGIN ... */
    bool returns;          /* ... with an END, when it returns */
    uint8_t object, other; /* numbers of arguments, from 1; 0: none */
    uint16_t declared;     /* the number that the user's declaration has, 0: of the C library */
};

/* The C library's. */
extern const struct sync_function_spec sync_library_functions[];
extern const size_t sync_library_function_count;

/* The system calls, by number; those that are not recorded have shape SYNC_SHAPE_NONE. */
struct sync_call sync_call_by_number(unsigned number);

/* A declaration of the user's: --sink FUNC, --handler FUNC[:ARGn], --enqueue FUNC:ARGn, --dequeue FUNC:ARGn;
 * n from 1. */
struct sync_declaration {
    enum sync_event_kind kind; /* SYNC_SINK, HANDLER, ENQUEUE or DEQUEUE */
    char *name;
    uint8_t argument; /* 0: none */
};

/* `text` without the option. -EINVAL: not of that form; the error says how. Release with free(name). */
int sync_declaration_parse(enum sync_event_kind kind, const char *text, struct sync_declaration *ret,
                           struct error *err);
struct sync_function_spec sync_declaration_spec(const struct sync_declaration *declaration, uint16_t number);

#endif
