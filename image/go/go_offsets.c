/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Offsets of fields from what the runtime's functions do, in the order of their source:
 *
 *   gopark    mp := getg().m; mp.locks++; gp := mp.curg; gp.atomicstatus is compared with _Grunning (2);
 *             gp.waitreason = reason (CL); mp.locks--; if getg().preempt { getg().stackguard0 = stackPreempt
 * } newproc1  newg.parentGoid = callergp.goid (since go 1.21); newg.goid = pp.goidcache; pp.goidcache++
 *   newstack  mp.locks == 0 && mp.mallocing == 0 && ... (canPreemptM, inlined)
 *   mcall     getg().m.g0 (assembly)
 *
 * The compiler may put other instructions between these, use any registers and store through a write barrier;
 * what is looked for is how a register's value came about, within a few instructions before its use.
 */
#include "image/go/go_offsets.h"

#include <errno.h>
#include <string.h>

#include "image/arch/effects.h"
#include "image/go/go_code.h"

enum {
    REACH = 24, /* instructions between a value's load and its use */
    STATUS_RUNNING = 2,
    STACK_PREEMPT = -1314,
};

/* The field that `reg` was loaded from before instruction `before`: the load's index, code->count: it was not
 * loaded from a field. */
static size_t loaded_from(const struct go_code *code, size_t before, enum machine_register reg, bool wide,
                          struct memory_operand *ret_memory)
{
    enum machine_register loaded;

    for (size_t i = before; i-- > 0 && before - i <= REACH;) {
        if (!instruction_replaces(&code->items[i], reg))
            continue;
        if (instruction_loads(&code->items[i], wide, &loaded, ret_memory) && go_is_field(ret_memory))
            return i;
        break;
    }
    return code->count;
}

static bool is_increment(const struct instruction *instruction, bool wide, struct memory_operand *ret_memory)
{
    return instruction_increments(instruction, wide, ret_memory) && go_is_field(ret_memory);
}

static bool is_compared_with_zero(const struct instruction *instruction, struct memory_operand *ret_memory)
{
    int64_t number;

    return instruction_compares_memory(instruction, 4, ret_memory, &number) && number == 0 &&
           go_is_field(ret_memory);
}

/* ---------------------------------------------------------------------------------------------- gopark */

/* mov M, [g + m]; ... inc [M + locks] */
static void find_locks(const struct go_code *code, int32_t *offsets)
{
    struct memory_operand counter, field;

    for (size_t i = 0; i < code->count; i++) {
        if (!is_increment(&code->items[i], false, &counter) ||
            loaded_from(code, i, counter.base, true, &field) == code->count || field.base != REGISTER_GO_G)
            continue;
        offsets[GO_G_M] = field.displacement;
        offsets[GO_M_LOCKS] = counter.displacement;
        return;
    }
}

/* mov M, [g + m]; ... mov G, [M + curg]; ... mov S, [G + atomicstatus]; ... cmp S, 2. The register G. */
static enum machine_register find_status(const struct go_code *code, int32_t *offsets)
{
    for (size_t i = 0; i < code->count; i++) {
        const struct instruction *instruction = &code->items[i];
        enum machine_register status;
        int64_t number;
        struct memory_operand status_field, g_field, m_field;
        size_t at;

        if (!instruction_compares_register(instruction, 4, &status, &number) || number != STATUS_RUNNING)
            continue;
        at = loaded_from(code, i, status, false, &status_field);
        if (at == code->count)
            continue;
        at = loaded_from(code, at, status_field.base, true, &g_field);
        if (at == code->count || loaded_from(code, at, g_field.base, true, &m_field) == code->count ||
            m_field.base != REGISTER_GO_G || m_field.displacement != offsets[GO_G_M])
            continue;
        offsets[GO_M_CURG] = g_field.displacement;
        offsets[GO_G_ATOMICSTATUS] = status_field.displacement;
        return status_field.base;
    }
    return REGISTER_NONE;
}

/* mov byte [G + waitreason], cl */
static void find_wait_reason(const struct go_code *code, enum machine_register g, int32_t *offsets)
{
    for (size_t i = 0; g != REGISTER_NONE && i < code->count; i++) {
        const struct instruction *instruction = &code->items[i];
        enum machine_register reason;
        struct memory_operand field;

        if (!instruction_stores_byte(instruction, &reason, &field) || reason != REGISTER_GO_ARGUMENT_3 ||
            !go_is_field(&field) || field.base != g)
            continue;
        offsets[GO_G_WAITREASON] = field.displacement;
        return;
    }
}

