/* Following an event stream over as many connections as it takes: nothing is missed or doubled. */
#ifndef PAWL_FOLLOW_H
#define PAWL_FOLLOW_H

#include "client.h"

struct follow {
    struct pawl_client *client;
    char *path;         /* given away */
    json_t *query;      /* given away; may be NULL */
    char *cursor;       /* given away; may be NULL */
    double deadline_ms; /* on the client's clock; 0: none */
    const char *run_id; /* the run whose end ends the stream; NULL: it has no end */
    bool feed;          /* events get the stream's id as `cursor`, and a reset is an event */
    pawl_item_fn *each;
    void *user;
};

/* Returns PAWL_OK when the stream is over or `each` wants no more. */
enum pawl_err follow_run(struct follow *follow, struct pawl_error *error);

#endif
