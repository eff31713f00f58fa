/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/tracer/file_rights.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/aside.h"
#include "base/cleanup.h"
#include "collector/arch/thread_registers.h"
#include "collector/launch/privileges.h"
#include "collector/process/map_lines.h"
#include "collector/process/target_memory.h"

#define WORDS_AT_A_TIME 512
#define WORDS_MOST (8u << 20) /* arguments and environment: more than the kernel takes */
#define PATH_MOST 4096
#define CODE_MOST (4u << 20) /* of a mapping that is looked through */

/* ------------------------------------------------------------------------------------ the file */

/* What a program's file says, and what the process has. */
struct file_rights {
    dev_t device;
    ino_t inode;
    uid_t user;
    gid_t group;
    mode_t mode;
    bool capabilities, without; /* without: the file system gives none */
};

struct file_request {
    char path[PATH_MOST + 64];
};

/* An aside_work: the file may be a hostile server's. */
static int look_at_file(const void *request, void *reply, size_t room, int *ret_fd)
{
    const struct file_request *wanted = request;
    struct file_rights *file = reply;
    struct statvfs mount;
    struct stat status;

    (void)ret_fd;
    if (room < sizeof(*file) || stat(wanted->path, &status) || statvfs(wanted->path, &mount))
        return -EACCES;
    *file = (struct file_rights){
        .device = status.st_dev,
        .inode = status.st_ino,
        .user = status.st_uid,
        .group = status.st_gid,
        .mode = status.st_mode,
        .capabilities = getxattr(wanted->path, "security.capability", NULL, 0) > 0,
        .without = mount.f_flag & ST_NOSUID,
    };
    return (int)sizeof(*file);
}

static bool find_file(const struct file_request *request, struct file_rights *ret_file)
{
    const struct aside_job job = {.work = look_at_file,
                                  .request = request,
                                  .request_size = sizeof(*request),
                                  .reply = ret_file,
                                  .room = sizeof(*ret_file)};

    return aside_do(&job) == (int)sizeof(*ret_file);
}

/* Whether the process runs as somebody else than the file says; nothing gives rights to one that has said that it
 * wants none. */
static bool is_without(pid_t pid, const struct file_rights *file)
{
    AUTO_FREE char *text = NULL;
    unsigned user = 0, group = 0, none = 1;
    const char *line;
    size_t size;

    if (target_proc_text(pid, "status", &text, &size))
        return false;
    if ((line = strstr(text, "\nUid:")))
        sscanf(line, "\nUid: %*u %u", &user);
    if ((line = strstr(text, "\nGid:")))
        sscanf(line, "\nGid: %*u %u", &group);
    if ((line = strstr(text, "\nNoNewPrivs:")))
        sscanf(line, "\nNoNewPrivs: %u", &none);
    if (none)
        return false;
    return file->capabilities || (file->mode & S_ISUID && file->user != user) ||
           ((file->mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) && file->group != group);
}

/* ------------------------------------------------------------------------------------ the exec */

/* What the kernel has laid on a new program's stack, at addresses of the process. */
struct exec_stack {
    uint64_t arguments, environment, name, interpreter;
};

/* Reads the stack's words in order. */
struct words {
    pid_t pid;
    uint64_t next; /* address */
    uint64_t word[WORDS_AT_A_TIME];
    size_t at, count;
    size_t taken;
};

static bool next_word(struct words *words, uint64_t *ret_word)
{
    if (words->at == words->count) {
        words->count =
            target_memory_read(words->pid, words->next, words->word, sizeof(words->word)) / sizeof(uint64_t);
        words->next += words->count * sizeof(uint64_t);
        words->at = 0;
    }
    if (words->at == words->count || words->taken++ == WORDS_MOST)
        return false;
    *ret_word = words->word[words->at++];
    return true;
}

static uint64_t place(const struct words *words)
{
    return words->next - (words->count - words->at) * sizeof(uint64_t);
}

static bool read_stack(pid_t pid, uint64_t address, struct exec_stack *ret_stack)
{
    AUTO_FREE struct words *words = calloc(1, sizeof(*words));
    uint64_t word = 0, kind = 0;

    *ret_stack = (struct exec_stack){.arguments = address + sizeof(uint64_t)};
    if (!words)
        return false;
    *words = (struct words){.pid = pid, .next = address};
    if (!next_word(words, &word)) /* how many arguments there are: a NULL ends them */
        return false;
    do
        if (!next_word(words, &word))
            return false;
    while (word);
    ret_stack->environment = place(words);
    do
        if (!next_word(words, &word))
            return false;
    while (word);
    while (next_word(words, &kind) && kind != AT_NULL && next_word(words, &word)) {
        if (kind == AT_EXECFN)
            ret_stack->name = word;
        if (kind == AT_BASE)
            ret_stack->interpreter = word;
    }
    return ret_stack->name && ret_stack->interpreter;
}

/* Whether the name that exec was given leads to the file that runs: of a script it does not. */
static bool names_the_file(pid_t pid, const struct exec_stack *stack, const struct file_rights *file)
{
    struct file_request request;
    struct file_rights named;
    char name[PATH_MOST];
    size_t length = target_memory_read(pid, stack->name, name, sizeof(name) - 1);

    name[length] = '\0';
    if (!*name || strlen(name) == length)
        return false;
    snprintf(request.path, sizeof(request.path), "/proc/%d/%s/%s", (int)pid, *name == '/' ? "root" : "cwd",
             name);
    return find_file(&request, &named) && named.device == file->device && named.inode == file->inode;
}

/* The address of an instruction that calls the kernel and then returns; 0: there is none. */
static uint64_t find_call(pid_t pid)
{
    AUTO_MAP_LINES struct map_lines maps = {0};
    AUTO_FREE uint8_t *bytes = malloc(CODE_MOST);
    struct map_line mapping;

    if (!bytes || map_lines_open(pid, &maps))
        return 0;
    while (map_lines_next(&maps, &mapping)) {
        uint64_t size = mapping.end - mapping.start;
        const uint8_t *found;

        if (!mapping.executable || mapping.writable || !mapping.inode)
            continue;
        size = target_memory_read(pid, mapping.start, bytes, size < CODE_MOST ? size : CODE_MOST);
        found = code_find_call(bytes, size);
        if (found)
            return mapping.start + (uint64_t)(found - bytes);
    }
    return 0;
}

bool file_rights_are_missed(pid_t pid, struct user_regs_struct *ret_registers)
{
    struct file_request request;
    struct file_rights file;
    struct exec_stack stack;
    uint64_t call, back;

    if (!privileges_missing(PRIVILEGE_SYS_PTRACE))
        return false;
    snprintf(request.path, sizeof(request.path), "/proc/%d/exe", (int)pid);
    if (!find_file(&request, &file) || file.without || !is_without(pid, &file) ||
        ptrace(PTRACE_GETREGS, pid, NULL, ret_registers) || !registers_are_native(ret_registers) ||
        !read_stack(pid, registers_stack(ret_registers), &stack) || !names_the_file(pid, &stack, &file))
        return false;
    call = find_call(pid);
    back = registers_stack(ret_registers) - sizeof(uint64_t);
    /* Where it returns to if there is no exec: the program's beginning, its stack as it is now. */
    if (!call || ptrace(PTRACE_POKEDATA, pid, (void *)back, (void *)registers_pc(ret_registers)))
        return false;
    registers_prepare_call(ret_registers, SYS_execve,
                           (const uint64_t[6]){stack.name, stack.arguments, stack.environment}, call, back);
    return true;
}
