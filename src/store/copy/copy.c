/* A copy of a store: who may be its target, its rows, and their comparison. */
#include "store/copy/copy.h"

#include "store/db_driver.h"
#include "store/secrets.h"

#include <inttypes.h>

enum { ROW_BYTES_MAX = 64 * MIB }; /* as much as the PostgreSQL driver sends at once */

static enum err failed(struct problem *p, enum err e, const char *doing, struct str what)
{
    if (e == ERR_OK)
        return ERR_OK;
    return problem_set(p, e, "Cannot %s %.*s: %s", doing, STR_ARG(what),
                       e == ERR_STORE_FAILED ? "storage failed, see the log" : err_title(e));
}

static void report(const struct store_copy *copy, enum copy_phase phase,
                   const struct copy_table *table, bool table_is_done)
{
    struct copy_progress progress = {phase, table->name, table_is_done, copy->done,
                                     phase == COPY_COMPARES ? 2 * copy->rows : copy->rows};
    if (copy->config.on_progress != NULL)
        copy->config.on_progress(copy->config.ctx, &progress);
}

/* --- the two stores --- */

/* A reader first: it makes nothing where there is no store. */
static enum err open_source(struct store_copy *copy, struct problem *p)
{
    struct db *reader = NULL;
    struct db_config config = {
        .url = copy->config.from, .access = DB_READER, .env = copy->config.env};
    enum err e = db_open(&config, p, &reader);
    db_close(reader);
    if (e != ERR_OK)
        return e;
    config.access = DB_WRITER;
    config.copy = DB_COPY_SOURCE;
    return db_open(&config, p, &copy->source);
}

static enum err open_target(struct store_copy *copy, struct problem *p)
{
    struct db_config config = {.url = copy->config.to,
                               .access = DB_WRITER,
                               .env = copy->config.env,
                               .copy =
                                   copy->config.is_first_shard ? DB_COPY_SHARD : DB_COPY_TARGET};
    return db_open(&config, p, &copy->target);
}

/* What tells a store from all others; a whole copy has it too. */
static const char STORE_SECRET[] = "store";

static void put_id(const struct secret *secret, char out[static 2 * SHA256_LEN + 1])
{
    struct sha256 id = sha256_of((struct str){(const char *)secret->bytes, SHA256_LEN});
    for (size_t i = 0; i < SHA256_LEN; i++)
        (void)snprintf(out + 2 * i, 3, "%02x", id.bytes[i]);
}

static enum err identify_source(struct store_copy *copy, struct problem *p)
{
    struct secret secret;
    enum err e = secrets_get(copy->source, copy->config.env, str_of(STORE_SECRET), &secret);
    if (e == ERR_OK)
        put_id(&secret, copy->source_id);
    return failed(p, e, "read", STR("the name of the source"));
}

static enum err count_rows(struct db *db, const struct copy_tables *tables, struct problem *p,
                           int64_t *ret)
{
    *ret = 0;
    for (size_t i = 0; i < tables->count; i++) {
        struct db_rows *rows = db_query_values(db, tables->list[i].count, NULL, 0);
        if (db_next(rows))
            *ret += db_count(rows, 0);
        enum err e = failed(p, db_rows_end(rows), "count", tables->list[i].name);
        if (e != ERR_OK)
            return e;
    }
    return ERR_OK;
}

/* --- may it be the target? --- */

/* A table with rows that somebody has made; NULL: there is none. */
static enum err find_data(const struct store_copy *copy, struct problem *p,
                          const struct copy_table **ret)
{
    *ret = NULL;
    for (size_t i = 0; i < copy->tables.count && *ret == NULL; i++) {
        const struct copy_table *t = &copy->tables.list[i];
        if (!t->of_tenants)
            continue;
        struct db_rows *rows = db_query_values(copy->target, t->last, NULL, 0);
        if (db_next(rows))
            *ret = t;
        enum err e = failed(p, db_rows_end(rows), "read", t->name);
        if (e != ERR_OK)
            return e;
    }
    return ERR_OK;
}

/* One transaction: the target is a copy, and has nothing that its source does not have. */
static enum err mark_target(struct store_copy *copy, struct problem *p)
{
    static const char SQL_MAKE[] = "CREATE TABLE " DB_COPY_TABLE " (source TEXT NOT NULL)";
    static const char SQL_NAME[] = "INSERT INTO " DB_COPY_TABLE " (source) VALUES ($1)";
    enum err e = db_begin(copy->target);
    if (e == ERR_OK)
        e = db_exec_values(copy->target, SQL_MAKE, NULL, 0, NULL);
    if (e == ERR_OK)
        e = DB_EXEC(copy->target, SQL_NAME, NULL, DB_T(str_of(copy->source_id)));
    for (size_t i = 0; i < copy->tables.count && e == ERR_OK; i++)
        e = db_exec_values(copy->target, copy->tables.list[i].empty, NULL, 0, NULL);
    if (e == ERR_OK)
        e = db_commit(copy->target);
    else
        db_rollback(copy->target);
    return failed(p, e, "prepare", STR("the target"));
}

