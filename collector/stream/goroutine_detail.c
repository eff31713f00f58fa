/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/stream/goroutine_detail.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "collector/process/process.h"
#include "collector/stream/goroutine_state.h"

int streams_go_images(const struct streams *streams, struct go_image_use **ret_uses, size_t *ret_count)
{
    struct traced_process *process = NULL, *next = NULL;
    struct go_image_use *uses = NULL;
    size_t count = 0, capacity = 0;

    HASH_ITER (hh, streams->registry.processes, process, next) {
        struct traced_image *image = process->goroutines ? process->goroutines->image : NULL;
        size_t i = 0;

        if (!image)
            continue;
        while (i < count && uses[i].image != image)
            i++;
        if (array_reserve(&uses, &capacity, i + 1)) {
            free(uses);
            return -ENOMEM;
        }
        if (i == count)
            uses[count++] = (struct go_image_use){.image = image, .pid = process->pid};
        uses[i].cpu_ns += process_cpu_ns(process->pid);
    }
    *ret_uses = uses;
    *ret_count = count;
    return 0;
}

int streams_go_detail(struct streams *streams, const struct traced_image *image, enum go_detail detail,
                      uint64_t now_ns)
{
    struct traced_process *process = NULL, *next = NULL;
    int r = 0;

    HASH_ITER (hh, streams->registry.processes, process, next)
        if (!r && process->goroutines && process->goroutines->image == image)
            r = goroutine_streams_detail(streams, process, now_ns, detail);
    return r;
}
