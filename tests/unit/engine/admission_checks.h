/* Whether the file of a history says what its model says: every run, every counter, every limit,
 * and the order in which queued runs began. */
#ifndef PAWL_TESTS_ENGINE_ADMISSION_CHECKS_H
#define PAWL_TESTS_ENGINE_ADMISSION_CHECKS_H

#include "engine/admission_history.h"

#include "core/run/dispatch.h"
#include "store/run/limit_keys.h"

#include <sched.h>

static inline enum err look_whether_due(struct op *op, struct tx *tx)
{
    CONTAINER_OF(op, struct call, op)->runs = dispatch_is_due(tx);
    op->answer.changed_nothing = true;
    return ERR_OK;
}

static const struct use_case UC_IS_DUE = {.name = "test_is_due", .write = look_whether_due};

/* Returns when the writer has looked at all of the queue that it had to. */
static inline void wait_for_dispatch(struct history *h)
{
    int64_t until = real_seconds() + GIVE_UP_S;
    bool due = true;
    while (due) {
        struct call c;
        call_init(&c, h->fixture, &UC_IS_DUE);
        must_perform(&c);
        due = c.runs != 0;
        call_release(&c);
        if (due)
            (void)sched_yield();
        if (real_seconds() >= until)
            differs(h, "the writer does not come to an end with the queue");
    }
}

static inline enum model_status status_of(const char *text)
{
    if (strcmp(text, "delayed") == 0)
        return MODEL_DELAYED;
    if (strcmp(text, "queued") == 0)
        return MODEL_QUEUED;
    for (enum model_status s = MODEL_SUCCEEDED; s <= MODEL_CANCELLED; s++) {
        if (strcmp(text, status_name(s)) == 0)
            return s;
    }
    return MODEL_ACTIVE;
}

static inline const char *text_at(sqlite3_stmt *stmt, int column)
{
    return (const char *)sqlite3_column_text(stmt, column);
}

static inline void check_runs(struct history *h)
{
    size_t count = 0;
    sqlite3_stmt *rows = h->runs;
    while (sqlite3_step(rows) == SQLITE_ROW) {
        if (count == h->model.run_count)
            differs(h, "there are more than %zu runs", count);
        struct known_run *known = &h->known[count];
        enum model_status is = status_of(text_at(rows, 1));
        enum model_status should = h->model.runs[count].status;
        if (sqlite3_column_bytes(rows, 0) != sizeof(known->id.bytes) ||
            memcmp(sqlite3_column_blob(rows, 0), known->id.bytes, sizeof(known->id.bytes)) != 0)
            differs(h, "run %zu has another id", count);
        if (is != should)
            differs(h, "run %zu is %s and should be %s", count, status_name(is),
                    status_name(should));
        known->started_at = sqlite3_column_int64(rows, 2);
        count++;
    }
    (void)sqlite3_reset(rows);
    if (count != h->model.run_count)
        differs(h, "there are %zu runs and should be %zu", count, h->model.run_count);
}

/* Whoever began later, by the model, did not begin in an earlier transaction. */
static inline void check_order(struct history *h)
{
    for (int tenant = 0; tenant < MODEL_TENANTS; tenant++) {
        const struct model_tenant *t = &h->model.tenants[tenant];
        for (size_t i = h->order_checked[tenant] + 1; i < t->begun_count; i++) {
            size_t sooner = t->begun[i - 1];
            size_t later = t->begun[i];
            if (h->known[later].started_at < h->known[sooner].started_at)
                differs(h, "run %zu began before run %zu", later, sooner);
        }
        h->order_checked[tenant] = t->begun_count > 0 ? t->begun_count - 1 : 0;
    }
}

/* Above a limit it only ever goes down: it is there because the limit was lowered. (Of several
 * calls in one go, one may have lowered it after others had filled it.) */
static inline void check_limit(struct history *h, const char *what, int64_t active, int64_t max,
                               int64_t *was)
{
    if (h->calls <= 1 && max >= 0 && active > max && active > *was)
        differs(h, "%s has %lld active runs, %lld before, at a limit of %lld", what,
                (long long)active, (long long)*was, (long long)max);
    *was = active;
}

