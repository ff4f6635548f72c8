/* Approvals as people see them, and what the model knows about each. */
#ifndef PAWL_TESTS_SIM_ASKS_H
#define PAWL_TESTS_SIM_ASKS_H

#include "sim/people.h"

/* What a decision may be: the classes of the register. */
enum { APPROVED = 1, REJECTED, EXPIRED, VOIDED };

enum expiry { EXPIRES_NEVER, EXPIRES_REJECTED, EXPIRES_APPROVED, EXPIRES_FAILED };

/* Workflows "a0" …: each asks in step "ok", then does step "after". */
struct asking {
    int needed;
    bool forbids_requester;
    unsigned users; /* bits of people; 0: everybody */
    enum expiry expiry;
    bool continues; /* on_error */
    bool task;      /* requires_approval */
    const char *body;
};
enum { ASKING_COUNT = 5 };
extern const struct asking ASKING[ASKING_COUNT];

/* One approval that somebody has seen. */
struct ask {
    char job[RUN_ID_LEN + 1];
    char run[RUN_ID_LEN + 1];
    int place;
    const struct asking *asking;
    enum person requester;
    int64_t expires_ms; /* by the server's wall clock; -1: never */
    struct once decision;
    char hash[80];     /* as it was last shown */
    unsigned voters;   /* bits of people whose vote may count for what is shown now */
    unsigned recorded; /* of people who were told so, as long as nobody has edited */
    int64_t recorded_at;
    bool edited;    /* somebody has tried to */
    bool cancelled; /* somebody has tried to */
    bool completed; /* its task, by a worker */
    int open;       /* decisions under way */
    struct ask *next;
};

struct approvals {
    struct ask *first;
    int tenant;
};

/* A question that is under way: a read of each register that its answer will show. */
struct look {
    int count;
    struct look_at {
        struct ask *ask;
        int op;
    } at[];
};

struct approvals *approvals_state(struct sim *w);

struct ask *ask_find(struct sim *w, const char *job);
struct ask *ask_any(struct sim *w);
/* The class of a status, as "approved"; ONCE_NOTHING: "pending"; -1: there is no such status. */
int ask_class(const char *status);
/* Who decided, and when: that stays. */
void ask_identity(char out[static 64], const json_t *shown, const char *by, const char *at);
/* The checker's verdict about an answer. */
void ask_check(struct sim *w, const struct ask *a, const struct call *c, bool ok);
/* Somebody is about to ask the place about one approval, or about all that are pending (NULL). */
struct look *ask_look_begin(struct sim *w, const struct place *p, struct ask *only);
/* The answer; NULL: none. Frees the look. */
void ask_look_end(struct sim *w, struct look *look, const struct call *c);

static inline int ask_count(unsigned people)
{
    return __builtin_popcount(people);
}

#endif
