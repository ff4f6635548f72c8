/* Prints JSON for people. */
#include "cli/term/table.h"

#include "base/env.h"
#include "base/limits.h"
#include "cli/term/term.h"
#include "cli/term/when.h"
#include "cli/term/width.h"

enum {
    TABLE_MAX = 256 * MIB, /* a list that long is for --json */
    VALUE_MAX = 16 * MIB,
    CELL_JSON_MAX = 60, /* width of an object or array in a column */
    TABLE_COLUMNS_MAX = 16,
    COLUMN_WIDTH_MIN = 6, /* what a cut column keeps */
    COLUMN_GAP = 2,
};

/* How a table is laid out; a column of width 0 is left out. */
struct layout {
    struct term term;
    int64_t now_ms;
    size_t widths[TABLE_COLUMNS_MAX];
    size_t id_lens[TABLE_COLUMNS_MAX]; /* of a column of ids; 0: it is none */
    size_t last;                       /* the last column that is shown */
};

static void put_value(struct buf *out, const json_t *value);
static struct layout lay_out(const struct table *t, FILE *out);
static void print_row(const struct table *t, const struct layout *l, FILE *out, const char *cells,
                      bool is_title);

void table_init(struct table *t, const struct column *columns, size_t column_count)
{
    *t = (struct table){.columns = columns, .column_count = column_count};
    buf_init(&t->cells, TABLE_MAX);
}

void table_release(struct table *t)
{
    buf_release(&t->cells);
}

/* "CODE: message" of an error, "a=1 b=2" of texts by name, "-" of nothing, JSON of other objects.
 */
static void put_object(struct buf *out, json_t *object)
{
    const char *name;
    json_t *value;
    const json_t *code = json_object_get(object, "code"),
                 *message = json_object_get(object, "message");
    bool only_texts = true;
    json_object_foreach (object, name, value)
        only_texts &= json_is_string(value);
    if (json_is_string(code) && json_is_string(message)) {
        put_value(out, code);
        buf_put(out, STR(": "));
        put_value(out, message);
    } else if (json_object_size(object) == 0) {
        buf_put(out, STR("-"));
    } else if (!only_texts) {
        put_value(out, object);
    } else {
        const char *gap = "";
        json_object_foreach (object, name, value) {
            buf_put(out, str_of(gap));
            put_clean(out, str_of(name));
            buf_put_char(out, '=');
            put_value(out, value);
            gap = " ";
        }
    }
}

