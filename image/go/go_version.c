/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The build information: 14 bytes of magic, the size of a pointer, flags. With flag 2 (since go 1.18) the
 * version follows at byte 32, as a length (varint) and characters; before, byte 16 has a pointer to a string
 * (pointer, length).
 */
#include "image/go/go_version.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "image/elf/pointers.h"

enum { HEADER_SIZE = 32, ALIGNMENT = 16, FLAGS_AT = 15, POINTER_AT = 16, FLAG_INLINE = 2 };

static const char magic[] = "\xff Go buildinf:";

/* The bytes of the build information in the data that are not executable, and their address; NULL: none. */
static const uint8_t *find_information(struct elf_image *image, uint64_t *ret_address, size_t *ret_size)
{
    struct address_range range;
    bool executable;

    for (size_t i = 0; elf_image_segment(image, i, &range, &executable); i++) {
        size_t size = 0;
        const uint8_t *bytes = executable ? NULL : elf_image_bytes(image, range.start, &size);

        for (size_t at = -range.start & (ALIGNMENT - 1); bytes && at + HEADER_SIZE <= size; at += ALIGNMENT) {
            if (memcmp(bytes + at, magic, sizeof(magic) - 1) != 0)
                continue;
            *ret_address = range.start + at;
            *ret_size = size - at;
            return bytes + at;
        }
    }
    return NULL;
}

static size_t copy_text(const uint8_t *bytes, size_t available, uint64_t length, char *text, size_t size)
{
    if (length > available)
        return 0;
    if (length >= size)
        length = size - 1;
    memcpy(text, bytes, length);
    text[length] = '\0';
    return length;
}

static size_t read_text(struct elf_image *image, char *text, size_t size)
{
    uint64_t address, string, data, length;
    size_t available;
    const uint8_t *bytes = find_information(image, &address, &available);

    if (!bytes)
        return 0;
    if (bytes[FLAGS_AT] & FLAG_INLINE) {
        /* Versions are shorter than 128 characters; longer ones have a second byte of length. */
        size_t at = HEADER_SIZE;

        if (available < HEADER_SIZE + 2)
            return 0;
        length = bytes[at++];
        if (length & 0x80)
            length = (length & 0x7f) | (uint64_t)bytes[at++] << 7;
        return copy_text(bytes + at, available - at, length, text, size);
    }
    if (!image_pointer_at(image, address + POINTER_AT, &string) || !image_pointer_at(image, string, &data) ||
        !image_pointer_at(image, string + 8, &length))
        return 0;
    bytes = elf_image_bytes(image, data, &available);
    return bytes ? copy_text(bytes, available, length, text, size) : 0;
}

int go_version_read(struct elf_image *image, struct go_version *ret_version, struct error *err)
{
    struct go_version version = {0};
    const char *number;

    if (!read_text(image, version.text, sizeof(version.text)))
        return error_say(err, -ENOENT, "%s: no Go version (name an executable built by Go)",
                         elf_image_name(image));
    number = strstr(version.text, "go");
    if (!number || sscanf(number, "go%u.%u", &version.major, &version.minor) != 2)
        return error_say(err, -ENOENT, "%s: built by a Go version without a number, '%s'",
                         elf_image_name(image), version.text);
    version.experiment = strstr(version.text, " X:");
    *ret_version = version;
    return 0;
}
