/* An expression on the first lines and, behind an empty line, the JSON that it sees: every outcome
 * is one of the allowed, the same in a state with another hash seed, and the same inside ${…}; a
 * value can be written and read again. The JSON is also a template by itself. */
#include "domain/expr/expr.h"
#include "fuzz.h"

static enum err get(void *ctx, struct str root, struct str name, const struct json **ret)
{
    const struct json *value = ctx;
    assert((name.ptr != NULL) == str_is(root, "steps"));
    if (name.ptr != NULL)
        value = json_member(value, name);
    *ret = str_is(root, "run") ? NULL : value;
    return ERR_OK;
}

/* What came of it: the value as JSON or the reason. */
struct outcome {
    enum err err;
    struct buf text;
};

/* A real beyond 2^53 that is whole is an integer when it is read again: the canonical form tells
 * them not apart. */
static bool is_same(const struct json *a, const struct json *b)
{
    struct buf x, y;
    buf_init(&x, 8 * JSON_TEXT_MAX);
    buf_init(&y, 8 * JSON_TEXT_MAX);
    json_write_canonical(&x, a);
    json_write_canonical(&y, b);
    assert(buf_ok(&x) && buf_ok(&y));
    bool same = str_eq(buf_str(&x), buf_str(&y));
    buf_release(&x);
    buf_release(&y);
    return same;
}

/* Takes the value. */
static void conclude(struct outcome *o, enum err e, struct problem *p, struct json *value)
{
    assert((e == ERR_OK) == (value != NULL) && (e == ERR_OK || e == ERR_EXPRESSION));
    o->err = e;
    buf_init(&o->text, 8 * JSON_TEXT_MAX);
    if (e == ERR_OK) {
        json_write_plain(&o->text, value);
    } else {
        assert(p->detail[0] != '\0' && str_is_utf8(str_of(p->detail)));
        buf_put(&o->text, str_of(p->detail));
    }
    assert(buf_ok(&o->text));
    if (e == ERR_OK && o->text.len <= JSON_TEXT_MAX) {
        struct json *again = fuzz_read(buf_str(&o->text));
        assert(again != NULL && is_same(again, value));
        json_free(again);
    }
    json_free(value);
}

static void evaluate(struct expr *x, struct str source, struct json *seen, struct outcome *o)
{
    struct problem p;
    problem_init(&p);
    struct expr_vars vars = {seen, get};
    struct json *value = NULL;
    enum err e = expr_value(x, source, &vars, &p, &value);
    conclude(o, e, &p, value);
    problem_release(&p);
}

static void fill(struct expr *x, const struct json *template, struct json *seen, struct outcome *o)
{
    struct problem p;
    problem_init(&p);
    struct expr_vars vars = {seen, get};
    struct json *value = NULL;
    enum err e = expr_fill(x, template, &vars, &p, &value);
    if (!expr_has_template(template))
        assert(json_same(value, template));
    conclude(o, e, &p, value);
    problem_release(&p);
}

/* How much memory a state has taken before makes a difference, but only at the very limit. */
static bool is_about_memory(const struct outcome *o)
{
    return o->err != ERR_OK && str_ends_with(buf_str(&o->text), STR(" MiB of memory"));
}

/* Once is enough for what takes so long. */
static bool is_about_limits(const struct outcome *o)
{
    return is_about_memory(o) ||
           (o->err != ERR_OK &&
            str_ends_with(buf_str(&o->text), STR(" takes more than 200000 steps")));
}

static void check_same(struct outcome *a, struct outcome *b, bool same_text)
{
    if (!is_about_memory(a) && !is_about_memory(b)) {
        assert(a->err == b->err);
        assert(!same_text || str_eq(buf_str(&a->text), buf_str(&b->text)));
    }
    buf_release(&b->text);
}

static size_t faults_of(struct expr *x, struct str source, const struct json *template)
{
    struct buf out;
    struct fault_list faults;
    buf_init(&out, PROBLEM_FAULTS_MAX);
    buf_put_char(&out, '[');
    fault_list_init(&faults, &out);
    if (template != NULL)
        expr_template_check(x, template, &faults);
    else
        expr_check(x, source, &faults);
    buf_put_char(&out, ']');
    assert(buf_ok(&out) && faults.path.len == 0);
    (void)fuzz_check_faults(buf_str(&out));
    fault_list_release(&faults);
    buf_release(&out);
    return faults.count;
}

/* Inside ${…} it is the same expression; a line's end keeps a comment from the brace. */
static void check_in_template(struct expr *x, struct str source, struct json *seen,
                              struct outcome *o)
{
    struct buf text;
    buf_init(&text, 2 * EXPR_SOURCE_MAX);
    buf_printf(&text, "%s", "${");
    buf_put(&text, source);
    buf_put(&text, STR("\n}"));
    assert(buf_ok(&text));
    const struct json template = json_text_value(buf_str(&text));
    assert(expr_has_template(&template));
    assert(faults_of(x, STR_NONE, &template) == 0);
    struct outcome filled;
    fill(x, &template, seen, &filled);
    check_same(o, &filled, o->err == ERR_OK);
    buf_release(&text);
}

static void check_expression(struct expr *x, struct str source, struct json *seen)
{
    size_t faults = faults_of(x, source, NULL);
    struct outcome first, again, other;
    evaluate(x, source, seen, &first);
    if (is_about_limits(&first)) {
        assert(faults == 0);
        buf_release(&first.text);
        return;
    }
    evaluate(x, source, seen, &again);
    check_same(&first, &again, true);
    struct expr *fresh = expr_new();
    assert(fresh != NULL);
    evaluate(fresh, source, seen, &other);
    check_same(&first, &other, true);
    expr_free(fresh);
    assert(faults == 0 || first.err != ERR_OK);
    if (faults == 0 && source.len < EXPR_SOURCE_MAX)
        check_in_template(x, source, seen, &first);
    buf_release(&first.text);
}

static void check_template(struct expr *x, struct json *template)
{
    struct outcome o;
    size_t faults = faults_of(x, STR_NONE, template);
    fill(x, template, template, &o);
    assert(faults == 0 || o.err != ERR_OK);
    buf_release(&o.text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* A new one each time: libFuzzer looks for leaks when more is allocated than freed. */
    struct expr *x = expr_new();
    assert(x != NULL);
    struct str text = fuzz_text(data, size);
    struct str source = text;
    struct json *seen = NULL;
    for (size_t i = 0; i + 1 < text.len; i++) {
        if (memcmp(text.ptr + i, "\n\n", 2) == 0) {
            source.len = i;
            seen = fuzz_read((struct str){text.ptr + i + 2, text.len - i - 2});
            break;
        }
    }
    if (seen == NULL)
        seen = fuzz_read(STR("{}"));
    check_expression(x, source, seen);
    check_template(x, seen);
    struct outcome o;
    evaluate(x, STR("1 + 1"), seen, &o);
    assert(str_is(buf_str(&o.text), "2"));
    buf_release(&o.text);
    json_free(seen);
    expr_free(x);
    return 0;
}
