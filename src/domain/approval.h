/* Decisions of people: what a caller's `approve` or `reject` means, by the state of the approval
 * and what is known about the caller. Pure.
 *
 *             last vote that is needed
 *   pending ───────────────────────────▶ approved
 *      │ ├── one reject ───────────────▶ rejected
 *      │ ├── nobody decided in time ───▶ expired    what that means is the definition's on_expire
 *      │ └── the job ended without it ─▶ void       cancelled, run over, step timed out
 *      └── a vote, and more are needed: pending
 *
 * * pending its job is in state `approval`, and the other way round. approved, rejected and
 * expired are decided: by whom and when is known, and stays. A decision that is made never
 * changes; later requests get it back. */
#ifndef PAWL_DOMAIN_APPROVAL_H
#define PAWL_DOMAIN_APPROVAL_H

#include "base/json.h"
#include "domain/role.h"

/* A table is read by its columns. */
/* clang-format off */
#define APPROVAL_STATUSES(X)                                                                       \
    /* symbol               name        decided */                                                 \
    X(APPROVAL_PENDING,    "pending",   false)                                                     \
    X(APPROVAL_APPROVED,   "approved",  true)                                                      \
    X(APPROVAL_REJECTED,   "rejected",  true)                                                      \
    X(APPROVAL_EXPIRED,    "expired",   true)                                                      \
    X(APPROVAL_VOID,       "void",      false)
/* clang-format on */

enum approval_status {
#define X(symbol, name, decided) symbol,
    APPROVAL_STATUSES(X)
#undef X
        APPROVAL_STATUS_COUNT
};

enum approval_action { APPROVAL_APPROVE, APPROVAL_REJECT, APPROVAL_ACTION_COUNT };

/* What may be against it. */
enum {
    APPROVAL_STRANGER = 1, /* neither the caller's role nor its name is among the approvers */
    APPROVAL_VOTED = 2,    /* the caller has voted for what is shown now */
    APPROVAL_SELF = 4,     /* the caller is the requester, who may not approve */
    APPROVAL_STALE = 8,    /* the caller has seen something else than what is shown now */
    APPROVAL_SHORT = 16,   /* with this vote there are still too few */
    APPROVAL_FACTS_COUNT = 32,
};

/* A table is read by its columns. */
/* clang-format off */
#define APPROVAL_VERDICTS(X)                                                                       \
    /* symbol                     what the answer says  error                     replay */        \
    X(VERDICT_APPROVED,           "approved",           ERR_OK,                    false)          \
    X(VERDICT_REJECTED,           "rejected",           ERR_OK,                    false)          \
    X(VERDICT_RECORDED,           "recorded",           ERR_OK,                    false)          \
    X(VERDICT_ALREADY_APPROVED,   "already_approved",   ERR_OK,                    true)           \
    X(VERDICT_ALREADY_REJECTED,   "already_rejected",   ERR_OK,                    true)           \
    X(VERDICT_ALREADY_RECORDED,   "already_recorded",   ERR_OK,                    true)           \
    X(VERDICT_STRANGER,           "",                   ERR_NOT_AN_APPROVER,       false)          \
    X(VERDICT_CONFLICT,           "",                   ERR_APPROVAL_CONFLICT,     false)          \
    X(VERDICT_EXPIRED,            "",                   ERR_APPROVAL_EXPIRED,      false)          \
    X(VERDICT_NOT_AWAITING,       "",                   ERR_NOT_AWAITING_APPROVAL, false)          \
    X(VERDICT_SELF,               "",                   ERR_SELF_APPROVAL,         false)          \
    X(VERDICT_STALE,              "",                   ERR_APPROVAL_STALE,        false)

#define ANY_STATUS APPROVAL_STATUS_COUNT
#define ANY_ACTION APPROVAL_ACTION_COUNT

/* From top to bottom; the first row that fits speaks. A row with a fact fits only where that fact is
 * given. Who may not decide learns nothing, not even that it is decided. */
