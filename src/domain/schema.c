/* The part of JSON Schema that pawl knows: one table of keywords, each with what it may say in a
 * schema and how it judges a value. A keyword that is not in the table is refused when the schema
 * is stored, because a schema that is applied by half would let through what its author forbade. */
#include "domain/schema.h"

#include "base/limits.h"

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    /* Reading this much text costs about as much as any other step. */
    SCHEMA_TEXT_PER_STEP = 32,
    /* Allowed values are listed in the message when they are shorter than this. */
    SCHEMA_LISTED_MAX = 200,
};

/* One judgement: schema_check_value() from beginning to end. */
struct judge {
    struct fault_list *faults;
    /* Above 0 only the verdict is wanted: inside anyOf, oneOf and not. */
    unsigned quiet;
    struct work_budget *work;
};

/* The kinds of value that a keyword speaks about; it is silent about all others. */
enum kind { KIND_ANY, KIND_TEXT, KIND_NUMBER, KIND_ARRAY, KIND_OBJECT };

enum bound { BOUND_NONE, AT_LEAST, AT_MOST, ABOVE, BELOW };

/* A keyword in a schema, met by a value. */
struct meeting {
    const struct keyword *word;
    json_t *schema; /* where the keyword stands, for those that look at their neighbours */
    json_t *want;   /* the keyword's own value */
    json_t *value;
};

struct keyword {
    const char *name;
    enum kind kind;
    void (*check)(json_t *want, struct fault_list *faults);
    /* NULL: an annotation, which judges nothing. */
    bool (*fits)(struct judge *j, const struct meeting *m);
    enum bound bound;
};

static void check_schema(json_t *schema, struct fault_list *faults);
static void check_schemas(json_t *want, struct fault_list *faults);
static void check_properties(json_t *want, struct fault_list *faults);
static void check_type(json_t *want, struct fault_list *faults);
static void check_values(json_t *want, struct fault_list *faults);
static void check_required(json_t *want, struct fault_list *faults);
static void check_count(json_t *want, struct fault_list *faults);
static void check_number(json_t *want, struct fault_list *faults);
static void check_positive(json_t *want, struct fault_list *faults);
static void check_flag(json_t *want, struct fault_list *faults);
static void check_text(json_t *want, struct fault_list *faults);
static void check_array(json_t *want, struct fault_list *faults);
static void check_nothing(json_t *want, struct fault_list *faults);

static bool fits_type(struct judge *j, const struct meeting *m);
static bool fits_enum(struct judge *j, const struct meeting *m);
static bool fits_const(struct judge *j, const struct meeting *m);
static bool fits_all(struct judge *j, const struct meeting *m);
static bool fits_any(struct judge *j, const struct meeting *m);
static bool fits_one(struct judge *j, const struct meeting *m);
static bool fits_not(struct judge *j, const struct meeting *m);
static bool fits_size(struct judge *j, const struct meeting *m);
static bool fits_limit(struct judge *j, const struct meeting *m);
static bool fits_multiple(struct judge *j, const struct meeting *m);
static bool fits_items(struct judge *j, const struct meeting *m);
static bool fits_prefix(struct judge *j, const struct meeting *m);
static bool fits_unique(struct judge *j, const struct meeting *m);
static bool fits_properties(struct judge *j, const struct meeting *m);
static bool fits_additional(struct judge *j, const struct meeting *m);
static bool fits_required(struct judge *j, const struct meeting *m);
static bool fits_names(struct judge *j, const struct meeting *m);