/* cmp byte [g + preempt], 0; ... mov qword [g + stackguard0], stackPreempt */
static void find_preempt(const struct go_code *code, int32_t *offsets)
{
    struct memory_operand field;
    int64_t number;

    for (size_t i = 0; i < code->count; i++) {
        const struct instruction *instruction = &code->items[i];

        if (instruction_compares_memory(instruction, 1, &field, &number) && number == 0 &&
            field.base == REGISTER_GO_G)
            offsets[GO_G_PREEMPT] = field.displacement;
        if (instruction_stores_number(instruction, &field, &number) && number == STACK_PREEMPT &&
            field.base == REGISTER_GO_G) {
            offsets[GO_G_STACKGUARD0] = field.displacement;
            return;
        }
    }
    offsets[GO_G_PREEMPT] = GO_NO_OFFSET; /* not that of releasem */
}

static void read_gopark(const struct go_code *code, int32_t *offsets)
{
    find_locks(code, offsets);
    find_wait_reason(code, find_status(code, offsets), offsets);
    find_preempt(code, offsets);
}

/* ---------------------------------------------------------------------------------------------- others */

/* mov C, [P + goidcache]; mov [newg + goid], C; inc qword [P + goidcache] */
static void find_goid(const struct go_code *code, int32_t *offsets)
{
    struct memory_operand counter, loaded, field;
    enum machine_register value;

    for (size_t i = 0; i < code->count; i++) {
        if (!is_increment(&code->items[i], true, &counter))
            continue;
        for (size_t k = i; k-- > 0 && i - k <= REACH;) {
            if (!instruction_stores(&code->items[k], true, &value, &field) || !go_is_field(&field) ||
                loaded_from(code, k, value, true, &loaded) == code->count || loaded.base != counter.base ||
                loaded.displacement != counter.displacement)
                continue;
            offsets[GO_G_GOID] = field.displacement;
            return;
        }
    }
}

/* mov C, [callergp + goid]; mov [newg + parentGoid], C */
static void find_parent(const struct go_code *code, int32_t *offsets)
{
    struct memory_operand loaded, field;
    enum machine_register value;

    for (size_t i = 0; i < code->count; i++) {
        if (!instruction_stores(&code->items[i], true, &value, &field) || !go_is_field(&field) ||
            field.base == REGISTER_STACK || field.displacement == offsets[GO_G_GOID] ||
            loaded_from(code, i, value, true, &loaded) == code->count || loaded.base == REGISTER_STACK ||
            loaded.displacement != offsets[GO_G_GOID])
            continue;
        offsets[GO_G_PARENT_GOID] = field.displacement;
        return;
    }
}

static void read_newproc1(const struct go_code *code, int32_t *offsets)
{
    find_goid(code, offsets);
    if (offsets[GO_G_GOID] != GO_NO_OFFSET)
        find_parent(code, offsets);
}

/* cmp dword [M + locks], 0; jcc; cmp dword [M + mallocing], 0 */
static void read_newstack(const struct go_code *code, int32_t *offsets)
{
    struct memory_operand locks = {0}, field;
    size_t since = REACH;

    for (size_t i = 0; i < code->count; i++, since++) {
        if (!is_compared_with_zero(&code->items[i], &field))
            continue;
        if (field.displacement == offsets[GO_M_LOCKS]) {
            locks = field;
            since = 0;
        } else if (since <= 4 && field.base == locks.base) {
            offsets[GO_M_MALLOCING] = field.displacement;
            return;
        }
    }
}

/* mov M, [g + m]; mov G, [M + g0] */
static void read_mcall(const struct go_code *code, int32_t *offsets)
{
    struct memory_operand m_field, field;
    enum machine_register reg;

    for (size_t i = 0; i < code->count; i++) {
        if (!instruction_loads(&code->items[i], true, &reg, &field) || !go_is_field(&field) ||
            field.base == REGISTER_GO_G || loaded_from(code, i, field.base, true, &m_field) == code->count ||
            m_field.base != REGISTER_GO_G || m_field.displacement != offsets[GO_G_M])
            continue;
        offsets[GO_M_G0] = field.displacement;
        return;
    }
}

int go_offsets_from_code(struct elf_image *image, const struct go_symbol *symbols, size_t count,
                         int32_t offsets[GO_OFFSETS])
{
    static const struct {
        const char *name;
        void (*read)(const struct go_code *code, int32_t *offsets);
    } functions[] = {
        {"runtime.gopark", read_gopark}, /* first: the others need g.m and m.locks */
        {"runtime.newproc1", read_newproc1},
        {"runtime.newstack", read_newstack},
        {"runtime.mcall", read_mcall},
    };
    CLEANUP(go_code_release) struct go_code code = {0};

    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        struct go_entry_place place = go_place_of(image, symbols, count, functions[i].name);

        if (!place.name)
            continue;
        if (go_code_read(image, place.address, place.size, &code) < 0)
            return -ENOMEM;
        functions[i].read(&code, offsets);
    }
    return 0;
}
