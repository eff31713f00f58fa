/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Private to image/: where an indirect jump of a switch leads. */
#ifndef TRACECTL_IMAGE_FLOW_FLOW_SWITCH_H
#define TRACECTL_IMAGE_FLOW_FLOW_SWITCH_H

#include "image/arch/switch_table.h"
#include "image/elf/elf_image.h"

/* The targets of the jump at the end of `run`, in the order of the table: the caller frees *ret_targets.
 * -ENOENT: not resolved; -ENOMEM. */
int flow_switch_targets(struct elf_image *image, const struct flow_run *run, uint64_t **ret_targets,
                        size_t *ret_count);

#endif
