/* Columns of a row from one list: the texts of statements, and every kind there and back. */
#include "store/folder.h"

#include "store/columns.h"

enum colour { RED, GREEN, COLOUR_COUNT };

static const char *colour_name(enum colour colour)
{
    return colour == RED ? "red" : "green";
}

static enum colour colour_of(struct str name)
{
    return str_is(name, "red") ? RED : str_is(name, "green") ? GREEN : COLOUR_COUNT;
}

struct row {
    int64_t number, number_or_none;
    int64_t count, count_or_none;
    int64_t at, at_or_none;
    struct str text, bytes;
    struct uuid id, id_or_none;
    struct sha256 hash;
    bool flag;
    struct {
        enum colour colour;
    } inner;
};

#define COLUMN_BIND_COLOUR(value) COLUMN_BIND_WORD(colour_name(value))
#define COLUMN_READ_COLOUR(rows, at) COLUMN_READ_WORD(rows, at, colour_of, COLOUR_COUNT)
#define COLUMN_KEEP_COLOUR(arena, value)

#define ROW_COLUMNS(X, p)                    \
    X(p, 1, INT, a, number)                  \
    X(p, 2, INT_OR_NONE, b, number_or_none)  \
    X(p, 3, COUNT, c, count)                 \
    X(p, 4, COUNT_OR_NONE, d, count_or_none) \
    X(p, 5, TIME, e, at)                     \
    X(p, 6, TIME_OR_NONE, f, at_or_none)     \
    X(p, 7, TEXT, g, text)                   \
    X(p, 8, BYTES, h, bytes)                 \
    X(p, 9, UUID, i, id)                     \
    X(p, 10, UUID_OR_NONE, j, id_or_none)    \
    X(p, 11, HASH, k, hash)                  \
    X(p, 12, BOOL, l, flag)                  \
    X(p, 13, COLOUR, m, inner.colour)
COLUMNS_NUMBERED(ROW_COLUMNS, ROW);

#define PAIR_COLUMNS(X, p)    \
    X(p, 1, INT, one, number) \
    X(p, 2, TEXT, two, text)

static void read_row(struct db_rows *rows, struct row *row)
{
    *row = (struct row){ROW_COLUMNS(COLUMN_READ, rows)};
}

COLUMNS_READ_ONE(read_one, struct row, ROW_COLUMNS, read_row);

static void statements_have_the_columns_in_their_order(void **state)
{
    (void)state;
    assert_string_equal(COLUMNS_SELECT(PAIR_COLUMNS, "") " FROM t", "SELECT one, two FROM t");
    assert_string_equal(COLUMNS_SELECT(PAIR_COLUMNS, "x.") " FROM t x",
                        "SELECT x.one, x.two FROM t x");
    assert_string_equal(COLUMNS_INSERT("t", PAIR_COLUMNS),
                        "INSERT INTO t (one, two) VALUES ($1, $2)");
    assert_string_equal(COLUMNS_INSERT_WITH("t", PAIR_COLUMNS, "three", "$3"),
                        "INSERT INTO t (one, two, three) VALUES ($1, $2, $3)");
    assert_int_equal(ROW_AT_m, 12);
    assert_int_equal(ROW_COLUMNS_END, 13);
}

static struct db *open_with_table(const struct folder *f)
{
    static const char SQL[] =
        "CREATE TABLE t (a INTEGER, b INTEGER, c INTEGER, d INTEGER, e INTEGER, f INTEGER, g TEXT,"
        " h BLOB, i BLOB, j BLOB, k BLOB, l INTEGER, m TEXT) STRICT";
    struct db *db = open_writer(path_in(f, "store.db").text);
    assert_ok(db_begin(db));
    assert_ok(db_exec_values(db, SQL, NULL, 0, NULL));
    return db;
}

static enum err there_and_back(struct db *db, const struct row *row, struct arena *arena,
                               struct row *ret)
{
    static const char SQL[] = COLUMNS_INSERT("t", ROW_COLUMNS);
    static const char SQL_FIND[] =
        COLUMNS_SELECT(ROW_COLUMNS, "") " FROM t ORDER BY rowid DESC LIMIT 1";
    bool found = false;
    assert_ok(DB_EXEC(db, SQL, NULL, ROW_COLUMNS(COLUMN_BIND, row)));
    enum err e = read_one(db_query_values(db, SQL_FIND, NULL, 0), arena, &found, ret);
    assert_true(found);
    return e;
}