// clang-format off
static const struct keyword KEYWORDS[] = {
    /* name                  about        may say           judges by */
    {"type",                 KIND_ANY,    check_type,       fits_type,       BOUND_NONE},
    {"properties",           KIND_OBJECT, check_properties, fits_properties, BOUND_NONE},
    {"required",             KIND_OBJECT, check_required,   fits_required,   BOUND_NONE},
    {"additionalProperties", KIND_OBJECT, check_schema,     fits_additional, BOUND_NONE},
    {"propertyNames",        KIND_OBJECT, check_schema,     fits_names,      BOUND_NONE},
    {"minProperties",        KIND_OBJECT, check_count,      fits_size,       AT_LEAST},
    {"maxProperties",        KIND_OBJECT, check_count,      fits_size,       AT_MOST},
    {"items",                KIND_ARRAY,  check_schema,     fits_items,      BOUND_NONE},
    {"prefixItems",          KIND_ARRAY,  check_schemas,    fits_prefix,     BOUND_NONE},
    {"minItems",             KIND_ARRAY,  check_count,      fits_size,       AT_LEAST},
    {"maxItems",             KIND_ARRAY,  check_count,      fits_size,       AT_MOST},
    {"uniqueItems",          KIND_ARRAY,  check_flag,       fits_unique,     BOUND_NONE},
    {"minLength",            KIND_TEXT,   check_count,      fits_size,       AT_LEAST},
    {"maxLength",            KIND_TEXT,   check_count,      fits_size,       AT_MOST},
    {"minimum",              KIND_NUMBER, check_number,     fits_limit,      AT_LEAST},
    {"maximum",              KIND_NUMBER, check_number,     fits_limit,      AT_MOST},
    {"exclusiveMinimum",     KIND_NUMBER, check_number,     fits_limit,      ABOVE},
    {"exclusiveMaximum",     KIND_NUMBER, check_number,     fits_limit,      BELOW},
    {"multipleOf",           KIND_NUMBER, check_positive,   fits_multiple,   BOUND_NONE},
    {"enum",                 KIND_ANY,    check_values,     fits_enum,       BOUND_NONE},
    {"const",                KIND_ANY,    check_nothing,    fits_const,      BOUND_NONE},
    {"allOf",                KIND_ANY,    check_schemas,    fits_all,        BOUND_NONE},
    {"anyOf",                KIND_ANY,    check_schemas,    fits_any,        BOUND_NONE},
    {"oneOf",                KIND_ANY,    check_schemas,    fits_one,        BOUND_NONE},
    {"not",                  KIND_ANY,    check_schema,     fits_not,        BOUND_NONE},
    {"title",                KIND_ANY,    check_text,       NULL,            BOUND_NONE},
    {"description",          KIND_ANY,    check_text,       NULL,            BOUND_NONE},
    {"default",              KIND_ANY,    check_nothing,    NULL,            BOUND_NONE},
    {"examples",             KIND_ANY,    check_array,      NULL,            BOUND_NONE},
    {"deprecated",           KIND_ANY,    check_flag,       NULL,            BOUND_NONE},
    {"format",               KIND_ANY,    check_text,       NULL,            BOUND_NONE},
    {"$comment",             KIND_ANY,    check_text,       NULL,            BOUND_NONE},
    {"$schema",              KIND_ANY,    check_text,       NULL,            BOUND_NONE},
    {"$id",                  KIND_ANY,    check_text,       NULL,            BOUND_NONE},
};
// clang-format on

static const char *const TYPE_NAMES[] = {"null",   "boolean", "integer", "number",
                                         "string", "array",   "object"};

static bool fits(struct judge *j, json_t *schema, json_t *value);

/* Walking an object takes a pointer to what might change; nothing here changes it. */
static json_t *walkable(const json_t *value)
{
    return (json_t *)(uintptr_t)value;
}

void schema_check_schema(const json_t *schema, struct fault_list *faults)
{
    assert(schema != NULL);
    check_schema(walkable(schema), faults);
}

enum schema_verdict schema_check_value(const json_t *schema, const json_t *value,
                                       struct work_budget *work, struct fault_list *faults)
{
    assert(schema != NULL && value != NULL);
    struct judge j = {.faults = faults, .work = work};
    size_t before = faults->count;
    bool ok = fits(&j, walkable(schema), walkable(value));
    assert(j.quiet == 0);
    if (work->left == 0)
        return SCHEMA_GAVE_UP;
    assert(ok || faults->count > before || faults->count == DEFINITION_FAULTS_MAX ||
           !buf_ok(faults->out));
    return ok ? SCHEMA_FITS : SCHEMA_MISFITS;
}

