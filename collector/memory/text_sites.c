/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/memory/text_sites.h"

#include <stdlib.h>
#include <unistd.h>

#include "collector/memory/page_map.h"
#include "collector/process/target_file.h"
#include "collector/process/target_memory.h"
#include "image/arch/code_bytes.h"
#include "image/arch/disasm.h"

#define PAGE PAGE_MAP_PAGE

struct reading {
    pid_t pid;
    uint8_t bytes[PAGE];
    uint64_t page; /* whose bytes these are; 0: none */
    bool readable;
};

/* The byte at an address; false: it cannot be read. Places lie close together: a page is read at once. */
static bool byte_at(struct reading *reading, uint64_t address, uint8_t *ret_byte)
{
    uint64_t page = address / PAGE * PAGE;

    if (reading->page != page) {
        reading->page = page;
        reading->readable = target_memory_read(reading->pid, page, reading->bytes, PAGE) == PAGE;
    }
    *ret_byte = reading->bytes[address - page];
    return reading->readable;
}

/* Whether the file has a no-op there that the kernel may replace by a call (6.18). */
static bool is_call_of_kernel(const struct code_mapping *mapping, uint64_t offset)
{
    AUTO_TARGET_FILE struct target_file file = TARGET_FILE_NONE;
    struct instruction instruction;
    uint8_t code[16];
    ssize_t size =
        target_file_of_mapping(mapping, &file) ? 0 : pread(file.fd, code, sizeof(code), (off_t)offset);

    return size > 0 && disasm_skim(code, (size_t)size, offset, &instruction) == 0 &&
           instruction.kind == INSTRUCTION_NOP && instruction.length == CODE_CALL_BYTES;
}

static enum text_site site_in(struct reading *reading, const struct code_mapping *mapping, uint64_t offset)
{
    uint8_t byte;

    if (!byte_at(reading, mapping->start + (offset - mapping->offset), &byte))
        return TEXT_SITE_UNKNOWN;
    return code_is_trap(&byte) || (code_is_call(&byte) && is_call_of_kernel(mapping, offset))
               ? TEXT_SITE_PROBED
               : TEXT_SITE_OTHER;
}

/* A page that is the file's has no probe, and is not read: the process may not have had it in memory. */
static void read_mapping(struct reading *reading, const struct code_mapping *mapping,
                         const unsigned long *offsets, size_t count, enum text_site *sites)
{
    uint64_t end = mapping->offset + (mapping->end - mapping->start);
    AUTO_FREE uint64_t *pages = page_map_read(reading->pid, mapping->start, mapping->end);

    for (size_t i = 0; i < count && offsets[i] < end; i++) {
        enum text_site site;

        if (offsets[i] < mapping->offset)
            continue;
        site = pages && !page_map_is_copy(pages[(offsets[i] - mapping->offset) / PAGE])
                   ? TEXT_SITE_OTHER
                   : site_in(reading, mapping, offsets[i]);
        sites[i] = site > sites[i] ? site : sites[i];
    }
}

int text_sites_open(pid_t pid, struct text_sites *ret_sites)
{
    struct text_sites sites = {.pid = pid};
    int r = process_code_mappings(pid, &sites.mappings, &sites.count, NULL);

    if (!r)
        *ret_sites = sites;
    return r;
}

void text_sites_close(struct text_sites *sites)
{
    if (sites->pid)
        code_mappings_free(sites->mappings, sites->count);
    *sites = (struct text_sites){0};
}

bool text_sites_have(const struct text_sites *sites, dev_t device, ino_t inode)
{
    for (size_t i = 0; i < sites->count; i++)
        if (sites->mappings[i].device == device && sites->mappings[i].inode == inode)
            return true;
    return false;
}

void text_sites_read(const struct text_sites *sites, dev_t device, ino_t inode, const unsigned long *offsets,
                     size_t count, enum text_site *ret_found)
{
    struct reading reading = {.pid = sites->pid};

    for (size_t i = 0; i < count; i++)
        ret_found[i] = TEXT_SITE_UNMAPPED;
    for (size_t i = 0; i < sites->count; i++)
        if (sites->mappings[i].device == device && sites->mappings[i].inode == inode)
            read_mapping(&reading, &sites->mappings[i], offsets, count, ret_found);
}
