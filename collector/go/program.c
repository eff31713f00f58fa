/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/go/program.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "collector/go/usages.h"
#include "image/functions/gopclntab.h"
#include "image/go/go_wrappers.h"

enum { FRAMES_MAX = 32, PLACE_KEY_WORDS = 3 };

struct known_place {
    uint64_t key[PLACE_KEY_WORDS]; /* place, caller, operation */
    struct go_source_place found;
    char *text;
    UT_hash_handle hh;
};

struct known_function {
    uint64_t address;
    struct go_source_function found;
    UT_hash_handle hh;
};

/* What the store calls a place or a function. */
struct known_name {
    uint32_t function_id;
    char *name;
    char *function; /* without the operation */
    const char *file;
    int line;
    UT_hash_handle hh;
};

struct go_program_file {
    struct elf_image *image;
    struct go_program_options options;
    bool model_stored;
    struct go_layout layout;
    struct go_model model;
    struct go_targets targets;
    struct go_symbol *symbols;
    size_t symbol_count;
    struct go_functions all_functions; /* of `symbols` */
    struct known_place *places;
    struct known_function *functions;
    struct known_name *names;
};

static void name_free(struct known_name *name)
{
    free(name->name);
    free(name->function);
    free(name);
}

DEFINE_CLEANUP(cleanup_program, struct go_program_file *, go_program_free)

int go_program_read(struct elf_image *image, const struct go_program_options *options,
                    struct go_program_file **ret_file, struct error *err)
{
    CLEANUP(cleanup_program) struct go_program_file *file = calloc(1, sizeof(*file));
    int r;

    if (!file)
        return error_no_memory(err), -ENOMEM;
    file->image = image;
    file->options = *options;
    r = go_layout_read(image, &file->layout, err);
    if (!r)
        r = go_model_read(image, &file->model, err);
    if (!r)
        r = go_targets_find(image, &file->layout, &file->model, options->detail, &file->targets, err);
    if (!r && options->delays)
        r = go_targets_add_delays(image, &file->layout, &file->model, &file->targets, err);
    if (!r && gopclntab_symbols(image, &file->symbols, &file->symbol_count))
        r = (error_no_memory(err), -ENOMEM);
    if (r)
        return r;
    file->all_functions = go_functions_of(image, file->symbols, file->symbol_count);
    *ret_file = take_pointer(file);
    return 0;
}

void go_program_free(struct go_program_file *file)
{
    struct known_function *function = NULL, *next_function = NULL;
    struct known_place *place = NULL, *next = NULL;
    struct known_name *name = NULL, *next_name = NULL;

    if (!file)
        return;
    HASH_ITER (hh, file->names, name, next_name) {
        HASH_DEL(file->names, name);
        name_free(name);
    }
    HASH_ITER (hh, file->places, place, next) {
        HASH_DEL(file->places, place);
        free(place->text);
        free(place);
    }
    HASH_ITER (hh, file->functions, function, next_function) {
        HASH_DEL(file->functions, function);
        free(function);
    }
    go_targets_release(&file->targets);
    go_model_release(&file->model);
    go_layout_release(&file->layout);
    free(file->symbols);
    free(file);
}

enum go_detail go_program_detail(const struct go_program_file *file)
{
    return file->options.detail;
}

const struct go_layout *go_program_layout(const struct go_program_file *file)
{
    return &file->layout;
}

const struct go_targets *go_program_targets(const struct go_program_file *file)
{
    return &file->targets;
}

uint8_t go_program_number(const struct go_program_file *file)
{
    return file->options.program;
}

uint32_t go_program_first_probe(const struct go_program_file *file)
{
    return file->options.first_probe;
}

const struct go_target *go_program_target(const struct go_program_file *file, uint32_t index)
{
    uint32_t at = index - file->options.first_probe;

    return at < file->targets.count ? &file->targets.items[at] : NULL;
}

int go_program_store_model(struct go_program_file *file, struct trace_writer *writer, int64_t image_id,
                           struct error *err)
{
    int r = file->model_stored ? 0 : go_usages_store(&file->model, writer, image_id, err);

    if (!r)
        file->model_stored = true;
    return r;
}

/* ------------------------------------------------------------------------------------ names */

const char *go_program_name(const struct go_program_file *file, uint32_t function_id)
{
    const struct known_name *known;

    HASH_FIND(hh, file->names, &function_id, sizeof(function_id), known);
    return known ? known->name : NULL;
}

