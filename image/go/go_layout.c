/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "image/go/go_layout.h"

#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "image/elf/pointers.h"
#include "image/go/go_code.h"
#include "image/go/go_offsets.h"

enum {
    FIRST_MINOR = 17, /* arguments in registers, g in one */
    PARENT_GOID_SINCE = 21,
    WAIT_REASON_BYTES_MAX = 256,
};

static const char *const offset_names[GO_OFFSETS] = {
    [GO_G_STACKGUARD0] = "g.stackguard0",
    [GO_G_M] = "g.m",
    [GO_G_ATOMICSTATUS] = "g.atomicstatus",
    [GO_G_GOID] = "g.goid",
    [GO_G_WAITREASON] = "g.waitreason",
    [GO_G_PREEMPT] = "g.preempt",
    [GO_G_PARENT_GOID] = "g.parentGoid",
    [GO_M_G0] = "m.g0",
    [GO_M_CURG] = "m.curg",
    [GO_M_LOCKS] = "m.locks",
    [GO_M_MALLOCING] = "m.mallocing",
};

/* Functions by the names that they have had, the newest first. `required`: every program has it, and nothing
 * can be traced without it. */
static const struct {
    const char *names[3];
    bool required;
} entry_names[GO_ENTRIES] = {
    [GO_NEWPROC] = {{"runtime.newproc"}, false},
    [GO_NEWPROC_CLOSURE] = {{"runtime.newproc.func1"}, false},
    [GO_NEWPROC1] = {{"runtime.newproc1"}, true},
    [GO_EXECUTE] = {{"runtime.execute"}, true},
    [GO_GOEXIT0] = {{"runtime.goexit0"}, true},
    [GO_GOEXIT1] = {{"runtime.goexit1"}, false},
    [GO_GOPARK] = {{"runtime.gopark"}, true},
    [GO_PARK_M] = {{"runtime.park_m"}, true},
    [GO_READY] = {{"runtime.ready"}, true},
    [GO_NETPOLLREADY] = {{"runtime.netpollready"}, false},
    [GO_GOSCHED_IMPL] = {{"runtime.goschedImpl"}, false},
    [GO_GOSCHED_M] = {{"runtime.gosched_m"}, false},
    [GO_GOYIELD_M] = {{"runtime.goyield_m"}, false},
    [GO_MAKECHAN] = {{"runtime.makechan"}, false},
    [GO_MAKECHAN64] = {{"runtime.makechan64"}, false},
    [GO_CHANSEND] = {{"runtime.chansend"}, false},
    [GO_CHANSEND1] = {{"runtime.chansend1"}, false},
    [GO_CHANRECV] = {{"runtime.chanrecv"}, false},
    [GO_CHANRECV1] = {{"runtime.chanrecv1"}, false},
    [GO_CHANRECV2] = {{"runtime.chanrecv2"}, false},
    [GO_SELECTNBSEND] = {{"runtime.selectnbsend"}, false},
    [GO_SELECTNBRECV] = {{"runtime.selectnbrecv"}, false},
    [GO_SELECTGO] = {{"runtime.selectgo"}, false},
    [GO_SELECTSETPC] = {{"runtime.selectsetpc"}, false},
    [GO_BLOCK] = {{"runtime.block"}, false},
    [GO_CLOSECHAN] = {{"runtime.closechan"}, false},
    [GO_MUTEX_LOCK] = {{"sync.(*Mutex).Lock"}, false},
    [GO_MUTEX_LOCK_SLOW] = {{"internal/sync.(*Mutex).lockSlow", "sync.(*Mutex).lockSlow"}, false},
    [GO_MUTEX_TRYLOCK] = {{"sync.(*Mutex).TryLock"}, false},
    [GO_MUTEX_UNLOCK] = {{"sync.(*Mutex).Unlock"}, false},
    [GO_MUTEX_UNLOCK_SLOW] = {{"internal/sync.(*Mutex).unlockSlow", "sync.(*Mutex).unlockSlow"}, false},
    [GO_RWMUTEX_LOCK] = {{"sync.(*RWMutex).Lock"}, false},
    [GO_RWMUTEX_TRYLOCK] = {{"sync.(*RWMutex).TryLock"}, false},
    [GO_RWMUTEX_UNLOCK] = {{"sync.(*RWMutex).Unlock"}, false},
    [GO_RWMUTEX_RLOCK] = {{"sync.(*RWMutex).RLock"}, false},
    [GO_RWMUTEX_TRYRLOCK] = {{"sync.(*RWMutex).TryRLock"}, false},
    [GO_RWMUTEX_RUNLOCK] = {{"sync.(*RWMutex).RUnlock"}, false},
    [GO_RWMUTEX_RUNLOCK_SLOW] = {{"sync.(*RWMutex).rUnlockSlow"}, false},
    [GO_RWMUTEX_RLOCK_SLOW] = {{"sync.runtime_SemacquireRWMutexR", "sync.runtime_SemacquireMutex"}, false},
    [GO_WAITGROUP_ADD] = {{"sync.(*WaitGroup).Add"}, false},
    [GO_WAITGROUP_DONE] = {{"sync.(*WaitGroup).Done"}, false},
    [GO_WAITGROUP_GO] = {{"sync.(*WaitGroup).Go"}, false},
    [GO_WAITGROUP_WAIT] = {{"sync.(*WaitGroup).Wait"}, false},
    [GO_COND_WAIT] = {{"sync.(*Cond).Wait"}, false},
    [GO_COND_SIGNAL] = {{"sync.(*Cond).Signal"}, false},
    [GO_COND_BROADCAST] = {{"sync.(*Cond).Broadcast"}, false},
    [GO_ONCE_DO] = {{"sync.(*Once).Do"}, false},
    [GO_ONCE_DO_SLOW] = {{"sync.(*Once).doSlow"}, false},
    [GO_NOTIFY_LIST_WAIT] = {{"sync.runtime_notifyListWait"}, false},
    [GO_NOTIFY_LIST_NOTIFY_ONE] = {{"sync.runtime_notifyListNotifyOne"}, false},
    [GO_NOTIFY_LIST_NOTIFY_ALL] = {{"sync.runtime_notifyListNotifyAll"}, false},
    [GO_SEMACQUIRE1] = {{"runtime.semacquire1"}, false},
    [GO_SEMRELEASE1] = {{"runtime.semrelease1"}, false},
    [GO_TIME_SLEEP] = {{"time.Sleep"}, false},
    [GO_TIMER_ADD] = {{"runtime.addtimer"}, false},
    [GO_TIMER_MODIFY] = {{"runtime.(*timer).modify", "runtime.modtimer"}, false},
    [GO_TIMER_STOP] = {{"runtime.(*timer).stop", "runtime.deltimer"}, false},
    [GO_TIMER_RUN] = {{"runtime.(*timer).unlockAndRun"}, false},
    [GO_TIMER_RUN_ONE] = {{"runtime.runOneTimer"}, false},
    [GO_SIGNAL_NOTIFY] = {{"os/signal.Notify"}, false},
    [GO_GOROUTINE_READY] = {{"runtime.goroutineReady"}, false},
    [GO_POLL_WAIT] = {{"internal/poll.runtime_pollWait"}, false},
    [GO_ENTERSYSCALL] = {{"runtime.entersyscall"}, false},
    [GO_EXITSYSCALL] = {{"runtime.exitsyscall"}, false},
    [GO_GOPANIC] = {{"runtime.gopanic"}, false},
    [GO_FATALPANIC] = {{"runtime.fatalpanic"}, false},
    [GO_FATAL] = {{"runtime.fatal"}, false},
    [GO_THROW] = {{"runtime.throw"}, false},
    [GO_DOPANIC_M] = {{"runtime.dopanic_m"}, false},
    [GO_OS_EXIT] = {{"os.Exit"}, false},
    [GO_EXIT] = {{"runtime.exit"}, false},
    [GO_TEST_RUNNER] = {{"testing.tRunner"}, false},
    [GO_MAIN] = {{"runtime.main"}, false},
    [GO_MAIN_MAIN] = {{"main.main"}, false},
};

