/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Functions to be probed, one for each form of first instruction that has a price of its own. */
#ifndef TRACECTL_COLLECTOR_ARCH_SELF_TEST_FORMS_H
#define TRACECTL_COLLECTOR_ARCH_SELF_TEST_FORMS_H

enum self_test_form {
    FORM_PUSH,
    FORM_NOP,
    FORM_JUMP,
    FORM_BRANCH,
    FORM_CALL,
    FORM_NOP5, /* the five-byte nop that newer kernels (6.18) replace by a call */
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

/* Each copy has so many bytes of its own: none crosses a page, which a five-byte nop must not do. */
#define SELF_TEST_COPY_BYTES 16

/* The first of SELF_TEST_COPIES copies of the function, which lie behind each other. */
const char *self_test_form_code(enum self_test_form form);

#endif
