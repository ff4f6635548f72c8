/* Makes everything anew that is derived from the runs. */
#include "engine/repair.h"

#include "base/limits.h"
#include "engine/dispatch.h"
#include "engine/execute.h"
#include "engine/limits_of_run.h"
#include "store/jobs.h"
#include "store/repair.h"
#include "store/runs.h"

enum { RUN_ARENA_MAX = 32 * MIB }; /* one run at a time: its input and what else it keeps */

/* --- the limits of one run --- */

static bool names_scope(const struct limits_of_run *l, int64_t num)
{
    bool named = false;
    for (size_t i = 0; i < l->scope_count; i++)
        named |= l->scopes[i].num == num;
    return named;
}

/* Where one limit is lost and one number of the list leads nowhere, they belong together: the limit
 * comes back under its number, and the lists of other runs are right again too. */
static enum err restore_number(struct limits_of_run *l, struct db *db,
                               const struct scope_list *kept)
{
    struct scope *lost = NULL;
    size_t lost_count = 0;
    int64_t number = 0;
    size_t number_count = 0;
    for (size_t i = 0; i < l->scope_count; i++) {
        if (l->scopes[i].num == 0) {
            lost = &l->scopes[i];
            lost_count++;
        }
    }
    for (size_t i = 0; i < kept->count; i++) {
        if (!names_scope(l, kept->nums[i])) {
            number = kept->nums[i];
            number_count++;
        }
    }
    bool taken = false;
    if (lost_count != 1 || number_count != 1)
        return ERR_OK;
    enum err e = repair_has_scope(db, number, &taken);
    if (e != ERR_OK || taken)
        return e;
    lost->num = number;
    return repair_insert_scope(db, lost);
}

/* What the run's definition and input say. An error that is no failure of the store: they cannot be
 * read. */
static enum err list_by_rules(struct tx *tx, const struct run *run, struct str *ret)
{
    struct problem p;
    problem_init(&p);
    struct limits_of_run limits;
    struct tenant owner = tenant_default(STR(""), tx->now_ms);
    owner.num = run->tenant;
    struct scope_list kept = repair_read_list(run->scopes);
    const struct definition *def = NULL;
    json_t *input = NULL;
    enum err e = tx_definition(tx, run->tenant, run->workflow_id, run->workflow_version, &p, &def);
    if (e == ERR_OK)
        e = json_parse(run->input, &p, &input);
    if (e == ERR_OK)
        e = limits_load(&limits, tx, &owner, def, input, AT_LIMIT_COUNT, &p);
    if (e == ERR_OK)
        e = restore_number(&limits, tx->db, &kept);
    if (e == ERR_OK)
        e = limits_store(&limits, tx, ret);
    json_decref(input);
    problem_release(&p);
    return e;
}

/* What of its list is still there. */
static enum err list_of_rest(struct tx *tx, const struct run *run, struct str *ret)
{
    struct scope_list kept = repair_read_list(run->scopes);
    struct scope_list rest = {.count = 0};
    enum err e = ERR_OK;
    for (size_t i = 0; i < kept.count && e == ERR_OK; i++) {
        bool own = false;
        e = repair_owns_scope(tx->db, kept.nums[i], run->tenant, run->workflow_id, &own);
        if (own)
            scope_list_add(&rest, kept.nums[i]);
    }
    char text[SCOPE_LIST_TEXT_MAX];
    *ret = rest.count > 0 ? arena_str(&tx->arena, scope_list_text(&rest, text)) : STR_NONE;
    return e == ERR_OK && rest.count > 0 && ret->ptr == NULL ? ERR_NO_MEMORY : e;
}

static enum err mend_list(struct tx *tx, int64_t num, struct arena *arena)
{
    struct run run;
    struct str list = STR_NONE;
    bool found = false;
    enum err e = runs_find_num(tx->db, num, arena, &found, &run);
    assert(e != ERR_OK || found);
    if (e == ERR_OK)
        e = list_by_rules(tx, &run, &list);
    if (e != ERR_OK && !is_store_failure(e))
        e = list_of_rest(tx, &run, &list);
    if (e == ERR_OK && !str_eq(list, run.scopes))
        e = repair_set_list(tx->db, num, list);
    return e;
}

static enum err mend_lists(struct tx *tx)
{
    struct arena arena;
    arena_init(&arena, RUN_ARENA_MAX);
    int64_t run = 0;
    bool found = true;
    enum err e = ERR_OK;
    while (e == ERR_OK && found) {
        e = repair_next_list(tx->db, run, &found, &run);
        if (e == ERR_OK && found)
            e = mend_list(tx, run, &arena);
        arena_clear(&arena);
    }
    arena_release(&arena);
    return e;
}

/* --- all of it --- */

enum err repair_all(struct tx *tx)
{
    int64_t due = -1;
    enum err e = mend_lists(tx);
    if (e == ERR_OK)
        e = repair_derived(tx->db);
    if (e == ERR_OK)
        e = tx_reload_counters(tx);
    if (e == ERR_OK)
        e = timers_next(tx->db, &due);
    if (due >= 0)
        tx->next_due = tx->next_due < 0 ? due : MIN(tx->next_due, due);
    tx->runs_through = -1;
    dispatch_all(tx); /* queued runs may be able to start, or wait for another limit */
    return e;
}
