/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/process/proc_numbers.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/number.h"

int proc_numbers_open(struct proc_numbers *numbers, const char *path)
{
    numbers->folder = opendir(path);
    return numbers->folder ? 0 : -errno;
}

void proc_numbers_close(struct proc_numbers *numbers)
{
    if (numbers->folder)
        closedir(take_pointer(numbers->folder));
}

int proc_numbers_next(struct proc_numbers *numbers)
{
    const struct dirent *entry;
    uint64_t number;

    while (numbers->folder && (entry = readdir(numbers->folder)))
        if (number_parse_count(entry->d_name, &number) && number <= INT_MAX)
            return (int)number;
    return -1;
}
