/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/inline/inline_code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
    code->order.stubs = calloc(inlined->stub_bytes + 1, 1);
    code->patches = calloc(inlined->place_count + 1, sizeof(*code->patches));
    if (code->order.stubs && code->patches)
        r = inline_image_emit(inlined, &code->order, code->patches, &code->extent);
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

void inline_code_copy(const struct inline_code *code, uint8_t *stubs)
{
    memcpy(stubs, code->order.stubs, code->extent.end);
    memcpy(stubs + code->inlined->aside_at, code->order.stubs + code->inlined->aside_at,
           code->extent.aside_end - code->inlined->aside_at);
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
    free(code->order.stubs);
    free(code->patches);
    free(code);
}
