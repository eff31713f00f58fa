/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "_cgo_export.h"

void call(int times);

void call(int times)
{
    for (int i = 0; i < times; i++)
        called(i);
}
