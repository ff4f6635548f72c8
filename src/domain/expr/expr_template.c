/* ${…} in the texts of JSON values: finding them, checking them, filling them in. */
#define _GNU_SOURCE /* memmem */
#include "domain/expr/expr.h"

#include "domain/expr/expr_state.h"

/* --- reading --- */

/* The end of the long bracket at `at`, [[…]] or [==[…]==]; `at` itself when there is none. */
static size_t skip_long_bracket(struct str s, size_t at)
{
    size_t level = 0;
    size_t i = at + 1;
    while (i < s.len && s.ptr[i] == '=') {
        level++;
        i++;
    }
    if (at >= s.len || s.ptr[at] != '[' || i >= s.len || s.ptr[i] != '[')
        return at;
    for (i++; i < s.len; i++) {
        size_t end = i + 1;
        if (s.ptr[i] != ']')
            continue;
        while (end < s.len && s.ptr[end] == '=')
            end++;
        if (end - i - 1 == level && end < s.len && s.ptr[end] == ']')
            return end + 1;
        i = end - 1; /* the next may be the first of another ] */
    }
    return s.len;
}

static size_t skip_quoted(struct str s, size_t at)
{
    for (size_t i = at + 1; i < s.len; i++) {
        if (s.ptr[i] == '\\')
            i++;
        else if (s.ptr[i] == s.ptr[at])
            return i + 1;
    }
    return s.len;
}

static size_t skip_comment(struct str s, size_t at)
{
    size_t end = skip_long_bracket(s, at + 2);
    if (end > at + 2)
        return end;
    while (end < s.len && s.ptr[end] != '\n' && s.ptr[end] != '\r')
        end++;
    return end;
}

size_t expr_lexeme(struct str source, size_t at)
{
    assert(at < source.len);
    char c = source.ptr[at];
    size_t end = at;
    if (c == '"' || c == '\'')
        return skip_quoted(source, at);
    if (c == '-' && at + 1 < source.len && source.ptr[at + 1] == '-')
        return skip_comment(source, at);
    if (c == '[')
        return MAX(skip_long_bracket(source, at), at + 1);
    while (end < source.len && expr_is_word(source.ptr[end]))
        end++;
    return MAX(end, at + 1);
}

enum piece { PIECE_END, PIECE_TEXT, PIECE_EXPR, PIECE_UNCLOSED };

static bool is_at(struct str text, size_t at, struct str what)
{
    return text.len - at >= what.len && memcmp(text.ptr + at, what.ptr, what.len) == 0;
}

/* Where the expression that begins at `at` meets its brace; text.len when it does not. */
static size_t closing_brace(struct str text, size_t at)
{
    size_t open = 0;
    while (at < text.len) {
        char c = text.ptr[at];
        if (c == '}' && open == 0)
            return at;
        if (c == '{')
            open++;
        if (c == '}')
            open--;
        at = expr_lexeme(text, at);
    }
    return text.len;
}

/* The next piece of a text, at *at, which advances past it. */
static enum piece next_piece(struct str text, size_t *at, struct str *ret)
{
    size_t i = *at;
    if (i >= text.len)
        return PIECE_END;
    if (is_at(text, i, STR("$${"))) {
        *ret = (struct str){text.ptr + i + 1, 2};
        *at = i + 3;
        return PIECE_TEXT;
    }
    if (is_at(text, i, STR("${"))) {
        size_t end = closing_brace(text, i + 2);
        *ret = (struct str){text.ptr + i + 2, end - i - 2};
        *at = MIN(end + 1, text.len);
        return end < text.len ? PIECE_EXPR : PIECE_UNCLOSED;
    }
    do {
        i++;
    } while (i < text.len && !is_at(text, i, STR("$${")) && !is_at(text, i, STR("${")));
    *ret = (struct str){text.ptr + *at, i - *at};
    *at = i;
    return PIECE_TEXT;
}

static bool text_has_brace(struct str text)
{
    assert(text.ptr != NULL);
    return memmem(text.ptr, text.len, "${", 2) != NULL;
}

/* Recursion: no deeper than the JSON, in this and the rest. */
bool expr_has_template(const struct json *value)
{
    if (json_is(value, JSON_KIND_TEXT))
        return text_has_brace(json_text_of(value));
    for (size_t i = 0; i < json_length(value); i++) {
        if (expr_has_template(json_element(value, i)))
            return true;
    }
    for (size_t i = 0; i < json_members(value); i++) {
        if (expr_has_template(json_value_at(value, i)))
            return true;
    }
    return false;
}

/* --- checking --- */

static void check_text(struct expr *x, struct str text, struct fault_list *faults)
{
    struct str piece;
    for (size_t at = 0;;) {
        switch (next_piece(text, &at, &piece)) {
        case PIECE_END:
            return;
        case PIECE_TEXT:
            break;
        case PIECE_EXPR:
            expr_check(x, piece, faults);
            break;
        case PIECE_UNCLOSED:
            fault_list_add(faults, "has a ${ without its }");
            return;
        }
    }
}

