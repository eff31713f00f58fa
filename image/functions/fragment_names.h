/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Owners of fragments by their names: NAME.cold belongs to NAME. */
#ifndef TRACECTL_IMAGE_FUNCTIONS_FRAGMENT_NAMES_H
#define TRACECTL_IMAGE_FUNCTIONS_FRAGMENT_NAMES_H

#include <stddef.h>

#include "image/functions/functions.h"

/* Sets `part_of` of fragments that have none, where nothing else tells the owner: a part of a switch that only
 * a jump table reaches. A fragment with several names was folded from several functions' ones, and belongs to
 * none. 0 or -ENOMEM. */
int fragment_names_find_owners(struct image_function *functions, size_t count);

#endif
