/* Entity types and what their handlers make of a call. */
#ifndef PAWL_ENTITY_H
#define PAWL_ENTITY_H

#include "pawl.h"

struct entity_handler {
    struct entity_handler *next;
    char *name;
    pawl_entity_fn *handler;
    void *user;
};

struct pawl_entity_type {
    struct pawl_entity_type *next;
    char *type;
    json_t *initial, *options;
    struct entity_handler *signals, *timers, *migration;
};

struct pawl_entity_type *entity_type_new(const char *type, json_t *initial, json_t *options);
void entity_type_free(struct pawl_entity_type *type);

/* The answer to a call, or an error of the whole call. */
enum pawl_err entity_handle(const struct pawl_entity_type *type, const json_t *call,
                            const char *job_id, json_t **ret_answer, struct pawl_error *error);

#endif
