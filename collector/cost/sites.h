/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Functions of our own to be probed: one for each form of first instruction that has a price of its own, in
 * several copies, so that a probed one can be compared with an unprobed one at the same moment.
 */
#ifndef TRACECTL_COLLECTOR_COST_SITES_H
#define TRACECTL_COLLECTOR_COST_SITES_H

enum self_test_form {
    FORM_PUSH,
    FORM_NOP,
    FORM_JUMP,   /* jmp rel8 */
    FORM_BRANCH, /* jcc rel8 */
    FORM_CALL,   /* call rel32 */
    FORM_NOP5,   /* the five-byte nop that newer kernels (6.18) replace by a call */
    FORM_MOV,
    FORM_SUB, /* of the stack pointer */
    FORM_RET,
    SELF_TEST_FORMS,
};

enum self_test_copy {
    COPY_TRIAL, /* for trials that need some function */
    COPY_PLAIN, /* never probed */
    COPY_EMPTY,
    COPY_EMPTY_RETURN,
    COPY_RECORDED,
    COPY_RECORDED_RETURN,
    COPY_RECORDED_INFERRED, /* with its return address */
    SELF_TEST_COPIES,
};

typedef void (*self_test_function)(void);

/* The function changes no register that a caller relies on. */
self_test_function self_test_site(enum self_test_form form, enum self_test_copy copy);

/* Where in our own executable the function lies: an offset in /proc/self/exe. -ENOENT. */
int self_test_site_offset(self_test_function function, unsigned long *ret_offset);

#endif