const char *go_offset_name(enum go_offset offset)
{
    return offset_names[offset];
}

const char *go_entry_name(enum go_entry entry)
{
    return entry_names[entry].names[0];
}

/* ---------------------------------------------------------------------------------------------- functions */

/* Whether the code at `symbol` calls or jumps to `target`: what wrappers between Go's two calling conventions
 * do with the function that they are called like. */
static bool leads_to(struct elf_image *image, const struct go_symbol *symbol, uint64_t target)
{
    CLEANUP(go_code_release) struct go_code code = {0};

    if (go_code_read(image, symbol->address, symbol->size, &code) < 0)
        return false;
    for (size_t i = 0; i < code.count; i++)
        if (code.items[i].target == target)
            return true;
    return false;
}

struct go_entry_place go_place_of(struct elf_image *image, const struct go_symbol *symbols, size_t count,
                                  const char *name)
{
    const struct go_symbol *found = NULL;
    unsigned variants = 0;

    for (size_t i = 0; i < count; i++) {
        const struct go_symbol *symbol = &symbols[i];

        if (strcmp(symbol->name, name) != 0)
            continue;
        variants++;
        if (!found || leads_to(image, found, symbol->address))
            found = symbol;
    }
    return found ? (struct go_entry_place){found->name, found->address, found->size, variants}
                 : (struct go_entry_place){0};
}

