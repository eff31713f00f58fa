/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a tracer of goroutines must know of a Go program (go 1.17 and newer), from the file alone, stripped or
 * not: where fields of the runtime's struct g (a goroutine) and struct m (a thread) are, what the numbers of
 * reasons to wait mean, and where the runtime's functions begin.
 *
 * Fields are found by what the runtime's own code does with them. Where the image has DWARF, and where the
 * version is one whose structures were looked up, these must say the same: otherwise the layout is refused,
 * since a wrong offset would make a tracer read and write what it should not.
 */
#ifndef TRACECTL_IMAGE_GO_GO_LAYOUT_H
#define TRACECTL_IMAGE_GO_GO_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "image/elf/elf_image.h"
#include "image/go/go_version.h"

enum go_offset {
    GO_G_STACKGUARD0,
    GO_G_M,
    GO_G_ATOMICSTATUS,
    GO_G_GOID,
    GO_G_WAITREASON,
    GO_G_PREEMPT,
    GO_G_PARENT_GOID, /* since go 1.21 */
    GO_M_G0,
    GO_M_CURG,
    GO_M_LOCKS,
    GO_M_MALLOCING,
    GO_OFFSETS,
};

enum { GO_NO_OFFSET = -1 };

/* Functions that events of goroutines are taken at. The linker leaves out what a program does not use. */
enum go_entry {
    GO_NEWPROC,
    GO_NEWPROC_CLOSURE, /* the part of newproc that runs on the system stack */
    GO_NEWPROC1,
    GO_EXECUTE,
    GO_GOEXIT0,
    GO_GOEXIT1,
    GO_GOPARK,
    GO_PARK_M,
    GO_READY,
    GO_NETPOLLREADY,
    GO_GOSCHED_IMPL,
    GO_GOSCHED_M,
    GO_GOYIELD_M,
    GO_MAKECHAN,
    GO_MAKECHAN64,
    GO_CHANSEND,
    GO_CHANSEND1,
    GO_CHANRECV,
    GO_CHANRECV1,
    GO_CHANRECV2,
    GO_SELECTNBSEND,
    GO_SELECTNBRECV,
    GO_SELECTGO,
    GO_SELECTSETPC, /* of race builds: a call for each case of a select */
    GO_BLOCK,
    GO_CLOSECHAN,
    GO_MUTEX_LOCK,
    GO_MUTEX_LOCK_SLOW,
    GO_MUTEX_TRYLOCK,
    GO_MUTEX_UNLOCK,
    GO_MUTEX_UNLOCK_SLOW,
    GO_RWMUTEX_LOCK,
    GO_RWMUTEX_TRYLOCK,
    GO_RWMUTEX_UNLOCK,
    GO_RWMUTEX_RLOCK,
    GO_RWMUTEX_TRYRLOCK,
    GO_RWMUTEX_RUNLOCK,
    GO_RWMUTEX_RUNLOCK_SLOW,
    GO_RWMUTEX_RLOCK_SLOW, /* the semaphore that RLock waits for: no function of its own */
    GO_WAITGROUP_ADD,
    GO_WAITGROUP_DONE,
    GO_WAITGROUP_GO,
    GO_WAITGROUP_WAIT,
    GO_COND_WAIT,
    GO_COND_SIGNAL,
    GO_COND_BROADCAST,
    GO_ONCE_DO,
    GO_ONCE_DO_SLOW,
    GO_NOTIFY_LIST_WAIT,
    GO_NOTIFY_LIST_NOTIFY_ONE,
    GO_NOTIFY_LIST_NOTIFY_ALL,
    GO_SEMACQUIRE1,
    GO_SEMRELEASE1,
    GO_TIME_SLEEP,
    GO_TIMER_ADD, /* until go 1.22; a new one begins with TIMER_MODIFY since */
    GO_TIMER_MODIFY,
    GO_TIMER_STOP,
    GO_TIMER_RUN,     /* since go 1.23 */
    GO_TIMER_RUN_ONE, /* until go 1.22 */
    GO_SIGNAL_NOTIFY,
    GO_GOROUTINE_READY,
    GO_POLL_WAIT,
    GO_ENTERSYSCALL,
    GO_EXITSYSCALL,
    GO_GOPANIC,
    GO_FATALPANIC,
    GO_FATAL,
    GO_THROW,
    GO_DOPANIC_M,
    GO_OS_EXIT,
    GO_EXIT,
    GO_TEST_RUNNER,
    GO_MAIN,      /* runtime.main */
    GO_MAIN_MAIN, /* main.main */
    GO_ENTRIES,
};

struct go_entry_place {
    const char *name;  /* the variant that was found; lives as long as the image. NULL: not in the program */
    uint64_t address;  /* link-time */
    uint64_t size;     /* bytes */
    unsigned variants; /* functions of that name: beside the real one, wrappers for assembly that call it */
};

struct go_layout {
    struct go_version version;
    int32_t offsets[GO_OFFSETS]; /* bytes; GO_NO_OFFSET: this version does not have the field */
    bool from_code[GO_OFFSETS];  /* found in the runtime's code, not only told by the other sources */
    bool from_dwarf;             /* DWARF was there and says the same */
    bool from_table;             /* the version's structures were looked up, and are the same */
    struct go_entry_place entries[GO_ENTRIES];
    char **wait_reasons; /* by number */
    size_t wait_reason_count;
};

/* Reads the layout of `image`. -ENOENT: not made by Go. -ENOTSUP: something is missing, or two sources
 * contradict each other; the error line names it. go_layout_release() in any case. */
int go_layout_read(struct elf_image *image, struct go_layout *ret_layout, struct error *err);
void go_layout_release(struct go_layout *layout);

/* Only the functions, for what needs nothing else: -ENOENT when the image has no table of functions. */
int go_entries_read(struct elf_image *image, struct go_entry_place *ret_entries, struct error *err);

/* "g.goid", "runtime.gopark": for people and for errors. */
const char *go_offset_name(enum go_offset offset);
const char *go_entry_name(enum go_entry entry);

#endif
