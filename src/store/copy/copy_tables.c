/* Tables as their engine describes them, and the statements to copy them. */
#include "store/copy/copy_tables.h"

#include "store/db_driver.h"

enum { TABLES_BYTES_MAX = 4 * MIB, SQL_MAX = 16 * KIB };

/* --- statements --- */

enum name_list { ALL_COLUMNS, KEY, KEY_FALLING };

static void put_name(struct buf *out, struct str name)
{
    buf_printf(out, "\"%.*s\"", STR_ARG(name));
}

static void put_names(struct buf *out, const struct copy_table *t, enum name_list which)
{
    size_t count = which == ALL_COLUMNS ? t->column_count : t->key_count;
    for (size_t i = 0; i < count; i++) {
        buf_put(out, i > 0 ? STR(", ") : STR(""));
        put_name(out, t->columns[which == ALL_COLUMNS ? i : t->key[i]].name);
        buf_put(out, which == KEY_FALLING ? STR(" DESC") : STR(""));
    }
}

static void put_parameters(struct buf *out, size_t count)
{
    for (size_t i = 1; i <= count; i++)
        buf_printf(out, "%s$%zu", i > 1 ? ", " : "", i);
}

/* In characters, which engines count alike. */
static void put_length(struct buf *out, const struct copy_table *t)
{
    buf_put_char(out, '0');
    for (size_t i = 0; i < t->column_count; i++) {
        if (str_is(t->columns[i].holds, "int"))
            continue;
        buf_put(out, STR(" + COALESCE(length("));
        put_name(out, t->columns[i].name);
        buf_put(out, STR("), 0)"));
    }
}

/* WHERE (key) > ($1…) */
static void put_bound(struct buf *out, const struct copy_table *t, const char *comparison)
{
    buf_put(out, STR(" WHERE ("));
    put_names(out, t, KEY);
    buf_printf(out, ") %s (", comparison);
    put_parameters(out, t->key_count);
    buf_put_char(out, ')');
}

static void put_from(struct buf *out, const struct copy_table *t)
{
    buf_put(out, STR(" FROM "));
    put_name(out, t->name);
}

static void put_keys(struct buf *out, const struct copy_table *t, bool after)
{
    buf_put(out, STR("SELECT "));
    put_names(out, t, KEY);
    buf_put(out, STR(", "));
    put_length(out, t);
    put_from(out, t);
    if (after)
        put_bound(out, t, ">");
    buf_put(out, STR(" ORDER BY "));
    put_names(out, t, KEY);
    buf_printf(out, " LIMIT %d", COPY_SLICE_ROWS);
}

static void put_first_keys(struct buf *out, const struct copy_table *t)
{
    put_keys(out, t, false);
}

static void put_keys_after(struct buf *out, const struct copy_table *t)
{
    put_keys(out, t, true);
}

static void put_rows(struct buf *out, const struct copy_table *t)
{
    buf_put(out, STR("SELECT "));
    put_names(out, t, ALL_COLUMNS);
    put_from(out, t);
    put_bound(out, t, ">=");
    buf_put(out, STR(" ORDER BY "));
    put_names(out, t, KEY);
    buf_printf(out, " LIMIT $%zu", t->key_count + 1);
}

static void put_last(struct buf *out, const struct copy_table *t)
{
    buf_put(out, STR("SELECT "));
    put_names(out, t, KEY);
    put_from(out, t);
    buf_put(out, STR(" ORDER BY "));
    put_names(out, t, KEY_FALLING);
    buf_put(out, STR(" LIMIT 1"));
}

static void put_count(struct buf *out, const struct copy_table *t)
{
    buf_put(out, STR("SELECT count(*)"));
    put_from(out, t);
}

static void put_insert(struct buf *out, const struct copy_table *t)
{
    buf_put(out, STR("INSERT INTO "));
    put_name(out, t->name);
    buf_put(out, STR(" ("));
    put_names(out, t, ALL_COLUMNS);
    buf_put(out, STR(") VALUES ("));
    put_parameters(out, t->column_count);
    buf_put_char(out, ')');
}

static void put_empty(struct buf *out, const struct copy_table *t)
{
    buf_put(out, STR("DELETE"));
    put_from(out, t);
}

/* NULL: no memory. */
static const char *sql_of(struct copy_tables *tables, const struct copy_table *t,
                          void (*put)(struct buf *out, const struct copy_table *t))
{
    struct buf text;
    buf_init(&text, SQL_MAX);
    put(&text, t);
    return arena_take(&tables->arena, &text).ptr;
}