static void find_entries(struct elf_image *image, const struct go_symbol *symbols, size_t count,
                         struct go_entry_place *entries)
{
    for (size_t i = 0; i < GO_ENTRIES; i++) {
        entries[i] = (struct go_entry_place){0};
        for (size_t k = 0; k < ARRAY_SIZE(entry_names[i].names) && entry_names[i].names[k]; k++)
            if (!entries[i].name)
                entries[i] = go_place_of(image, symbols, count, entry_names[i].names[k]);
    }
}

static int read_symbols(struct elf_image *image, struct go_symbol **ret_symbols, size_t *ret_count,
                        struct error *err)
{
    int r = gopclntab_symbols(image, ret_symbols, ret_count);

    if (r == -ENOENT)
        return error_say(err, -ENOENT, "%s: no table of Go functions (name an executable built by Go)",
                         elf_image_name(image));
    return r < 0 ? error_no_memory(err) : 0;
}

int go_entries_read(struct elf_image *image, struct go_entry_place *ret_entries, struct error *err)
{
    AUTO_FREE struct go_symbol *symbols = NULL;
    size_t count = 0;
    int r = read_symbols(image, &symbols, &count, err);

    if (r < 0)
        return r;
    find_entries(image, symbols, count, ret_entries);
    return 0;
}

static int check_entries(struct elf_image *image, const struct go_layout *layout, struct error *err)
{
    for (size_t i = 0; i < GO_ENTRIES; i++)
        if (entry_names[i].required && !layout->entries[i].name)
            return error_say(err, -ENOTSUP, "%s: function %s of %s is missing", elf_image_name(image),
                             entry_names[i].names[0], layout->version.text);
    return 0;
}

/* ---------------------------------------------------------------------------------------------- offsets */

static void forget(int32_t *offsets)
{
    for (size_t i = 0; i < GO_OFFSETS; i++)
        offsets[i] = GO_NO_OFFSET;
}

/* Fills in what is not known yet; what is known must be the same. */
static int merge(struct elf_image *image, struct go_layout *layout, const int32_t *others, const char *source,
                 struct error *err)
{
    for (size_t i = 0; i < GO_OFFSETS; i++) {
        if (layout->offsets[i] == GO_NO_OFFSET)
            layout->offsets[i] = others[i];
        else if (layout->offsets[i] != others[i])
            return error_say(err, -ENOTSUP, "%s: the offset of %s is %d by the code of %s, but %d by %s",
                             elf_image_name(image), offset_names[i], layout->offsets[i], layout->version.text,
                             others[i], source);
    }
    return 0;
}

static int check_offsets(struct elf_image *image, const struct go_layout *layout, struct error *err)
{
    const int32_t *offsets = layout->offsets;

    for (size_t i = 0; i < GO_OFFSETS; i++)
        if (offsets[i] == GO_NO_OFFSET &&
            (i != GO_G_PARENT_GOID || layout->version.minor >= PARENT_GOID_SINCE))
            return error_say(err, -ENOTSUP, "%s: the offset of %s is not found in the code of %s",
                             elf_image_name(image), offset_names[i], layout->version.text);
    return 0;
}

static int find_offsets(struct elf_image *image, const struct go_symbol *symbols, size_t count,
                        struct go_layout *layout, struct error *err)
{
    int32_t others[GO_OFFSETS];
    int r;