static inline void check_counters(struct history *h, const char *what, int64_t active,
                                  int64_t queued, int64_t active_should, int64_t queued_should)
{
    if (active != active_should || queued != queued_should)
        differs(h, "%s counts %lld active and %lld queued, and not %lld and %lld", what,
                (long long)active, (long long)queued, (long long)active_should,
                (long long)queued_should);
}

static inline void check_tenants(struct history *h)
{
    sqlite3_stmt *rows = h->tenants;
    for (int i = 0; i < MODEL_TENANTS; i++) {
        const struct model_tenant *t = &h->model.tenants[i];
        if (sqlite3_step(rows) != SQLITE_ROW || strcmp(text_at(rows, 0), TENANTS[i]) != 0)
            differs(h, "there is no %s", TENANTS[i]);
        int64_t active = sqlite3_column_int64(rows, 1);
        check_counters(h, TENANTS[i], active, sqlite3_column_int64(rows, 2), t->active, t->queued);
        check_limit(h, TENANTS[i], active, t->settings.max_concurrent_runs, &h->tenant_active[i]);
    }
    (void)sqlite3_reset(rows);
}

static inline int place_of(const char *name, const char *const *names, int count)
{
    int i = 0;
    while (i < count && strcmp(name, names[i]) != 0)
        i++;
    assert_true(i < count);
    return i;
}

static inline void check_scopes(struct history *h)
{
    size_t stored = 0;
    size_t used = 0;
    sqlite3_stmt *rows = h->scopes;
    while (sqlite3_step(rows) == SQLITE_ROW) {
        char what[64];
        (void)snprintf(what, sizeof(what), "%s %s '%s' = '%s'", text_at(rows, 0), text_at(rows, 1),
                       text_at(rows, 2), text_at(rows, 3));
        size_t at = model_scope(&h->model, place_of(text_at(rows, 0), TENANTS, MODEL_TENANTS),
                                place_of(text_at(rows, 1), WORKFLOWS, MODEL_WORKFLOWS),
                                place_of(text_at(rows, 2), MODEL_PATHS, MODEL_PATH_COUNT),
                                text_at(rows, 3));
        int64_t active = sqlite3_column_int64(rows, 4);
        check_counters(h, what, active, sqlite3_column_int64(rows, 5), h->model.scopes[at].active,
                       h->model.scopes[at].queued);
        check_limit(h, what, active, model_scope_max(&h->model, at), &h->scope_active[at]);
        h->scope_nums[at] = sqlite3_column_int64(rows, 6);
        stored++;
    }
    (void)sqlite3_reset(rows);
    for (size_t i = 0; i < h->model.scope_count; i++) {
        bool in_use = h->model.scopes[i].active + h->model.scopes[i].queued > 0;
        used += in_use;
        if (!in_use)
            h->scope_active[i] = 0;
    }
    if (stored != used)
        differs(h, "%zu scopes are kept and %zu are in use", stored, used);
}

#define HOLDS_SLOT "status IN ('pending', 'running', 'waiting', 'paused')"

/* What is kept besides, to find runs quickly: exactly what the runs say. */
static inline void check_lists(struct history *h)
{
    static const struct {
        const char *name;
        const char *kept;
        const char *should;
    } LISTS[] = {
        {"slots", "SELECT scope, run FROM slots",
         "SELECT j.value, r.num FROM runs r, json_each('[' || r.scopes || ']') j"
         " WHERE r.scopes IS NOT NULL AND r." HOLDS_SLOT},
        {"holding", "SELECT tenant, run FROM holding",
         "SELECT tenant, num FROM runs"
         " WHERE num <= (SELECT through FROM indexed WHERE name = 'runs') AND " HOLDS_SLOT},
        {"queue",
         "SELECT q.tenant, l.tenant, l.scopes, q.urgency, q.run"
         " FROM queue q JOIN lines l ON l.num = q.line",
         "SELECT tenant, tenant, coalesce(scopes, ''), -priority, num FROM runs"
         " WHERE status = 'queued' AND start_at IS NULL"},
        {"lines", "SELECT num, urgency, run FROM lines",
         "SELECT line, urgency, run FROM (SELECT line, urgency, run, row_number()"
         " OVER (PARTITION BY line ORDER BY urgency, run) AS place FROM queue) WHERE place = 1"},
        {"line_scopes", "SELECT scope, line FROM line_scopes",
         "SELECT j.value, l.num FROM lines l, json_each('[' || l.scopes || ']') j"},
    };
    for (size_t i = 0; i < ARRAY_LEN(LISTS); i++) {
        char sql[1000];
        (void)snprintf(sql, sizeof(sql),
                       "SELECT (SELECT count(*) FROM (%s EXCEPT %s)) +"
                       " (SELECT count(*) FROM (%s EXCEPT %s))",
                       LISTS[i].kept, LISTS[i].should, LISTS[i].should, LISTS[i].kept);
        int64_t wrong = raw_number(&h->raw, sql);
        if (wrong != 0)
            differs(h, "%lld rows of %s are not as the runs say", (long long)wrong, LISTS[i].name);
    }
}

