/* The columns of a row, written once.
 *
 * A table file lists the columns of its row in an X-macro. Each line has the column's number from 1
 * on, its kind, its name in the table and its member in the struct:
 *
 *     #define SIGNAL_COLUMNS(X, p)         \
 *         X(p, 1, INT, run, owner)         \
 *         X(p, 2, COUNT, seq, seq)         \
 *         X(p, 3, TEXT, name, name)
 *     COLUMNS_NUMBERED(SIGNAL_COLUMNS, SIGNAL)
 *
 * and everything that depends on their order comes from that list:
 *
 *     COLUMNS_SELECT(SIGNAL_COLUMNS, "") " FROM …"            SELECT run, seq, name FROM …
 *     COLUMNS_SELECT(SIGNAL_COLUMNS, "s.") " FROM …"          SELECT s.run, s.seq, s.name FROM …
 *     COLUMNS_INSERT("run_signals", SIGNAL_COLUMNS)           INSERT INTO … VALUES ($1, $2, $3)
 *     DB_EXEC(db, SQL, NULL, SIGNAL_COLUMNS(COLUMN_BIND, s))  the values of *s, in that order
 *     *s = (struct signal){SIGNAL_COLUMNS(COLUMN_READ, rows)} the members of *s
 *     COLUMNS_READ_ONE(read_one, struct signal, SIGNAL_COLUMNS, read_row)
 *     COLUMNS_SHAPE(SIGNAL_SHAPE, struct signal, SIGNAL_COLUMNS);
 *
 * A new column is one more line. A row that is not inserted whole has its columns in two lists, of
 * which the second one goes on with the numbers of the first. */
#ifndef PAWL_STORE_COLUMNS_H
#define PAWL_STORE_COLUMNS_H

#include "base/arena.h"
#include "store/db.h"
#include "store/row_cache.h"

/* --- statements --- */

/* `prefix`: "", or a table's alias with its dot. */
#define COLUMNS_SELECT(COLUMNS, prefix) "SELECT " COLUMNS(COLUMN_NAME, prefix)
/* clang-format off */
#define COLUMNS_INSERT(table, COLUMNS) \
    "INSERT INTO " table " (" COLUMNS(COLUMN_NAME, "") ")" \
    " VALUES (" COLUMNS(COLUMN_PARAMETER, "$") ")"
/* With further columns and their values behind those of the list. */
#define COLUMNS_INSERT_WITH(table, COLUMNS, more, more_values) \
    "INSERT INTO " table " (" COLUMNS(COLUMN_NAME, "") ", " more ")" \
    " VALUES (" COLUMNS(COLUMN_PARAMETER, "$") ", " more_values ")"
/* In `indexed`: no row gets a number up to this one, which rows that have left the store may have. */
#define NUMBERS_MARK "numbers"
/* The number of a new row, for tables whose rows are few or come one by one. `step` and `rest` are
 * the parameters that get COLUMNS_NUMBERS(). */
#define COLUMNS_NEXT_NUM(table, step, rest) \
    "(SELECT (COALESCE(max(num), 0) / " step " + 1) * " step " + " rest " FROM" \
    " (SELECT max(num) AS num FROM " table \
    " UNION ALL SELECT through FROM indexed WHERE name = '" NUMBERS_MARK "') AS given)"
#define COLUMNS_NUMBERS(db) DB_I(db_numbers(db).step), DB_I(db_numbers(db).rest)
/* clang-format on */

/* --- what becomes of a column; p is the argument that the list was given --- */

/* p: a prefix for the name, "" or a table's alias with its dot. */
#define COLUMN_NAME(p, n, KIND, column, member) COLUMN_SEPARATOR_##n p #column
/* p: "$". */
#define COLUMN_PARAMETER(p, n, KIND, column, member) COLUMN_SEPARATOR_##n p #n
/* p: a pointer to the struct. */
#define COLUMN_BIND(p, n, KIND, column, member) COLUMN_BIND_##KIND((p)->member),
/* p: the struct db_rows. */
#define COLUMN_READ(p, n, KIND, column, member) .member = COLUMN_READ_##KIND(p, (n)-1),
/* p: a pointer to the struct, whose texts are copied to `arena`. */
#define COLUMN_KEEP(p, n, KIND, column, member) COLUMN_KEEP_##KIND(arena, (p)->member)
/* p: the type of the struct; for a row_shape. */
#define COLUMN_TEXT(p, n, KIND, column, member) \
    _Generic(((p *)NULL)->member, struct str : offsetof(p, member), default : NO_TEXT),
