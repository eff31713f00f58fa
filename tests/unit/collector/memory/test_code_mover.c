/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Programs that run copies of code are recognised before they do. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collector/memory/code_mover.h"
#include "tests/unit/image/tiny_elf.h"

/* A program with one more section. */
static struct elf_image *image_with(const char *section, const char *interpreter)
{
    const uint8_t code[] = {0xc3};
    const struct tiny_symbol symbol = {
        .name = "f", .size = sizeof(code), .info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC)};
    const struct tiny_elf tiny = {.text = code,
                                  .text_size = sizeof(code),
                                  .symbols = &symbol,
                                  .symbol_count = 1,
                                  .interpreter = interpreter,
                                  .extra_section = section,
                                  .entry = TINY_TEXT};
    uint8_t bytes[TINY_MAX];
    size_t size = tiny_elf_build(&tiny, bytes);
    char path[] = "/tmp/tracectl-mover-XXXXXX";
    int file = mkstemp(path);
    struct elf_image *image;

    unlink(path);
    cr_assert_eq(write(file, bytes, size), (ssize_t)size);
    cr_assert_eq(elf_image_open_fd(file, "tiny", &image, NULL), 0);
    close(file);
    return image;
}

Test(code_mover, the_section_of_the_code_that_moves)
{
    struct elf_image *moves = image_with("lpstub", NULL), *stays = image_with(".lpstubs", NULL);

    cr_assert(code_mover_can_move(moves));
    cr_assert_not(code_mover_can_move(stays));
    elf_image_free(moves);
    elf_image_free(stays);
}

/* Whether a program of this source is one that must be expected to move its code. */
static bool moves(const char *source)
{
    char path[] = "/tmp/tracectl-mover-XXXXXX", command[768];
    struct elf_image *image;
    bool found;

    close(mkstemp(path));
    snprintf(command, sizeof(command), "echo '%s' | gcc -w -x c - -o %s", source, path);
    cr_assert_eq(system(command), 0);
    cr_assert_eq(elf_image_open(path, &image, NULL), 0);
    unlink(path);
    found = code_mover_moves(image);
    cr_assert(!found || code_mover_can_move(image));
    elf_image_free(image);
    return found;
}

Test(code_mover, a_program_that_moves_memory_and_knows_where_its_code_lies)
{
    cr_assert(
        moves("extern char __executable_start, etext; int main(void) { return mremap(&__executable_start, "
              "&etext - &__executable_start, 0, 0) != 0; }"));
    cr_assert_not(moves("int main(void) { return mremap(0, 0, 0, 0) != 0; }"));
    cr_assert_not(moves(
        "extern char __executable_start, etext; int main(void) { return &etext - &__executable_start; }"));
}

/* A program that asks for valgrind's variable, as the core of each of its tools does. */
static bool translates(const char *flags, const char *kind)
{
    char path[] = "/tmp/tracectl-mover-XXXXXX", command[512];
    struct elf_image *image;
    bool found;

    close(mkstemp(path));
    snprintf(command, sizeof(command),
             "echo 'extern char *getenv(const char *); %s word[] = \"VALGRIND_LAUNCHER\"; int main(void) { "
             "return !getenv(word); }' | gcc %s -x c - -o %s",
             kind, flags, path);
    cr_assert_eq(system(command), 0);
    cr_assert_eq(elf_image_open(path, &image, NULL), 0);
    unlink(path);
    found = code_mover_translates(image);
    elf_image_free(image);
    return found;
}

/* valgrind's launcher has the word, too, but is dynamic. */
Test(code_mover, a_static_program_with_the_word_in_constant_data_translates)
{
    cr_assert(translates("-static", "const char"));
    cr_assert_not(translates("-static", "char"));
    cr_assert_not(translates("", "const char"));
}

/* A shell that waits, with one more argument and variable. */
static pid_t begin(char *argument, char *variable)
{
    char *arguments[] = {"sh", "-c", "kill -STOP $$", "sh", argument, NULL};
    char *environment[] = {variable, NULL};
    pid_t pid = fork();

    if (!pid) {
        execve("/bin/sh", arguments, environment);
        _exit(1);
    }
    cr_assert_eq(waitpid(pid, NULL, WUNTRACED), pid);
    return pid;
}

static bool is_told(char *argument, char *variable)
{
    pid_t pid = begin(argument, variable);
    bool told = code_mover_is_configured(pid);

    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    return told;
}

Test(code_mover, a_process_is_told_by_its_arguments_or_its_environment)
{
    cr_assert(is_told("--use-largepages=silent", "A=b"));
    cr_assert(is_told("a", "NODE_OPTIONS=--use-largepages=on"));
    cr_assert_not(is_told("a", "A=b"));
    cr_assert_not(is_told("--use-largepages=off", "A=b"));
}
