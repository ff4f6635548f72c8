/* Numbers of rows: several rising lists are read side by side. */
#include "store/copy/merge_numbers.h"

#include "store/columns.h"

#include <inttypes.h>
#include <stdlib.h>

enum { NUMBERS_AT_ONCE = 4096, TABLES_TOGETHER = 3 };

/* Tables whose rows have different numbers. */
struct number_space {
    bool is_time; /* the numbers are times: new ones are greater by themselves */
    bool of_tenants;
    bool of_keys;
    struct {
        const char *name;
        const char *sql;
    } tables[TABLES_TOGETHER];
};

#define NUMBERS_OF(table, column)                                                                 \
    {                                                                                             \
        table,                                                                                    \
            "SELECT " column " FROM " table " WHERE " column " > $1 ORDER BY " column " LIMIT $2" \
    }

static const struct number_space SPACES[] = {
    {.of_tenants = true,
     .tables = {NUMBERS_OF("tenants", "num"), NUMBERS_OF("audit_chains", "chain")}},
    {.is_time = true,
     .tables = {NUMBERS_OF("runs", "num"), NUMBERS_OF("entities", "num"),
                NUMBERS_OF("entity_sweeps", "entity")}},
    {.tables = {NUMBERS_OF("entity_types", "num")}},
    {.tables = {NUMBERS_OF("scopes", "num")}},
    {.tables = {NUMBERS_OF("lines", "num")}},
    {.tables = {NUMBERS_OF("webhooks", "num")}},
    {.is_time = true, .tables = {NUMBERS_OF("deliveries", "num")}},
    {.of_keys = true, .tables = {NUMBERS_OF("key_records", "num")}},
};

/* --- one list --- */

struct number_list {
    struct db *db;
    size_t shard;
    const char *table;
    const char *sql;
    int64_t nums[NUMBERS_AT_ONCE];
    size_t count, at; /* count 0: over */
};

static enum err read_more(struct number_list *l)
{
    int64_t after = l->count > 0 ? l->nums[l->count - 1] : INT64_MIN;
    struct db_rows *rows = DB_QUERY(l->db, l->sql, DB_I(after), DB_I(NUMBERS_AT_ONCE));
    l->count = l->at = 0;
    while (db_next(rows))
        l->nums[l->count++] = db_int(rows, 0);
    return db_rows_end(rows);
}

static bool is_over(const struct number_list *l)
{
    return l->at == l->count;
}

static enum err advance(struct number_list *l)
{
    l->at++;
    return l->at == l->count ? read_more(l) : ERR_OK;
}

/* --- several side by side --- */

struct checker {
    struct db *const *shards;
    size_t shard_count;
    const struct merge_tenants *tenants;
    struct number_list *lists;
    size_t list_count;
    int64_t highest;
    struct problem *p;
};

static struct number_list *least_of(const struct checker *c)
{
    struct number_list *least = NULL;
    for (size_t i = 0; i < c->list_count; i++) {
        struct number_list *l = &c->lists[i];
        if (!is_over(l) && (least == NULL || l->nums[l->at] < least->nums[least->at]))
            least = l;
    }
    return least;
}

bool merge_is_of_shard_0(struct str route)
{
    /* As in cluster/front.c and store/postgres/postgres_move.c. */
    static const char *const PATHS[] = {"keys",  "sessions", "me",     "sign-in",
                                        "oidc-", "outbox",   "doctor", "backup"};
    struct str method;
    struct str path;
    if (!str_cut(route, ' ', &method, &path) || !str_starts_with(path, STR("/api/v1/")))
        return false;
    path.ptr += strlen("/api/v1/");
    path.len -= strlen("/api/v1/");
    for (size_t i = 0; i < ARRAY_LEN(PATHS); i++) {
        if (str_starts_with(path, str_of(PATHS[i])))
            return true;
    }
    return false;
}

static enum err read_record(struct db *db, int64_t num, struct sha256 *ret, bool *ret_moved)
{
    static const char SQL[] = "SELECT key, route, fingerprint FROM key_records WHERE num = $1";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(num));
    *ret_moved = false;
    if (db_next(rows)) {
        struct str parts[] = {db_str(rows, 0), db_str(rows, 1), db_str(rows, 2)};
        *ret = sha256_of_parts(parts, ARRAY_LEN(parts));
        *ret_moved = merge_is_of_shard_0(parts[1]);
    }
    return db_rows_end(rows);
}