static int find_name(void *context, uint32_t function_id, struct go_place *ret_place)
{
    const struct go_program_file *file = context;
    const struct known_name *known;

    HASH_FIND(hh, file->names, &function_id, sizeof(function_id), known);
    *ret_place = known ? (struct go_place){known->function, known->file ? known->file : "", known->line}
                       : (struct go_place){"", "", 0};
    return 0;
}

struct go_place_source go_program_places(struct go_program_file *file)
{
    return (struct go_place_source){find_name, file};
}

int go_program_usages(const struct go_program_file *file, struct go_usage_row **ret_rows, size_t *ret_count)
{
    return go_usages_rows(&file->model, ret_rows, ret_count);
}

/* Enters what is described into the store, under the id that is returned. */
static int enter(struct go_program_file *file, struct trace_writer *writer, int64_t image_id,
                 const struct trace_function_description *description, uint32_t *ret_function_id,
                 struct error *err)
{
    struct known_name *known;
    int r = trace_writer_function(writer, image_id, description, ret_function_id, err);

    if (r || go_program_name(file, *ret_function_id))
        return r;
    known = calloc(1, sizeof(*known));
    if (known) {
        const char *colon = strrchr(description->name, ':');

        known->name = strdup(description->name);
        known->function = colon ? strndup(description->name, (size_t)(colon - description->name))
                                : strdup(description->name);
        known->file = description->file;
        known->line = description->line;
    }
    if (!known || !known->name || !known->function) {
        if (known)
            name_free(known);
        return error_no_memory(err), -ENOMEM;
    }
    known->function_id = *ret_function_id;
    HASH_ADD(hh, file->names, function_id, sizeof(known->function_id), known);
    return 0;
}

/* ------------------------------------------------------------------------------------ places */

static bool begins_with(const char *text, const char *prefix)
{
    return !strncmp(text, prefix, strlen(prefix));
}

static bool is_of_sync(const struct go_frame *frame)
{
    return begins_with(frame->function, "sync.") || begins_with(frame->function, "sync/atomic.") ||
           begins_with(frame->function, "internal/sync.") || begins_with(frame->function, "internal/race.");
}

/* The functions of package sync that do more than what they are called for: what they call is a part of it.
 */
static bool is_whole_operation(const struct go_frame *frame)
{
    return begins_with(frame->function, "sync.(*Cond).Wait") ||
           begins_with(frame->function, "sync.(*RWMutex).Lock") ||
           begins_with(frame->function, "sync.(*RWMutex).Unlock") ||
           begins_with(frame->function, "sync.(*RWMutex).TryLock") ||
           begins_with(frame->function, "sync.(*Once).doSlow") ||
           begins_with(frame->function, "sync.(*WaitGroup).Wait");
}

/* The frame that the operation is in, for its author; `*ret_done`: it passed through WaitGroup.Done. NULL:
 * all of them are in package sync. */
static const struct go_frame *own_frame(const struct go_frame *frames, size_t count, bool *done)
{
    for (size_t i = 0; i < count; i++) {
        if (!is_of_sync(&frames[i]))
            return &frames[i];
        *done |= begins_with(frames[i].function, "sync.(*WaitGroup).Done");
    }
    return NULL;
}

/* Enters the place of an operation as a function of its own: "FUNCTION:operation". */
static int enter_place(struct go_program_file *file, struct trace_writer *writer, int64_t image_id,
                       uint64_t address, const struct go_frame *frame, struct go_source_place *place,
                       struct error *err)
{
    AUTO_FREE char *name = NULL;
    struct trace_function_description description = {
        .address = address, .file = frame->file, .line = (int)frame->line};

    if (asprintf(&name, place->operation ? "%s:%s" : "%s", frame->function, go_op_name(place->operation)) < 0)
        return name = NULL, error_no_memory(err), -ENOMEM;
    description.name = name;
    return enter(file, writer, image_id, &description, &place->site, err);
}

/* "FILE:LINE" without directories. */
static int name_place(struct known_place *known, const struct go_frame *frame, struct error *err)
{
    if (asprintf(&known->text, "%s:%u", path_file_name(frame->file), frame->line) < 0)
        return known->text = NULL, error_no_memory(err), -ENOMEM;
    known->found.text = known->text;
    return 0;
}

