/* Runs that the index of runs does not have yet. */
#include "core/txn/cache/recent_runs.h"

#include "base/pages.h"

#include <assert.h>
#include <stdlib.h>

#define RUNS_BYTES (RECENT_RUNS_MAX * sizeof(struct indexed_run))

struct recent_runs *recent_runs_new(void)
{
    struct recent_runs *r = calloc(1, sizeof(*r));
    if (r == NULL)
        return NULL;
    r->is_lost = true;
    r->runs = pages_new(RUNS_BYTES);
    if (r->runs == NULL) {
        free(r);
        return NULL;
    }
    return r;
}

void recent_runs_free(struct recent_runs *r)
{
    if (r == NULL)
        return;
    pages_free(r->runs, RUNS_BYTES);
    free(r);
}

void recent_runs_forget(struct recent_runs *r)
{
    r->count = 0;
    r->is_lost = true;
}

void recent_runs_folded(struct recent_runs *r)
{
    r->count = 0;
    r->is_lost = false;
}

void recent_runs_add(struct recent_runs *r, int64_t tenant, int64_t num)
{
    assert(r->count == 0 || r->runs[r->count - 1].num < num);
    if (r->count == RECENT_RUNS_MAX)
        recent_runs_forget(r);
    if (!r->is_lost)
        r->runs[r->count++] = (struct indexed_run){tenant, num, false};
}

static int by_num(const void *a, const void *b)
{
    const struct indexed_run *x = a;
    const struct indexed_run *y = b;
    return (x->num > y->num) - (x->num < y->num);
}

void recent_runs_hold(struct recent_runs *r, int64_t num, bool holds)
{
    const struct indexed_run wanted = {.num = num};
    struct indexed_run *run = bsearch(&wanted, r->runs, r->count, sizeof(*r->runs), by_num);
    if (run != NULL)
        run->holds = holds;
    else
        recent_runs_forget(r); /* the mark of the index was moved by a repair */
}

enum err recent_runs_index(struct recent_runs *r, struct db *db, int64_t last)
{
    enum err e = ERR_OK;
    if (r->is_lost) {
        e = late_index_fill(db, last);
    } else {
        indexed_runs_sort(r->runs, r->count);
        e = late_index_add(db, r->runs, r->count, last);
    }
    if (e == ERR_OK)
        recent_runs_folded(r);
    return e;
}