static enum err check_mark(struct store_copy *copy, struct problem *p)
{
    static const char SQL[] = "SELECT source FROM " DB_COPY_TABLE " LIMIT 1";
    struct db_rows *rows = db_query_values(copy->target, SQL, NULL, 0);
    struct str source = db_next(rows) ? db_str(rows, 0) : STR_NONE;
    copy->was_compared = str_ends_with(source, STR(DB_COPY_COMPARED));
    if (copy->was_compared)
        source.len -= strlen(DB_COPY_COMPARED);
    bool same = source.ptr != NULL && str_is(source, copy->source_id);
    enum err e = failed(p, db_rows_end(rows), "read", STR("the target"));
    if (e != ERR_OK || same)
        return e;
    return problem_set(p, ERR_STORE_FAILED,
                       "The target is an unfinished copy of another store. Remove it, or choose "
                       "another target.");
}

/* Somebody may ask for a copy that was finished a moment before its process died. */
static enum err check_whole(struct store_copy *copy, const struct copy_table *data,
                            struct problem *p)
{
    struct secret secret;
    char id[sizeof(copy->source_id)] = "";
    enum err e =
        failed(p, secrets_find(copy->target, str_of(STORE_SECRET), &copy->was_whole, &secret),
               "read", STR("the target"));
    if (e != ERR_OK)
        return e;
    if (copy->was_whole)
        put_id(&secret, id);
    copy->was_whole = copy->was_whole && strcmp(id, copy->source_id) == 0;
    if (copy->was_whole)
        return ERR_OK;
    return problem_set(p, ERR_STORE_FAILED,
                       "The target already has data (table %.*s). Choose a target that is empty or "
                       "does not exist yet.",
                       STR_ARG(data->name));
}

static enum err check_target(const struct store_copy *copy, struct problem *p)
{
    const struct copy_config *config = &copy->config;
    return config->check_target != NULL ? config->check_target(config, p) : ERR_OK;
}

static enum err prepare_target(struct store_copy *copy, bool has_mark, struct problem *p)
{
    const struct copy_table *data = NULL;
    enum err e = has_mark ? check_mark(copy, p) : find_data(copy, p, &data);
    if (e == ERR_OK && data != NULL)
        return check_whole(copy, data, p);
    if (e == ERR_OK && !copy->was_compared)
        e = check_target(copy, p);
    return e == ERR_OK && !has_mark ? mark_target(copy, p) : e;
}

static enum err check_tables(struct store_copy *copy, bool *ret_has_mark, struct problem *p)
{
    struct copy_tables of_target;
    enum err e = copy_tables_read(copy->source, p, &copy->tables);
    if (e != ERR_OK)
        return e;
    e = copy_tables_read(copy->target, p, &of_target);
    if (e == ERR_OK)
        e = copy_tables_compare(&copy->tables, &of_target, p);
    *ret_has_mark = of_target.has_mark;
    copy_tables_release(&of_target);
    return e;
}

enum err store_copy_open(struct store_copy *ret, const struct copy_config *config,
                         struct problem *p)
{
    bool has_mark = false;
    *ret = (struct store_copy){.config = *config};
    if (str_eq(config->from, config->to))
        return problem_set(p, ERR_BAD_REQUEST, "The source and the target are the same store");
    enum err e = open_source(ret, p);
    if (e == ERR_OK)
        e = open_target(ret, p);
    if (e == ERR_OK)
        e = check_tables(ret, &has_mark, p);
    if (e == ERR_OK)
        e = identify_source(ret, p);
    if (e == ERR_OK)
        e = prepare_target(ret, has_mark, p);
    if (e == ERR_OK)
        e = count_rows(ret->source, &ret->tables, p, &ret->rows);
    if (e == ERR_OK)
        e = count_rows(ret->target, &ret->tables, p, &ret->rows_kept);
    return e;
}

void store_copy_close_target(struct store_copy *copy)
{
    db_close(copy->target);
    copy->target = NULL;
}

void store_copy_close(struct store_copy *copy)
{
    store_copy_close_target(copy);
    db_close(copy->source);
    copy_tables_release(&copy->tables);
}

/* --- rows --- */

static enum err insert_slice(struct store_copy *copy, const struct copy_walk *w)
{
    struct db_value values[COPY_COLUMNS_MAX];
    struct db_rows *rows = copy_walk_rows(w);
    enum err e = ERR_OK;
    while (e == ERR_OK && db_next(rows)) {
        e = copy_walk_values(w, rows, values);
        if (e == ERR_OK)
            e = db_exec_values(copy->target, w->table->insert, values, w->table->column_count,
                               NULL);
    }
    enum err ended = db_rows_end(rows);
    return e == ERR_OK ? ended : e;
}

static enum err copy_slice(struct store_copy *copy, const struct copy_walk *w)
{
    enum err e = db_begin(copy->target);
    if (e != ERR_OK)
        return e;
    e = insert_slice(copy, w);
    if (e != ERR_OK) {
        db_rollback(copy->target);
        return e;
    }
    e = db_commit(copy->target);
    if (e == ERR_OK && db_wants_housekeeping(copy->target))
        e = db_housekeep(copy->target);
    return e;
}

