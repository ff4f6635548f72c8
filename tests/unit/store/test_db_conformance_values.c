/* What every store must do: values, results, ordering and damage. */
#include "store/conformance.h"

/* --- parameters and results --- */

static void parameters_may_come_in_any_order(void **state)
{
    static const char SQL[] = "SELECT $3, $1, $2, $1, $4";
    struct path file = path_in(*state, "p.db");
    struct db *db = open_writer(file.text);
    for (int64_t round = 0; round < 2; round++) { /* the second time it is prepared already */
        struct db_rows *rows =
            DB_QUERY(db, SQL, DB_I(10 + round), DB_T(STR("two")), DB_I(30), DB_N());
        assert_true(db_next(rows));
        assert_int_equal(db_int(rows, 0), 30);
        assert_int_equal(db_int(rows, 1), 10 + round);
        assert_str(db_str(rows, 2), "two");
        assert_int_equal(db_int(rows, 3), 10 + round);
        assert_true(db_is_null(rows, 4));
        assert_int_equal(db_int_or(rows, 4, -1), -1);
        assert_false(db_next(rows));
        assert_ok(db_rows_end(rows));
    }
    db_close(db);
}

static void values_of_every_kind_come_back(void **state)
{
    static const char SQL[] = "SELECT $1, $2, $3, $4, $5, $6, $7, $8";
    struct path file = path_in(*state, "p.db");
    struct db *db = open_writer(file.text);
    struct uuid id = env_new_id(&ENV_SYSTEM);
    struct sha256 hash = sha256_of(STR("x"));
    struct db_rows *rows =
        DB_QUERY(db, SQL, DB_I(INT64_MIN), DB_I(INT64_MAX), DB_T(STR("")), DB_T(STR_NONE),
                 DB_T(STR("a\xC3\xB6")), DB_U(id), DB_H(hash), DB_I_OR_NULL(INT64_C(-1)));
    assert_true(db_next(rows));
    assert_true(db_int(rows, 0) == INT64_MIN);
    assert_true(db_int(rows, 1) == INT64_MAX);
    assert_non_null(db_str(rows, 2).ptr);
    assert_int_equal(db_str(rows, 2).len, 0);
    assert_null(db_str(rows, 3).ptr);
    assert_str(db_str(rows, 4), "a\xC3\xB6");
    assert_true(uuid_eq(db_uuid(rows, 5), id));
    struct sha256 back = db_hash(rows, 6);
    assert_true(sha256_eq(&back, &hash));
    assert_true(db_is_null(rows, 7));
    assert_ok(db_rows_end(rows));
    db_close(db);
}

static void a_parameter_is_null_whatever_it_was_before(void **state)
{
    static const char SQL[] = "SELECT $1, $2";
    const struct db_value uses[] = {DB_N(), DB_I(7), DB_N(), DB_N(), DB_T(STR("x")), DB_N()};
    struct path file = path_in(*state, "p.db");
    struct db *db = open_writer(file.text);
    for (size_t i = 0; i < ARRAY_LEN(uses); i++) {
        struct db_rows *rows = DB_QUERY(db, SQL, uses[i], DB_I(1));
        assert_true(db_next(rows));
        assert_int_equal(db_is_null(rows, 0), uses[i].kind == DB_NULL);
        assert_ok(db_rows_end(rows));
    }
    db_close(db);
}

/* An engine may leave out what it knows already; it must not mistake a new value for that. */
static void a_parameter_is_what_it_is_now_whatever_it_was_before(void **state)
{
    static const char SQL[] = "SELECT $1, $2";
    char text[] = "ab";
    struct path file = path_in(*state, "p.db");
    struct db *db = open_writer(file.text);
    for (char c = 'b'; c <= 'e'; c++) {
        text[1] = c; /* another text at the same place */
        struct db_rows *rows = DB_QUERY(db, SQL, DB_T(((struct str){text, 2})), DB_I(c % 2));
        assert_true(db_next(rows));
        assert_str(db_str(rows, 0), text);
        assert_int_equal(db_int(rows, 1), c % 2);
        assert_ok(db_rows_end(rows));
    }
    const struct db_value uses[] = {
        DB_T(((struct str){text, 2})), DB_B(text, 2), DB_B(text, 1), DB_I(0), DB_N(), DB_I(0)};
    for (size_t i = 0; i < ARRAY_LEN(uses); i++) {
        struct db_rows *rows = DB_QUERY(db, SQL, uses[i], DB_I(7));
        assert_true(db_next(rows));
        assert_int_equal(db_is_null(rows, 0), uses[i].kind == DB_NULL);
        if (uses[i].kind == DB_INT)
            assert_int_equal(db_int(rows, 0), uses[i].number);
        else if (uses[i].kind != DB_NULL)
            assert_true(str_eq(db_str(rows, 0), uses[i].bytes));
        assert_int_equal(db_int(rows, 1), 7);
        assert_ok(db_rows_end(rows));
    }
    db_close(db);
}

