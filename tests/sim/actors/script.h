/* Scripts: several requests within one step, each answered before the next, for rules that need
 * exact times or an exact order. The server may go down at any call: then the script ends, and what
 * it began goes on alone. All of them work on place 0. */
#ifndef PAWL_TESTS_SIM_SCRIPT_H
#define PAWL_TESTS_SIM_SCRIPT_H

#include "sim/actions.h"

#define SCRIPT_TENANT "c0" /* its keys are kept for a minute */
#define SCRIPT_QUEUE "scripts"
#define SCRIPT_SLEEP(ms) "{\"name\":\"a\",\"type\":\"sleep\",\"duration_ms\":" #ms "}"

struct script_job {
    char id[40];
    char token[64];
    char run[40]; /* "": it is a call of an entity */
    char handler[8];
    bool asked; /* the claim was answered, with this job or with none */
};

struct place *script_place(struct sim *w);
/* The answer; NULL: there is none, or one of 500 and above, and the script is over. */
struct call *script_ask(struct sim *w, const char *tenant, const char *method, const char *target,
                        const char *body);
/* Releases the answer. False: it is none of success. */
bool script_done(struct call *c);
/* The same, and keeps a member of its text. False also when it has no such member. */
bool script_take(struct call *c, const char *member, char *out, size_t size);
/* Sends without waiting for an answer. */
struct call *script_send(struct sim *w, const char *method, const char *target, const char *body);

/* Before all histories: each row is a tenant, a target and what is put there. */
struct script_put {
    const char *tenant, *target, *body;
};
void script_warm(struct sim *w, const struct place *p, const struct script_put *rows, size_t count);

bool script_put_workflow(struct sim *w, const char *tenant, const char *id, const char *body);
bool script_start(struct sim *w, const char *tenant, const char *workflow, const char *body,
                  char id[static 40]);
/* "" when it cannot be read. */
void script_status(struct sim *w, const char *tenant, const char *run, char out[static 16]);

/* A job of the tenant's queue; false: none. */
bool script_claim(struct sim *w, const char *tenant, const char *queue, int lease_ms,
                  struct script_job *ret);
/* Completes, fails or renews it; `members` follow the lease's token, as ",\"output\":1". */
struct call *script_answer(struct sim *w, const char *tenant, const struct script_job *job,
                           const char *verb, const char *members);

#endif
