// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// An exception that meets a noexcept function ends the program: by a handler of its own with status 42, or,
// with an argument, by abort().
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <unistd.h>

#define CALLED __attribute__((noipa))

CALLED static void thrower(int n)
{
    if (n == 0)
        throw 7;
    thrower(n - 1);
}

CALLED static void barrier() noexcept
{
    thrower(5);
}

[[noreturn]] CALLED static void on_terminate()
{
    std::puts("terminated");
    std::fflush(stdout);
    _exit(42);
}

int main(int argc, char **argv)
{
    if (argc == 1)
        std::set_terminate(on_terminate);
    try {
        barrier();
    } catch (int) {
        std::puts("caught, which must not be");
    }
    return 1;
}
