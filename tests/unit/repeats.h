/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How often tests repeat themselves with other numbers. What is computed wrongly is found by the plain build,
 * which does all of it; for what only sanitizers see a part of the same kinds is enough, since it takes them
 * five times as long.
 */
#ifndef TRACECTL_TESTS_UNIT_REPEATS_H
#define TRACECTL_TESTS_UNIT_REPEATS_H

#ifdef __SANITIZE_ADDRESS__
#define REPEATS(all) ((all) / 5)
#else
#define REPEATS(all) (all)
#endif

#endif
