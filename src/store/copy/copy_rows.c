/* Walks through tables, and digests of their rows. */
#include "store/copy/copy_rows.h"

#include <endian.h>

enum { KEYS_BYTES_MAX = 1 * MIB };

/* --- walks --- */

void copy_walk_begin(struct copy_walk *w, struct db *db, const struct copy_table *table)
{
    *w = (struct copy_walk){.db = db, .table = table};
    arena_init(&w->arenas[0], KEYS_BYTES_MAX);
    arena_init(&w->arenas[1], KEYS_BYTES_MAX);
}

void copy_walk_end(struct copy_walk *w)
{
    arena_release(&w->arenas[0]);
    arena_release(&w->arenas[1]);
}

/* A value that pawl never writes is damage. */
static enum err read_values(struct db_rows *rows, size_t count, struct db_value *ret)
{
    for (size_t i = 0; i < count; i++) {
        ret[i] = db_value_at(rows, (int)i);
        if (ret[i].kind == DB_OTHER) {
            db_damaged(rows, (int)i);
            return ERR_DAMAGED;
        }
    }
    return ERR_OK;
}

static bool has_bytes(const struct db_value *v)
{
    return v->kind == DB_TEXT || v->kind == DB_BLOB;
}

/* The key in the first columns of a row. */
static enum err keep_key(struct arena *arena, struct db_rows *rows, size_t count,
                         struct db_value key[static COPY_KEY_MAX])
{
    enum err e = read_values(rows, count, key);
    for (size_t i = 0; i < count && e == ERR_OK; i++) {
        if (has_bytes(&key[i]) && !arena_keep(arena, &key[i].bytes))
            e = ERR_NO_MEMORY;
    }
    return e;
}

enum err copy_walk_skip(struct copy_walk *w, struct db *other)
{
    struct db_rows *rows = db_query_values(other, w->table->last, NULL, 0);
    enum err e = ERR_OK;
    w->has_last = db_next(rows);
    if (w->has_last)
        e = keep_key(&w->arenas[w->turn], rows, w->table->key_count, w->last);
    enum err ended = db_rows_end(rows);
    return e == ERR_OK ? ended : e;
}

/* Counts the rows that fit into a slice and keeps the keys of the first and the last of them. */
static enum err measure(struct copy_walk *w, struct db_rows *rows, struct arena *arena)
{
    size_t keys = w->table->key_count;
    struct arena_mark mark = arena_mark(arena);
    enum err e = ERR_OK;
    w->rows = 0;
    for (int64_t chars = 0; e == ERR_OK && db_next(rows); w->rows++) {
        chars += db_count(rows, (int)keys);
        if (w->rows > 0 && chars > COPY_SLICE_CHARS)
            break;
        if (w->rows == 0) {
            e = keep_key(arena, rows, keys, w->first);
            mark = arena_mark(arena);
        }
        arena_back_to(arena, mark);
        if (e == ERR_OK)
            e = keep_key(arena, rows, keys, w->last);
    }
    return e;
}

enum err copy_walk_next(struct copy_walk *w)
{
    const struct copy_table *t = w->table;
    struct db_rows *rows =
        db_query_values(w->db, w->has_last ? t->keys_after : t->keys, w->has_last ? w->last : NULL,
                        w->has_last ? t->key_count : 0);
    struct arena *arena = &w->arenas[1 - w->turn];
    enum err e = measure(w, rows, arena);
    enum err ended = db_rows_end(rows);
    arena_clear(&w->arenas[w->turn]);
    w->turn = 1 - w->turn;
    w->has_last = true;
    return e == ERR_OK ? ended : e;
}

struct db_rows *copy_walk_rows(const struct copy_walk *w)
{
    struct db_value values[COPY_KEY_MAX + 1];
    size_t keys = w->table->key_count;
    assert(w->rows > 0);
    memcpy(values, w->first, keys * sizeof(values[0]));
    values[keys] = DB_I(w->rows);
    return db_query_values(w->db, w->table->rows, values, keys + 1);
}

enum err copy_walk_values(const struct copy_walk *w, struct db_rows *rows,
                          struct db_value ret[static COPY_COLUMNS_MAX])
{
    return read_values(rows, w->table->column_count, ret);
}

/* --- digests --- */

struct copy_digest copy_digest_begin(const struct copy_table *table)
{
    struct str names[COPY_COLUMNS_MAX + 1] = {table->name};
    for (size_t i = 0; i < table->column_count; i++)
        names[i + 1] = table->columns[i].name;
    return (struct copy_digest){0, sha256_of_parts(names, table->column_count + 1)};
}

/* Its kind, and its number or its length and its bytes. */
static void put_value(struct buf *out, const struct db_value *v)
{
    uint64_t number = htobe64(has_bytes(v) ? v->bytes.len : (uint64_t)v->number);
    buf_put_char(out, (char)v->kind);
    buf_put_bytes(out, &number, sizeof(number));
    if (has_bytes(v))
        buf_put(out, v->bytes);
}

enum err copy_digest_add(struct copy_digest *d, const struct copy_table *table,
                         const struct db_value *values, struct buf *room)
{
    buf_clear(room);
    for (size_t i = 0; i < table->column_count; i++)
        put_value(room, &values[i]);
    if (!buf_ok(room))
        return ERR_NO_MEMORY;
    struct str parts[] = {{(const char *)d->hash.bytes, SHA256_LEN}, buf_str(room)};
    d->hash = sha256_of_parts(parts, ARRAY_LEN(parts));
    d->rows++;
    return ERR_OK;
}

/* As numbers of 256 bits. */
static void add_hash(struct sha256 *sum, const struct sha256 *hash)
{
    unsigned carry = 0;
    for (size_t i = SHA256_LEN; i > 0; i--) {
        carry += (unsigned)sum->bytes[i - 1] + hash->bytes[i - 1];
        sum->bytes[i - 1] = (unsigned char)carry;
        carry >>= 8;
    }
}

enum err copy_digest_add_any(struct copy_digest *d, const struct copy_table *table,
                             const struct db_value *values, struct buf *room)
{
    struct copy_digest row = copy_digest_begin(table);
    enum err e = copy_digest_add(&row, table, values, room);
    if (e != ERR_OK)
        return e;
    add_hash(&d->hash, &row.hash);
    d->rows++;
    return ERR_OK;
}

bool copy_digest_eq(const struct copy_digest *a, const struct copy_digest *b)
{
    return a->rows == b->rows && sha256_eq(&a->hash, &b->hash);
}