/* Shortens objects and arrays, to leave room for the rest of the row. */
static void put_cell(struct buf *cells, const json_t *value)
{
    size_t start = cells->len;
    if (json_is_object(value))
        put_object(cells, (json_t *)(uintptr_t)value);
    else
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

bool table_print(const struct table *t, FILE *out)
{
    assert(t->column_count > 0 && t->column_count <= TABLE_COLUMNS_MAX);
    if (!buf_ok(&t->cells))
        return false;
    struct layout l = lay_out(t, out);
    print_row(t, &l, out, NULL, true);
    const char *end = t->cells.len > 0 ? t->cells.ptr + t->cells.len : NULL;
    for (const char *at = t->cells.ptr; at != NULL && at < end;) {
        print_row(t, &l, out, at, false);
        for (size_t c = 0; c < t->column_count; c++)
            at += strlen(at) + 1;
    }
    return true;
}

/* --- layout --- */

static bool is_id(struct str cell)
{
    struct uuid id;
    return cell.len == UUID_TEXT_LEN && uuid_parse(cell, &id);
}

/* What is shown of a cell. room: for a relative time. */
static struct str shown_cell(const struct layout *l, size_t column, struct str cell,
                             char room[static WHEN_MAX])
{
    int64_t at_ms;
    if (!l->term.is_terminal)
        return cell;
    if (cell.len == TIME_TEXT_LEN && time_parse(cell, &at_ms))
        return str_of(relative_text(at_ms, l->now_ms, room));
    if (l->id_lens[column] > 0 && is_id(cell))
        cell.len = l->id_lens[column];
    return cell;
}

static size_t common_prefix(struct str a, struct str b)
{
    size_t len = 0;
    while (len < MIN(a.len, b.len) && a.ptr[len] == b.ptr[len])
        len++;
    return len;
}

/* Lists are in the order of their ids, so neighbours share most. */
static void measure_ids(const struct table *t, struct layout *l)
{
    struct str before[TABLE_COLUMNS_MAX] = {{NULL, 0}};
    size_t column = 0;
    for (size_t at = 0; at < t->cells.len; column = (column + 1) % t->column_count) {
        struct str cell = str_of(t->cells.ptr + at);
        at += cell.len + 1;
        if (!is_id(cell))
            continue;
        size_t shared = str_eq(cell, before[column]) ? 0 : common_prefix(cell, before[column]);
        size_t len = MIN(MAX(shared + 1, (size_t)ID_PREFIX_LEN), (size_t)UUID_TEXT_LEN);
        l->id_lens[column] = MAX(l->id_lens[column], len);
        before[column] = cell;
    }
}

static void measure_cells(const struct table *t, struct layout *l)
{
    size_t column = 0;
    for (size_t at = 0; at < t->cells.len; column = (column + 1) % t->column_count) {
        char room[WHEN_MAX];
        struct str cell = str_of(t->cells.ptr + at);
        at += cell.len + 1;
        if (l->term.is_terminal && str_is(cell, "-"))
            continue;
        l->widths[column] = MAX(l->widths[column], text_width(shown_cell(l, column, cell, room)));
    }
    assert(column == 0);
}

static size_t total_width(const struct table *t, const struct layout *l)
{
    size_t total = 0;
    for (size_t c = 0; c < t->column_count; c++)
        total += l->widths[c] + (l->widths[c] > 0 && c != l->last ? COLUMN_GAP : 0);
    return total;
}

/* Narrows the widest column that has no ids; false when none can be cut. */
static bool cut_widest(const struct table *t, struct layout *l)
{
    size_t widest = t->column_count;
    for (size_t c = 0; c < t->column_count; c++)
        if (l->id_lens[c] == 0 && l->widths[c] > COLUMN_WIDTH_MIN &&
            (widest == t->column_count || l->widths[c] >= l->widths[widest]))
            widest = c;
    if (widest == t->column_count)
        return false;
    l->widths[widest]--;
    return true;
}

static struct layout lay_out(const struct table *t, FILE *out)
{
    struct layout l = {.term = term_of(out), .now_ms = env_now_ms(&ENV_SYSTEM)};
    if (l.term.is_terminal)
        measure_ids(t, &l);
    measure_cells(t, &l);
    bool is_empty = t->cells.len == 0;
    for (size_t c = 0; c < t->column_count; c++) {
        if (l.widths[c] > 0 || is_empty || !l.term.is_terminal)
            l.widths[c] = MAX(l.widths[c], text_width(str_of(t->columns[c].title)));
        l.last = l.widths[c] > 0 ? c : l.last;
    }
    while (total_width(t, &l) > l.term.columns && cut_widest(t, &l))
        ;
    return l;
}

/* --- rows --- */

static enum style style_of_cell(const struct column *column, struct str cell)
{
    bool says_status =
        strcmp(column->member, "status") == 0 || strcmp(column->member, "state") == 0;
    return says_status ? style_of_status(cell) : STYLE_PLAIN;
}

/* The last column is not padded, so that lines have no trailing blanks. */
static void print_cell(const struct layout *l, FILE *out, size_t column, struct str cell,
                       enum style style)
{
    bool is_cut = text_width(cell) > l->widths[column];
    if (is_cut)
        cell.len = text_prefix(cell, l->widths[column] - 1);
    size_t pad = column == l->last ? 0 : l->widths[column] - text_width(cell) - is_cut + COLUMN_GAP;
    const char *mark = !is_cut ? "" : l->term.has_utf8 ? "…" : "~";
    fprintf(out, "%s%.*s%s%s%*s", style != STYLE_PLAIN ? style_code(&l->term, style) : "",
            STR_ARG(cell), mark, style != STYLE_PLAIN ? style_code(&l->term, STYLE_PLAIN) : "",
            (int)pad, "");
}

static void print_row(const struct table *t, const struct layout *l, FILE *out, const char *cells,
                      bool is_title)
{
    for (size_t c = 0; c < t->column_count; c++) {
        char room[WHEN_MAX];
        struct str cell = str_of(is_title ? t->columns[c].title : cells);
        if (!is_title)
            cells += cell.len + 1;
        if (l->widths[c] == 0)
            continue;
        enum style style = is_title ? STYLE_FAINT : style_of_cell(&t->columns[c], cell);
        print_cell(l, out, c, is_title ? cell : shown_cell(l, c, cell, room), style);
    }
    fputc('\n', out);
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

/* " (3 min ago)" after a time, on a terminal. */
static void print_relative(FILE *out, const struct term *term, const json_t *value)
{
    char room[WHEN_MAX];
    int64_t at_ms;
    if (term->is_terminal && json_string_length(value) == TIME_TEXT_LEN &&
        time_parse(json_str(value), &at_ms))
        fprintf(out, " (%s)", relative_text(at_ms, env_now_ms(&ENV_SYSTEM), room));
}

void object_print(FILE *out, json_t *object)
{
    struct term term = term_of(out);
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
        print_relative(out, &term, value);
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
