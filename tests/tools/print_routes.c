/* Prints the server's routes and their parameters as JSON, and the table of errors: tests compare
 * the documentation with what the binary has, not with a copy. */
#include "api/routes.h"

#include <stdio.h>

static const char *const WHERE[] = {"path", "query", "header", "body"};

static const char *const KINDS[] = {"text", "name", "int",   "bool",   "enum",     "enums",
                                    "time", "uuid", "label", "cursor", "position", "version",
                                    "tags", "key",  "json",  "object", "array"};
static_assert(ARRAY_LEN(KINDS) == PARAM_ARRAY + 1, "one name per kind");

static bool has_initial(const struct param *p)
{
    if (p->kind == PARAM_INT)
        return p->initial >= p->min && p->initial <= p->max && p->where != IN_PATH;
    if (p->kind == PARAM_ENUM)
        return p->initial < p->word_count;
    return p->kind == PARAM_BOOL && p->take == NULL;
}

static void add_params(struct json_out *o, const char *name, const struct param *params,
                       size_t count);

static void add_param(struct json_out *o, const struct param *p)
{
    json_open(o, NULL, '{');
    json_add_text(o, "name", str_of(p->name));
    json_add_text(o, "in", str_of(WHERE[p->where]));
    json_add_text(o, "kind", str_of(KINDS[p->kind]));
    json_add_bool(o, "required", p->required || p->where == IN_PATH);
    json_add_int(o, "min", p->min);
    json_add_int(o, "max", p->max);
    if (p->kind == PARAM_ENUM) {
        json_open(o, "words", '[');
        for (unsigned i = 0; i < p->word_count; i++)
            json_add_text(o, NULL, str_of(p->word(i)));
        json_close(o, ']');
    }
    if (p->initial_text != NULL)
        json_add_text(o, "default", str_of(p->initial_text));
    else if (has_initial(p) && p->kind == PARAM_ENUM)
        json_add_text(o, "default", str_of(p->word((unsigned)p->initial)));
    else if (has_initial(p) && p->kind == PARAM_BOOL)
        json_add_bool(o, "default", p->initial != 0);
    else if (has_initial(p))
        json_add_int(o, "default", p->initial);
    if (p->members != NULL)
        add_params(o, "members", p->members, p->member_count);
    json_close(o, '}');
}

static void add_params(struct json_out *o, const char *name, const struct param *params,
                       size_t count)
{
    json_open(o, name, '[');
    for (size_t i = 0; i < count; i++)
        add_param(o, &params[i]);
    json_close(o, ']');
}

static void add_route(struct json_out *o, const struct route *r)
{
    bool get = strcmp(r->method, "GET") == 0;
    json_open(o, NULL, '{');
    json_add_text(o, "method", str_of(r->method));
    json_add_text(o, "path", str_of(r->pattern));
    json_add_bool(o, "open", (r->flags & ROUTE_OPEN) != 0);
    json_add_bool(o, "keyed", !get && r->use_case != NULL && r->use_case->write != NULL);
    json_add_bool(o, "document", (r->flags & ROUTE_DOCUMENT) != 0);
    add_params(o, "params", r->params, r->param_count);
    json_close(o, '}');
}

int main(void)
{
    struct buf text;
    buf_init(&text, 16 * 1024 * 1024);
    struct json_out o = json_out_to(&text);
    json_open(&o, NULL, '{');
    json_open(&o, "routes", '[');
    for (const struct route *r = route_next(NULL); r != NULL; r = route_next(r))
        add_route(&o, r);
    json_close(&o, ']');
    json_open(&o, "errors", '[');
    for (enum err e = 0; e < ERR_COUNT; e++) {
        json_open(&o, NULL, '{');
        json_add_text(&o, "code", str_of(err_code(e)));
        json_add_int(&o, "status", err_http_status(e));
        json_add_text(&o, "title", str_of(err_title(e)));
        json_close(&o, '}');
    }
    json_close(&o, ']');
    json_close(&o, '}');
    if (!buf_ok(&text) || fwrite(text.ptr, 1, text.len, stdout) != text.len)
        return 1;
    buf_release(&text);
    return 0;
}