static enum err copy_table(struct store_copy *copy, const struct copy_table *table,
                           struct problem *p)
{
    struct copy_walk w;
    copy_walk_begin(&w, copy->source, table);
    enum err e = copy_walk_skip(&w, copy->target);
    if (e == ERR_OK)
        e = copy_walk_next(&w);
    while (e == ERR_OK && w.rows > 0) {
        e = copy_slice(copy, &w);
        if (e != ERR_OK)
            break;
        copy->done += w.rows;
        report(copy, COPY_WRITES, table, false);
        e = copy_walk_next(&w);
    }
    copy_walk_end(&w);
    if (e == ERR_OK)
        report(copy, COPY_WRITES, table, true);
    return failed(p, e, "copy the table", table->name);
}

/* --- comparison --- */

static enum err digest_slice(const struct copy_walk *w, struct buf *room, struct copy_digest *d)
{
    struct db_value values[COPY_COLUMNS_MAX];
    struct db_rows *rows = copy_walk_rows(w);
    enum err e = ERR_OK;
    while (e == ERR_OK && db_next(rows)) {
        e = copy_walk_values(w, rows, values);
        if (e == ERR_OK)
            e = copy_digest_add(d, w->table, values, room);
    }
    enum err ended = db_rows_end(rows);
    return e == ERR_OK ? ended : e;
}

static enum err digest_table(struct store_copy *copy, struct db *db, const struct copy_table *table,
                             struct copy_digest *ret)
{
    struct copy_walk w;
    struct buf room;
    buf_init(&room, ROW_BYTES_MAX);
    copy_walk_begin(&w, db, table);
    *ret = copy_digest_begin(table);
    enum err e = copy_walk_next(&w);
    while (e == ERR_OK && w.rows > 0) {
        e = digest_slice(&w, &room, ret);
        if (e != ERR_OK)
            break;
        copy->done += w.rows;
        report(copy, COPY_COMPARES, table, false);
        e = copy_walk_next(&w);
    }
    copy_walk_end(&w);
    buf_release(&room);
    return e;
}

static enum err compare_table(struct store_copy *copy, size_t i, struct problem *p)
{
    const struct copy_table *table = &copy->tables.list[i];
    struct copy_digest *source = &copy->digests[i];
    struct copy_digest target;
    enum err e = digest_table(copy, copy->source, table, source);
    bool has_moved_on = copy->was_compared || (copy->was_whole && copy->config.is_first_shard);
    if (e == ERR_OK && !has_moved_on) /* otherwise its rows are in other shards by now */
        e = digest_table(copy, copy->target, table, &target);
    if (e != ERR_OK)
        return failed(p, e, "compare the table", table->name);
    if (has_moved_on || copy_digest_eq(source, &target)) {
        report(copy, COPY_COMPARES, table, true);
        return ERR_OK;
    }
    return problem_set(
        p, ERR_STORE_FAILED,
        "The table %.*s differs: the source has %" PRId64 " rows, the target %" PRId64 ". %s",
        STR_ARG(table->name), source->rows, target.rows,
        copy->was_whole ? "The copy was finished before, and a server has used one of the two "
                          "stores since. Nothing was changed."
                        : "A server has used the source since the copy began. Remove the target "
                          "and start again.");
}

static enum err compare_tables(struct store_copy *copy, struct problem *p)
{
    enum err e = ERR_OK;
    copy->done = 0;
    for (size_t i = 0; i < copy->tables.count && e == ERR_OK; i++)
        e = compare_table(copy, i, p);
    return e;
}

struct sha256 store_copy_digest(const struct store_copy *copy)
{
    struct sha256 all = {{0}};
    for (size_t i = 0; i < copy->tables.count; i++) {
        struct str parts[] = {{(const char *)all.bytes, SHA256_LEN},
                              {(const char *)copy->digests[i].hash.bytes, SHA256_LEN}};
        all = sha256_of_parts(parts, ARRAY_LEN(parts));
    }
    return all;
}

enum err store_copy_run(struct store_copy *copy, struct problem *p)
{
    static const char SQL_DONE[] = "DROP TABLE " DB_COPY_TABLE;
    static const char SQL_COMPARED[] =
        "UPDATE " DB_COPY_TABLE " SET source = source || '" DB_COPY_COMPARED "'";
    bool has_rows = copy->was_whole || copy->was_compared;
    enum err e = ERR_OK;
    copy->done = copy->rows_kept;
    for (size_t i = 0; i < copy->tables.count && e == ERR_OK && !has_rows; i++)
        e = copy_table(copy, &copy->tables.list[i], p);
    if (e == ERR_OK)
        e = compare_tables(copy, p);
    if (e == ERR_OK && !has_rows)
        e = failed(p,
                   db_exec_values(copy->target,
                                  copy->config.is_first_shard ? SQL_COMPARED : SQL_DONE, NULL, 0,
                                  NULL),
                   "finish", STR("the target"));
    return e;
}
