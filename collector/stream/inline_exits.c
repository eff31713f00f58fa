/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Exits of inline probes: a function is at its RET.
 *
 * Such a record ends the innermost open call of its function that has its stack pointer, and with it the
 * calls inside that, whose returns were not seen. Where that call is not open (it began before the recording,
 * its record was lost, something else took its frame over) it says nothing, and later events close what has
 * returned as they would without exits.
 *
 * The call that ends is the one that began only if all calls of the function are recorded. Once some were not
 * (a budget), the end is taken for one that was inferred: it has no time of its own. Neither has it one where
 * times are those of ticks.
 */
#include "collector/stream/streams_private.h"

static int write_exit(struct streams *streams, struct traced_thread *thread,
                      const struct agent_record *record, uint64_t ns)
{
    uint32_t function = (record->function & ~AGENT_EXIT) - 1;
    uint64_t sp = agent_record_sp(record);
    size_t closed;

    closed = call_stack_exit(&thread->stack, sp, function, streams_is_on_signal_stack(thread, sp));
    if (!closed) {
        streams->counts.unmatched_returns++;
        return 0;
    }
    if (streams->options.watch)
        call_watch_return(streams->options.watch, thread, ns);
    if (streams->options.times != STREAM_TIMES_FULL || !streams_sees_all(streams, function))
        return streams_write_returns(streams, thread->writer, closed);
    return streams_write_seen_return(streams, thread, closed, ns);
}

int streams_write_exits(struct streams *streams, struct traced_thread *thread,
                        const struct agent_record *records, size_t count, uint64_t ns, size_t *ret_taken)
{
    size_t done = 0;
    int r = 0;

    while (!r && done < count && agent_record_is_exit(&records[done])) {
        if (thread->process->returns != TRACE_RETURNS_NONE)
            r = write_exit(streams, thread, &records[done], ns);
        done++;
    }
    *ret_taken = done;
    return r;
}

bool streams_sees_exits(const struct traced_process *process)
{
    return process->image && process->image->inlined && process->image->inlined->exits;
}