static void every_kind_reads_back_what_it_wrote(void **state)
{
    struct db *db = open_with_table(*state);
    struct arena arena;
    arena_init(&arena, 4096);
    struct row row = {.number = -5,
                      .number_or_none = 6,
                      .count = 7,
                      .count_or_none = 8,
                      .at = 9,
                      .at_or_none = 10,
                      .text = STR("text"),
                      .bytes = STR("\x00\x01"),
                      .id = {{1}},
                      .id_or_none = {{2}},
                      .hash = {{3}},
                      .flag = true,
                      .inner.colour = GREEN};
    struct row back;
    assert_ok(there_and_back(db, &row, &arena, &back));
    assert_int_equal(back.number, -5);
    assert_int_equal(back.number_or_none, 6);
    assert_int_equal(back.count, 7);
    assert_int_equal(back.count_or_none, 8);
    assert_int_equal(back.at, 9);
    assert_int_equal(back.at_or_none, 10);
    assert_true(str_eq(back.text, row.text) && back.text.ptr != row.text.ptr);
    assert_true(str_eq(back.bytes, row.bytes));
    assert_true(uuid_eq(back.id, row.id) && uuid_eq(back.id_or_none, row.id_or_none));
    assert_true(sha256_eq(&back.hash, &row.hash));
    assert_true(back.flag);
    assert_int_equal(back.inner.colour, GREEN);
    db_rollback(db);
    db_close(db);
    arena_release(&arena);
}

static void what_may_be_absent_is_null_in_the_row(void **state)
{
    struct db *db = open_with_table(*state);
    struct arena arena;
    arena_init(&arena, 4096);
    struct row row = {
        .number_or_none = -1, .count_or_none = -1, .at_or_none = -1, .bytes = STR(""), .id = {{1}}};
    struct row back;
    assert_ok(there_and_back(db, &row, &arena, &back));
    assert_int_equal(back.number_or_none, -1);
    assert_int_equal(back.count_or_none, -1);
    assert_int_equal(back.at_or_none, -1);
    assert_null(back.text.ptr);
    assert_true(uuid_is_nil(back.id_or_none));
    static const char SQL[] = "SELECT (b IS NULL) + (d IS NULL) + (f IS NULL) + (g IS NULL)"
                              " + (j IS NULL) FROM t";
    struct db_rows *rows = db_query_values(db, SQL, NULL, 0);
    assert_true(db_next(rows));
    assert_int_equal(db_int(rows, 0), 5);
    assert_ok(db_rows_end(rows));
    db_rollback(db);
    db_close(db);
    arena_release(&arena);
}

static void a_text_that_finds_no_room_is_no_memory(void **state)
{
    struct db *db = open_with_table(*state);
    struct arena arena;
    arena_init(&arena, 4096);
    static char long_text[8192];
    memset(long_text, 'x', sizeof(long_text));
    struct row row = {.text = {long_text, sizeof(long_text)}, .bytes = STR(""), .id = {{1}}};
    struct row back;
    assert_int_equal(there_and_back(db, &row, &arena, &back), ERR_NO_MEMORY);
    db_rollback(db);
    db_close(db);
    arena_release(&arena);
}

static void a_word_that_is_not_in_its_table_is_damage(void **state)
{
    static const char SQL[] = "UPDATE t SET m = 'blue'";
    static const char SQL_FIND[] = COLUMNS_SELECT(ROW_COLUMNS, "") " FROM t LIMIT 1";
    struct db *db = open_with_table(*state);
    struct arena arena;
    arena_init(&arena, 4096);
    struct row row = {.bytes = STR(""), .id = {{1}}};
    struct row back;
    bool found;
    assert_ok(there_and_back(db, &row, &arena, &back));
    assert_ok(db_exec_values(db, SQL, NULL, 0, NULL));
    assert_int_equal(read_one(db_query_values(db, SQL_FIND, NULL, 0), &arena, &found, &back),
                     ERR_DAMAGED);
    db_rollback(db);
    db_close(db);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statements_have_the_columns_in_their_order),
        folder_test(every_kind_reads_back_what_it_wrote),
        folder_test(what_may_be_absent_is_null_in_the_row),
        folder_test(a_text_that_finds_no_room_is_no_memory),
        folder_test(a_word_that_is_not_in_its_table_is_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
