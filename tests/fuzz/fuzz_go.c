/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Any bytes as a Go program: its layout, the frames of its instructions, its stacks and its concurrency-usage
 * model. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "image/functions/gopclntab.h"
#include "image/go/go_goroutines.h"
#include "image/go/go_layout.h"
#include "image/go/go_usage.h"

enum { FRAMES = 16, FUNCTIONS_MAX = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile size_t read_length; /* so that strings are read */

static void check_frames(struct elf_image *image)
{
    struct go_symbol *symbols = NULL;
    size_t count = 0;

    if (gopclntab_symbols(image, &symbols, &count) < 0)
        return;
    for (size_t i = 0; i < count && i < FUNCTIONS_MAX; i++) {
        const uint64_t places[] = {symbols[i].address, symbols[i].address + symbols[i].size / 2,
                                   symbols[i].address + symbols[i].size - 1};

        for (size_t k = 0; k < 3; k++) {
            struct go_frame frames[FRAMES];
            uint64_t frame_size = UINT64_MAX;
            size_t found = gopclntab_frames(image, places[k], frames, FRAMES);

            if (found > FRAMES)
                abort();
            if (go_stack_rule(image, places[k], &frame_size) == GO_STACK_CALLER && frame_size > INT32_MAX)
                abort();
            while (found--)
                read_length = strlen(frames[found].function) + strlen(frames[found].file);
        }
    }
    free(symbols);
}

/* What go_usage.h promises must hold whatever the bytes are. */
static void check_model(const struct go_model *model)
{
    size_t sites = 0;

    for (size_t i = 0; i < model->count; i++) {
        const struct go_usage *usage = &model->usages[i];

        if (!usage->site_count || !*go_object_name(usage->object) || !*go_operation_name(usage->operation) ||
            (usage->case_count && usage->operation != GO_SELECT))
            abort();
        read_length = strlen(usage->file) + strlen(usage->function);
        sites += usage->site_count;
    }
    if (sites != model->site_count)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO_CLOSE int fd = memfd_create("fuzz", MFD_CLOEXEC);
    AUTO_ELF_IMAGE struct elf_image *image = NULL;
    CLEANUP(go_layout_release) struct go_layout layout = {0};
    CLEANUP(go_model_release) struct go_model model = {0};
    struct error err;
    uint64_t list;

    if (fd < 0 || write(fd, data, size) != (ssize_t)size || elf_image_open_fd(fd, "fuzz", &image, &err) < 0)
        return 0;
    if (go_layout_read(image, &layout, &err) == 0 && !layout.entries[GO_GOPARK].name)
        abort();
    check_frames(image);
    go_goroutines_find(image, &list);
    if (go_model_read(image, &model, &err) == 0)
        check_model(&model);
    return 0;
}
