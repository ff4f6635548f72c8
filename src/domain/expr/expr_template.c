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
    return memmem(text.ptr, text.len, "${", 2) != NULL;
}

/* Recursion: no deeper than the JSON, in this and the rest. */
bool expr_has_template(const json_t *value)
{
    if (json_is_string(value))
        return text_has_brace(json_str(value));
    for (size_t i = 0; i < json_array_size(value); i++) {
        if (expr_has_template(json_array_get(value, i)))
            return true;
    }
    const char *name;
    json_t *member;
    json_object_foreach (expr_unconst(value), name, member) {
        if (expr_has_template(member))
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

void expr_template_check(struct expr *x, const json_t *value, struct fault_list *faults)
{
    if (json_is_string(value))
        check_text(x, json_str(value), faults);
    for (size_t i = 0; i < json_array_size(value); i++) {
        size_t back_to = fault_list_enter_index(faults, i);
        expr_template_check(x, json_array_get(value, i), faults);
        fault_list_leave(faults, back_to);
    }
    const char *name;
    json_t *member;
    json_object_foreach (expr_unconst(value), name, member) {
        size_t back_to = fault_list_enter(faults, str_of(name));
        expr_template_check(x, member, faults);
        fault_list_leave(faults, back_to);
    }
}

/* --- filling --- */

struct filling {
    struct expr *x;
    struct problem *problem;
    enum err err;
    struct buf text;
};

/* Returns NULL, so that a function can `return failed(…)`. */
static json_t *no_memory(struct filling *f)
{
    f->err = problem_set(f->problem, ERR_NO_MEMORY, "no memory to fill in a template");
    return NULL;
}

static json_t *or_no_memory(struct filling *f, json_t *made)
{
    return made != NULL ? made : no_memory(f);
}

static json_t *fill_joined(struct filling *f, struct str text)
{
    struct str piece;
    buf_clear(&f->text);
    for (size_t at = 0;;) {
        struct evaluation e = {.want = WANT_TEXT, .text = &f->text};
        switch (next_piece(text, &at, &piece)) {
        case PIECE_END:
            if (!buf_ok(&f->text))
                return no_memory(f);
            return or_no_memory(
                f, json_stringn_nocheck(f->text.len > 0 ? f->text.ptr : "", f->text.len));
        case PIECE_TEXT:
            buf_put(&f->text, piece);
            break;
        case PIECE_EXPR:
            e.source = piece;
            f->err = expr_evaluate(f->x, &e, f->problem);
            if (f->err != ERR_OK)
                return NULL;
            break;
        case PIECE_UNCLOSED:
            f->err = problem_set(f->problem, ERR_EXPRESSION, "a text has a ${ without its }");
            return NULL;
        }
    }
}

static json_t *fill_text(struct filling *f, const json_t *value)
{
    struct str text = json_str(value);
    if (!text_has_brace(text))
        return json_incref(expr_unconst(value));
    struct evaluation e = {.want = WANT_VALUE};
    size_t at = 0;
    if (next_piece(text, &at, &e.source) != PIECE_EXPR || at < text.len)
        return fill_joined(f, text);
    f->err = expr_evaluate(f->x, &e, f->problem);
    return e.value;
}

static json_t *fill(struct filling *f, const json_t *value);

static json_t *fill_array(struct filling *f, const json_t *value)
{
    json_t *filled = or_no_memory(f, json_array());
    for (size_t i = 0; filled != NULL && i < json_array_size(value); i++) {
        json_t *element = fill(f, json_array_get(value, i));
        if (element != NULL && json_array_append_new(filled, element) == 0)
            continue;
        json_decref(filled);
        return f->err == ERR_OK ? no_memory(f) : NULL;
    }
    return filled;
}

static json_t *fill_object(struct filling *f, const json_t *value)
{
    json_t *filled = or_no_memory(f, json_object());
    const char *name;
    json_t *given;
    if (filled == NULL)
        return NULL;
    json_object_foreach (expr_unconst(value), name, given) {
        json_t *member = fill(f, given);
        if (member != NULL && json_object_set_new_nocheck(filled, name, member) == 0)
            continue;
        json_decref(filled);
        return f->err == ERR_OK ? no_memory(f) : NULL;
    }
    return filled;
}

/* A new reference; what has no templates in it is shared. NULL: f->err says why. */
static json_t *fill(struct filling *f, const json_t *value)
{
    if (json_is_string(value))
        return fill_text(f, value);
    if (!expr_has_template(value))
        return json_incref(expr_unconst(value));
    return json_is_array(value) ? fill_array(f, value) : fill_object(f, value);
}

enum err expr_fill(struct expr *x, const json_t *value, const struct expr_vars *vars,
                   struct problem *p, json_t **ret)
{
    struct filling f = {.x = x, .problem = p};
    buf_init(&f.text, EXPR_WRITTEN_MAX);
    expr_call_begin(x, vars);
    json_t *filled = fill(&f, value);
    assert((filled != NULL) == (f.err == ERR_OK));
    if (f.err == ERR_OK)
        f.err = expr_fits(filled, p);
    if (f.err == ERR_OK)
        *ret = filled;
    else
        json_decref(filled);
    expr_call_end(x);
    buf_release(&f.text);
    return f.err;
}