/* --- may a schema say this? --- */

static const struct keyword *keyword_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(KEYWORDS); i++) {
        /* The first letter saves most of the calls; this is the hottest line of judging. */
        if (KEYWORDS[i].name[0] == name[0] && strcmp(KEYWORDS[i].name, name) == 0)
            return &KEYWORDS[i];
    }
    return NULL;
}

/* Recursion: no deeper than the JSON text, which json_parse keeps under JSON_DEPTH_MAX. */
static void check_schema(json_t *schema, struct fault_list *faults)
{
    if (json_is_boolean(schema))
        return;
    if (!json_is_object(schema)) {
        fault_list_add(faults, "must be a schema: an object, true or false");
        return;
    }
    const char *name;
    json_t *want;
    json_object_foreach (schema, name, want) {
        size_t back_to = fault_list_enter(faults, str_of(name));
        const struct keyword *word = keyword_find(name);
        if (word != NULL)
            word->check(want, faults);
        else
            fault_list_add(faults, "the schema keyword \"%s\" is not supported", name);
        fault_list_leave(faults, back_to);
    }
}

static bool is_filled_array(json_t *want, struct fault_list *faults, const char *of_what)
{
    if (json_array_size(want) > 0) /* 0 for what is no array */
        return true;
    fault_list_add(faults, "must be an array with at least one %s", of_what);
    return false;
}

static void check_schemas(json_t *want, struct fault_list *faults)
{
    if (!is_filled_array(want, faults, "schema"))
        return;
    size_t i;
    json_t *schema;
    json_array_foreach (want, i, schema) {
        size_t back_to = fault_list_enter_index(faults, i);
        check_schema(schema, faults);
        fault_list_leave(faults, back_to);
    }
}

static void check_properties(json_t *want, struct fault_list *faults)
{
    if (!json_is_object(want)) {
        fault_list_add(faults, "must be an object of schemas");
        return;
    }
    const char *name;
    json_t *schema;
    json_object_foreach (want, name, schema) {
        size_t back_to = fault_list_enter(faults, str_of(name));
        check_schema(schema, faults);
        fault_list_leave(faults, back_to);
    }
}

static void check_type_name(json_t *want, struct fault_list *faults)
{
    for (size_t i = 0; i < ARRAY_LEN(TYPE_NAMES); i++) {
        if (json_is_string(want) && str_is(json_str(want), TYPE_NAMES[i]))
            return;
    }
    fault_list_add(faults, "must be one of null, boolean, integer, number, string, array, object");
}

static void check_type(json_t *want, struct fault_list *faults)
{
    if (json_is_string(want)) {
        check_type_name(want, faults);
        return;
    }
    if (!is_filled_array(want, faults, "type, or the name of one"))
        return;
    size_t i;
    json_t *name;
    json_array_foreach (want, i, name) {
        size_t back_to = fault_list_enter_index(faults, i);
        check_type_name(name, faults);
        fault_list_leave(faults, back_to);
    }
}

static void check_values(json_t *want, struct fault_list *faults)
{
    (void)is_filled_array(want, faults, "value");
}

static void check_required(json_t *want, struct fault_list *faults)
{
    if (!json_is_array(want)) {
        fault_list_add(faults, "must be an array of member names");
        return;
    }
    size_t i;
    json_t *name;
    json_array_foreach (want, i, name) {
        if (json_is_string(name))
            continue;
        size_t back_to = fault_list_enter_index(faults, i);
        fault_list_add(faults, "must be the name of a member");
        fault_list_leave(faults, back_to);
    }
}

static void check_count(json_t *want, struct fault_list *faults)
{
    double count = json_is_number(want) ? json_number_value(want) : -1;
    if (count < 0 || count != floor(count))
        fault_list_add(faults, "must be a whole number, 0 or more");
}

