/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tracectl top -c: the hottest functions of all that a daemon records, as its status has them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "cli/common/output.h"
#include "cli/common/signals.h"
#include "cli/live/top_live.h"
#include "collector/daemon/config.h"
#include "collector/daemon/control.h"

struct asking {
    const char *socket;
    json_t *status;                           /* what the names of functions and targets stand in */
    struct budget_function_status *functions; /* of the last sample */
    size_t count, capacity;
};

static int wait_asking(void *context, uint64_t ns, bool *ret_ended, struct error *err)
{
    const struct timespec pause = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};

    (void)context;
    (void)err;
    nanosleep(&pause, NULL); /* a signal cuts it short */
    *ret_ended = signals_came();
    return 0;
}

static enum record_state state_of(const char *name)
{
    for (int state = FUNCTION_RECORDED; state <= FUNCTION_EXCLUDED; state++)
        if (name && !strcmp(name, record_state_name((enum record_state)state)))
            return (enum record_state)state;
    return FUNCTION_RECORDED;
}

static int add_recording(struct asking *asking, const json_t *recording, struct error *err)
{
    const char *target = json_string_value(json_object_get(recording, "target"));
    const json_t *functions = json_object_get(recording, "functions"), *function;
    size_t i;

    if (array_reserve(&asking->functions, &asking->capacity, asking->count + json_array_size(functions)))
        return error_no_memory(err);
    json_array_foreach((json_t *)functions, i, function)
    {
        const char *name = json_string_value(json_object_get(function, "name"));

        asking->functions[asking->count++] = (struct budget_function_status){
            .name = name ? name : "?",
            .image = target ? target : "?",
            .state = state_of(json_string_value(json_object_get(function, "state"))),
            .calls_per_second = json_number_value(json_object_get(function, "calls_per_second")),
        };
    }
    return 0;
}

static int by_rate(const void *left, const void *right)
{
    const struct budget_function_status *a = left, *b = right;

    return (a->calls_per_second < b->calls_per_second) - (a->calls_per_second > b->calls_per_second);
}

static int look(void *context, struct top_view *view, struct error *err)
{
    struct asking *asking = context;
    AUTO_FREE char *answer = NULL;
    const json_t *recordings, *recording;
    size_t i;
    int r = control_ask(asking->socket, "status", &answer, err);

    if (r)
        return r;
    json_decref(asking->status);
    asking->status = json_loads(answer, 0, NULL);
    recordings = json_object_get(asking->status, "recordings");
    if (!json_is_array(recordings))
        return error_say(err, -EPROTO, "unexpected answer from the daemon (is it another version?)");
    asking->count = 0;
    json_array_foreach((json_t *)recordings, i, recording)
    {
        if (!r)
            r = add_recording(asking, recording, err);
    }
    if (asking->count)
        qsort(asking->functions, asking->count, sizeof(*asking->functions), by_rate);
    *view = (struct top_view){.where = "TARGET", .functions = asking->functions, .count = asking->count};
    snprintf(view->title, sizeof(view->title), "daemon, the hottest functions of %zu recordings",
             json_array_size(recordings));
    return r;
}

int top_daemon(const struct top_options *options, struct error *err)
{
    struct service_config config;
    struct asking asking = {0};
    const struct top_source source = {wait_asking, look, &asking};
    int r = service_config_read(options->config, &config, err);

    if (r)
        return r;
    asking.socket = config.socket;
    signals_stop(NULL, false);
    r = top_watch(options, &source, err);
    json_decref(asking.status);
    free(asking.functions);
    service_config_release(&config);
    return r;
}
