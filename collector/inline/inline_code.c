/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/inline/inline_code.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "collector/inline/area.h"

/* Writes the stubs into a file of their own. */
static int emit(struct inline_code *code)
{
    const struct inline_image *inlined = code->inlined;
    AUTO_FREE uint8_t *stubs = calloc(inlined->stub_bytes + 1, 1);
    struct inline_order order = code->order;
    struct inline_extent extent;
    int r;

    if (!stubs)
        return -ENOMEM;
    order.stubs = stubs;
    r = inline_image_emit(inlined, &order, code->patches, &extent);
    if (!r) {
        const struct agent_piece pieces[2] = {
            {stubs, AGENT_STUBS_OFFSET, extent.end},
            {stubs + inlined->aside_at, AGENT_STUBS_OFFSET + inlined->aside_at,
             extent.aside_end - inlined->aside_at},
        };

        r = code->stubs = agent_stubs_new(pieces, agent_near_bytes(inlined->stub_bytes));
    }
    return r < 0 ? r : 0;
}

int inline_code_new(const struct inline_image *inlined, const struct inline_order *order,
                    struct inline_code **ret_code)
{
    struct inline_code *code = calloc(1, sizeof(*code));
    int r = -ENOMEM;

    if (!code)
        return r;
    code->inlined = inlined;
    code->order = *order;
    code->users = 1;
    code->order.stubs = NULL;
    code->stubs = -1;
    code->patches = calloc(inlined->place_count + 1, sizeof(*code->patches));
    if (code->patches)
        r = emit(code);
    if (r) {
        inline_code_release(code);
        return r;
    }
    *ret_code = code;
    return 0;
}

bool inline_code_is(const struct inline_code *code, const struct inline_image *inlined,
                    const struct inline_order *order)
{
    return code->inlined == inlined && code->order.functions == order->functions &&
           code->order.first_number == order->first_number && code->order.load_bias == order->load_bias &&
           code->order.head == order->head && code->order.timed == order->timed;
}

struct inline_code *inline_code_share(struct inline_code *code)
{
    if (code)
        code->users++;
    return code;
}

void inline_code_release(struct inline_code *code)
{
    if (!code || --code->users)
        return;
    if (code->stubs >= 0)
        close(code->stubs);
    free(code->patches);
    free(code);
}
