/* Sets of code points. */
#include "domain/schema/regex_class.h"

#include "domain/schema/unicode.h"

#include <stdlib.h>

static const struct regex_range DIGITS[] = {{'0', '9'}};
static const struct regex_range WORD[] = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
static const struct regex_range SPACES[] = {
    {'\t', '\r'},     {' ', ' '},       {0xA0, 0xA0},     {0x1680, 0x1680}, {0x2000, 0x200A},
    {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}, {0xFEFF, 0xFEFF},
};

static const struct {
    char letter; /* in upper case: all others */
    const struct regex_range *ranges;
    size_t count;
} ESCAPES[] = {
    {'d', DIGITS, ARRAY_LEN(DIGITS)},
    {'w', WORD, ARRAY_LEN(WORD)},
    {'s', SPACES, ARRAY_LEN(SPACES)},
};

/* The long names that ECMA-262 knows too. One letter stands for all that begin with it. */
static const struct {
    const char *name;
    const char *category;
} LONG_NAMES[] = {
    {"Letter", "L"},
    {"Cased_Letter", "LC"},
    {"Uppercase_Letter", "Lu"},
    {"Lowercase_Letter", "Ll"},
    {"Titlecase_Letter", "Lt"},
    {"Modifier_Letter", "Lm"},
    {"Other_Letter", "Lo"},
    {"Mark", "M"},
    {"Combining_Mark", "M"},
    {"Nonspacing_Mark", "Mn"},
    {"Spacing_Mark", "Mc"},
    {"Enclosing_Mark", "Me"},
    {"Number", "N"},
    {"Decimal_Number", "Nd"},
    {"digit", "Nd"},
    {"Letter_Number", "Nl"},
    {"Other_Number", "No"},
    {"Punctuation", "P"},
    {"punct", "P"},
    {"Connector_Punctuation", "Pc"},
    {"Dash_Punctuation", "Pd"},
    {"Open_Punctuation", "Ps"},
    {"Close_Punctuation", "Pe"},
    {"Initial_Punctuation", "Pi"},
    {"Final_Punctuation", "Pf"},
    {"Other_Punctuation", "Po"},
    {"Symbol", "S"},
    {"Math_Symbol", "Sm"},
    {"Currency_Symbol", "Sc"},
    {"Modifier_Symbol", "Sk"},
    {"Other_Symbol", "So"},
    {"Separator", "Z"},
    {"Space_Separator", "Zs"},
    {"Line_Separator", "Zl"},
    {"Paragraph_Separator", "Zp"},
    {"Other", "C"},
    {"Control", "Cc"},
    {"cntrl", "Cc"},
    {"Format", "Cf"},
    {"Surrogate", "Cs"},
    {"Private_Use", "Co"},
    {"Unassigned", "Cn"},
};

void class_set_release(struct class_set *set)
{
    free(set->ranges);
    *set = (struct class_set){0};
}

void class_set_clear(struct class_set *set)
{
    set->count = 0;
}

void class_set_add(struct class_set *set, uint32_t low, uint32_t high)
{
    assert(low <= high);
    if (set->count == set->cap) {
        size_t cap = MAX(2 * set->cap, (size_t)16);
        void *grown = realloc(set->ranges, cap * sizeof(*set->ranges));
        if (grown == NULL) {
            set->failed = true;
            return;
        }
        set->ranges = grown;
        set->cap = cap;
    }
    set->ranges[set->count++] = (struct regex_range){low, high};
}

/* Of ranges that rise and do not touch. */
static void add_all_others(struct class_set *set, const struct regex_range *ranges, size_t count)
{
    uint32_t from = 0;
    for (size_t i = 0; i < count; i++) {
        if (ranges[i].low > from)
            class_set_add(set, from, ranges[i].low - 1);
        from = ranges[i].high + 1;
    }
    if (from <= REGEX_CODE_POINT_MAX)
        class_set_add(set, from, REGEX_CODE_POINT_MAX);
}

bool class_set_add_escape(struct class_set *set, char letter)
{
    for (size_t i = 0; i < ARRAY_LEN(ESCAPES); i++) {
        if (letter == ESCAPES[i].letter - 'a' + 'A') {
            add_all_others(set, ESCAPES[i].ranges, ESCAPES[i].count);
            return true;
        }
        if (letter != ESCAPES[i].letter)
            continue;
        for (size_t k = 0; k < ESCAPES[i].count; k++)
            class_set_add(set, ESCAPES[i].ranges[k].low, ESCAPES[i].ranges[k].high);
        return true;
    }
    return false;
}

static bool is_of(const char *category, struct str wanted)
{
    if (wanted.len == 0 || wanted.len > 2 || category[0] != wanted.ptr[0])
        return false;
    if (str_is(wanted, "LC"))
        return category[1] == 'u' || category[1] == 'l' || category[1] == 't';
    return wanted.len == 1 || category[1] == wanted.ptr[1];
}

bool class_set_add_category(struct class_set *set, struct str name, bool negated)
{
    struct str before;
    struct str after;
    if (str_cut(name, '=', &before, &after)) {
        if (!str_is(before, "gc") && !str_is(before, "General_Category"))
            return false;
        name = after;
    }
    for (size_t i = 0; i < ARRAY_LEN(LONG_NAMES); i++) {
        if (str_is(name, LONG_NAMES[i].name))
            name = str_of(LONG_NAMES[i].category);
    }
    bool known = false;
    for (size_t i = 0; i < UNICODE_SPAN_COUNT; i++) {
        bool is_one = is_of(UNICODE_SPANS[i].category, name);
        known = known || is_one;
        bool is_last = i + 1 == UNICODE_SPAN_COUNT;
        if (is_one != negated)
            class_set_add(set, UNICODE_SPANS[i].first,
                          is_last ? REGEX_CODE_POINT_MAX : UNICODE_SPANS[i + 1].first - 1);
    }
    return known;
}

static int by_low(const void *a, const void *b)
{
    const struct regex_range *x = a;
    const struct regex_range *y = b;
    return x->low < y->low ? -1 : x->low > y->low;
}

void class_set_normalise(struct class_set *set)
{
    if (set->failed || set->count == 0)
        return;
    qsort(set->ranges, set->count, sizeof(*set->ranges), by_low);
    size_t last = 0;
    for (size_t i = 1; i < set->count; i++) {
        struct regex_range *r = &set->ranges[last];
        if (set->ranges[i].low <= r->high + 1)
            r->high = MAX(r->high, set->ranges[i].high);
        else
            set->ranges[++last] = set->ranges[i];
    }
    set->count = last + 1;
}

void class_set_negate(struct class_set *set)
{
    class_set_normalise(set);
    if (set->failed)
        return;
    struct class_set others = {0};
    add_all_others(&others, set->ranges, set->count);
    class_set_release(set);
    *set = others;
}