static void check_number(json_t *want, struct fault_list *faults)
{
    if (!json_is_number(want))
        fault_list_add(faults, "must be a number");
}

static void check_positive(json_t *want, struct fault_list *faults)
{
    if (!json_is_number(want) || json_number_value(want) <= 0)
        fault_list_add(faults, "must be a number above 0");
}

static void check_flag(json_t *want, struct fault_list *faults)
{
    if (!json_is_boolean(want))
        fault_list_add(faults, "must be true or false");
}

static void check_text(json_t *want, struct fault_list *faults)
{
    if (!json_is_string(want))
        fault_list_add(faults, "must be text");
}

static void check_array(json_t *want, struct fault_list *faults)
{
    if (!json_is_array(want))
        fault_list_add(faults, "must be an array");
}

static void check_nothing(json_t *want UNUSED, struct fault_list *faults UNUSED) {}

/* --- what judging needs --- */

/* False when the judgement has cost too much; then every question is answered at once with no. */
static bool spend(struct judge *j, size_t steps)
{
    return work_spend(j->work, steps);
}

static size_t text_steps(const json_t *text)
{
    return 1 + json_string_length(text) / SCHEMA_TEXT_PER_STEP;
}

/* Nobody would read another fault. */
static bool is_silent(const struct judge *j)
{
    return j->quiet > 0 || j->work->left == 0 || j->faults->count >= DEFINITION_FAULTS_MAX;
}

/* Returns false, so that a judge can `return misfit(…)`. */
static bool PRINTF_LIKE(2, 3) misfit(struct judge *j, const char *fmt, ...)
{
    if (is_silent(j))
        return false;
    va_list args;
    va_start(args, fmt);
    fault_list_add_va(j->faults, fmt, args);
    va_end(args);
    return false;
}

static bool fits_at(struct judge *j, json_t *schema, json_t *value, size_t back_to)
{
    bool ok = fits(j, schema, value);
    if (j->quiet == 0)
        fault_list_leave(j->faults, back_to);
    return ok;
}

static bool fits_member(struct judge *j, json_t *schema, const char *name, json_t *value)
{
    size_t back_to = j->quiet == 0 ? fault_list_enter(j->faults, str_of(name)) : 0;
    return fits_at(j, schema, value, back_to);
}

static bool fits_element(struct judge *j, json_t *schema, size_t index, json_t *value)
{
    size_t back_to = j->quiet == 0 ? fault_list_enter_index(j->faults, index) : 0;
    return fits_at(j, schema, value, back_to);
}

static bool fits_quietly(struct judge *j, json_t *schema, json_t *value)
{
    j->quiet++;
    bool ok = fits(j, schema, value);
    j->quiet--;
    return ok;
}

/* A number that is whole, 1.0 among them, is kept exactly. */
struct number {
    bool exact;
    int64_t whole;
    double real;
};

static struct number number_of(const json_t *value)
{
    if (json_is_integer(value)) {
        int64_t whole = json_integer_value(value);
        return (struct number){true, whole, (double)whole};
    }
    double real = json_real_value(value);
    if (real == floor(real) && fabs(real) < 0x1p63)
        return (struct number){true, (int64_t)real, real};
    return (struct number){false, 0, real};
}

static int compare(struct number a, struct number b)
{
    if (a.exact && b.exact)
        return a.whole < b.whole ? -1 : a.whole > b.whole;
    return a.real < b.real ? -1 : a.real > b.real;
}

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
static bool equal(struct judge *j, json_t *a, json_t *b)
{
    if (!spend(j, 1))
        return false;
    if (json_is_number(a) && json_is_number(b))
        return compare(number_of(a), number_of(b)) == 0;
    if (json_typeof(a) != json_typeof(b))
        return false;
    if (json_is_string(a))
        return json_string_length(a) == json_string_length(b) && spend(j, text_steps(a)) &&
               str_eq(json_str(a), json_str(b));
    bool same =
        json_array_size(a) == json_array_size(b) && json_object_size(a) == json_object_size(b);
    size_t i;
    json_t *element;
    for (i = 0; same && i < json_array_size(a); i++)
        same = equal(j, json_array_get(a, i), json_array_get(b, i));
    const char *name;
    json_object_foreach (a, name, element) {
        json_t *other = same ? json_object_get(b, name) : NULL;
        if (other == NULL || !equal(j, element, other))
            return false;
    }
    return same;
}