/* p: the prefix of PREFIX_AT_column, the column's place in a result, counted from 0. */
#define COLUMN_PLACE(p, n, KIND, column, member) p##_AT_##column,
#define COLUMN_NUMBERED(p, n, KIND, column, member) \
    static_assert(p##_AT_##column == (n)-1, "columns are numbered 1, 2, 3 … without a gap");

/* Checks the numbers and defines PREFIX_AT_column, and PREFIX_COLUMNS_END for what is read beside
 * the columns. */
#define COLUMNS_NUMBERED(COLUMNS, PREFIX)                        \
    enum { COLUMNS(COLUMN_PLACE, PREFIX) PREFIX##_COLUMNS_END }; \
    COLUMNS(COLUMN_NUMBERED, PREFIX)                             \
    static_assert(PREFIX##_COLUMNS_END > 0, "a row has columns")

/* Defines a function that reads the only row of a query, if there is one, with its texts in the
 * arena, and ends the query. */
#define COLUMNS_READ_ONE(name, type, COLUMNS, read_row)                                         \
    static enum err name(struct db_rows *rows, struct arena *arena, bool *ret_found, type *ret) \
    {                                                                                           \
        bool kept = true;                                                                       \
        *ret_found = db_next(rows);                                                             \
        if (*ret_found) {                                                                       \
            read_row(rows, ret);                                                                \
            kept = COLUMNS(COLUMN_KEEP, ret) true;                                              \
        }                                                                                       \
        enum err e = db_rows_end(rows);                                                         \
        return e == ERR_OK && !kept ? ERR_NO_MEMORY : e;                                        \
    }                                                                                           \
    static_assert(true, "a semicolon follows")

/* Defines the shape of a row for the cache of rows (store/row_cache.h). */
#define COLUMNS_SHAPE(name, type, COLUMNS)                             \
    static const size_t name##_TEXTS[] = {COLUMNS(COLUMN_TEXT, type)}; \
    static const struct row_shape name = {sizeof(type), name##_TEXTS, ARRAY_LEN(name##_TEXTS)}

/* --- kinds: how a value is bound, read and kept ---
 *
 * A table adds kinds of its own by defining the three macros, as for the words of a status:
 *
 *     #define COLUMN_BIND_RUN_STATUS(value) COLUMN_BIND_WORD(run_status_name(value))
 *     #define COLUMN_READ_RUN_STATUS(rows, at) \
 *         COLUMN_READ_WORD(rows, at, run_status_of, RUN_STATUS_COUNT)
 *     #define COLUMN_KEEP_RUN_STATUS(arena, value)
 */

/* Any whole number; or null for -1. */
#define COLUMN_BIND_INT(value) DB_I(value)
#define COLUMN_READ_INT(rows, at) db_int(rows, at)
#define COLUMN_KEEP_INT(arena, value)
#define COLUMN_BIND_INT_OR_NONE(value) DB_I_OR_NULL(value)
#define COLUMN_READ_INT_OR_NONE(rows, at) db_int_or(rows, at, -1)
#define COLUMN_KEEP_INT_OR_NONE(arena, value)

/* A number of 0 or more; or null for -1. */
#define COLUMN_BIND_COUNT(value) DB_I(value)
#define COLUMN_READ_COUNT(rows, at) db_count(rows, at)
#define COLUMN_KEEP_COUNT(arena, value)
#define COLUMN_BIND_COUNT_OR_NONE(value) DB_I_OR_NULL(value)
#define COLUMN_READ_COUNT_OR_NONE(rows, at) db_count_or(rows, at, -1)
#define COLUMN_KEEP_COUNT_OR_NONE(arena, value)

/* A time in milliseconds; or null for -1. */
#define COLUMN_BIND_TIME(value) DB_I(value)
#define COLUMN_READ_TIME(rows, at) db_time(rows, at)
#define COLUMN_KEEP_TIME(arena, value)
#define COLUMN_BIND_TIME_OR_NONE(value) DB_I_OR_NULL(value)
#define COLUMN_READ_TIME_OR_NONE(rows, at) db_time_or(rows, at, -1)
#define COLUMN_KEEP_TIME_OR_NONE(arena, value)

/* Text, JSON too; null for a ptr of NULL. */
#define COLUMN_BIND_TEXT(value) DB_T(value)
#define COLUMN_READ_TEXT(rows, at) db_str(rows, at)
#define COLUMN_KEEP_TEXT(arena, value) arena_keep(arena, &(value)) &&

/* Bytes in a struct str. */
#define COLUMN_BIND_BYTES(value) DB_B((value).ptr, (value).len)
#define COLUMN_READ_BYTES(rows, at) db_str(rows, at)
#define COLUMN_KEEP_BYTES(arena, value) arena_keep(arena, &(value)) &&

/* An id; or null for one that is all zero. */
#define COLUMN_BIND_UUID(value) DB_U(value)
#define COLUMN_READ_UUID(rows, at) db_uuid(rows, at)
#define COLUMN_KEEP_UUID(arena, value)
#define COLUMN_BIND_UUID_OR_NONE(value) (uuid_is_nil(value) ? DB_N() : DB_U(value))
#define COLUMN_READ_UUID_OR_NONE(rows, at) db_uuid_or_nil(rows, at)
#define COLUMN_KEEP_UUID_OR_NONE(arena, value)

#define COLUMN_BIND_HASH(value) DB_H(value)
#define COLUMN_READ_HASH(rows, at) db_hash(rows, at)
#define COLUMN_KEEP_HASH(arena, value)

#define COLUMN_BIND_BOOL(value) DB_I(value)
#define COLUMN_READ_BOOL(rows, at) (db_int(rows, at) != 0)
#define COLUMN_KEEP_BOOL(arena, value)

/* For the words of an enum: a word that is not in its table is damage. */
#define COLUMN_BIND_WORD(name) DB_T(str_of(name))
#define COLUMN_READ_WORD(rows, at, value_of, count) \
    db_known(rows, at, value_of(db_str(rows, at)), count)

/* What stands before a column's name or parameter. */
#define COLUMN_SEPARATOR_1
#define COLUMN_SEPARATOR_2 ", "
#define COLUMN_SEPARATOR_3 ", "
#define COLUMN_SEPARATOR_4 ", "
#define COLUMN_SEPARATOR_5 ", "
#define COLUMN_SEPARATOR_6 ", "
#define COLUMN_SEPARATOR_7 ", "
#define COLUMN_SEPARATOR_8 ", "
#define COLUMN_SEPARATOR_9 ", "
#define COLUMN_SEPARATOR_10 ", "
#define COLUMN_SEPARATOR_11 ", "
#define COLUMN_SEPARATOR_12 ", "
#define COLUMN_SEPARATOR_13 ", "
#define COLUMN_SEPARATOR_14 ", "
#define COLUMN_SEPARATOR_15 ", "
#define COLUMN_SEPARATOR_16 ", "
#define COLUMN_SEPARATOR_17 ", "
#define COLUMN_SEPARATOR_18 ", "
#define COLUMN_SEPARATOR_19 ", "
#define COLUMN_SEPARATOR_20 ", "
#define COLUMN_SEPARATOR_21 ", "
#define COLUMN_SEPARATOR_22 ", "
#define COLUMN_SEPARATOR_23 ", "
#define COLUMN_SEPARATOR_24 ", "
#define COLUMN_SEPARATOR_25 ", "
#define COLUMN_SEPARATOR_26 ", "
#define COLUMN_SEPARATOR_27 ", "
#define COLUMN_SEPARATOR_28 ", "
#define COLUMN_SEPARATOR_29 ", "
#define COLUMN_SEPARATOR_30 ", "
#define COLUMN_SEPARATOR_31 ", "
#define COLUMN_SEPARATOR_32 ", "

#endif
