/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/recording/go_detail.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "collector/stream/goroutine_detail.h"

static int carry_out(struct streams *streams, struct uprobe_backend *backend, const struct go_image_use *use,
                     uint64_t now_ns, struct error *err)
{
    struct traced_image *image = use->image;
    enum go_detail wanted = go_detail_policy_decide(&image->go_detail_policy, now_ns, use->cpu_ns);
    enum go_detail before = image->go_attached;
    int r;

    if (wanted == before)
        return 0;
    r = image_table_attach_go(backend, image, wanted, err);
    image->go_detail_policy.detail = image->go_attached;
    if (r || image->go_attached == before)
        return r;
    r = streams_go_detail(streams, image, image->go_attached, now_ns);
    if (r)
        *err = *streams_error(streams);
    return r;
}

int go_detail_apply(struct streams *streams, struct uprobe_backend *backend, uint64_t now_ns,
                    struct error *err)
{
    AUTO_FREE struct go_image_use *uses = NULL;
    size_t count = 0;
    int r = streams_go_images(streams, &uses, &count);

    if (r)
        return error_no_memory(err), r;
    for (size_t i = 0; !r && i < count; i++)
        r = carry_out(streams, backend, &uses[i], now_ns, err);
    return r;
}