/* The record of one request, which a move has left in shard 0. */
static enum err is_copied_record(const struct checker *c, size_t shard, int64_t num, bool *ret)
{
    struct sha256 first = {{0}};
    struct sha256 other = {{0}};
    bool moved = false;
    *ret = false;
    enum err e = read_record(c->shards[0], num, &first, &moved);
    if (e == ERR_OK && moved)
        e = read_record(c->shards[shard], num, &other, &moved);
    *ret = e == ERR_OK && moved && sha256_eq(&first, &other);
    return e;
}

static enum err refuse(const struct checker *c, const struct number_list *a,
                       const struct number_list *b)
{
    return problem_set(c->p, ERR_STORE_FAILED,
                       "The shards %zu and %zu have different rows with the number %" PRId64
                       " (tables %s and %s), which an earlier version gave. They cannot become one "
                       "store. Nothing was changed.",
                       a->shard, b->shard, a->nums[a->at], a->table, b->table);
}

/* Two lists have come to the same number. */
static enum err check_pair(const struct checker *c, const struct number_space *space,
                           const struct number_list *a, const struct number_list *b)
{
    int64_t num = a->nums[a->at];
    bool is_same = a->shard == b->shard;
    if (space->of_tenants) /* of an alias nothing stays */
        is_same |= merge_tenants_find(c->tenants, a->shard, num) != NULL ||
                   merge_tenants_find(c->tenants, b->shard, num) != NULL;
    enum err e = ERR_OK;
    if (!is_same && space->of_keys && MIN(a->shard, b->shard) == 0)
        e = is_copied_record(c, MAX(a->shard, b->shard), num, &is_same);
    return e != ERR_OK || is_same ? e : refuse(c, a, b);
}

static enum err check_number(struct checker *c, const struct number_space *space,
                             struct number_list *least)
{
    int64_t num = least->nums[least->at];
    enum err e = ERR_OK;
    for (size_t i = 0; i < c->list_count && e == ERR_OK; i++) {
        const struct number_list *l = &c->lists[i];
        if (l != least && !is_over(l) && l->nums[l->at] == num)
            e = check_pair(c, space, least, l);
    }
    if (!space->is_time)
        c->highest = MAX(c->highest, num);
    return e == ERR_OK ? advance(least) : e;
}

static void open_list(struct checker *c, size_t shard, const char *table, const char *sql)
{
    struct number_list *l = &c->lists[c->list_count++];
    l->db = c->shards[shard];
    l->shard = shard;
    l->table = table;
    l->sql = sql;
    l->count = l->at = 0;
}

static enum err check_space(struct checker *c, const struct number_space *space)
{
    enum err e = ERR_OK;
    c->list_count = 0;
    for (size_t i = 0; i < c->shard_count; i++) {
        for (size_t t = 0; t < TABLES_TOGETHER && space->tables[t].sql != NULL; t++)
            open_list(c, i, space->tables[t].name, space->tables[t].sql);
    }
    for (size_t i = 0; i < c->list_count && e == ERR_OK; i++)
        e = read_more(&c->lists[i]);
    struct number_list *least;
    while (e == ERR_OK && (least = least_of(c)) != NULL)
        e = check_number(c, space, least);
    return e;
}

/* Rows of these numbers may be gone. */
static enum err read_marks(struct checker *c)
{
    static const char SQL[] = "SELECT COALESCE(MAX(through), 0) FROM indexed"
                              " WHERE name = '" NUMBERS_MARK "' OR name = 'idempotency'";
    enum err e = ERR_OK;
    for (size_t i = 0; i < c->shard_count && e == ERR_OK; i++) {
        struct db_rows *rows = db_query_values(c->shards[i], SQL, NULL, 0);
        if (db_next(rows))
            c->highest = MAX(c->highest, db_count(rows, 0));
        e = db_rows_end(rows);
    }
    return e;
}

enum err merge_numbers_check(struct db *const *shards, size_t count,
                             const struct merge_tenants *tenants, struct problem *p,
                             int64_t *ret_highest)
{
    struct checker c = {.shards = shards, .shard_count = count, .tenants = tenants, .p = p};
    c.lists = malloc(count * TABLES_TOGETHER * sizeof(c.lists[0]));
    if (c.lists == NULL)
        return problem_set(p, ERR_NO_MEMORY, "Out of memory");
    enum err e = read_marks(&c);
    for (size_t i = 0; i < ARRAY_LEN(SPACES) && e == ERR_OK; i++)
        e = check_space(&c, &SPACES[i]);
    free(c.lists);
    *ret_highest = c.highest;
    return e == ERR_OK || p->err != ERR_OK
               ? e
               : problem_set(p, e, "Cannot read the numbers of the shards: %s", err_title(e));
}
