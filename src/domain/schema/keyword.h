/* What the files of JSON Schema share: the table of keywords, and the judgement of one value. */
#ifndef PAWL_DOMAIN_SCHEMA_KEYWORD_H
#define PAWL_DOMAIN_SCHEMA_KEYWORD_H

#include "base/json.h"
#include "domain/fault_list.h"
#include "domain/schema/regex.h"
#include "domain/schema/schema_map.h"
#include "domain/schema/schema_number.h"

/* Reading one schema: schema_check_schema() from beginning to end. */
struct reading {
    struct fault_list *faults;
    const struct json *root;
    unsigned own_ids;     /* schemas with a $id around this place, the root aside */
    size_t patterns_size; /* of all patterns so far */
    struct schema_map followed;
};

/* One judgement: schema_check_value() from beginning to end. */
struct judge {
    struct fault_list *faults;
    /* Above 0 only the verdict is wanted: inside anyOf, oneOf and not. */
    unsigned quiet;
    struct work_budget *work;
    const struct json *root;
    unsigned depth;
    struct schema_map patterns; /* from a pattern's text to its struct regex */
};

/* The kinds of value that a keyword speaks about; it is silent about all others. */
enum kind { KIND_ANY, KIND_TEXT, KIND_NUMBER, KIND_ARRAY, KIND_OBJECT };

enum bound { BOUND_NONE, AT_LEAST, AT_MOST, ABOVE, BELOW };

/* The schemas in a keyword's value. */
enum holds { HOLDS_NOTHING, HOLDS_ONE, HOLDS_LIST, HOLDS_NAMED };

/* A keyword in a schema, met by a value. */
struct meeting {
    const struct keyword *word;
    const struct json
        *schema;             /* where the keyword stands, for those that look at their neighbours */
    const struct json *want; /* the keyword's own value */
    const struct json *value;
};

struct keyword {
    const char *name;
    size_t len;
    enum kind kind;
    void (*check)(struct reading *r, const struct json *want);
    /* NULL: an annotation, or one that another keyword looks at: it judges nothing itself. */
    bool (*fits)(struct judge *j, const struct meeting *m);
    enum bound bound;
    enum holds holds;
    bool in_place; /* what it holds or refers to judges the same value */
};

/* NULL: pawl does not know it. */
const struct keyword *schema_keyword(struct str name);

/* --- may a schema say this? (schema_parse.c) --- */

void keyword_check_schema(struct reading *r, const struct json *schema);
void keyword_check_schemas(struct reading *r, const struct json *want);
void keyword_check_named(struct reading *r, const struct json *want);
void keyword_check_type(struct reading *r, const struct json *want);
void keyword_check_values(struct reading *r, const struct json *want);
void keyword_check_required(struct reading *r, const struct json *want);
void keyword_check_count(struct reading *r, const struct json *want);
void keyword_check_number(struct reading *r, const struct json *want);
void keyword_check_positive(struct reading *r, const struct json *want);
void keyword_check_flag(struct reading *r, const struct json *want);
void keyword_check_text(struct reading *r, const struct json *want);
void keyword_check_array(struct reading *r, const struct json *want);
void keyword_check_nothing(struct reading *r, const struct json *want);
void keyword_check_dependents(struct reading *r, const struct json *want);
/* schema_pattern.c */
void keyword_check_pattern(struct reading *r, const struct json *want);
void keyword_check_pattern_properties(struct reading *r, const struct json *want);
/* schema_ref.c */
void keyword_check_ref(struct reading *r, const struct json *want);

/* --- does a value fit? --- */

/* schema_judge.c */
bool keyword_fits_type(struct judge *j, const struct meeting *m);
bool keyword_fits_enum(struct judge *j, const struct meeting *m);
bool keyword_fits_const(struct judge *j, const struct meeting *m);
bool keyword_fits_all(struct judge *j, const struct meeting *m);
bool keyword_fits_any(struct judge *j, const struct meeting *m);
bool keyword_fits_one(struct judge *j, const struct meeting *m);
bool keyword_fits_not(struct judge *j, const struct meeting *m);
bool keyword_fits_if(struct judge *j, const struct meeting *m);
/* schema_values.c */
bool keyword_fits_size(struct judge *j, const struct meeting *m);
bool keyword_fits_limit(struct judge *j, const struct meeting *m);
bool keyword_fits_multiple(struct judge *j, const struct meeting *m);
bool keyword_fits_unique(struct judge *j, const struct meeting *m);
/* schema_members.c */
bool keyword_fits_items(struct judge *j, const struct meeting *m);
bool keyword_fits_prefix(struct judge *j, const struct meeting *m);
bool keyword_fits_contains(struct judge *j, const struct meeting *m);
bool keyword_fits_properties(struct judge *j, const struct meeting *m);
bool keyword_fits_additional(struct judge *j, const struct meeting *m);
bool keyword_fits_required(struct judge *j, const struct meeting *m);
bool keyword_fits_names(struct judge *j, const struct meeting *m);
bool keyword_fits_dependent_required(struct judge *j, const struct meeting *m);
bool keyword_fits_dependent_schemas(struct judge *j, const struct meeting *m);
/* schema_pattern.c */
bool keyword_fits_pattern(struct judge *j, const struct meeting *m);
bool keyword_fits_pattern_properties(struct judge *j, const struct meeting *m);
/* schema_ref.c */
bool keyword_fits_ref(struct judge *j, const struct meeting *m);

/* --- judging (schema_judge.c) --- */

/* Does the value fit the schema? */
bool judge_fits(struct judge *j, const struct json *schema, const struct json *value);
bool judge_member(struct judge *j, const struct json *schema, struct str name,
                  const struct json *value);
bool judge_element(struct judge *j, const struct json *schema, size_t index,
                   const struct json *value);
/* Only the verdict is wanted. */
bool judge_quietly(struct judge *j, const struct json *schema, const struct json *value);
/* Notes a fault and returns false, so that a judge can `return judge_misfit(…)`. */
bool judge_misfit(struct judge *j, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* The message with what was wanted as JSON, or without when that is long. */
bool judge_misfit_listing(struct judge *j, const char *message, const struct json *want);
/* False when the judgement has cost too much; then every question is answered at once with no. */
static inline bool judge_spend(struct judge *j, size_t steps)
{
    return work_spend(j->work, steps);
}
size_t judge_text_steps(const struct json *text);
/* Equal as JSON Schema means it: 1 and 1.0 are, and members have no order (schema_values.c). */
bool judge_equal(struct judge *j, const struct json *a, const struct json *b);
/* Does a member's name match one of these patterns? (schema_pattern.c) */
bool judge_matches_any(struct judge *j, const struct json *patterns, struct str name);
void judge_release_patterns(struct judge *j);

/* The schema that a $ref points to, or NULL (schema_ref.c). */
const struct json *schema_ref_target(const struct json *root, const struct json *ref);

#endif
