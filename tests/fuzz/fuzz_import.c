/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What `tracectl import --format u16` reads: the first two bytes say how long the .info text behind them is,
 * the rest is a .u16 file. The checks must refuse or accept whatever comes, and accept in pieces what they
 * accept as a whole.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/error.h"
#include "store/import/import_u16.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int check(const uint8_t *bytes, size_t size, size_t piece, const struct u16_names *names)
{
    struct u16_check state = {0};
    struct error err = {0};
    int r = 0;

    for (size_t at = 0; r == 0 && at < size; at += piece)
        r = u16_check_bytes(&state, bytes + at, size - at < piece ? size - at : piece, names, "fuzz.u16",
                            &err);
    if (r == 0)
        r = u16_check_end(&state, "fuzz.u16", &err);
    if (r < 0 && !err.message[0])
        abort(); /* a failure says why */
    return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct u16_names *names = NULL;
    struct error err = {0};
    size_t info;
    int whole;

    if (size < 2)
        return 0;
    info = (size_t)(data[0] | data[1] << 8) % (size - 1);
    data += 2;
    size -= 2;
    if (u16_names_parse((const char *)data, info, "fuzz.info", &names, &err) < 0) {
        if (!err.message[0])
            abort();
        names = NULL;
    }
    whole = check(data + info, size - info, size + 1, names);
    if (check(data + info, size - info, 1, names) != whole ||
        check(data + info, size - info, 3, names) != whole)
        abort();
    if (whole == 0 && names)
        for (size_t at = info; at + 1 < size; at += 2) {
            unsigned id = data[at] | (unsigned)data[at + 1] << 8;

            if (id && !names->names[id])
                abort(); /* an id without a name went through */
        }
    u16_names_free(names);
    return 0;
}
