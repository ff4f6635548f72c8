/* The part of JSON Schema (draft 2020-12) that a workflow's input_schema may use.
 * Both checks write [{path, message}] elements: what a schema may not say is refused when it is
 * stored, so a stored schema never fails by itself. */
#ifndef PAWL_DOMAIN_SCHEMA_SCHEMA_H
#define PAWL_DOMAIN_SCHEMA_SCHEMA_H

#include "base/json.h"
#include "domain/work.h"

#include <stdarg.h>

/* A growing list of faults with JSON Pointers; stops at DEFINITION_FAULTS_MAX. Faults that no
 * longer fit out's ceiling are counted and left out, so out fails only when memory runs out: ask
 * buf_ok(out). */
struct fault_list {
    struct buf *out; /* receives `{"path":…,"message":…}` elements, comma-separated */
    size_t count;
    /* The place that is being looked at, as a JSON Pointer. */
    struct buf path;
};

void fault_list_init(struct fault_list *list, struct buf *out);
void fault_list_release(struct fault_list *list);
/* Enter a member or element; returns the length to go back to with fault_list_leave(). */
size_t fault_list_enter(struct fault_list *list, struct str name);
size_t fault_list_enter_index(struct fault_list *list, size_t index);
void fault_list_leave(struct fault_list *list, size_t back_to);
void fault_list_add(struct fault_list *list, const char *fmt, ...) PRINTF_LIKE(2, 3);
void fault_list_add_va(struct fault_list *list, const char *fmt, va_list args) PRINTF_LIKE(2, 0);

/* Schemas and values come from json_parse, which bounds their depth. */

/* Is `schema` one that schema_check_value can apply? Faults if not. */
void schema_check_schema(const json_t *schema, struct fault_list *faults);

enum schema_verdict {
    SCHEMA_FITS,
    SCHEMA_MISFITS, /* the faults say where and why */
    SCHEMA_GAVE_UP, /* the budget is used up; the faults are not all of them */
};

/* Does `value` fit? `schema` passed schema_check_schema. The caller's budget is SCHEMA_WORK_MAX, or
 * what is left of a larger operation's. */
MUST_CHECK enum schema_verdict schema_check_value(const json_t *schema, const json_t *value,
                                                  struct work_budget *work,
                                                  struct fault_list *faults);

#endif