static bool make_statements(struct copy_tables *tables, struct copy_table *t)
{
    t->count = sql_of(tables, t, put_count);
    t->keys = sql_of(tables, t, put_first_keys);
    t->keys_after = sql_of(tables, t, put_keys_after);
    t->rows = sql_of(tables, t, put_rows);
    t->last = sql_of(tables, t, put_last);
    t->insert = sql_of(tables, t, put_insert);
    t->empty = sql_of(tables, t, put_empty);
    return t->count != NULL && t->keys != NULL && t->keys_after != NULL && t->rows != NULL &&
           t->last != NULL && t->insert != NULL && t->empty != NULL;
}

/* --- reading --- */

/* The table that the row is about: the last one, or a new one. NULL: no room. */
static struct copy_table *table_for(struct copy_tables *tables, struct str name)
{
    assert(tables->list != NULL);
    struct copy_table *last = tables->count > 0 ? &tables->list[tables->count - 1] : NULL;
    if (last != NULL && str_eq(last->name, name))
        return last;
    if (tables->count == COPY_TABLES_MAX)
        return NULL;
    struct copy_table *t = &tables->list[tables->count];
    t->name = arena_str(&tables->arena, name);
    t->of_tenants = str_is(name, "tenants");
    tables->count += t->name.ptr != NULL ? 1 : 0;
    return t->name.ptr != NULL ? t : NULL;
}

static enum err add_column(struct copy_tables *tables, struct db_rows *rows)
{
    struct str name = db_str(rows, 0);
    if (str_is(name, DB_COPY_TABLE)) {
        tables->has_mark = true;
        return ERR_OK;
    }
    struct copy_table *t = table_for(tables, name);
    if (t == NULL || t->column_count == COPY_COLUMNS_MAX)
        return ERR_NO_MEMORY;
    struct copy_column *c = &t->columns[t->column_count++];
    *c = (struct copy_column){db_str(rows, 1), db_str(rows, 2), db_count(rows, 3)};
    t->of_tenants |= str_is(c->name, "tenant");
    if (c->key_place > COPY_KEY_MAX)
        return ERR_NO_MEMORY;
    if (c->key_place > 0) {
        t->key[c->key_place - 1] = t->column_count - 1;
        t->key_count++;
    }
    return arena_keep(&tables->arena, &c->name) && arena_keep(&tables->arena, &c->holds)
               ? ERR_OK
               : ERR_NO_MEMORY;
}

static enum err read_columns(struct db *db, struct copy_tables *tables)
{
    enum err e = ERR_OK;
    struct db_rows *rows = db_schema(db);
    while (e == ERR_OK && db_next(rows))
        e = add_column(tables, rows);
    enum err ended = db_rows_end(rows);
    return e == ERR_OK ? ended : e;
}

enum err copy_tables_read(struct db *db, struct problem *p, struct copy_tables *ret)
{
    *ret = (struct copy_tables){.count = 0};
    arena_init(&ret->arena, TABLES_BYTES_MAX);
    ret->list = arena_alloc(&ret->arena, COPY_TABLES_MAX * sizeof(*ret->list));
    enum err e = ret->list != NULL ? read_columns(db, ret) : ERR_NO_MEMORY;
    for (size_t i = 0; i < ret->count && e == ERR_OK; i++) {
        if (ret->list[i].key_count == 0)
            return problem_set(p, ERR_INTERNAL, "The table %.*s has no primary key",
                               STR_ARG(ret->list[i].name));
        e = make_statements(ret, &ret->list[i]) ? ERR_OK : ERR_NO_MEMORY;
    }
    return e == ERR_OK ? ERR_OK
                       : problem_set(p, e, "Cannot read the list of tables: %s", err_title(e));
}

void copy_tables_release(struct copy_tables *tables)
{
    arena_release(&tables->arena);
}

/* --- comparing --- */

static bool same_column(const struct copy_column *a, const struct copy_column *b)
{
    return str_eq(a->name, b->name) && str_eq(a->holds, b->holds) && a->key_place == b->key_place;
}

static bool same_table(const struct copy_table *a, const struct copy_table *b)
{
    bool same = str_eq(a->name, b->name) && a->column_count == b->column_count;
    for (size_t i = 0; i < a->column_count && same; i++)
        same = same_column(&a->columns[i], &b->columns[i]);
    return same;
}

enum err copy_tables_compare(const struct copy_tables *a, const struct copy_tables *b,
                             struct problem *p)
{
    size_t i = 0;
    while (i < a->count && i < b->count && same_table(&a->list[i], &b->list[i]))
        i++;
    if (i == a->count && i == b->count)
        return ERR_OK;
    return problem_set(p, ERR_STORE_FAILED, "The two stores have different tables: see %.*s",
                       STR_ARG(i < a->count ? a->list[i].name : b->list[i].name));
}
