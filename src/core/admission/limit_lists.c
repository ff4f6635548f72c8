/* The list of limits that each active or queued run keeps. */
#include "core/admission/limit_lists.h"

#include "base/limits.h"
#include "core/admission/run_limits.h"
#include "core/txn/cache/definition_cache.h"
#include "store/doctor/repair.h"
#include "store/run/runs.h"

enum { RUN_ARENA_MAX = 32 * MIB }; /* one run: its input and what else it keeps */

/* The limits of one run after another. */
struct lists {
    struct read_tx *tx;
    struct problem problem; /* why a definition or an input cannot be read */
    struct limit_key_row scopes[LIMITS_PER_RUN_MAX]; /* num 0: there is none yet */
    struct buf keys[LIMITS_PER_RUN_MAX];             /* what their keys point to */
    size_t count;
    enum err err; /* of the store */

    /* The check. */
    finding_each *each;
    void *ctx;
    int64_t found;

    /* The repair. */
    int64_t last;      /* the highest number of a scope; -1: not known */
    int64_t wrong_run; /* 0: none */
};

static void lists_init(struct lists *l, struct read_tx *tx)
{
    *l = (struct lists){.tx = tx, .last = -1};
    problem_init(&l->problem);
    for (size_t i = 0; i < LIMITS_PER_RUN_MAX; i++)
        buf_init(&l->keys[i], LIMIT_KEY_MAX);
}

static void lists_release(struct lists *l)
{
    problem_release(&l->problem);
    for (size_t i = 0; i < LIMITS_PER_RUN_MAX; i++)
        buf_release(&l->keys[i]);
}

/* --- what they should be --- */

/* A definition or an input that cannot be read is refused; anything else ends the work. */
static bool is_failure(enum err e)
{
    return e != ERR_OK && !err_is_refusal(e);
}

/* Fills l->scopes. An error that is no failure of the store: nobody can say. */
static enum err by_definition(struct lists *l, const struct live_run *run)
{
    const struct definition *def = NULL;
    struct json *input = NULL;
    l->count = 0;
    problem_clear(&l->problem);
    definition_cache_trim(l->tx->definitions); /* there may be many; nobody else holds one now */
    enum err e = read_tx_definition(l->tx, run->tenant, run->workflow_id, run->workflow_version,
                                    &l->problem, &def);
    if (e == ERR_OK && def->limit_count > 0)
        e = json_read(run->input, &l->problem, &input);
    for (size_t i = 0; e == ERR_OK && i < def->limit_count; i++) {
        l->scopes[i] =
            (struct limit_key_row){.tenant = run->tenant, .workflow_id = run->workflow_id};
        e = limits_find_scope(l->tx->db, &def->limits[i], input, &l->keys[i], &l->scopes[i]);
        l->count++;
    }
    json_free(input);
    return e;
}

/* As the run should keep it; not yet, while a scope has no number. */
static bool right_list(const struct lists *l, char out[static LIMIT_KEY_LIST_TEXT_MAX],
                       struct str *ret)
{
    struct limit_key_list list = {.count = 0};
    for (size_t i = 0; i < l->count; i++) {
        if (l->scopes[i].num == 0)
            return false;
        limit_key_list_add(&list, l->scopes[i].num);
    }
    *ret = limit_key_list_text(&list, out);
    return true;
}

static bool is_right(const struct lists *l, const struct live_run *run)
{
    char text[LIMIT_KEY_LIST_TEXT_MAX];
    struct str right;
    return right_list(l, text, &right) && str_eq(right, run->scopes);
}

/* --- the check --- */

static bool check_one(void *ctx, const struct live_run *run)
{
    struct lists *l = ctx;
    static const struct finding WRONG = {
        .what = "a run is not under the limits that its definition and its input say",
        .derived = true,
    };
    enum err e = by_definition(l, run);
    if (e == ERR_OK && !is_right(l, run)) {
        if (l->each != NULL && l->found < FINDINGS_SHOWN_MAX)
            e = finding_show(l->tx->db, WRONG, run->tenant, run->num, l->each, l->ctx);
        l->found++;
    }
    l->err = is_failure(e) ? e : ERR_OK;
    return l->err == ERR_OK;
}

enum err limit_lists_check(struct read_tx *tx, finding_each *each, void *ctx,
                           struct check_result *result)
{
    struct lists l;
    lists_init(&l, tx);
    l.each = each;
    l.ctx = ctx;
    enum err e = live_runs(tx->db, 0, check_one, &l);
    result->found += l.found;
    result->derived += l.found;
    lists_release(&l);
    return e == ERR_OK ? l.err : e;
}

/* --- the repair --- */

