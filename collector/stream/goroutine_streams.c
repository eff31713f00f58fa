/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/stream/goroutine_streams.h"

#include <errno.h>
#include <stdlib.h>

#include "base/error.h"
#include "collector/stream/goroutine_state.h"
#include "collector/stream/process_code.h"

int goroutine_streams_new(struct streams *streams, struct traced_process *process, struct traced_image *image,
                          bool from_start, struct goroutine_streams **ret_goroutines)
{
    struct goroutine_streams *goroutines = calloc(1, sizeof(*goroutines));

    if (!goroutines)
        return error_no_memory(&streams->error), -ENOMEM;
    goroutines->image = image;
    goroutines->file = image->go;
    goroutines->from_start = from_start;
    *ret_goroutines = goroutines;
    return 0;
}

void goroutine_streams_free(struct goroutine_streams *goroutines)
{
    struct goroutine *goroutine = NULL, *next = NULL;
    struct spawn *spawn = NULL, *next_spawn = NULL;

    if (!goroutines)
        return;
    HASH_ITER (hh, goroutines->alive, goroutine, next)
        recorded_goroutine_forget(goroutines, goroutine);
    HASH_ITER (hh, goroutines->spawns, spawn, next_spawn) {
        HASH_DEL(goroutines->spawns, spawn);
        free(spawn);
    }
    free(goroutines);
}

/* ------------------------------------------------------------------------------------ entering the store */

static int enter_program(struct translation *at)
{
    const struct go_layout *layout = go_program_layout(at->goroutines->file);
    struct streams *streams = at->streams;
    struct go_program_description description = {
        .version = layout->version.text,
        .operations = go_program_detail(at->goroutines->file) == GO_DETAIL_OPERATIONS,
        .wait_reasons = (const char *const *)layout->wait_reasons,
        .wait_reason_count = layout->wait_reason_count,
        .from_ns = at->event.ns,
        .from_start = at->goroutines->from_start,
    };
    int r = streams_store_process(streams, at->process);

    if (!r)
        r = image_table_image_id(streams->writer, at->goroutines->image, &description.image_id,
                                 &streams->error);
    description.process_id = at->process->process_id;
    if (!r)
        r = trace_writer_go_program(streams->writer, &description, &at->goroutines->writer, &streams->error);
    return r ? r
             : go_program_store_model(at->goroutines->file, streams->writer, description.image_id,
                                      &streams->error);
}

static struct go_process observed(const struct traced_process *process)
{
    return (struct go_process){.pid = process->pid,
                               .number = process->number,
                               .process_id = process->process_id,
                               .file = process->goroutines->file};
}

int goroutine_append(struct translation *at)
{
    const struct go_observer *observer = &at->streams->options.goroutines;
    const struct go_process process = observed(at->process);
    int r = process_writer_append(at->goroutines->writer, &at->event);

    if (!r && observer->event)
        r = observer->event(observer->context, &process, &at->event);
    return r ? error_set(&at->streams->error, r, NULL, "cannot append an event of a goroutine") : 0;
}

static int append_detail(struct translation *at, enum go_detail detail)
{
    at->event.kind = GO_EVENT_DETAIL;
    at->event.value = detail;
    return goroutine_append(at);
}

/* With a budget less may be recorded later, so the level of detail is recorded from the start. */
static int enter(struct translation *at)
{
    const struct go_detail_policy *policy = &at->goroutines->image->go_detail_policy;
    struct translation first = *at;
    int r = enter_program(at);

    return r || !(policy->budget.share > 0) ? r : append_detail(&first, policy->detail);
}

static int begin(struct streams *streams, struct traced_process *process, uint32_t tid, uint64_t ns,
                 struct translation *ret_at)
{
    *ret_at = (struct translation){.streams = streams, .process = process, .goroutines = process->goroutines};
    ret_at->event.ns = streams_realtime(streams, ns);
    ret_at->event.tid = tid;
    return process->goroutines->writer ? 0 : enter(ret_at);
}

/* Counts the hit. Whether its probe has been taken away meanwhile: what follows it will be missing. */
static bool is_late(struct go_detail_policy *policy, const struct go_target *target)
{
    go_detail_policy_hit(policy, target->detail, target->single_stepped);
    return policy->budget.share > 0 && target->detail > policy->detail;
}

int goroutine_streams_event(struct streams *streams, struct traced_process *process,
                            const struct wire_go *record, size_t size)
{
    const struct go_target *target =
        process->goroutines ? go_program_target(process->goroutines->file, record->probe) : NULL;
    struct translation at;
    int r;

    if (target && is_late(&process->goroutines->image->go_detail_policy, target))
        return 0;
    if (!target || !process_code_bias(process, process->goroutines->image, &at.bias))
        return 0; /* a child that has not called exec yet */
    if ((target->probe.kind == GO_AT_SELECT || target->probe.kind == GO_AT_TIMER ||
         target->probe.kind == GO_AT_TIMER_STRUCT) &&
        size < sizeof(struct wire_go_select))
        return error_say(&streams->error, -EBADMSG, "a record of the kernel side has a wrong size");
    r = begin(streams, process, record->header.tid, record->header.ns, &at);
    if (r)
        return r;
    process_code_bias(process, process->goroutines->image, &at.bias);
    at.record = record;
    at.target = target;
    at.event.goroutine = record->goroutine;
    return goroutine_record(&at);
}

int goroutine_streams_lost(struct streams *streams, struct traced_process *process, uint32_t tid, uint64_t ns,
                           uint64_t count)
{
    struct translation at;
    int r = process->goroutines ? begin(streams, process, tid, ns, &at) : 0;

    if (r || !process->goroutines)
        return r;
    go_detail_policy_lost(&process->goroutines->image->go_detail_policy, count);
    at.event.kind = GO_EVENT_LOST;
    at.event.value = (int64_t)count;
    r = goroutine_append(&at);
    return r ? r
             : trace_writer_loss(streams->writer, at.event.ns, count, "goroutine events: ring full",
                                 &streams->error);
}

int goroutine_streams_detail(struct streams *streams, struct traced_process *process, uint64_t ns,
                             enum go_detail detail)
{
    struct translation at;
    int r = process->goroutines->writer ? begin(streams, process, 0, ns, &at) : 0;

    return r || !process->goroutines->writer ? r : append_detail(&at, detail);
}

static int tell_end(const struct streams *streams, const struct traced_process *process, int exit_status)
{
    const struct go_observer *observer = &streams->options.goroutines;
    const struct go_process ended = observed(process);

    return observer->end ? observer->end(observer->context, &ended, exit_status) : 0;
}

int goroutine_streams_end(struct streams *streams, struct traced_process *process, uint64_t ns,
                          int exit_status)
{
    struct goroutine *goroutine = NULL, *next = NULL;
    struct translation at;
    int r;

    if (!process->goroutines)
        return 0;
    r = begin(streams, process, 0, ns, &at);
    HASH_ITER (hh, process->goroutines->alive, goroutine, next)
        if (!r)
            r = goroutine_end_stream(&at, goroutine, false);
    if (!r)
        r = tell_end(streams, process, exit_status);
    goroutine_streams_free(process->goroutines);
    process->goroutines = NULL;
    return r;
}