#define APPROVAL_RULES(X)                                                                          \
    /* status            action            fact               verdict */                           \
    X(ANY_STATUS,        ANY_ACTION,       APPROVAL_STRANGER, VERDICT_STRANGER)                    \
    X(APPROVAL_APPROVED, APPROVAL_APPROVE, 0,                 VERDICT_ALREADY_APPROVED)            \
    X(APPROVAL_APPROVED, APPROVAL_REJECT,  0,                 VERDICT_CONFLICT)                    \
    X(APPROVAL_REJECTED, APPROVAL_REJECT,  0,                 VERDICT_ALREADY_REJECTED)            \
    X(APPROVAL_REJECTED, APPROVAL_APPROVE, 0,                 VERDICT_CONFLICT)                    \
    X(APPROVAL_PENDING,  APPROVAL_APPROVE, APPROVAL_VOTED,    VERDICT_ALREADY_RECORDED)            \
    X(APPROVAL_EXPIRED,  ANY_ACTION,       0,                 VERDICT_EXPIRED)                     \
    X(APPROVAL_VOID,     ANY_ACTION,       0,                 VERDICT_NOT_AWAITING)                \
    X(APPROVAL_PENDING,  APPROVAL_APPROVE, APPROVAL_SELF,     VERDICT_SELF)                        \
    X(APPROVAL_PENDING,  ANY_ACTION,       APPROVAL_STALE,    VERDICT_STALE)                       \
    X(APPROVAL_PENDING,  APPROVAL_REJECT,  0,                 VERDICT_REJECTED)                    \
    X(APPROVAL_PENDING,  APPROVAL_APPROVE, APPROVAL_SHORT,    VERDICT_RECORDED)                    \
    X(APPROVAL_PENDING,  APPROVAL_APPROVE, 0,                 VERDICT_APPROVED)
/* clang-format on */

enum approval_verdict {
#define X(symbol, word, err, replay) symbol,
    APPROVAL_VERDICTS(X)
#undef X
        APPROVAL_VERDICT_COUNT
};

enum approval_verdict approval_decide(enum approval_status status, enum approval_action action,
                                      unsigned facts);

const char *approval_verdict_word(enum approval_verdict verdict);
enum err approval_verdict_err(enum approval_verdict verdict);
bool approval_verdict_is_replay(enum approval_verdict verdict);

const char *approval_status_name(enum approval_status status);
/* APPROVAL_STATUS_COUNT when there is no such status. */
enum approval_status approval_status_of(struct str name);
bool approval_is_decided(enum approval_status status);

/* --- what is asked, and of whom --- */

/* What happens when nobody decided in time. */
enum on_expire { ON_EXPIRE_REJECT, ON_EXPIRE_APPROVE, ON_EXPIRE_FAIL, ON_EXPIRE_COUNT };

const char *on_expire_name(enum on_expire on_expire);
/* ON_EXPIRE_COUNT when there is no such word. */
enum on_expire on_expire_of(struct str name);

/* Arrays of texts, or NULL. Neither: everybody whose role may decide. */
struct approvers {
    const struct json *roles;
    const struct json *users;
};

/* The member `approval` of a step of that type, or `requires_approval` of a task. */
struct approval_ask {
    const struct json *prompt;  /* a text with templates; NULL: a sentence of pawl's own */
    const struct json *content; /* JSON with templates; NULL: the task's input, or null */
    int64_t count;              /* how many must approve */
    bool forbid_requester;
    struct approvers approvers;
    int64_t expires_ms; /* -1: never */
    enum on_expire on_expire;
    int64_t remind_ms;   /* between reminders; -1: none */
    int64_t escalate_ms; /* then these may decide too; -1: never */
    struct approvers escalated;
};

/* Of JSON whose members have been checked: an approval step, or its requires_approval. Borrows. */
struct approval_ask approval_ask_of(const struct json *json);

/* May they decide, by role or by name? */
bool approval_may_decide(const struct approval_ask *ask, bool escalated, struct str actor,
                         enum role role);

/* Of two times, where -1 is never. */
int64_t earlier_due(int64_t a, int64_t b);
/* When something is next due of a pending approval: a reminder, its escalation, its end; -1: never.
 * `reminded` reminders have been sent. */
int64_t approval_next_due(const struct approval_ask *ask, int64_t requested_at, int64_t expires_at,
                          int64_t reminded, bool escalated);
/* How many reminders are due by then: those that were missed together count as sent. */
int64_t approval_reminders_by(const struct approval_ask *ask, int64_t requested_at, int64_t now_ms);

#endif
