/* A source and a target for the tests of copies. The source is a SQLite file; the target is on the
 * store that PAWL_TEST_STORE names. */
#ifndef PAWL_TESTS_STORE_COPY_COPY_SUPPORT_H
#define PAWL_TESTS_STORE_COPY_COPY_SUPPORT_H

#include "store/folder.h"

#include "store/copy/copy.h"

enum { URL_MAX = DB_PATH_MAX + 16 };

struct stores {
    char source[URL_MAX];
    char target[URL_MAX];
};

static inline struct stores stores_in(void **state)
{
    struct stores s;
    (void)snprintf(s.source, sizeof(s.source), "sqlite:%s", path_in(*state, "source.db").text);
    test_store_url(path_in(*state, "target.db").text, s.target, sizeof(s.target));
    return s;
}

static inline enum err try_open_url(const char *url, bool copies, struct problem *p,
                                    struct db **ret)
{
    struct db_config config = {.url = str_of(url),
                               .access = DB_WRITER,
                               .env = &ENV_SYSTEM,
                               .copy = copies ? DB_COPY_TARGET : DB_NO_COPY};
    return db_open(&config, p, ret);
}

static inline struct db *open_url(const char *url)
{
    struct problem p;
    struct db *db = NULL;
    problem_init(&p);
    if (try_open_url(url, true, &p, &db) != ERR_OK)
        fail_msg("cannot open %s: %s", url, p.detail);
    problem_release(&p);
    return db;
}

/* Runs constant statements, ended by NULL, on a store of its own opening. */
static inline void change(const char *url, const char *const *statements)
{
    struct db *db = open_url(url);
    for (size_t i = 0; statements[i] != NULL; i++)
        run_sql(db, statements[i]);
    db_close(db);
}

/* --- rows for every table --- */

static inline struct db_value made_value(struct arena *arena, struct str holds, int64_t row)
{
    char text[64];
    if (str_is(holds, "int"))
        return DB_I(row);
    int len = snprintf(text, sizeof(text), "row %lld, \xC3\xA4 ' \\ \"", (long long)row);
    struct str bytes = arena_str(arena, (struct str){text, (size_t)len});
    assert_non_null(bytes.ptr);
    return (struct db_value){str_is(holds, "text") ? DB_TEXT : DB_BLOB, 0, bytes};
}

/* As many rows with a value in every column. */
static inline void fill_table(struct db *db, const struct copy_table *t, int64_t rows)
{
    struct arena arena;
    struct db_value values[COPY_COLUMNS_MAX];
    arena_init(&arena, MIB);
    assert_ok(db_begin(db));
    for (int64_t row = 1; row <= rows; row++) {
        arena_clear(&arena);
        for (size_t i = 0; i < t->column_count; i++)
            values[i] = made_value(&arena, t->columns[i].holds, row);
        assert_ok(db_exec_values(db, t->insert, values, t->column_count, NULL));
    }
    assert_ok(db_commit(db));
    arena_release(&arena);
}

/* All tables, or the one of this name. */
static inline void fill(const char *url, const char *only, int64_t rows)
{
    struct problem p;
    struct copy_tables tables;
    problem_init(&p);
    struct db *db = open_url(url);
    assert_ok(copy_tables_read(db, &p, &tables));
    for (size_t i = 0; i < tables.count; i++) {
        if (only == NULL || str_is(tables.list[i].name, only))
            fill_table(db, &tables.list[i], rows);
    }
    db_close(db);
    copy_tables_release(&tables);
    problem_release(&p);
}

/* --- copies --- */

struct copied {
    enum err err;
    char why[PROBLEM_DETAIL_MAX];
    int64_t rows;
    int64_t rows_kept;
    bool was_whole;
    struct sha256 digest; /* of a copy that has succeeded */
};

typedef void progress_fn(void *ctx, const struct copy_progress *progress);

static inline struct copied try_copy_with(const char *from, const char *to, progress_fn *progress)
{
    struct problem p;
    struct store_copy copy;
    struct copied result = {.err = ERR_OK};
    struct copy_config config = {
        .from = str_of(from), .to = str_of(to), .env = &ENV_SYSTEM, .on_progress = progress};
    problem_init(&p);
    result.err = store_copy_open(&copy, &config, &p);
    if (result.err == ERR_OK)
        result.err = store_copy_run(&copy, &p);
    if (result.err == ERR_OK)
        result.digest = store_copy_digest(&copy);
    (void)snprintf(result.why, sizeof(result.why), "%s", p.detail);
    result.rows = copy.rows;
    result.rows_kept = copy.rows_kept;
    result.was_whole = copy.was_whole;
    store_copy_close(&copy);
    problem_release(&p);
    return result;
}

static inline struct copied try_copy(const char *from, const char *to)
{
    return try_copy_with(from, to, NULL);
}

static inline struct copied copy_of(const char *from, const char *to)
{
    struct copied result = try_copy(from, to);
    if (result.err != ERR_OK)
        fail_msg("%s", result.why);
    return result;
}

static inline void assert_refused(struct copied result, const char *why)
{
    assert_int_not_equal(result.err, ERR_OK);
    if (strstr(result.why, why) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", result.why, why);
}

/* Would a server open it? */
static inline bool is_whole(const char *url)
{
    struct problem p;
    struct db *db = NULL;
    problem_init(&p);
    enum err e = try_open_url(url, false, &p, &db);
    db_close(db);
    if (e != ERR_OK)
        assert_non_null(strstr(p.detail, "unfinished copy"));
    problem_release(&p);
    return e == ERR_OK;
}

#endif
