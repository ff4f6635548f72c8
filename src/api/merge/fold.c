/* What the routes' fold functions are made of. */
#include "api/merge/fold.h"

static int64_t number_of(const struct json *answer, const char *name)
{
    int64_t number = 0;
    return json_whole_of(json_member(answer, str_of(name)), &number) ? number : 0;
}

int64_t fold_sum(const struct fold *f, const char *name)
{
    return number_of(f->so_far, name) + number_of(f->next, name);
}

int64_t fold_most(const struct fold *f, const char *name)
{
    return MAX(number_of(f->so_far, name), number_of(f->next, name));
}

bool fold_all(const struct fold *f, const char *name)
{
    return (f->so_far == NULL || json_is(json_member(f->so_far, str_of(name)), JSON_KIND_TRUE)) &&
           json_is(json_member(f->next, str_of(name)), JSON_KIND_TRUE);
}

void fold_put_first(const struct fold *f, struct json_out *o, const char *name)
{
    const struct json *value = json_member(f->so_far, str_of(name));
    if (value == NULL || json_is(value, JSON_KIND_NULL))
        value = json_member(f->next, str_of(name));
    if (value == NULL) {
        json_add_null(o, name);
        return;
    }
    json_add_name(o, name);
    json_write_plain(o->buf, value);
}

void fold_put_members(struct json_out *o, const struct json *object)
{
    for (size_t i = 0; i < json_members(object); i++) {
        if (o->comma)
            buf_put_char(o->buf, ',');
        json_put_text(o->buf, json_name_at(object, i));
        buf_put_char(o->buf, ':');
        json_write_plain(o->buf, json_value_at(object, i));
        o->comma = true;
    }
}
