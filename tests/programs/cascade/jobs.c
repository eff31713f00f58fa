/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <dirent.h>
#include <fcntl.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "service.h"

pthread_mutex_t disk_lock = PTHREAD_MUTEX_INITIALIZER, catalog_lock = PTHREAD_MUTEX_INITIALIZER,
                job_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_rwlock_t table_lock = PTHREAD_RWLOCK_INITIALIZER;
struct moment copying = MOMENT, scanning = MOMENT, localising = MOMENT, cleaning = MOMENT, arriving = MOMENT,
              streaming = MOMENT;

static pthread_mutex_t answer_lock = PTHREAD_MUTEX_INITIALIZER;
static bool localised;
static sem_t wanted; /* the localiser's work */

static int open_in_folder(const char *name, int flags)
{
    char path[512];
    int file;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    file = open(path, flags, 0600);
    if (file < 0) {
        perror(path);
        exit(1);
    }
    return file;
}

static void write_blocks(const char *name, unsigned blocks)
{
    static const char block[BLOCK];
    int file = open_in_folder(name, O_CREAT | O_WRONLY | O_TRUNC);

    for (unsigned i = 0; i < blocks; i++)
        if (write(file, block, BLOCK) != BLOCK)
            exit(1);
    close(file);
}

/* Bugs copy1, copy2, copy3: reads until the end of the file. */
void copy_file(void)
{
    char block[BLOCK];
    int from, to;
    ssize_t bytes;

    write_blocks("original", size);
    from = open_in_folder("original", O_RDONLY);
    to = open_in_folder("copy", O_CREAT | O_WRONLY | O_TRUNC);
    pthread_mutex_lock(&disk_lock);
    moment_comes(&copying);
    moment_await(&arriving);
    while ((bytes = read(from, block, BLOCK)) > 0) {
        COUNT_ITERATION();
        if (write(to, block, (size_t)bytes) != bytes)
            exit(1);
    }
    pthread_mutex_unlock(&disk_lock);
    close(from);
    close(to);
}

/* Decoy: as long as it is, whatever the size. */
void write_header(void)
{
    static const char block[BLOCK];
    int file = open_in_folder("header", O_CREAT | O_WRONLY | O_TRUNC);

    pthread_mutex_lock(&disk_lock);
    for (int i = 0; i < 4; i++)
        if (write(file, block, BLOCK) != BLOCK)
            exit(1);
    pthread_mutex_unlock(&disk_lock);
    close(file);
}

void make_files(const char *prefix)
{
    for (unsigned i = 0; i < size; i++) {
        char name[64];

        snprintf(name, sizeof(name), "%s%u", prefix, i);
        close(open_in_folder(name, O_CREAT | O_WRONLY));
    }
}

/* Bug scan: as many entries as the directory has. */
void scan_directory(void)
{
    DIR *directory;
    struct dirent *entry;

    pthread_mutex_lock(&catalog_lock);
    moment_comes(&scanning);
    moment_await(&arriving);
    directory = opendir(folder);
    while (directory && (entry = readdir(directory))) {
        struct stat status;

        COUNT_ITERATION();
        if (!strncmp(entry->d_name, "block", 5))
            fstatat(dirfd(directory), entry->d_name, &status, 0);
    }
    if (directory)
        closedir(directory);
    pthread_mutex_unlock(&catalog_lock);
}

/* Bug cleanup: the handler of an event. */
void clean_table(void)
{
    moment_comes(&cleaning);
    moment_await(&streaming);
    for (unsigned i = 0; i < size; i++) {
        char path[512];

        COUNT_ITERATION();
        snprintf(path, sizeof(path), "%s/row%u", folder, i);
        unlink(path);
    }
}

/* Bug localise: until another thread says so. */
void wait_localised(void)
{
    pthread_mutex_lock(&job_lock);
    moment_comes(&localising);
    moment_await(&arriving);
    sem_post(&wanted);
    while (!__atomic_load_n(&localised, __ATOMIC_ACQUIRE))
        usleep(200);
    pthread_mutex_unlock(&job_lock);
}

void *localiser(void *unused)
{
    sem_wait(&wanted);
    for (unsigned i = 0; i < size; i++) {
        COUNT_ITERATION();
        usleep(2000);
    }
    __atomic_store_n(&localised, true, __ATOMIC_RELEASE);
    return unused;
}

/* Decoy: nobody waits for a reader but a writer, and there is none. */
void list_entries(void)
{
    char block[16];
    int file = open_in_folder("original", O_CREAT | O_RDONLY);

    pthread_rwlock_rdlock(&table_lock);
    for (unsigned i = 0; i < size; i++)
        if (pread(file, block, sizeof(block), 0) < 0)
            exit(1);
    pthread_rwlock_unlock(&table_lock);
    close(file);
}

static void *answer_maker(void *unused)
{
    pthread_mutex_lock(&answer_lock);
    write_blocks("answer", size);
    pthread_mutex_unlock(&answer_lock);
    return unused;
}

/* Decoy: source and sink are of the same request. */
void answer_client(int socket)
{
    pthread_mutex_lock(&answer_lock);
    tell(socket, 'a');
    pthread_mutex_unlock(&answer_lock);
}

void make_answer(void)
{
    pthread_t maker;

    pthread_create(&maker, NULL, answer_maker, NULL);
    pthread_detach(maker);
}
