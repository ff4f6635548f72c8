/* Prints JSON for people. */
#include "cli/term/table.h"

#include "base/limits.h"
#include "cli/term/width.h"

enum {
    TABLE_MAX = 256 * MIB, /* a list that long is for --json */
    VALUE_MAX = 16 * MIB,
    CELL_JSON_MAX = 60, /* width of an object or array in a column */
};

static void put_value(struct buf *out, const json_t *value);
static void put_clean(struct buf *out, struct str text);

void table_init(struct table *t, const struct column *columns, size_t column_count)
{
    assert(column_count > 0);
    *t = (struct table){.columns = columns, .column_count = column_count};
    buf_init(&t->cells, TABLE_MAX);
}

void table_release(struct table *t)
{
    buf_release(&t->cells);
}

/* Shortens objects and arrays, to leave room for the rest of the row. */
static void put_cell(struct buf *cells, const json_t *value)
{
    size_t start = cells->len;
    put_value(cells, value);
    if (!buf_ok(cells) || !(json_is_object(value) || json_is_array(value)))
        return;
    struct str cell = {cells->ptr + start, cells->len - start};
    if (text_width(cell) <= CELL_JSON_MAX)
        return;
    cells->len = start + text_prefix(cell, CELL_JSON_MAX);
    buf_put(cells, STR("…"));
}

static const json_t *find_cell(const json_t *row, struct str member)
{
    bool first = str_ends_with(member, STR("[0]"));
    const json_t *value = json_object_getn(row, member.ptr, member.len - (first ? 3 : 0));
    return first ? json_array_get(value, 0) : value;
}

void table_add(struct table *t, const json_t *items)
{
    size_t i;
    const json_t *row;
    json_array_foreach (items, i, row) {
        for (size_t c = 0; c < t->column_count; c++) {
            put_cell(&t->cells, find_cell(row, str_of(t->columns[c].member)));
            buf_put_char(&t->cells, '\0');
        }
    }
}

/* The last column is not padded, so that lines have no trailing blanks. */
static void print_cell(const struct table *t, FILE *out, size_t column, struct str cell,
                       const size_t *widths)
{
    bool last = column + 1 == t->column_count;
    int pad = last ? 0 : (int)(widths[column] - text_width(cell)) + 2;
    fprintf(out, "%.*s%*s%s", STR_ARG(cell), pad, "", last ? "\n" : "");
}

bool table_print(const struct table *t, FILE *out)
{
    size_t widths[16] = {0};
    assert(t->column_count > 0 && t->column_count <= ARRAY_LEN(widths));
    if (!buf_ok(&t->cells))
        return false;
    for (size_t c = 0; c < t->column_count; c++)
        widths[c] = text_width(str_of(t->columns[c].title));
    struct str cell;
    size_t column = 0;
    for (size_t at = 0; at < t->cells.len; at += cell.len + 1) {
        cell = str_of(t->cells.ptr + at);
        widths[column] = MAX(widths[column], text_width(cell));
        column = (column + 1) % t->column_count;
    }
    assert(column == 0);
    for (size_t c = 0; c < t->column_count; c++)
        print_cell(t, out, c, str_of(t->columns[c].title), widths);
    for (size_t at = 0; at < t->cells.len; at += cell.len + 1) {
        cell = str_of(t->cells.ptr + at);
        print_cell(t, out, column, cell, widths);
        column = (column + 1) % t->column_count;
    }
    return true;
}

void rows_print(FILE *out, const struct column *columns, size_t column_count, const json_t *rows)
{
    struct table table;
    table_init(&table, columns, column_count);
    table_add(&table, rows);
    if (!table_print(&table, out))
        fprintf(stderr, "pawl: Too many rows for a table; use --json\n");
    table_release(&table);
}

json_t *json_take(json_t *object, const char *member)
{
    json_t *value = json_incref(json_object_get(object, member));
    (void)json_object_del(object, member);
    return value;
}

void object_print(FILE *out, json_t *object)
{
    const char *name;
    json_t *value;
    size_t width = 0;
    json_object_foreach (object, name, value)
        width = MAX(width, text_width(str_of(name)));
    json_object_foreach (object, name, value) {
        struct buf clean;
        buf_init(&clean, VALUE_MAX);
        put_clean(&clean, str_of(name));
        int pad = (int)(width - text_width(buf_str(&clean))) + 2;
        fprintf(out, "%.*s%*s", STR_ARG(buf_str(&clean)), pad, "");
        buf_release(&clean);
        value_print(out, value);
        fputc('\n', out);
    }
}

void value_print(FILE *out, const json_t *value)
{
    struct buf text;
    buf_init(&text, VALUE_MAX);
    put_value(&text, value);
    if (text.len > 0)
        fwrite(text.ptr, 1, text.len, out);
    buf_release(&text);
}

void faults_print(FILE *out, const char *prefix, const json_t *faults)
{
    size_t i;
    const json_t *fault;
    json_array_foreach (faults, i, fault) {
        fputs(prefix, out);
        value_print(out, json_object_get(fault, "path"));
        fputs(": ", out);
        value_print(out, json_object_get(fault, "message"));
        fputc('\n', out);
    }
}

static void put_value(struct buf *out, const json_t *value)
{
    if (value == NULL || json_is_null(value))
        buf_put(out, STR("-"));
    else if (json_is_string(value))
        put_clean(out, json_str(value));
    else if (json_is_boolean(value))
        buf_put(out, json_is_true(value) ? STR("yes") : STR("no"));
    else {
        struct buf json;
        buf_init(&json, VALUE_MAX);
        json_put_plain(&json, value);
        put_clean(out, buf_str(&json));
        buf_release(&json);
    }
}

/* Replaces C0, DEL and C1 characters, which control a terminal, by blanks. */
static void put_clean(struct buf *out, struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        unsigned char next = i + 1 < text.len ? (unsigned char)text.ptr[i + 1] : 0;
        bool c1 = c == 0xC2 && next >= 0x80 && next <= 0x9F;
        buf_put_char(out, c < 0x20 || c == 0x7f || c1 ? ' ' : text.ptr[i]);
        i += c1 ? 1 : 0;
    }
}
