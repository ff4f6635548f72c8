/* A copy of a store: who may be its target, its rows, and their comparison. */
#include "store/copy/copy.h"

#include "store/db_driver.h"
#include "store/secrets.h"

#include <inttypes.h>

enum { ROW_BYTES_MAX = 64 * MIB }; /* as much as the PostgreSQL driver sends at once */

#define COPY_IS_STALE \
    "A server has used the source since the copy began. Remove the target and start again."

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
static enum err open_first(struct store_copy *copy, struct problem *p)
{
    struct db *reader = NULL;
    struct db_config config = {
        .url = copy->config.from, .access = DB_READER, .env = copy->config.env};
    enum err e = db_open(&config, p, &reader);
    db_close(reader);
    if (e != ERR_OK)
        return e;
    config.access = DB_WRITER;
    config.copy = copy->config.other_count == 0 ? DB_COPY_SOURCE : DB_COPY_PART;
    copy->source_count = 1;
    return db_open(&config, p, &copy->sources[0]);
}

static enum err open_sources(struct store_copy *copy, struct problem *p)
{
    assert(copy->config.other_count < CLUSTER_SHARDS_MAX);
    enum err e = open_first(copy, p);
    for (size_t i = 0; i < copy->config.other_count && e == ERR_OK; i++) {
        struct db_config config = {.url = copy->config.others[i],
                                   .access = DB_WRITER,
                                   .env = copy->config.env,
                                   .copy = DB_COPY_PART};
        e = db_open(&config, p, &copy->sources[copy->source_count++]);
    }
    return e;
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

/* A cluster may have the secret of the store that it is a copy of: its number of shards tells them
 * apart. */
static void put_id(const struct secret *secret, size_t sources, char out[static 2 * SHA256_LEN + 1])
{
    unsigned char count[] = {(unsigned char)(sources >> 8), (unsigned char)sources};
    struct str parts[] = {{(const char *)secret->bytes, SHA256_LEN},
                          {(const char *)count, sizeof(count)}};
    struct sha256 id = sources > 1 ? sha256_of_parts(parts, ARRAY_LEN(parts)) : sha256_of(parts[0]);
    for (size_t i = 0; i < SHA256_LEN; i++)
        (void)snprintf(out + 2 * i, 3, "%02x", id.bytes[i]);
}

static enum err identify_source(struct store_copy *copy, struct problem *p)
{
    struct secret secret;
    enum err e = secrets_get(copy->sources[0], copy->config.env, str_of(STORE_SECRET), &secret);
    if (e == ERR_OK)
        put_id(&secret, copy->source_count, copy->source_id);
    return failed(p, e, "read", STR("the name of the source"));
}

/* Does the target get rows of the table from this source? */
static bool is_copied(const struct store_copy *copy, size_t source, size_t table)
{
    return copy->merge == NULL || merge_copies(copy->merge, source, table);
}

/* Adds those of a source, or of the target, that are copied to *ret. */
static enum err count_rows(const struct store_copy *copy, struct db *db, size_t source,
                           struct problem *p, int64_t *ret)
{
    for (size_t i = 0; i < copy->tables.count; i++) {
        const struct copy_table *table = &copy->tables.list[i];
        if (!is_copied(copy, source, i))
            continue;
        struct db_rows *rows = db_query_values(db, table->count, NULL, 0);
        if (db_next(rows))
            *ret += db_count(rows, 0);
        enum err e = failed(p, db_rows_end(rows), "count", table->name);
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
    static const char SQL_MAKE[] =
        "CREATE TABLE " DB_COPY_TABLE
        " (source TEXT NOT NULL, part BIGINT NOT NULL, part_rows BIGINT NOT NULL)";
    static const char SQL_NAME[] =
        "INSERT INTO " DB_COPY_TABLE " (source, part, part_rows) VALUES ($1, 0, 0)";
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
        put_id(&secret, copy->source_count, id);
    copy->was_whole = copy->was_whole && strcmp(id, copy->source_id) == 0;
    if (copy->was_whole)
        return ERR_OK;
    return problem_set(p, ERR_STORE_FAILED,
                       "The target already has data (table %.*s). Choose a target that is empty or "
                       "does not exist yet.",
                       STR_ARG(data->name));
}

/* Of several shards: how far an earlier call came. */
static enum err read_part(struct store_copy *copy, struct problem *p)
{
    static const char SQL[] = "SELECT part, part_rows FROM " DB_COPY_TABLE " LIMIT 1";
    struct db_rows *rows = db_query_values(copy->target, SQL, NULL, 0);
    if (db_next(rows)) {
        copy->part = (size_t)db_count(rows, 0);
        copy->part_rows = db_count(rows, 1);
    }
    return failed(p, db_rows_end(rows), "read", STR("the target"));
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
    if (e == ERR_OK && has_mark && copy->merge != NULL)
        e = read_part(copy, p);
    if (e == ERR_OK && !copy->was_compared)
        e = check_target(copy, p);
    return e == ERR_OK && !has_mark ? mark_target(copy, p) : e;
}

static enum err compare_schema(const struct store_copy *copy, struct db *db, bool *ret_has_mark,
                               struct problem *p)
{
    struct copy_tables others;
    enum err e = copy_tables_read(db, p, &others);
    if (e == ERR_OK)
        e = copy_tables_compare(&copy->tables, &others, p);
    *ret_has_mark = others.has_mark;
    copy_tables_release(&others);
    return e;
}

/* All that can be said against the source, before there is a target. */
static enum err check_sources(struct store_copy *copy, struct problem *p)
{
    bool has_mark;
    enum err e = copy_tables_read(copy->sources[0], p, &copy->tables);
    for (size_t i = 1; i < copy->source_count && e == ERR_OK; i++)
        e = compare_schema(copy, copy->sources[i], &has_mark, p);
    if (e == ERR_OK && copy->source_count > 1)
        e = merge_new(copy->sources, copy->source_count, &copy->tables, p, &copy->merge);
    for (size_t i = 0; i < copy->source_count && e == ERR_OK; i++)
        e = count_rows(copy, copy->sources[i], i, p, &copy->rows);
    return e;
}

enum err store_copy_open(struct store_copy *ret, const struct copy_config *config,
                         struct problem *p)
{
    bool has_mark = false;
    *ret = (struct store_copy){.config = *config};
    if (str_eq(config->from, config->to))
        return problem_set(p, ERR_BAD_REQUEST, "The source and the target are the same store");
    enum err e = open_sources(ret, p);
    if (e == ERR_OK)
        e = check_sources(ret, p);
    if (e == ERR_OK)
        e = open_target(ret, p);
    if (e == ERR_OK)
        e = compare_schema(ret, ret->target, &has_mark, p);
    if (e == ERR_OK)
        e = identify_source(ret, p);
    if (e == ERR_OK)
        e = prepare_target(ret, has_mark, p);
    if (e == ERR_OK)
        e = count_rows(ret, ret->target, 0, p, &ret->rows_kept);
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
    merge_free(copy->merge);
    copy->merge = NULL;
    for (size_t i = 0; i < copy->source_count; i++)
        db_close(copy->sources[i]);
    copy_tables_release(&copy->tables);
}

/* --- rows --- */

/* A table of a source. */
struct part {
    size_t table;
    size_t source;
};

static size_t number_of(const struct store_copy *copy, struct part part)
{
    return part.table * copy->source_count + part.source;
}

/* The current row as the target gets it, or not. */
static enum err read_row(const struct store_copy *copy, struct part part, const struct copy_walk *w,
                         struct db_rows *rows, struct db_value values[static COPY_COLUMNS_MAX],
                         bool *ret_keep)
{
    *ret_keep = true;
    enum err e = copy_walk_values(w, rows, values);
    if (e == ERR_OK && copy->merge != NULL)
        e = merge_row(copy->merge, part.source, part.table, values, ret_keep);
    return e;
}

static enum err insert_slice(struct store_copy *copy, struct part part, const struct copy_walk *w)
{
    struct db_value values[COPY_COLUMNS_MAX];
    struct db_rows *rows = copy_walk_rows(w);
    bool keep;
    enum err e = ERR_OK;
    while (e == ERR_OK && db_next(rows)) {
        e = read_row(copy, part, w, rows, values, &keep);
        if (e == ERR_OK && keep)
            e = db_exec_values(copy->target, w->table->insert, values, w->table->column_count,
                               NULL);
    }
    enum err ended = db_rows_end(rows);
    return e == ERR_OK ? ended : e;
}

/* `done` rows of the part are in the target with this slice. */
static enum err note_part(struct store_copy *copy, struct part part, int64_t done)
{
    static const char SQL[] = "UPDATE " DB_COPY_TABLE " SET part = $1, part_rows = $2";
    return copy->merge != NULL
               ? DB_EXEC(copy->target, SQL, NULL, DB_I((int64_t)number_of(copy, part)), DB_I(done))
               : ERR_OK;
}

static enum err copy_slice(struct store_copy *copy, struct part part, const struct copy_walk *w,
                           int64_t done)
{
    enum err e = db_begin(copy->target);
    if (e != ERR_OK)
        return e;
    e = insert_slice(copy, part, w);
    if (e == ERR_OK)
        e = note_part(copy, part, done);
    if (e != ERR_OK) {
        db_rollback(copy->target);
        return e;
    }
    e = db_commit(copy->target);
    if (e == ERR_OK && db_wants_housekeeping(copy->target))
        e = db_housekeep(copy->target);
    return e;
}

/* The first slice that the target does not have. *done: rows of those before it. */
static enum err find_slice(const struct store_copy *copy, struct part part, struct copy_walk *w,
                           int64_t *done, struct problem *p)
{
    enum err e = ERR_OK;
    bool has_begun = copy->merge != NULL && number_of(copy, part) == copy->part;
    if (copy->merge == NULL)
        e = copy_walk_skip(w, copy->target);
    if (e == ERR_OK)
        e = copy_walk_next(w);
    while (e == ERR_OK && has_begun && w->rows > 0 && *done < copy->part_rows) {
        *done += w->rows;
        e = copy_walk_next(w);
    }
    if (e != ERR_OK || !has_begun || *done == copy->part_rows)
        return e;
    return problem_set(p, ERR_STORE_FAILED, "The table %.*s has changed. " COPY_IS_STALE,
                       STR_ARG(w->table->name));
}

static enum err copy_part(struct store_copy *copy, struct part part, struct problem *p)
{
    const struct copy_table *table = &copy->tables.list[part.table];
    struct copy_walk w;
    int64_t done = 0;
    copy_walk_begin(&w, copy->sources[part.source], table);
    enum err e = find_slice(copy, part, &w, &done, p);
    while (e == ERR_OK && w.rows > 0) {
        done += w.rows;
        e = copy_slice(copy, part, &w, done);
        if (e != ERR_OK)
            break;
        copy->done += w.rows;
        report(copy, COPY_WRITES, table, false);
        e = copy_walk_next(&w);
    }
    copy_walk_end(&w);
    if (e == ERR_OK && part.source + 1 == copy->source_count)
        report(copy, COPY_WRITES, table, true);
    return p->err != ERR_OK ? e : failed(p, e, "copy the table", table->name);
}

static enum err copy_table(struct store_copy *copy, size_t table, struct problem *p)
{
    enum err e = ERR_OK;
    for (size_t i = 0; i < copy->source_count && e == ERR_OK; i++) {
        struct part part = {table, i};
        if (is_copied(copy, i, table) && number_of(copy, part) >= copy->part)
            e = copy_part(copy, part, p);
    }
    return e;
}

/* --- comparison --- */

/* What is digested: a part, as the target gets it, or a table of the target. */
struct digested {
    struct db *db;
    struct part part;
    bool is_target;
};

static enum err digest_slice(const struct store_copy *copy, const struct digested *what,
                             const struct copy_walk *w, struct buf *room, struct copy_digest *d)
{
    struct db_value values[COPY_COLUMNS_MAX];
    struct db_rows *rows = copy_walk_rows(w);
    bool keep = true;
    enum err e = ERR_OK;
    while (e == ERR_OK && db_next(rows)) {
        e = what->is_target ? copy_walk_values(w, rows, values)
                            : read_row(copy, what->part, w, rows, values, &keep);
        if (e != ERR_OK || !keep)
            continue;
        e = copy->merge != NULL ? copy_digest_add_any(d, w->table, values, room)
                                : copy_digest_add(d, w->table, values, room);
    }
    enum err ended = db_rows_end(rows);
    return e == ERR_OK ? ended : e;
}

/* Goes on with *d. */
static enum err digest(struct store_copy *copy, const struct digested *what, struct copy_digest *d)
{
    const struct copy_table *table = &copy->tables.list[what->part.table];
    struct copy_walk w;
    struct buf room;
    buf_init(&room, ROW_BYTES_MAX);
    copy_walk_begin(&w, what->db, table);
    enum err e = copy_walk_next(&w);
    while (e == ERR_OK && w.rows > 0) {
        e = digest_slice(copy, what, &w, &room, d);
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

static enum err digest_sources(struct store_copy *copy, size_t table, struct copy_digest *d)
{
    enum err e = ERR_OK;
    for (size_t i = 0; i < copy->source_count && e == ERR_OK; i++) {
        struct digested what = {copy->sources[i], {table, i}, false};
        if (is_copied(copy, i, table))
            e = digest(copy, &what, d);
    }
    return e;
}

/* Not if its rows are in other shards by now, or if it has got more. */
static bool compares(const struct store_copy *copy, size_t table)
{
    if (copy->was_compared || (copy->was_whole && copy->config.is_first_shard))
        return false;
    return !copy->was_whole || copy->merge == NULL || merge_is_exact(copy->merge, table);
}

static enum err compare_table(struct store_copy *copy, size_t i, struct problem *p)
{
    const struct copy_table *table = &copy->tables.list[i];
    struct copy_digest *source = &copy->digests[i];
    struct copy_digest target = copy_digest_begin(table);
    struct digested what = {copy->target, {i, 0}, true};
    *source = target;
    enum err e = digest_sources(copy, i, source);
    if (e == ERR_OK && compares(copy, i))
        e = digest(copy, &what, &target);
    if (e != ERR_OK)
        return failed(p, e, "compare the table", table->name);
    if (!compares(copy, i) || copy_digest_eq(source, &target)) {
        report(copy, COPY_COMPARES, table, true);
        return ERR_OK;
    }
    return problem_set(
        p, ERR_STORE_FAILED,
        "The table %.*s differs: the source has %" PRId64 " rows, the target %" PRId64 ". %s",
        STR_ARG(table->name), source->rows, target.rows,
        copy->was_whole ? "The copy was finished before, and a server has used one of the two "
                          "stores since. Nothing was changed."
                        : COPY_IS_STALE);
}

static enum err compare_tables(struct store_copy *copy, struct problem *p)
{
    enum err e = ERR_OK;
    copy->done = 0;
    int64_t rows = 0;
    for (size_t i = 0; i < copy->tables.count && e == ERR_OK; i++) {
        e = compare_table(copy, i, p);
        rows += copy->digests[i].rows;
    }
    if (e == ERR_OK)
        copy->rows = rows;
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

/* What the target gets besides the rows of several shards, and the end of the mark. */
static enum err finish(struct store_copy *copy, struct problem *p)
{
    static const char SQL_DONE[] = "DROP TABLE " DB_COPY_TABLE;
    static const char SQL_COMPARED[] =
        "UPDATE " DB_COPY_TABLE " SET source = source || '" DB_COPY_COMPARED "'";
    const char *sql = copy->config.is_first_shard ? SQL_COMPARED : SQL_DONE;
    enum err e = db_begin(copy->target);
    if (e == ERR_OK && copy->config.check_source != NULL)
        e = copy->config.check_source(&copy->config, p);
    if (e == ERR_OK && copy->merge != NULL)
        e = merge_finish(copy->merge, copy->target, p);
    if (e == ERR_OK)
        e = db_exec_values(copy->target, sql, NULL, 0, NULL);
    if (e == ERR_OK)
        e = db_commit(copy->target);
    else
        db_rollback(copy->target);
    return e == ERR_OK || p->err != ERR_OK ? e : failed(p, e, "finish", STR("the target"));
}

enum err store_copy_run(struct store_copy *copy, struct problem *p)
{
    bool has_rows = copy->was_whole || copy->was_compared;
    enum err e = ERR_OK;
    copy->done = copy->rows_kept;
    for (size_t i = 0; i < copy->tables.count && e == ERR_OK && !has_rows; i++)
        e = copy_table(copy, i, p);
    if (e == ERR_OK)
        e = compare_tables(copy, p);
    return e == ERR_OK && !has_rows ? finish(copy, p) : e;
}
