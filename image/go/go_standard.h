/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Private to image/go_*.c: which functions are the application's. */
#ifndef TRACECTL_IMAGE_GO_GO_STANDARD_H
#define TRACECTL_IMAGE_GO_GO_STANDARD_H

#include <stdbool.h>

#include "image/functions/gopclntab.h"

/* The folder that the standard library's files are in, as the image names them, with the slash at its end; ""
 * where -trimpath took it away. `runtime_function`: the address of a function of the runtime. From malloc;
 * NULL: no memory. */
char *go_standard_folder(struct elf_image *image, uint64_t runtime_function);

/* Whether the function of `frame` is of the runtime or the standard library. */
bool go_is_standard(const char *folder, const struct go_frame *frame);

#endif