static int find_place(struct go_program_file *file, struct trace_writer *writer, int64_t image_id,
                      uint64_t address, uint64_t caller, struct known_place *known, struct error *err)
{
    struct go_source_place *place = &known->found;
    struct go_frame frames[FRAMES_MAX];
    size_t count = gopclntab_frames(file->image, address, frames, FRAMES_MAX);
    const struct go_frame *frame;
    bool done = false;

    if (!count)
        return 0;
    frame = own_frame(frames, count, &done);
    if (!frame && caller && !is_whole_operation(&frames[count - 1])) {
        count = gopclntab_frames(file->image, caller, frames, FRAMES_MAX);
        frame = own_frame(frames, count, &done);
        address = caller;
    }
    if (!count)
        return 0;
    place->inner = !frame;
    if (!frame)
        frame = &frames[0];
    if (done && place->operation == GO_OP_WAITGROUP_ADD)
        place->operation = GO_OP_WAITGROUP_DONE;
    return name_place(known, frame, err) || enter_place(file, writer, image_id, address, frame, place, err)
               ? -ENOMEM
               : 0;
}

int go_program_place(struct go_program_file *file, struct trace_writer *writer, int64_t image_id,
                     uint64_t place, uint64_t caller, enum go_op operation, struct go_source_place *ret_place,
                     struct error *err)
{
    uint64_t key[PLACE_KEY_WORDS];
    struct known_place *known;
    int r;

    memset(key, 0, sizeof(key)); /* it is hashed byte by byte, which static analysis follows only like this */
    key[0] = place;
    key[1] = caller;
    key[2] = operation;

    HASH_FIND(hh, file->places, key, sizeof(key), known);
    if (!known) {
        known = calloc(1, sizeof(*known));
        if (!known)
            return error_no_memory(err), -ENOMEM;
        memcpy(known->key, key, sizeof(key));
        known->found.operation = operation;
        known->found.text = "?";
        r = place ? find_place(file, writer, image_id, place, caller, known, err) : 0;
        if (r) {
            free(known->text);
            free(known);
            return r;
        }
        HASH_ADD(hh, file->places, key, sizeof(known->key), known);
    }
    *ret_place = known->found;
    return 0;
}

/* ------------------------------------------------------------------------------------ functions */

static const struct go_symbol *symbol_of(const struct go_program_file *file, uint64_t address)
{
    size_t low = 0, high = file->symbol_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (file->symbols[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low && address - file->symbols[low - 1].address < file->symbols[low - 1].size
               ? &file->symbols[low - 1]
               : NULL;
}

/* Goroutines of the runtime begin in its functions; so does the main one (runtime.isSystemGoroutine). */
static bool is_system(const char *name)
{
    return begins_with(name, "runtime.") && strcmp(name, "runtime.main") != 0 &&
           strcmp(name, "runtime.handleAsyncEvent") != 0 && strcmp(name, "runtime.corostart") != 0;
}

/* The name of a function without what marks it as a method value whose method is not known, to be freed;
 * NULL: no memory. */
static char *plain_name(const char *name)
{
    static const char mark[] = "-fm";
    size_t length = strlen(name);

    if (length > strlen(mark) && !strcmp(name + length - strlen(mark), mark))
        length -= strlen(mark);
    return strndup(name, length);
}

static int find_function(struct go_program_file *file, struct trace_writer *writer, int64_t image_id,
                         uint64_t address, struct go_source_function *found, struct error *err)
{
    AUTO_FREE char *name = NULL;
    struct trace_function_description description = {0};
    struct go_written written;
    const struct go_symbol *symbol;
    unsigned line = 0;
    int r;

    found->name = "?";
    if (go_written_function(&file->all_functions, address, &written))
        return error_no_memory(err), -ENOMEM;
    symbol = symbol_of(file, written.address);
    if (!symbol || !written.name)
        return 0;
    name = plain_name(written.name);
    if (!name)
        return error_no_memory(err), -ENOMEM;
    found->system = is_system(name);
    description.name = name;
    description.address = symbol->address;
    description.size = symbol->size;
    if (gopclntab_source(file->image, symbol->address, &description.file, &line))
        description.line = (int)line;
    r = enter(file, writer, image_id, &description, &found->function_id, err);
    if (!r)
        found->name = go_program_name(file, found->function_id);
    return r;
}

int go_program_function(struct go_program_file *file, struct trace_writer *writer, int64_t image_id,
                        uint64_t address, struct go_source_function *ret_function, struct error *err)
{
    struct known_function *known;
    int r;

    HASH_FIND(hh, file->functions, &address, sizeof(address), known);
    if (!known) {
        known = calloc(1, sizeof(*known));
        if (!known)
            return error_no_memory(err), -ENOMEM;
        known->address = address;
        r = find_function(file, writer, image_id, address, &known->found, err);
        if (r) {
            free(known);
            return r;
        }
        HASH_ADD(hh, file->functions, address, sizeof(known->address), known);
    }
    *ret_function = known->found;
    return 0;
}