static bool is_kind(enum kind kind, const json_t *value)
{
    switch (kind) {
    case KIND_ANY:
        return true;
    case KIND_TEXT:
        return json_is_string(value);
    case KIND_NUMBER:
        return json_is_number(value);
    case KIND_ARRAY:
        return json_is_array(value);
    case KIND_OBJECT:
        return json_is_object(value);
    }
    assert(false);
    return false;
}

/* --- does a value fit? --- */

/* Recursion: each call goes one schema deeper, and schemas cannot refer to themselves. */
static bool fits(struct judge *j, json_t *schema, json_t *value)
{
    if (!spend(j, 1))
        return false;
    if (json_is_boolean(schema))
        return json_is_true(schema) || misfit(j, "nothing is allowed here");
    bool ok = true;
    struct meeting m = {.schema = schema, .value = value};
    const char *name;
    json_object_foreach (schema, name, m.want) {
        m.word = keyword_find(name);
        assert(m.word != NULL);
        bool speaks = m.word->fits != NULL && is_kind(m.word->kind, value);
        ok = spend(j, 1) && (!speaks || m.word->fits(j, &m)) && ok;
        if (!ok && (j->quiet > 0 || j->work->left == 0))
            return false;
    }
    return ok;
}

static const char *type_of(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_NULL:
        return "null";
    case JSON_TRUE:
    case JSON_FALSE:
        return "boolean";
    case JSON_INTEGER:
        return "integer";
    case JSON_REAL:
        return json_real_value(value) == floor(json_real_value(value)) ? "integer" : "number";
    case JSON_STRING:
        return "string";
    case JSON_ARRAY:
        return "array";
    case JSON_OBJECT:
        return "object";
    }
    assert(false);
    return "";
}

static bool is_type(const json_t *value, const json_t *type)
{
    return str_is(json_str(type), type_of(value)) ||
           (json_is_number(value) && str_is(json_str(type), "number"));
}

static bool fits_type(struct judge *j, const struct meeting *m)
{
    if (json_is_string(m->want))
        return is_type(m->value, m->want) || misfit(j, "must be of type %s, is %s",
                                                    json_string_value(m->want), type_of(m->value));
    size_t i;
    json_t *type;
    json_array_foreach (m->want, i, type) {
        if (!spend(j, 1) || is_type(m->value, type))
            return j->work->left > 0;
    }
    return misfit(j, "is %s, which is none of the types allowed here", type_of(m->value));
}

/* The message with what was wanted as JSON, or without when that is long. */
static bool misfit_listing(struct judge *j, const char *message, const json_t *want)
{
    if (is_silent(j))
        return false;
    struct buf listed;
    buf_init(&listed, SCHEMA_LISTED_MAX);
    json_put_plain(&listed, want);
    if (buf_ok(&listed))
        (void)misfit(j, "%s %.*s", message, STR_ARG(buf_str(&listed)));
    else
        (void)misfit(j, "%s", message);
    buf_release(&listed);
    return false;
}

static bool fits_enum(struct judge *j, const struct meeting *m)
{
    size_t i;
    json_t *allowed;
    json_array_foreach (m->want, i, allowed) {
        if (equal(j, allowed, m->value))
            return true;
    }
    return misfit_listing(j, "must be one of the values", m->want);
}

