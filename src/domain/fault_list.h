/* The list of everything that is wrong with a document, each fault with a JSON Pointer to its
 * place. */
#ifndef PAWL_DOMAIN_FAULT_LIST_H
#define PAWL_DOMAIN_FAULT_LIST_H

#include "base/json.h"

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

#endif
