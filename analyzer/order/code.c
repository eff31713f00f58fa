/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/order/code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "analyzer/order/loop_order.h"
#include "base/error.h"

struct key {
    uint64_t entry;
    uint64_t image;
};

struct known_function {
    struct key key;
    struct order_function function;
    UT_hash_handle hh;
};

struct open_image {
    bool tried;
    struct elf_image *image;
    struct image_function *functions;
    size_t count;
};

struct order_code {
    const struct sample_set *set;
    struct disasm *disasm;
    struct open_image *images; /* of the set, in its order */
    size_t image_count;
    struct known_function *functions;
};

int order_code_new(const struct sample_set *set, struct order_code **ret_code, struct error *err)
{
    AUTO_ORDER_CODE struct order_code *code = calloc(1, sizeof(*code));
    int r;

    if (!code)
        return error_no_memory(err), -ENOMEM;
    code->set = set;
    code->image_count = set->image_count;
    code->images = calloc(set->image_count + 1, sizeof(*code->images));
    if (!code->images)
        return error_no_memory(err), -ENOMEM;
    r = disasm_new(&code->disasm, err);
    if (r == 0)
        *ret_code = take_pointer(code);
    return r;
}

void order_code_free(struct order_code *code)
{
    struct known_function *known, *next;

    if (!code)
        return;
    HASH_ITER (hh, code->functions, known, next) {
        HASH_DEL(code->functions, known);
        loop_order_free(known->function.loops);
        flow_graph_free(known->function.graph);
        free(known);
    }
    for (size_t i = 0; code->images && i < code->image_count; i++) {
        image_functions_free(code->images[i].functions, code->images[i].count);
        elf_image_free(code->images[i].image);
    }
    free(code->images);
    disasm_free(code->disasm);
    free(code);
}

/* Whether what is at the path now is the image that was mapped. */
static bool is_same(const struct elf_image *image, const char *build_id)
{
    const char *found = elf_image_facts(image)->build_id;

    return !*build_id || (found && strcmp(found, build_id) == 0);
}

/* What cannot be opened, or is another file by now, stays without functions. */
static struct open_image *open_image(struct order_code *code, uint32_t number)
{
    const struct sample_image *image = &code->set->images[number];
    struct open_image *opened = &code->images[number];
    const char *path = sample_text(code->set, image->file ? image->file : image->path);

    if (opened->tried)
        return opened;
    opened->tried = true;
    if (elf_image_open(path, &opened->image, NULL) < 0) {
        opened->image = NULL;
        return opened;
    }
    if (!is_same(opened->image, sample_text(code->set, image->build_id)) ||
        image_functions(opened->image, &opened->functions, &opened->count, NULL) < 0) {
        elf_image_free(opened->image);
        *opened = (struct open_image){.tried = true};
    }
    return opened;
}

struct elf_image *order_code_image(struct order_code *code, uint32_t image)
{
    return image < code->image_count ? open_image(code, image)->image : NULL;
}

const struct image_function *order_code_functions(struct order_code *code, uint32_t image, size_t *ret_count)
{
    const struct open_image *opened = image < code->image_count ? open_image(code, image) : NULL;

    *ret_count = opened ? opened->count : 0;
    return opened ? opened->functions : NULL;
}

static const struct image_function *find_function(const struct open_image *opened,
                                                  const struct sample_place *place)
{
    uint64_t address = place->entry != SAMPLE_NO_ADDRESS ? place->entry : place->address;
    const struct image_function *found;

    if (!opened->image || address == SAMPLE_NO_ADDRESS)
        return NULL;
    found = image_functions_owner(opened->functions, opened->count, address);
    return found && (place->entry == SAMPLE_NO_ADDRESS || found->address == place->entry) ? found : NULL;
}

static struct order_function *add_function(struct order_code *code, const struct key *key, uint32_t image,
                                           const struct image_function *function)
{
    struct known_function *known = calloc(1, sizeof(*known));
    const struct open_image *opened = &code->images[image];

    if (!known)
        return NULL;
    known->key = *key;
    known->function = (struct order_function){.image = image, .entry = key->entry, .function = function};
    HASH_ADD(hh, code->functions, key, sizeof(known->key), known);
    if (!known->hh.tbl) {
        free(known);
        return NULL;
    }
    if (function && flow_graph_new(opened->image, opened->functions, opened->count, function, code->disasm,
                                   &known->function.graph) < 0)
        known->function.graph = NULL;
    return &known->function;
}

struct order_function *order_code_function(struct order_code *code, const struct sample_place *place)
{
    const struct image_function *function;
    struct known_function *known;
    struct key key;

    if (place->image >= code->image_count)
        return NULL;
    function = find_function(open_image(code, place->image), place);
    memset(&key, 0, sizeof(key));
    key.entry = function ? function->address : place->entry;
    key.image = place->image;
    HASH_FIND(hh, code->functions, &key, sizeof(key), known);
    return known ? &known->function : add_function(code, &key, place->image, function);
}