/* --- the invariant of dispatch.h: what makes the next slot find the right run --- */

struct waiting_line {
    int tenant;
    struct limit_key_list scopes;
    int64_t waits_for;
    int64_t urgency;
    int64_t run;
};

static inline bool comes_before(const struct waiting_line *a, const struct waiting_line *b)
{
    return a->urgency != b->urgency ? a->urgency < b->urgency : a->run < b->run;
}

static inline bool counts_under(const struct waiting_line *line, int64_t scope)
{
    for (size_t i = 0; i < line->scopes.count; i++) {
        if (line->scopes.nums[i] == scope)
            return true;
    }
    return false;
}

/* How many more runs fit under a scope by its number in the file. */
static inline int64_t room_under(const struct history *h, int64_t num)
{
    for (size_t i = 0; i < h->model.scope_count; i++) {
        const struct model_scope *scope = &h->model.scopes[i];
        if (h->scope_nums[i] == num && scope->active + scope->queued > 0) {
            int64_t max = model_scope_max(&h->model, i);
            return max < 0 ? INT64_MAX : max - scope->active;
        }
    }
    return INT64_MAX; /* a line may not wait for what is not there */
}

static inline void check_line(struct history *h, const struct waiting_line *lines, size_t count,
                              const struct waiting_line *line)
{
    const struct model_tenant *t = &h->model.tenants[line->tenant];
    int64_t max = t->settings.max_concurrent_runs;
    if (line->waits_for == 0) {
        if (max < 0 || t->active < max)
            differs(h, "a line waits for %s, which has room", TENANTS[line->tenant]);
        return;
    }
    int64_t sooner = 0;
    for (size_t i = 0; i < count; i++)
        sooner += lines[i].tenant == line->tenant && lines[i].waits_for == 0 &&
                  comes_before(&lines[i], line) && counts_under(&lines[i], line->waits_for);
    if (sooner < room_under(h, line->waits_for))
        differs(h, "a line of %s waits for scope %lld, which has room", TENANTS[line->tenant],
                (long long)line->waits_for);
}

static inline void check_lines(struct history *h)
{
    static struct waiting_line lines[MODEL_RUNS_MAX];
    size_t count = 0;
    sqlite3_stmt *rows = h->lines;
    while (sqlite3_step(rows) == SQLITE_ROW)
        lines[count++] =
            (struct waiting_line){.tenant = place_of(text_at(rows, 0), TENANTS, MODEL_TENANTS),
                                  .scopes = limit_key_list_parse(str_of(text_at(rows, 1))),
                                  .waits_for = sqlite3_column_int64(rows, 2),
                                  .urgency = sqlite3_column_int64(rows, 3),
                                  .run = sqlite3_column_int64(rows, 4)};
    (void)sqlite3_reset(rows);
    for (size_t i = 0; i < count; i++)
        check_line(h, lines, count, &lines[i]);
}

static inline void check_all(struct history *h)
{
    wait_for_dispatch(h);
    model_look(&h->model);
    raw_exec(&h->raw, "BEGIN");
    check_runs(h);
    check_order(h);
    check_tenants(h);
    check_scopes(h);
    check_lines(h);
    raw_exec(&h->raw, "COMMIT");
    h->calls = 0;
}

static inline void perform_and_check(struct history *h)
{
    perform_steps(h);
    check_all(h);
}

#endif
