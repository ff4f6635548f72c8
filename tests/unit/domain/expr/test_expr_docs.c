/* Every row of the table of corner cases in docs/workflows.md. */
#include "base/support.h"
#include "domain/doc_table.h"

#include "domain/expr/expr.h"

struct world {
    struct expr *x;
    struct json *input;
    size_t failures;
};

static enum err get(void *ctx, struct str root, struct str name UNUSED, const struct json **ret)
{
    const struct world *w = ctx;
    if (str_is(root, "input"))
        *ret = w->input;
    return ERR_OK;
}

/* The text of a cell as the JSON of an expression's value, or of a template that is filled. */
static enum err outcome(struct world *w, struct str cell, struct problem *p, struct json **ret)
{
    struct expr_vars vars = {w, get};
    const struct json text = json_text_value(cell);
    return expr_has_template(&text) ? expr_fill(w->x, &text, &vars, p, ret)
                                    : expr_value(w->x, cell, &vars, p, ret);
}

static void check_row(void *ctx, const struct doc_row *row)
{
    struct world *w = ctx;
    struct problem p;
    problem_init(&p);
    struct buf got;
    buf_init(&got, MIB);
    struct json *value = NULL;
    assert_true(row->count == 3);
    struct str wanted = row->cells[1];
    if (outcome(w, row->cells[0], &p, &value) == ERR_OK)
        json_write_plain(&got, value);
    else
        buf_printf(&got, "fails: %s", p.detail);
    bool good = str_eq(buf_str(&got), wanted);
    if (str_starts_with(wanted, STR("fails: "))) {
        char part[256];
        (void)snprintf(part, sizeof(part), "\": %.*s", (int)wanted.len - 7, wanted.ptr + 7);
        good = strstr(got.ptr, part) != NULL;
    }
    if (!good)
        print_error("%.*s\n   got: %s\nwanted: %.*s\n", STR_ARG(row->cells[0]), got.ptr,
                    STR_ARG(wanted));
    w->failures += !good;
    json_free(value);
    buf_release(&got);
    problem_release(&p);
}

static void every_documented_corner_case_is_so(void **state)
{
    (void)state;
    char *text = doc_read("workflows.md");
    const char *input = strstr(text, "**Corner cases.** With the input `");
    assert_non_null(input);
    struct str json;
    struct str rest;
    assert_true(str_cut(str_of(strchr(input, '`') + 1), '`', &json, &rest));
    struct problem p;
    problem_init(&p);
    struct world w = {.x = expr_new()};
    assert_non_null(w.x);
    assert_int_equal(json_read(json, &p, &w.input), ERR_OK);
    size_t rows = doc_each_row(doc_marked(text, "<!-- table: expressions;"), check_row, &w);
    assert_in_range(rows, 80, 1000);
    assert_int_equal(w.failures, 0);
    json_free(w.input);
    expr_free(w.x);
    problem_release(&p);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_documented_corner_case_is_so)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
