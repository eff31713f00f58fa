/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A program that puts the file's bytes over pages of its own code, and with that over the probes that lie
 * there, each in another way. It calls what lies in the pages again and again until it gets a line on its
 * standard input, overwrites them, calls them once more, prints a result, and ends with another line.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 4096, ROUND_MS = 5, EXPECTED = 15 };

#define CALLED __attribute__((noipa))

/* In a page of its own: in other sections the assembler fills pages with jumps to the next function. */
#define VICTIM(name) CALLED __attribute__((section("." #name), aligned(PAGE))) static long name(long number)

VICTIM(by_system_call)
{
    return number + 1;
}

VICTIM(by_memory_file)
{
    return number + 2;
}

VICTIM(by_mapping)
{
    return number + 3;
}

VICTIM(by_advice)
{
    return number + 4;
}

CALLED static long untouched(long number)
{
    return number + 5;
}

/* No stub, and nothing of the C library's. */
static long raw_mprotect(void *start, size_t size, long rights)
{
    long r;

    __asm__ volatile("syscall"
                     : "=a"(r)
                     : "a"(SYS_mprotect), "D"(start), "S"(size), "d"(rights)
                     : "rcx", "r11", "memory");
    return r;
}

static uint8_t *page_of(long (*function)(long))
{
    uint8_t *page;

    memcpy(&page, &function, sizeof(page));
    return page;
}

/* What the file has there. */
static int read_file(const uint8_t *page, uint8_t *bytes)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    uint64_t start, end, offset, address = (uintptr_t)page;
    int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), r = -1;
    char line[512];

    while (maps && r && fgets(line, sizeof(line), maps))
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64, &start, &end, &offset) == 3 &&
            address >= start && address < end)
            r = pread(file, bytes, PAGE, (off_t)(address - start + offset)) == PAGE ? 0 : -1;
    if (maps)
        fclose(maps);
    close(file);
    return r;
}

static int write_memory(const uint8_t *page, const uint8_t *bytes)
{
    int memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
    ssize_t written = pwrite(memory, bytes, PAGE, (off_t)(uintptr_t)page);

    close(memory);
    return written == PAGE ? 0 : -1;
}

static int copy(uint8_t *page, const uint8_t *bytes)
{
    if (raw_mprotect(page, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC))
        return -1;
    memcpy(page, bytes, PAGE);
    return (int)raw_mprotect(page, PAGE, PROT_READ | PROT_EXEC);
}

/* The kernel puts probes into mappings that it joins: those ways come first. */
static int overwrite(void)
{
    uint8_t *page = page_of(by_mapping), bytes[PAGE];

    if (read_file(page, bytes) ||
        mmap(page, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
            MAP_FAILED ||
        copy(page, bytes))
        return -1;
    page = page_of(by_system_call);
    if (read_file(page, bytes) || copy(page, bytes))
        return -1;
    page = page_of(by_memory_file);
    if (read_file(page, bytes) || write_memory(page, bytes))
        return -1;
    return madvise(page_of(by_advice), PAGE, MADV_DONTNEED);
}

static long call_all(void)
{
    return untouched(by_advice(by_mapping(by_memory_file(by_system_call(0)))));
}

int main(void)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    char line[8];
    long wrong = 0;

    do
        wrong += call_all() != EXPECTED;
    while (!poll(&input, 1, ROUND_MS));
    if (read(STDIN_FILENO, line, sizeof(line)) < 0 || overwrite())
        return 2;
    wrong += call_all() != EXPECTED;
    printf("%ld wrong\n", wrong);
    fflush(stdout);
    poll(&input, 1, -1);
    return wrong != 0;
}
