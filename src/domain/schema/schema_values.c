/* The keywords that speak about the size of a value, about numbers, and about equal values. */
#include "domain/schema/keyword.h"

#include <stdio.h>
#include <stdlib.h>

static bool bound_holds(enum bound bound, int compared)
{
    switch (bound) {
    case AT_LEAST:
        return compared >= 0;
    case AT_MOST:
        return compared <= 0;
    case ABOVE:
        return compared > 0;
    case BELOW:
        return compared < 0;
    case BOUND_NONE:
        break;
    }
    assert(false);
    return false;
}

/* Equal as JSON Schema means it: 1 and 1.0 are, and members have no order. */
bool judge_equal(struct judge *j, const struct json *a, const struct json *b)
{
    if (!judge_spend(j, 1))
        return false;
    if (json_is_numeric(a) && json_is_numeric(b))
        return schema_number_compare(schema_number_of(a), schema_number_of(b)) == 0;
    if (a->kind != b->kind)
        return false;
    if (json_is(a, JSON_KIND_TEXT))
        return json_text_of(a).len == json_text_of(b).len && judge_spend(j, judge_text_steps(a)) &&
               str_eq(json_text_of(a), json_text_of(b));
    bool same = json_length(a) == json_length(b) && json_members(a) == json_members(b);
    for (size_t i = 0; same && i < json_length(a); i++)
        same = judge_equal(j, json_element(a, i), json_element(b, i));
    for (size_t i = 0; i < json_members(a); i++) {
        const struct json *other = same ? json_member(b, json_name_at(a, i)) : NULL;
        if (other == NULL || !judge_equal(j, json_value_at(a, i), other))
            return false;
    }
    return same;
}

static int64_t code_points(struct str text)
{
    int64_t count = 0;
    for (size_t i = 0; i < text.len; i++)
        count += ((unsigned char)text.ptr[i] & 0xC0) != 0x80;
    return count;
}

bool keyword_fits_size(struct judge *j, const struct meeting *m)
{
    int64_t size;
    const char *unit;
    if (json_is(m->value, JSON_KIND_TEXT)) {
        if (!judge_spend(j, judge_text_steps(m->value)))
            return false;
        size = code_points(json_text_of(m->value));
        unit = "characters";
    } else if (json_is(m->value, JSON_KIND_LIST)) {
        size = (int64_t)json_length(m->value);
        unit = "elements";
    } else {
        size = (int64_t)json_members(m->value);
        unit = "members";
    }
    struct number want = schema_number_of(m->want);
    struct number have = {true, size, (double)size};
    return bound_holds(m->word->bound, schema_number_compare(have, want)) ||
           judge_misfit(j, "must have at %s %.0f %s, has %lld",
                        m->word->bound == AT_LEAST ? "least" : "most", want.real, unit,
                        (long long)size);
}

bool keyword_fits_limit(struct judge *j, const struct meeting *m)
{
    static const char *const WORDS[] = {
        [AT_LEAST] = "at least", [AT_MOST] = "at most", [ABOVE] = "above", [BELOW] = "below"};
    if (bound_holds(m->word->bound,
                    schema_number_compare(schema_number_of(m->value), schema_number_of(m->want))))
        return true;
    char message[32];
    (void)snprintf(message, sizeof(message), "must be %s", WORDS[m->word->bound]);
    return judge_misfit_listing(j, message, m->want);
}

bool keyword_fits_multiple(struct judge *j, const struct meeting *m)
{
    return schema_number_is_multiple(schema_number_of(m->value), schema_number_of(m->want)) ||
           judge_misfit_listing(j, "must be a multiple of", m->want);
}

static uint64_t mixed(uint64_t h)
{
    h = (h ^ h >> 33) * UINT64_C(0xff51afd7ed558ccd);
    h = (h ^ h >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
    return h ^ h >> 33;
}

static uint64_t hash_of_number(struct number n)
{
    uint64_t bits = (uint64_t)n.whole;
    if (!n.exact)
        memcpy(&bits, &n.real, sizeof(bits));
    return mixed(bits + JSON_KIND_INTEGER);
}

/* Values that are judge_equal() have the same hash. */
static uint64_t hash_of(struct judge *j, const struct json *value)
{
    if (!judge_spend(j, 1))
        return 0;
    if (json_is_numeric(value))
        return hash_of_number(schema_number_of(value));
    if (json_is(value, JSON_KIND_TEXT))
        return judge_spend(j, judge_text_steps(value)) ? str_hash(json_text_of(value)) : 0;
    uint64_t hash = mixed(value->kind);
    for (size_t i = 0; i < json_length(value); i++)
        hash = mixed(hash + hash_of(j, json_element(value, i)));
    for (size_t i = 0; i < json_members(value); i++) /* in any order: a sum */
        hash +=
            mixed(str_hash(json_name_at(value, i)) + mixed(hash_of(j, json_value_at(value, i))));
    return hash;
}

/* A hash table of elements by their place in the array. */
struct seen {
    uint64_t hash;
    size_t place_plus_1; /* 0: free */
};

/* The place of an earlier element that is equal, or `place` itself, which is then in the table. */
static size_t seen_before(struct judge *j, const struct json *array, size_t place,
                          struct seen *table, size_t mask)
{
    const struct json *element = json_element(array, place);
    uint64_t hash = hash_of(j, element);
    size_t at = hash & mask;
    for (; table[at].place_plus_1 != 0; at = (at + 1) & mask) {
        if (!judge_spend(j, 1))
            return place;
        size_t earlier = table[at].place_plus_1 - 1;
        if (table[at].hash == hash && judge_equal(j, json_element(array, earlier), element))
            return earlier;
    }
    table[at] = (struct seen){hash, place + 1};
    return place;
}

bool keyword_fits_unique(struct judge *j, const struct meeting *m)
{
    size_t count = json_length(m->value);
    if (!json_is(m->want, JSON_KIND_TRUE) || count < 2 || !judge_spend(j, count))
        return true;
    size_t slots = 4;
    while (slots < 2 * count)
        slots *= 2;
    struct seen *table = calloc(slots, sizeof(*table));
    if (table == NULL) {
        j->faults->out->failed = true;
        return false;
    }
    bool ok = true;
    for (size_t i = 0; ok && i < count && j->work->left > 0; i++) {
        size_t k = seen_before(j, m->value, i, table, slots - 1);
        ok = k == i || judge_misfit(j, "must not repeat an element: %zu and %zu are equal", k, i);
    }
    free(table);
    return ok;
}
