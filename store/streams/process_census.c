/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "store/streams/process_census.h"

#include <errno.h>

#include "store/streams/process_streams.h"

int process_census_take(struct census *names, int64_t stream, const uint8_t *data, size_t size,
                        struct process_extent *extent)
{
    const struct process_stream_traits *traits = process_stream_traits(stream);
    struct process_decoder *decoder = NULL;
    struct process_event event;
    bool first = true;
    int code = traits
                   ? process_decoder_open((enum process_stream)stream, data, size, extent->events, &decoder)
                   : -EBADMSG;

    while (!code && (code = process_decoder_next(decoder, &event)) == 0) {
        bool value_is_name = process_kind_in(traits->value_names, event.kind) && event.value;

        if (first)
            extent->first_ns = event.ns;
        first = false;
        extent->last_ns = event.ns;
        if ((event.site && census_add_calls(names, event.site, 1)) ||
            (value_is_name && census_add_calls(names, (uint32_t)event.value, 1)))
            code = -ENOMEM;
    }
    process_decoder_free(decoder);
    return code == 1 ? 0 : code;
}