    forget(layout->offsets);
    if (go_offsets_from_code(image, symbols, count, layout->offsets) < 0)
        return error_no_memory(err);
    for (size_t i = 0; i < GO_OFFSETS; i++)
        layout->from_code[i] = layout->offsets[i] != GO_NO_OFFSET;
    forget(others);
    layout->from_dwarf = go_offsets_from_dwarf(image, others);
    if (layout->from_dwarf) {
        r = merge(image, layout, others, "its debug information", err);
        if (r < 0)
            return r;
    }
    forget(others);
    layout->from_table = go_offsets_from_table(&layout->version, others);
    if (layout->from_table) {
        r = merge(image, layout, others, "the table of versions", err);
        if (r < 0)
            return r;
    }
    return check_offsets(image, layout, err);
}

/* ---------------------------------------------------------------------------------------------- wait reasons
 */

/* waitReason.String compares AL with the number of strings, and loads the table's address with the last `lea`
 * before it reads the string at table + 16 * number. */
static uint64_t find_table(const struct go_code *code, size_t *ret_count)
{
    uint64_t table = 0;
    size_t count = 0;

    for (size_t i = 0; i < code->count; i++) {
        const struct instruction *instruction = &code->items[i];
        struct memory_operand memory;
        enum machine_register reg;
        int64_t number;

        if (!count && instruction_compares_register(instruction, 1, &reg, &number))
            count = (uint8_t)number;
        instruction_makes_fixed_address(instruction, &reg, &table);
        if (count && table && instruction_loads(instruction, true, &reg, &memory) &&
            memory.index != REGISTER_NONE) {
            *ret_count = count;
            return table;
        }
    }
    return 0;
}

static char *read_string(struct elf_image *image, uint64_t place)
{
    uint64_t data, length;
    size_t available;
    const uint8_t *bytes;

    if (!image_pointer_at(image, place, &data) || !image_pointer_at(image, place + 8, &length))
        return NULL;
    bytes = length ? elf_image_bytes(image, data, &available) : (const uint8_t *)"";
    if (!bytes || length > WAIT_REASON_BYTES_MAX || (length && length > available))
        return NULL;
    return strndup((const char *)bytes, length);
}

static int find_wait_reasons(struct elf_image *image, const struct go_symbol *symbols, size_t count,
                             struct go_layout *layout, struct error *err)
{
    struct go_entry_place function = go_place_of(image, symbols, count, "runtime.waitReason.String");
    CLEANUP(go_code_release) struct go_code code = {0};
    size_t reasons = 0;
    uint64_t table;

    if (function.name && go_code_read(image, function.address, function.size, &code) < 0)
        return error_no_memory(err);
    table = find_table(&code, &reasons);
    if (!table)
        return error_say(err, -ENOTSUP, "%s: the names of wait reasons are not found in %s",
                         elf_image_name(image), layout->version.text);
    layout->wait_reasons = calloc(reasons, sizeof(*layout->wait_reasons));
    if (!layout->wait_reasons)
        return error_no_memory(err);
    for (size_t i = 0; i < reasons; i++) {
        layout->wait_reasons[i] = read_string(image, table + 16 * i);
        if (!layout->wait_reasons[i])
            return error_say(err, -ENOTSUP, "%s: the name of wait reason %zu is not found in %s",
                             elf_image_name(image), i, layout->version.text);
        layout->wait_reason_count++;
    }
    return 0;
}

/* ---------------------------------------------------------------------------------------------- the layout
 */

void go_layout_release(struct go_layout *layout)
{
    for (size_t i = 0; i < layout->wait_reason_count; i++)
        free(layout->wait_reasons[i]);
    free(layout->wait_reasons);
    *layout = (struct go_layout){0};
}

int go_layout_read(struct elf_image *image, struct go_layout *ret_layout, struct error *err)
{
    AUTO_FREE struct go_symbol *symbols = NULL;
    size_t count = 0;
    int r;

    *ret_layout = (struct go_layout){0};
    r = go_version_read(image, &ret_layout->version, err);
    if (r < 0)
        return r;
    if (ret_layout->version.major != 1 || ret_layout->version.minor < FIRST_MINOR)
        return error_say(err, -ENOTSUP, "%s: built by %s, older than Go 1.%u (build it with a newer Go)",
                         elf_image_name(image), ret_layout->version.text, FIRST_MINOR);
    r = read_symbols(image, &symbols, &count, err);
    if (r < 0)
        return r;
    find_entries(image, symbols, count, ret_layout->entries);
    r = check_entries(image, ret_layout, err);
    if (r >= 0)
        r = find_offsets(image, symbols, count, ret_layout, err);
    if (r >= 0)
        r = find_wait_reasons(image, symbols, count, ret_layout, err);
    return r;
}