void expr_template_check(struct expr *x, const struct json *value, struct fault_list *faults)
{
    if (json_is(value, JSON_KIND_TEXT))
        check_text(x, json_text_of(value), faults);
    for (size_t i = 0; i < json_length(value); i++) {
        size_t back_to = fault_list_enter_index(faults, i);
        expr_template_check(x, json_element(value, i), faults);
        fault_list_leave(faults, back_to);
    }
    for (size_t i = 0; i < json_members(value); i++) {
        size_t back_to = fault_list_enter(faults, json_name_at(value, i));
        expr_template_check(x, json_value_at(value, i), faults);
        fault_list_leave(faults, back_to);
    }
}

/* --- filling --- */

struct filling {
    struct expr *x;
    struct problem *problem;
    struct buf text;
};

static enum err no_memory(struct filling *f)
{
    return problem_set(f->problem, ERR_NO_MEMORY, "no memory to fill in a template");
}

/* What is made lives until the call ends; the rest is shared. */
static enum err fill_joined(struct filling *f, struct str text, struct json *ret)
{
    struct str piece;
    enum err e = ERR_OK;
    buf_clear(&f->text);
    for (size_t at = 0; e == ERR_OK;) {
        struct evaluation piece_of = {.want = WANT_TEXT, .text = &f->text};
        switch (next_piece(text, &at, &piece)) {
        case PIECE_END:
            piece = buf_ok(&f->text) ? arena_str(&f->x->made, buf_str(&f->text)) : STR_NONE;
            if (piece.ptr == NULL)
                return no_memory(f);
            *ret = json_text_value(piece);
            return ERR_OK;
        case PIECE_TEXT:
            buf_put(&f->text, piece);
            break;
        case PIECE_EXPR:
            piece_of.source = piece;
            e = expr_evaluate(f->x, &piece_of, f->problem);
            break;
        case PIECE_UNCLOSED:
            e = problem_set(f->problem, ERR_EXPRESSION, "a text has a ${ without its }");
            break;
        }
    }
    return e;
}

static enum err fill_text(struct filling *f, const struct json *value, struct json *ret)
{
    struct str text = json_text_of(value);
    if (!text_has_brace(text)) {
        *ret = *value;
        return ERR_OK;
    }
    struct evaluation whole = {.want = WANT_VALUE};
    size_t at = 0;
    if (next_piece(text, &at, &whole.source) != PIECE_EXPR || at < text.len)
        return fill_joined(f, text, ret);
    enum err e = expr_evaluate(f->x, &whole, f->problem);
    if (e == ERR_OK)
        *ret = whole.value;
    return e;
}

static enum err fill(struct filling *f, const struct json *value, struct json *ret);

static enum err fill_list(struct filling *f, const struct json *value, struct json *ret)
{
    struct json *items = arena_alloc(&f->x->made, value->count * sizeof(*items));
    if (items == NULL)
        return no_memory(f);
    enum err e = ERR_OK;
    for (size_t i = 0; e == ERR_OK && i < value->count; i++)
        e = fill(f, json_element(value, i), &items[i]);
    *ret = (struct json){.kind = JSON_KIND_LIST, .items = items, .count = value->count};
    return e;
}

/* Its names stay, and so does their order. */
static enum err fill_object(struct filling *f, const struct json *value, struct json *ret)
{
    size_t count = value->count;
    size_t order_size = count * sizeof(uint32_t);
    struct json *items = arena_alloc(&f->x->made, 2 * count * sizeof(*items) + order_size);
    if (items == NULL)
        return no_memory(f);
    enum err e = ERR_OK;
    for (size_t i = 0; e == ERR_OK && i < count; i++) {
        items[2 * i] = value->items[2 * i];
        e = fill(f, json_value_at(value, i), &items[2 * i + 1]);
    }
    memcpy(items + 2 * count, json_order(value), order_size);
    *ret = (struct json){.kind = JSON_KIND_OBJECT, .items = items, .count = value->count};
    return e;
}

static enum err fill(struct filling *f, const struct json *value, struct json *ret)
{
    if (value->kind == JSON_KIND_TEXT)
        return fill_text(f, value, ret);
    if (expr_has_template(value))
        return value->kind == JSON_KIND_LIST ? fill_list(f, value, ret)
                                             : fill_object(f, value, ret);
    *ret = *value;
    return ERR_OK;
}

enum err expr_fill(struct expr *x, const struct json *value, const struct expr_vars *vars,
                   struct problem *p, struct json **ret)
{
    struct filling f = {.x = x, .problem = p};
    struct json filled = {.kind = JSON_KIND_NULL};
    buf_init(&f.text, EXPR_WRITTEN_MAX);
    expr_call_begin(x, vars);
    enum err e = fill(&f, value, &filled);
    if (e == ERR_OK)
        e = expr_result(&filled, p, ret);
    expr_call_end(x);
    buf_release(&f.text);
    return e;
}