/* What of the run's list is there. */
static enum err list_of_rest(struct lists *l, const struct live_run *run,
                             char out[static LIMIT_KEY_LIST_TEXT_MAX], struct str *ret)
{
    struct limit_key_list kept = limit_key_list_parse(run->scopes);
    struct limit_key_list rest = {.count = 0};
    enum err e = ERR_OK;
    for (size_t i = 0; i < kept.count && e == ERR_OK; i++) {
        bool own = false;
        e = repair_owns_scope(l->tx->db, kept.nums[i], run->tenant, run->workflow_id, &own);
        if (own)
            limit_key_list_add(&rest, kept.nums[i]);
    }
    *ret = limit_key_list_text(&rest, out);
    return e;
}

static bool names_scope(const struct lists *l, int64_t num)
{
    bool named = false;
    for (size_t i = 0; i < l->count; i++)
        named |= l->scopes[i].num == num;
    return named;
}

/* Where one limit is lost and one number of the list leads nowhere, they belong together: the limit
 * comes back under its number, and the lists of other runs are right again too. */
static enum err restore_number(struct lists *l, const struct limit_key_list *kept)
{
    struct limit_key_row *lost = NULL;
    size_t lost_count = 0;
    int64_t number = 0;
    size_t number_count = 0;
    for (size_t i = 0; i < l->count; i++) {
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
    bool taken = true;
    enum err e = ERR_OK;
    if (lost_count == 1 && number_count == 1)
        e = repair_has_scope(l->tx->db, number, &taken);
    if (e != ERR_OK || taken)
        return e;
    lost->num = number;
    return repair_insert_scope(l->tx->db, lost);
}

/* The rest get numbers that no list names: else other runs would be under them by mistake. */
static enum err give_numbers(struct lists *l)
{
    enum err e = ERR_OK;
    for (size_t i = 0; i < l->count && e == ERR_OK; i++) {
        if (l->scopes[i].num != 0)
            continue;
        if (l->last < 0)
            e = repair_last_scope(l->tx->db, &l->last);
        if (e != ERR_OK)
            return e;
        l->last = db_numbers_from(db_numbers(l->tx->db), l->last + 1);
        l->scopes[i].num = l->last;
        e = repair_insert_scope(l->tx->db, &l->scopes[i]);
    }
    return e;
}

static enum err mend_list(struct lists *l, const struct live_run *run)
{
    struct limit_key_list kept = limit_key_list_parse(run->scopes);
    char text[LIMIT_KEY_LIST_TEXT_MAX];
    struct str list = STR_NONE;
    enum err e = by_definition(l, run);
    if (is_failure(e))
        return e;
    if (e == ERR_OK) {
        e = restore_number(l, &kept);
        if (e == ERR_OK)
            e = give_numbers(l);
        if (e == ERR_OK) {
            bool numbered = right_list(l, text, &list);
            assert(numbered);
        }
    } else {
        e = list_of_rest(l, run, text, &list);
    }
    if (e == ERR_OK && !str_eq(list, run->scopes))
        e = repair_set_list(l->tx->db, run->num, list);
    return e;
}

/* Stops at the first run whose list is wrong, so that it is mended while nobody reads. */
static bool is_fine(void *ctx, const struct live_run *run)
{
    struct lists *l = ctx;
    char text[LIMIT_KEY_LIST_TEXT_MAX];
    struct str rest = STR_NONE;
    enum err e = by_definition(l, run);
    bool fine = e == ERR_OK && is_right(l, run);
    if (e != ERR_OK && !is_failure(e)) {
        e = list_of_rest(l, run, text, &rest);
        fine = str_eq(rest, run->scopes);
    }
    l->err = e;
    l->wrong_run = e == ERR_OK && !fine ? run->num : 0;
    return e == ERR_OK && fine;
}

static enum err mend_run(struct lists *l, int64_t num)
{
    struct arena arena;
    arena_init(&arena, RUN_ARENA_MAX);
    struct run row;
    bool found = false;
    enum err e = runs_find_num(l->tx->db, num, &arena, &found, &row);
    assert(e != ERR_OK || found);
    if (e == ERR_OK) {
        struct live_run run = {row.num,   row.tenant, row.workflow_id, row.workflow_version,
                               row.input, row.scopes};
        e = mend_list(l, &run);
    }
    arena_release(&arena);
    return e;
}

enum err limit_lists_mend(struct tx *tx)
{
    struct lists l;
    lists_init(&l, &tx->read);
    int64_t after = 0;
    enum err e;
    do {
        l.wrong_run = 0;
        e = live_runs(tx->db, after, is_fine, &l);
        if (e == ERR_OK)
            e = l.err;
        if (e == ERR_OK && l.wrong_run > 0)
            e = mend_run(&l, l.wrong_run);
        after = l.wrong_run;
    } while (e == ERR_OK && l.wrong_run > 0);
    lists_release(&l);
    return e;
}