static bool fits_const(struct judge *j, const struct meeting *m)
{
    return equal(j, m->want, m->value) || misfit_listing(j, "must be the value", m->want);
}

static bool fits_all(struct judge *j, const struct meeting *m)
{
    bool ok = true;
    size_t i;
    json_t *schema;
    json_array_foreach (m->want, i, schema)
        ok = fits(j, schema, m->value) && ok;
    return ok;
}

static bool fits_any(struct judge *j, const struct meeting *m)
{
    size_t i;
    json_t *schema;
    json_array_foreach (m->want, i, schema) {
        if (fits_quietly(j, schema, m->value))
            return true;
    }
    return misfit(j, "fits none of the schemas under anyOf");
}

static bool fits_one(struct judge *j, const struct meeting *m)
{
    size_t count = 0;
    size_t i;
    json_t *schema;
    json_array_foreach (m->want, i, schema)
        count += fits_quietly(j, schema, m->value);
    return count == 1 || misfit(j, "must fit one of the schemas under oneOf, fits %zu", count);
}

static bool fits_not(struct judge *j, const struct meeting *m)
{
    return !fits_quietly(j, m->want, m->value) || misfit(j, "fits the schema under not");
}

static int64_t code_points(struct str text)
{
    int64_t count = 0;
    for (size_t i = 0; i < text.len; i++)
        count += ((unsigned char)text.ptr[i] & 0xC0) != 0x80;
    return count;
}

static bool fits_size(struct judge *j, const struct meeting *m)
{
    int64_t size;
    const char *unit;
    if (json_is_string(m->value)) {
        if (!spend(j, text_steps(m->value)))
            return false;
        size = code_points(json_str(m->value));
        unit = "characters";
    } else if (json_is_array(m->value)) {
        size = (int64_t)json_array_size(m->value);
        unit = "elements";
    } else {
        size = (int64_t)json_object_size(m->value);
        unit = "members";
    }
    struct number want = number_of(m->want);
    struct number have = {true, size, (double)size};
    return bound_holds(m->word->bound, compare(have, want)) ||
           misfit(j, "must have at %s %.0f %s, has %lld",
                  m->word->bound == AT_LEAST ? "least" : "most", want.real, unit, (long long)size);
}

static bool fits_limit(struct judge *j, const struct meeting *m)
{
    static const char *const WORDS[] = {
        [AT_LEAST] = "at least", [AT_MOST] = "at most", [ABOVE] = "above", [BELOW] = "below"};
    if (bound_holds(m->word->bound, compare(number_of(m->value), number_of(m->want))))
        return true;
    char message[32];
    (void)snprintf(message, sizeof(message), "must be %s", WORDS[m->word->bound]);
    return misfit_listing(j, message, m->want);
}

/* Decimal fractions are not exact in binary: 0.3 counts as a multiple of 0.1. */
static bool is_multiple(double value, double of)
{
    double rest = fabs(fmod(value, of));
    double slack = 4 * DBL_EPSILON * fabs(value);
    return rest == 0 || (slack < of / 4 && (rest <= slack || of - rest <= slack));
}

static bool fits_multiple(struct judge *j, const struct meeting *m)
{
    struct number value = number_of(m->value);
    struct number of = number_of(m->want);
    bool ok =
        value.exact && of.exact ? value.whole % of.whole == 0 : is_multiple(value.real, of.real);
    return ok || misfit_listing(j, "must be a multiple of", m->want);
}

static bool fits_items(struct judge *j, const struct meeting *m)
{
    bool ok = true;
    size_t first = json_array_size(json_object_get(m->schema, "prefixItems"));
    for (size_t i = first; i < json_array_size(m->value) && j->work->left > 0; i++)
        ok = fits_element(j, m->want, i, json_array_get(m->value, i)) && ok;
    return ok;
}

