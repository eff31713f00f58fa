/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/array.h"
#include "store/streams/sync_events.h"

static const char *const kinds[] = {
#define SYNC_EVENT_TEXT(number, name, text) [number] = text,
    SYNC_EVENT_KINDS(SYNC_EVENT_TEXT)
#undef SYNC_EVENT_TEXT
};

const char *sync_event_kind_name(unsigned kind)
{
    return kind < ARRAY_SIZE(kinds) && kinds[kind] ? kinds[kind] : "?";
}

const char *sync_phase_name(unsigned phase)
{
    static const char *const names[] = {[SYNC_AT] = "at", [SYNC_BEGIN] = "begin", [SYNC_END] = "end"};

    return phase < ARRAY_SIZE(names) ? names[phase] : "?";
}