static void a_query_may_be_left_before_its_end(void **state)
{
    static const char SQL[] = "SELECT num FROM notes ORDER BY num";
    struct path file = path_in(*state, "p.db");
    struct db *db = open_writer(file.text);
    make_notes(db);
    for (int64_t i = 1; i <= 5; i++)
        add_note(db, i, STR("x"));
    for (int round = 0; round < 2; round++) {
        struct db_rows *rows = db_query_values(db, SQL, NULL, 0);
        assert_true(db_next(rows));
        assert_int_equal(db_int(rows, 0), 1);
        assert_ok(db_rows_end(rows));
    }
    db_close(db);
}

static void a_statement_that_does_not_compile_has_no_rows_and_an_error(void **state)
{
    static const char SQL[] = "SELECT nothing FROM nowhere";
    struct path file = path_in(*state, "p.db");
    struct db *db = open_writer(file.text);
    for (int round = 0; round < 2; round++) {
        struct db_rows *rows = db_query_values(db, SQL, NULL, 0);
        assert_false(db_next(rows));
        assert_int_equal(db_rows_end(rows), ERR_INTERNAL);
    }
    db_close(db);
}

static void a_result_may_have_many_rows(void **state)
{
    static const char SQL[] = "WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c"
                              " WHERE n < $1) SELECT n, 'row ' || n FROM c";
    struct db *db = writer_of(state);
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(20000));
    int64_t count = 0;
    while (db_next(rows)) {
        count++;
        assert_int_equal(db_int(rows, 0), count);
        assert_true(str_starts_with(db_str(rows, 1), STR("row ")));
    }
    assert_ok(db_rows_end(rows));
    assert_int_equal(count, 20000);
    db_close(db);
}

static void a_statement_may_have_32_parameters(void **state)
{
    static const char SQL[] = "SELECT $1+$2+$3+$4+$5+$6+$7+$8+$9+$10+$11+$12+$13+$14+$15+$16+$17"
                              "+$18+$19+$20+$21+$22+$23+$24+$25+$26+$27+$28+$29+$30+$31+$32";
    struct db *db = writer_of(state);
    struct db_value values[32];
    for (size_t i = 0; i < ARRAY_LEN(values); i++)
        values[i] = DB_I((int64_t)i + 1);
    struct db_rows *rows = db_query_values(db, SQL, values, ARRAY_LEN(values));
    assert_true(db_next(rows));
    assert_int_equal(db_int(rows, 0), 32 * 33 / 2);
    assert_ok(db_rows_end(rows));
    db_close(db);
}

/* --- stored and read again --- */

static void make_cells(struct db *db)
{
    static const char SQL[] = "CREATE TABLE cells (num INTEGER PRIMARY KEY, number INTEGER,"
                              " text TEXT, bytes BLOB) STRICT";
    static const char POSTGRES[] = "CREATE TABLE cells (num BIGINT PRIMARY KEY, number BIGINT,"
                                   " text TEXT COLLATE \"C\", bytes BYTEA)";
    run_sql(db, test_store_is_postgres() ? POSTGRES : SQL);
}

static void put_cell(struct db *db, int64_t num, struct db_value number, struct db_value text,
                     struct db_value bytes)
{
    static const char SQL[] =
        "INSERT INTO cells (num, number, text, bytes) VALUES ($1, $2, $3, $4)";
    assert_ok(DB_EXEC(db, SQL, NULL, DB_I(num), number, text, bytes));
}

static struct db *writer_with_cells(void **state)
{
    struct db *db = writer_of(state);
    make_cells(db);
    assert_ok(db_begin(db));
    return db;
}

/* One committed cell, to be read. */
static struct db_rows *cell(struct db *db, int64_t num)
{
    static const char SQL[] = "SELECT number, text, bytes FROM cells WHERE num = $1";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(num));
    assert_true(db_next(rows));
    return rows;
}

static void integers_keep_all_64_bits(void **state)
{
    static const char FIND[] = "SELECT num FROM cells WHERE number = $1";
    static const int64_t NUMBERS[] = {INT64_MIN, INT64_MAX, (INT64_C(1) << 53) + 1, -1, 0};
    struct db *db = writer_with_cells(state);
    for (size_t i = 0; i < ARRAY_LEN(NUMBERS); i++)
        put_cell(db, (int64_t)i, DB_I(NUMBERS[i]), DB_N(), DB_N());
    assert_ok(db_commit(db));
    for (size_t i = 0; i < ARRAY_LEN(NUMBERS); i++) {
        struct db_rows *rows = cell(db, (int64_t)i);
        assert_true(db_int(rows, 0) == NUMBERS[i]);
        assert_ok(db_rows_end(rows));
        rows = DB_QUERY(db, FIND, DB_I(NUMBERS[i]));
        assert_true(db_next(rows));
        assert_int_equal(db_int(rows, 0), i);
        assert_false(db_next(rows));
        assert_ok(db_rows_end(rows));
    }
    db_close(db);
}

