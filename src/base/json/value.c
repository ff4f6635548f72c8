/* JSON values: the order of their names, look-ups, equality. */
#include "base/json/value.h"

#include <math.h>

/* --- the order of names: insertion for few, and merging what was sorted so for many --- */

/* UTF-8 sorts as code points do. UTF-16 has those beyond U+FFFF (lead bytes F0…F4) before
 * U+E000…U+FFFF (EE and EF), which are never other than lead bytes. */
static int rank(char c)
{
    int byte = (unsigned char)c;
    return (byte & 0xFE) == 0xEE ? byte + 8 : byte;
}

static int compare(const char *a, size_t a_len, const char *b, size_t b_len)
{
    size_t both = MIN(a_len, b_len);
    size_t i = 0;
    uint64_t x;
    uint64_t y;
    /* Long names that differ at their ends only must not cost much. */
    for (; i + sizeof(x) <= both; i += sizeof(x)) {
        memcpy(&x, a + i, sizeof(x));
        memcpy(&y, b + i, sizeof(y));
        if (x != y)
            break;
    }
    while (i < both && a[i] == b[i])
        i++;
    if (i < both)
        return rank(a[i]) - rank(b[i]);
    return (a_len > b_len) - (a_len < b_len);
}

struct sorting {
    const struct json *members;
    const struct json *twin; /* NULL: none found */
};

static int compare_places(struct sorting *s, uint32_t a, uint32_t b)
{
    const struct json *x = &s->members[2 * (size_t)a];
    const struct json *y = &s->members[2 * (size_t)b];
    /* Most names differ in their first bytes. */
    if (x->count > 0 && y->count > 0 && x->text[0] != y->text[0])
        return rank(x->text[0]) - rank(y->text[0]);
    int order = compare(x->text, x->count, y->text, y->count);
    if (order == 0)
        s->twin = y;
    return order;
}

static void insert_each(struct sorting *s, uint32_t *order, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++) {
        uint32_t at = i;
        for (; at > from && compare_places(s, order[at - 1], i) > 0; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
}

/* Two sorted stretches into one. Equal names, one in each, meet here. */
static void merge(struct sorting *s, const uint32_t *from, uint32_t *into, uint32_t middle,
                  uint32_t count)
{
    uint32_t a = 0;
    uint32_t b = middle;
    for (uint32_t n = 0; n < count; n++) {
        bool take_a = a < middle && (b == count || compare_places(s, from[a], from[b]) <= 0);
        into[n] = take_a ? from[a++] : from[b++];
    }
}

const struct json *json_order_make(const struct json *members, uint32_t count, uint32_t *order,
                                   uint32_t *scratch)
{
    enum { FEW = 12 };
    struct sorting s = {members, NULL};
    for (uint32_t from = 0; from < count; from += FEW)
        insert_each(&s, order, from, MIN(from + FEW, count));
    for (uint32_t width = FEW; width < count; width *= 2) {
        for (uint32_t from = 0; from < count; from += 2 * width) {
            uint32_t len = MIN(2 * width, count - from);
            merge(&s, order + from, scratch + from, MIN(width, len), len);
        }
        memcpy(order, scratch, count * sizeof(*order));
    }
    return s.twin;
}

/* --- look-ups --- */

/* The node of the name, by bisection. */
static const struct json *find_sorted(const struct json *object, struct str name)
{
    const uint32_t *order = json_order(object);
    size_t low = 0;
    size_t high = object->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct json *at = &object->items[2 * (size_t)order[middle]];
        int way = compare(name.ptr, name.len, at->text, at->count);
        if (way == 0)
            return at;
        if (way < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

/* The node of the name. */
static const struct json *find_name(const struct json *object, struct str name)
{
    enum { FEW = 8 };
    size_t count = json_members(object);
    if (count > FEW)
        return find_sorted(object, name);
    for (size_t i = 0; i < count; i++) {
        const struct json *at = &object->items[2 * i];
        if (at->count == name.len && memcmp(at->text, name.ptr, name.len) == 0)
            return at;
    }
    return NULL;
}

const struct json *json_member(const struct json *object, struct str name)
{
    const struct json *found = find_name(object, name);
    return found != NULL ? found + 1 : NULL;
}

bool json_mark_default(const struct json *object, struct str name)
{
    struct json *found = (struct json *)(uintptr_t)find_name(object, name);
    if (found == NULL || found->is_default)
        return false;
    found->is_default = true;
    return true;
}

bool json_whole_of(const struct json *value, int64_t *ret)
{
    if (json_is(value, JSON_KIND_INTEGER)) {
        *ret = value->integer;
        return true;
    }
    /* Beyond 2^53 the reader has made integers of all that are whole. */
    if (!json_is(value, JSON_KIND_REAL) || value->real != floor(value->real) ||
        fabs(value->real) > 0x1p53)
        return false;
    *ret = (int64_t)value->real;
    return true;
}

/* --- equality --- */

static bool same_members(const struct json *a, const struct json *b)
{
    const uint32_t *order_a = json_order(a);
    const uint32_t *order_b = json_order(b);
    for (size_t i = 0; i < a->count; i++) {
        if (!str_eq(json_name_at(a, order_a[i]), json_name_at(b, order_b[i])) ||
            !json_same(json_value_at(a, order_a[i]), json_value_at(b, order_b[i])))
            return false;
    }
    return true;
}

static bool same_elements(const struct json *a, const struct json *b)
{
    for (size_t i = 0; i < a->count; i++) {
        if (!json_same(&a->items[i], &b->items[i]))
            return false;
    }
    return true;
}

/* The depth of a document is bounded, so recursion is too. */
bool json_same(const struct json *a, const struct json *b)
{
    if (a == NULL || b == NULL || a->kind != b->kind)
        return a == b;
    switch ((enum json_kind)a->kind) {
    case JSON_KIND_NULL:
    case JSON_KIND_FALSE:
    case JSON_KIND_TRUE:
        return true;
    case JSON_KIND_INTEGER:
        return a->integer == b->integer;
    case JSON_KIND_REAL:
        return a->real == b->real;
    case JSON_KIND_TEXT:
        return str_eq(json_text_of(a), json_text_of(b));
    case JSON_KIND_LIST:
        return a->count == b->count && same_elements(a, b);
    case JSON_KIND_OBJECT:
        return a->count == b->count && same_members(a, b);
    }
    assert(!"unknown kind");
    return false;
}
