/* Copies of JSON values. */
#include "base/json/read.h"

struct sizes {
    size_t items; /* of lists and objects, with the order of their members */
    size_t texts;
};

/* What a list or an object has behind its node. */
static size_t items_size(const struct json *value)
{
    size_t count = value->count;
    if (value->kind == JSON_KIND_LIST)
        return count * sizeof(*value);
    /* An odd number of places would leave the next node between two words. */
    return 2 * count * sizeof(*value) + (count + count % 2) * sizeof(uint32_t);
}

static size_t item_count(const struct json *value)
{
    return value->kind == JSON_KIND_LIST ? value->count : 2 * (size_t)value->count;
}

static bool is_container(const struct json *value)
{
    return value->kind == JSON_KIND_LIST || value->kind == JSON_KIND_OBJECT;
}

/* The depth of a value is bounded, so recursion is too, in this and the next. */
static void measure(const struct json *value, struct sizes *s)
{
    if (value->kind == JSON_KIND_TEXT)
        s->texts += (size_t)value->count + 1;
    if (!is_container(value))
        return;
    s->items += items_size(value);
    for (size_t i = 0; i < item_count(value); i++)
        measure(&value->items[i], s);
}

struct copying {
    char *items; /* where the next ones go */
    char *texts;
};

static void copy_text(struct copying *c, struct json *to)
{
    memcpy(c->texts, to->text, to->count);
    c->texts[to->count] = '\0';
    to->text = c->texts;
    c->texts += to->count + 1;
}

static void copy_into(struct copying *c, const struct json *from, struct json *to)
{
    *to = *from;
    to->is_default = false;
    if (from->kind == JSON_KIND_TEXT)
        copy_text(c, to);
    if (!is_container(from))
        return;
    struct json *items = (struct json *)(void *)c->items;
    c->items += items_size(from);
    for (size_t i = 0; i < item_count(from); i++)
        copy_into(c, &from->items[i], &items[i]);
    to->items = items;
    if (from->kind == JSON_KIND_OBJECT)
        memcpy(items + item_count(from), json_order(from), from->count * sizeof(uint32_t));
}

enum err json_copy_of(const struct json *value, struct json **ret)
{
    struct sizes s = {.items = sizeof(*value)};
    measure(value, &s);
    char *memory = malloc(s.items + s.texts);
    if (memory == NULL)
        return ERR_NO_MEMORY;
    struct copying c = {memory + sizeof(*value), memory + s.items};
    struct json *root = (struct json *)(void *)memory;
    copy_into(&c, value, root);
    assert(c.items == memory + s.items && c.texts == c.items + s.texts);
    *ret = root;
    return ERR_OK;
}