static bool fits_prefix(struct judge *j, const struct meeting *m)
{
    bool ok = true;
    size_t count = MIN(json_array_size(m->want), json_array_size(m->value));
    for (size_t i = 0; i < count && j->work->left > 0; i++)
        ok = fits_element(j, json_array_get(m->want, i), i, json_array_get(m->value, i)) && ok;
    return ok;
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
    return mixed(bits + JSON_INTEGER);
}

/* Values that are equal() have the same hash. */
static uint64_t hash_of(struct judge *j, json_t *value)
{
    if (!spend(j, 1))
        return 0;
    if (json_is_number(value))
        return hash_of_number(number_of(value));
    if (json_is_string(value))
        return spend(j, text_steps(value)) ? str_hash(json_str(value)) : 0;
    uint64_t hash = mixed((uint64_t)json_typeof(value));
    for (size_t i = 0; i < json_array_size(value); i++)
        hash = mixed(hash + hash_of(j, json_array_get(value, i)));
    const char *name;
    json_t *member;
    json_object_foreach (value, name, member) /* in any order: a sum */
        hash += mixed(str_hash(str_of(name)) + mixed(hash_of(j, member)));
    return hash;
}

/* A hash table of elements by their place in the array. */
struct seen {
    uint64_t hash;
    size_t place_plus_1; /* 0: free */
};

/* The place of an earlier element that is equal, or `place` itself, which is then in the table. */
static size_t seen_before(struct judge *j, json_t *array, size_t place, struct seen *table,
                          size_t mask)
{
    json_t *element = json_array_get(array, place);
    uint64_t hash = hash_of(j, element);
    size_t at = hash & mask;
    for (; table[at].place_plus_1 != 0; at = (at + 1) & mask) {
        if (!spend(j, 1))
            return place;
        size_t earlier = table[at].place_plus_1 - 1;
        if (table[at].hash == hash && equal(j, json_array_get(array, earlier), element))
            return earlier;
    }
    table[at] = (struct seen){hash, place + 1};
    return place;
}

static bool fits_unique(struct judge *j, const struct meeting *m)
{
    size_t count = json_array_size(m->value);
    if (!json_is_true(m->want) || count < 2 || !spend(j, count))
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
        ok = k == i || misfit(j, "must not repeat an element: %zu and %zu are equal", k, i);
    }
    free(table);
    return ok;
}

static bool fits_properties(struct judge *j, const struct meeting *m)
{
    bool ok = true;
    const char *name;
    json_t *member;
    json_object_foreach (m->value, name, member) {
        json_t *schema = spend(j, 1) ? json_object_get(m->want, name) : NULL;
        if (schema != NULL)
            ok = fits_member(j, schema, name, member) && ok;
    }
    return ok;
}

static bool fits_additional(struct judge *j, const struct meeting *m)
{
    bool ok = true;
    const json_t *known = json_object_get(m->schema, "properties");
    const char *name;
    json_t *member;
    json_object_foreach (m->value, name, member) {
        if (spend(j, 1) && json_object_get(known, name) == NULL)
            ok = fits_member(j, m->want, name, member) && ok;
    }
    return ok;
}

static bool fits_required(struct judge *j, const struct meeting *m)
{
    bool ok = true;
    size_t i;
    json_t *name;
    json_array_foreach (m->want, i, name) {
        if (spend(j, 1) && json_object_get(m->value, json_string_value(name)) == NULL)
            ok = misfit(j, "the member \"%s\" is missing", json_string_value(name));
    }
    return ok;
}

/* Schemas judge JSON values, so each name is made one. */
static bool fits_names(struct judge *j, const struct meeting *m)
{
    bool ok = true;
    const char *name;
    json_t *member;
    json_object_foreach (m->value, name, member) {
        (void)member;
        json_t *text = spend(j, 1) ? json_string(name) : NULL;
        if (text == NULL) {
            j->faults->out->failed |= j->work->left > 0;
            return false;
        }
        if (!fits_quietly(j, m->want, text))
            ok = misfit(j, "the member name \"%s\" does not fit the schema under propertyNames",
                        name);
        json_decref(text);
    }
    return ok;
}