static void empty_text_and_empty_bytes_are_not_null(void **state)
{
    static const char NULLS[] = "SELECT count(*) FROM cells WHERE text IS NULL AND bytes IS NULL";
    static const char EMPTY[] = "SELECT count(*) FROM cells WHERE text = '' AND length(bytes) = 0";
    struct db *db = writer_with_cells(state);
    put_cell(db, 1, DB_N(), DB_T(STR("")), DB_B("", 0));
    put_cell(db, 2, DB_N(), DB_T(STR_NONE), DB_N());
    assert_ok(db_commit(db));
    assert_int_equal(number_of(db, NULLS), 1);
    assert_int_equal(number_of(db, EMPTY), 1);
    struct db_rows *rows = cell(db, 1);
    for (int column = 1; column <= 2; column++) {
        assert_false(db_is_null(rows, column));
        assert_non_null(db_str(rows, column).ptr);
        assert_int_equal(db_str(rows, column).len, 0);
    }
    assert_ok(db_rows_end(rows));
    rows = cell(db, 2);
    for (int column = 0; column <= 2; column++) {
        assert_true(db_is_null(rows, column));
        assert_null(db_str(rows, column).ptr);
        assert_int_equal(db_int_or(rows, column, -7), -7);
    }
    assert_ok(db_rows_end(rows));
    db_close(db);
}

static void bytes_and_text_are_kept_whole(void **state)
{
    static char large[MIB];
    struct db *db = writer_with_cells(state);
    for (size_t i = 0; i < sizeof(large); i++)
        large[i] = (char)(i % 251);
    struct str bytes = {large, sizeof(large)};
    put_cell(db, 1, DB_N(), DB_T(STR("h\xC3\xA9 \xF0\x9F\x90\x98")), DB_B(large, sizeof(large)));
    memset(large, 'x', sizeof(large) / 2);
    put_cell(db, 2, DB_N(), DB_T(((struct str){large, sizeof(large) / 2})), DB_B("a\0b", 3));
    assert_ok(db_commit(db));
    for (size_t i = 0; i < sizeof(large); i++)
        large[i] = (char)(i % 251);
    struct db_rows *rows = cell(db, 1);
    assert_str(db_str(rows, 1), "h\xC3\xA9 \xF0\x9F\x90\x98");
    assert_true(str_eq(db_str(rows, 2), bytes));
    assert_ok(db_rows_end(rows));
    rows = cell(db, 2);
    assert_int_equal(db_str(rows, 1).len, sizeof(large) / 2);
    assert_true(str_eq(db_str(rows, 2), (struct str){"a\0b", 3}));
    assert_ok(db_rows_end(rows));
    db_close(db);
}

static void ids_are_found_and_sort_by_their_bytes(void **state)
{
    static const char SORTED[] = "SELECT num FROM cells ORDER BY bytes";
    static const char FIND[] = "SELECT num, bytes FROM cells WHERE bytes = $1";
    struct db *db = writer_with_cells(state);
    struct uuid ids[4] = {0};
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        ids[i].bytes[0] = (unsigned char)(0x40 * i); /* the last two are over 127 */
        put_cell(db, (int64_t)i, DB_N(), DB_N(), DB_U(ids[i]));
    }
    assert_ok(db_commit(db));
    struct db_rows *rows = db_query_values(db, SORTED, NULL, 0);
    for (int64_t i = 0; i < (int64_t)ARRAY_LEN(ids); i++) {
        assert_true(db_next(rows));
        assert_int_equal(db_int(rows, 0), i);
    }
    assert_ok(db_rows_end(rows));
    rows = DB_QUERY(db, FIND, DB_U(ids[3]));
    assert_true(db_next(rows));
    assert_int_equal(db_int(rows, 0), 3);
    assert_true(uuid_eq(db_uuid(rows, 1), ids[3]));
    assert_ok(db_rows_end(rows));
    db_close(db);
}

/* --- order --- */

