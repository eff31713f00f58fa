/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What runs functions with given registers, flags and stack, and puts inline probes on functions of the test
 * itself: the slots are those of this thread, as in a traced process.
 */
#ifndef TRACECTL_TESTS_COLLECTOR_STUB_MACHINE_H
#define TRACECTL_TESTS_COLLECTOR_STUB_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collector/arch/record.h"
#include "collector/arch/stub.h"
#include "collector/displace/displace.h"

#define MACHINE_STACK (256 << 10) /* room for handlers */
#define MACHINE_FLAGS 0x8d5       /* OF SF ZF AF PF CF */
#define MACHINE_TRAP 0x100        /* TF: SIGTRAP after each instruction */

enum { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, REGISTERS = 16 };

struct machine_state {
    uint64_t registers[REGISTERS]; /* RSP: before the call */
    uint64_t flags;
    uint8_t red_zone[128]; /* below the stack pointer at the function's first instruction */
    uint8_t above[256];    /* and above it, without the return address */
};

/* Calls `function` with `state` on a stack of its own, whose pointer is set in it, and stores what is left
 * behind. Flags outside MACHINE_FLAGS and MACHINE_TRAP are as they are in C. Not from a handler. */
void machine_run(struct machine_state *state, const void *function);

uint64_t machine_random(uint64_t *seed);

/* Any registers, flags and stack. */
void machine_randomise(struct machine_state *state, uint64_t *seed);

/* The stack pointer at the first instruction of what machine_run() calls. */
uint64_t machine_entry_sp(void);

/* Where the last function that machine_run() called has returned to. */
uint64_t machine_return_address(void);

/* The area: a head, the slow path, stubs and chunks, within reach of the code at `near`. Once a test. */
void machine_open_area(const void *near);

/* From now on probes keep times, of record i in machine_times()[i]. */
void machine_keep_times(void);
const uint64_t *machine_times(void);

/* Clears the records and gives this thread room for `count`, AREA_RECORDS at most. */
void machine_give_room(size_t count);

/* This thread has asked for room in this tick and got none: stubs count its calls in machine_losses. */
void machine_lose_calls(void);
void machine_begin_tick(void);

extern uint64_t machine_losses;

#define AREA_RECORDS 4096

const struct agent_record *machine_records(void);

/* How many calls, and exits, found no room, by their number; the function's return address of the last one. */
extern volatile uint64_t machine_slow_calls[64], machine_slow_return;

/* What displace_function() says of the function of `size` bytes at `function`, when the `room` bytes from
 * there on are all the code there is. */
enum displace_refusal machine_displace(const uint8_t *function, size_t size, size_t room,
                                       struct displacement *ret_displacement);

/* Puts a probe on the function, which is writable, and takes it away again. */
struct machine_probe {
    uint8_t *patched;
    uint8_t saved[DISPLACE_JUMP];
    struct stub stub;
    uint8_t *code, *aside; /* the stub's */
};

void machine_probe(struct machine_probe *probe, uint8_t *function, const struct displacement *displacement,
                   uint32_t number);
/* The same for any stub: of `order` the addresses of the stub and of the area, and whether times are kept, are
 * filled in. Without `patches` no jump leads to it. */
void machine_put_stub(struct machine_probe *probe, struct stub_order order, bool patches);
void machine_unprobe(const struct machine_probe *probe);

/* Makes the pages of [first, last) writable and executable. */
void machine_make_writable(void *first, void *last);

#endif
