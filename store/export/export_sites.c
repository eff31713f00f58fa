/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Call sites for an export: a program may have hundreds of thousands, so only those used lately are kept. */
#include <stdlib.h>

#include "base/error.h"
#include "store/export/export_run.h"

static void release_site(struct export_site *site)
{
    free(site->caller);
    free(site->image);
    free(site->file);
    *site = (struct export_site){0};
}

void export_sites_release(struct export_sites *sites)
{
    for (size_t i = 0; sites->entries && i < EXPORT_SITE_CACHE; i++)
        release_site(&sites->entries[i]);
    free(sites->entries);
    sqlite3_finalize(sites->find);
    *sites = (struct export_sites){0};
}

static int prepare(struct export_sites *sites, const struct export_run *run)
{
    sites->entries = calloc(EXPORT_SITE_CACHE, sizeof(*sites->entries));
    if (!sites->entries)
        return error_no_memory(run->err);
    return db_prepare(tracestore_db(run->store),
                      "SELECT coalesce(f.demangled, f.name, ''), i.path, coalesce(s.file, ''), s.address,"
                      " coalesce(s.line, 0) FROM call_sites s JOIN images i USING (image_id)"
                      " LEFT JOIN functions f ON f.function_id = s.function_id WHERE s.site_id = ?1",
                      "cannot read call sites", &sites->find, run->err);
}

static int read_site(struct export_sites *sites, const struct export_run *run, uint32_t site_id,
                     struct export_site *site)
{
    int result;

    release_site(site);
    db_bind(sites->find, "i", (int64_t)site_id);
    result = db_row(sites->find, "tttii");
    if (result == SQLITE_ROW) {
        *site = (struct export_site){
            .site_id = site_id,
            .caller = db_text(sites->find, 0),
            .image = db_text(sites->find, 1),
            .file = db_text(sites->find, 2),
            .address = (uint64_t)sqlite3_column_int64(sites->find, 3),
            .line = sqlite3_column_int(sites->find, 4),
        };
        if (!site->caller || !site->image || !site->file) {
            release_site(site);
            return error_no_memory(run->err);
        }
    }
    sqlite3_reset(sites->find);
    if (result == SQLITE_ROW || result == SQLITE_DONE)
        return 0;
    return db_fail(tracestore_db(run->store), run->err, "cannot read call sites");
}

int export_sites_find(struct export_sites *sites, const struct export_run *run, uint32_t site_id,
                      const struct export_site **ret_site)
{
    struct export_site *site;
    int r = sites->find ? 0 : prepare(sites, run);

    if (r < 0)
        return r;
    site = &sites->entries[site_id % EXPORT_SITE_CACHE];
    if (site->site_id != site_id)
        r = read_site(sites, run, site_id, site);
    if (r < 0)
        return r;
    *ret_site = site->site_id ? site : NULL;
    return 0;
}