/* Not by the rules of a language: "Z" is before "a", and every letter of ASCII before any other. */
static void text_sorts_and_compares_by_its_bytes(void **state)
{
    static const char *const SORTED[] = {"",  "10",  "9",  "B", "Z",
                                         "a", "a b", "ab", "z", "\xC3\xA9"};
    static const char SQL[] = "SELECT text FROM notes ORDER BY text";
    static const char CASE[] = "SELECT count(*) FROM notes WHERE text = 'b'";
    struct db *db = writer_with_notes(state);
    for (size_t i = ARRAY_LEN(SORTED); i > 0; i--)
        add_note(db, (int64_t)i, str_of(SORTED[i - 1]));
    struct db_rows *rows = db_query_values(db, SQL, NULL, 0);
    for (size_t i = 0; i < ARRAY_LEN(SORTED); i++) {
        assert_true(db_next(rows));
        assert_str(db_str(rows, 0), SORTED[i]);
    }
    assert_ok(db_rows_end(rows));
    assert_int_equal(number_of(db, CASE), 0);
    db_close(db);
}

/* --- damage --- */

static void a_value_of_another_type_is_damage(void **state)
{
    static const char SQL[] = "SELECT 'text', 1.5, 7, x'0102'";
    struct db *db = writer_of(state);
    for (int column = 0; column <= 3; column++) {
        struct db_rows *rows = db_query_values(db, SQL, NULL, 0);
        assert_true(db_next(rows));
        assert_true(db_is_whole(rows));
        switch (column) {
        case 0:
            assert_int_equal(db_int(rows, column), 0);
            break;
        case 1:
            assert_int_equal(db_str(rows, column).len, 0);
            break;
        case 2:
            assert_int_equal(db_str(rows, column).len, 0);
            break;
        default:
            assert_true(uuid_is_nil(db_uuid(rows, column)));
        }
        assert_false(db_is_whole(rows));
        assert_false(db_next(rows));
        assert_int_equal(db_rows_end(rows), ERR_DAMAGED);
    }
    db_close(db);
}

static void a_damaged_row_can_be_left_out(void **state)
{
    static const char SQL[] = "SELECT 1 UNION ALL SELECT -5 UNION ALL SELECT 3";
    struct db *db = writer_of(state);
    struct db_rows *rows = db_query_values(db, SQL, NULL, 0);
    int64_t sum = 0;
    int left_out = 0;
    while (db_next(rows)) {
        int64_t number = db_count(rows, 0);
        if (db_skip_damaged(rows))
            left_out++;
        else
            sum += number;
    }
    assert_ok(db_rows_end(rows));
    assert_int_equal(sum, 4);
    assert_int_equal(left_out, 1);
    db_close(db);
}

static void counts_and_times_have_bounds(void **state)
{
    static const char SQL[] = "SELECT $1";
    static const int64_t BAD_COUNTS[] = {-1, DB_COUNT_END, INT64_MAX};
    static const int64_t BAD_TIMES[] = {TIME_MS_MIN - 1, TIME_MS_MAX + 1};
    struct db *db = writer_of(state);
    for (size_t i = 0; i < ARRAY_LEN(BAD_COUNTS); i++) {
        struct db_rows *rows = DB_QUERY(db, SQL, DB_I(BAD_COUNTS[i]));
        assert_true(db_next(rows));
        assert_int_equal(db_count(rows, 0), 0);
        assert_int_equal(db_rows_end(rows), ERR_DAMAGED);
    }
    for (size_t i = 0; i < ARRAY_LEN(BAD_TIMES); i++) {
        struct db_rows *rows = DB_QUERY(db, SQL, DB_I(BAD_TIMES[i]));
        assert_true(db_next(rows));
        assert_int_equal(db_time(rows, 0), 0);
        assert_int_equal(db_rows_end(rows), ERR_DAMAGED);
    }
    db_close(db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        folder_test(parameters_may_come_in_any_order),
        folder_test(values_of_every_kind_come_back),
        folder_test(a_parameter_is_null_whatever_it_was_before),
        folder_test(a_parameter_is_what_it_is_now_whatever_it_was_before),
        folder_test(a_query_may_be_left_before_its_end),
        folder_test(a_statement_that_does_not_compile_has_no_rows_and_an_error),
        folder_test(a_result_may_have_many_rows),
        folder_test(a_statement_may_have_32_parameters),
        folder_test(integers_keep_all_64_bits),
        folder_test(empty_text_and_empty_bytes_are_not_null),
        folder_test(bytes_and_text_are_kept_whole),
        folder_test(ids_are_found_and_sort_by_their_bytes),
        folder_test(text_sorts_and_compares_by_its_bytes),
        folder_test(a_value_of_another_type_is_damage),
        folder_test(a_damaged_row_can_be_left_out),
        folder_test(counts_and_times_have_bounds),
    };
    return run_on_every_store(tests, ARRAY_LEN(tests));
}
