/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "store/bytes/codec.h"

#include "base/array.h"

static const struct codec *const codecs[] = {
    &codec_prediction,
};

const struct codec *codec_find(unsigned id)
{
    for (size_t i = 0; i < ARRAY_SIZE(codecs); i++)
        if (codecs[i]->id == id)
            return codecs[i];
    return NULL;
}
