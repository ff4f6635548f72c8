/* Patterns of dotted names. */
#include "domain/type_pattern.h"

#include "base/limits.h"

bool type_pattern_ok(struct str pattern)
{
    if (str_is(pattern, "*"))
        return true;
    struct str name = pattern;
    if (str_ends_with(pattern, STR(".*")))
        name.len -= 2;
    return name.len > 0 && name.len <= NAME_MAX_LEN && str_is_name(name);
}

bool type_pattern_fits(struct str pattern, struct str type)
{
    if (pattern.len == 0 || pattern.ptr[pattern.len - 1] != '*')
        return str_eq(pattern, type);
    pattern.len--; /* the dot stays: `run.*` is not about runs of another name */
    return str_starts_with(type, pattern);
}

bool type_list_ok(struct str list)
{
    bool more = true;
    while (more) {
        struct str pattern;
        more = str_cut(list, ',', &pattern, &list);
        if (!type_pattern_ok(pattern))
            return false;
    }
    return true;
}

bool type_list_fits(struct str list, struct str type)
{
    while (list.len > 0) {
        struct str pattern;
        (void)str_cut(list, ',', &pattern, &list);
        if (type_pattern_fits(pattern, type))
            return true;
    }
    return false;
}

const char *type_own_prefix(struct str type)
{
    static const char *const OWN[] = {"run.",      "job.",    "step.",  "signal.",
                                      "approval.", "entity.", "event.", "schedule."};
    for (size_t i = 0; i < ARRAY_LEN(OWN); i++) {
        if (str_starts_with(type, str_of(OWN[i])))
            return OWN[i];
    }
    return NULL;
}
