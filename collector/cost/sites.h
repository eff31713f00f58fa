/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Functions of our own to be probed: one for each form of first instruction that has a price of its own, in
 * several copies, so that a probed one can be compared with an unprobed one at the same moment.
 */
#ifndef TRACECTL_COLLECTOR_COST_SITES_H
#define TRACECTL_COLLECTOR_COST_SITES_H

#include "collector/arch/self_test_forms.h"

typedef void (*self_test_function)(void);

/* The function changes no register that a caller relies on. */
self_test_function self_test_site(enum self_test_form form, enum self_test_copy copy);

/* Where in our own executable the function lies: an offset in /proc/self/exe. -ENOENT. */
int self_test_site_offset(self_test_function function, unsigned long *ret_offset);

#endif
