/* The tables of decisions as functions. */
#include "domain/approval.h"

#include "base/limits.h"

static const struct {
    const char *name;
    bool decided;
} STATUSES[] = {
#define X(symbol, name, decided) {name, decided},
    APPROVAL_STATUSES(X)
#undef X
};

static const struct {
    const char *word;
    enum err err;
    bool replay;
} VERDICTS[] = {
#define X(symbol, word, err, replay) {word, err, replay},
    APPROVAL_VERDICTS(X)
#undef X
};

static const struct {
    enum approval_status status;
    enum approval_action action;
    unsigned fact;
    enum approval_verdict verdict;
} RULES[] = {
#define X(status, action, fact, verdict) {status, action, fact, verdict},
    APPROVAL_RULES(X)
#undef X
};

static const char *const ON_EXPIRE_NAMES[] = {"reject", "approve", "fail"};

static_assert(ARRAY_LEN(STATUSES) == APPROVAL_STATUS_COUNT, "one row per status");
static_assert(ARRAY_LEN(VERDICTS) == APPROVAL_VERDICT_COUNT, "one row per verdict");
static_assert(ARRAY_LEN(ON_EXPIRE_NAMES) == ON_EXPIRE_COUNT, "one word per outcome");

static bool fits(size_t row, enum approval_status status, enum approval_action action,
                 unsigned facts)
{
    return (RULES[row].status == ANY_STATUS || RULES[row].status == status) &&
           (RULES[row].action == ANY_ACTION || RULES[row].action == action) &&
           (RULES[row].fact & facts) == RULES[row].fact;
}

enum approval_verdict approval_decide(enum approval_status status, enum approval_action action,
                                      unsigned facts)
{
    assert(status < APPROVAL_STATUS_COUNT && action < APPROVAL_ACTION_COUNT);
    assert(facts < APPROVAL_FACTS_COUNT);
    size_t row = 0;
    while (row < ARRAY_LEN(RULES) && !fits(row, status, action, facts))
        row++;
    assert(row < ARRAY_LEN(RULES)); /* every status has rows without a fact for both actions */
    return RULES[row].verdict;
}

const char *approval_verdict_word(enum approval_verdict verdict)
{
    assert(verdict < APPROVAL_VERDICT_COUNT);
    return VERDICTS[verdict].word;
}

enum err approval_verdict_err(enum approval_verdict verdict)
{
    assert(verdict < APPROVAL_VERDICT_COUNT);
    return VERDICTS[verdict].err;
}

bool approval_verdict_is_replay(enum approval_verdict verdict)
{
    assert(verdict < APPROVAL_VERDICT_COUNT);
    return VERDICTS[verdict].replay;
}

const char *approval_status_name(enum approval_status status)
{
    assert(status < APPROVAL_STATUS_COUNT);
    return STATUSES[status].name;
}

enum approval_status approval_status_of(struct str name)
{
    enum approval_status status = 0;
    while (status < APPROVAL_STATUS_COUNT && !str_is(name, STATUSES[status].name))
        status++;
    return status;
}

bool approval_is_decided(enum approval_status status)
{
    assert(status < APPROVAL_STATUS_COUNT);
    return STATUSES[status].decided;
}

const char *on_expire_name(enum on_expire on_expire)
{
    assert(on_expire < ON_EXPIRE_COUNT);
    return ON_EXPIRE_NAMES[on_expire];
}

enum on_expire on_expire_of(struct str name)
{
    enum on_expire on_expire = 0;
    while (on_expire < ON_EXPIRE_COUNT && !str_is(name, ON_EXPIRE_NAMES[on_expire]))
        on_expire++;
    return on_expire;
}

/* --- what is asked --- */

static int64_t whole_or(const struct json *object, const char *name, int64_t when_absent)
{
    int64_t value;
    return json_whole_of(json_member(object, str_of(name)), &value) ? value : when_absent;
}

static int64_t ms_or_none(const struct json *object, const char *name)
{
    int64_t seconds = whole_or(object, name, -1);
    return seconds < 0 ? -1 : seconds * 1000;
}

static struct approvers approvers_of(const struct json *json)
{
    return (struct approvers){json_member(json, STR("roles")), json_member(json, STR("users"))};
}

struct approval_ask approval_ask_of(const struct json *json)
{
    const struct json *approvers = json_member(json, STR("approvers"));
    const struct json *escalation = json_member(json, STR("escalation"));
    enum on_expire on_expire = on_expire_of(json_text_of(json_member(json, STR("on_expire"))));
    return (struct approval_ask){
        .prompt = json_member(json, STR("prompt")),
        .content = json_member(json, STR("content")),
        .count = whole_or(approvers, "count", 1),
        .forbid_requester =
            json_is(json_member(approvers, STR("forbid_requester")), JSON_KIND_TRUE),
        .approvers = approvers_of(approvers),
        .expires_ms = ms_or_none(json, "expires_s"),
        .on_expire = on_expire < ON_EXPIRE_COUNT ? on_expire : ON_EXPIRE_REJECT,
        .remind_ms = ms_or_none(json, "remind_every_s"),
        .escalate_ms = ms_or_none(escalation, "after_s"),
        .escalated = approvers_of(json_member(escalation, STR("approvers"))),
    };
}

/* --- who --- */

static bool is_listed(const struct json *texts, struct str text)
{
    for (size_t i = 0; i < json_length(texts); i++) {
        if (str_eq(json_text_of(json_element(texts, i)), text))
            return true;
    }
    return false;
}

static bool are_among(const struct approvers *a, struct str actor, enum role role)
{
    return is_listed(a->users, actor) || is_listed(a->roles, str_of(role_name(role)));
}

bool approval_may_decide(const struct approval_ask *ask, bool escalated, struct str actor,
                         enum role role)
{
    if (!role_may(role, false, MAY_DECIDE))
        return false;
    bool open = ask->approvers.roles == NULL && ask->approvers.users == NULL;
    return open || are_among(&ask->approvers, actor, role) ||
           (escalated && are_among(&ask->escalated, actor, role));
}

/* --- when --- */

int64_t earlier_due(int64_t a, int64_t b)
{
    if (a < 0 || b < 0)
        return MAX(a, b);
    return MIN(a, b);
}

int64_t approval_next_due(const struct approval_ask *ask, int64_t requested_at, int64_t expires_at,
                          int64_t reminded, bool escalated)
{
    int64_t remind_at = ask->remind_ms > 0 && reminded < REMINDERS_MAX
                            ? requested_at + (reminded + 1) * ask->remind_ms
                            : -1;
    int64_t escalate_at =
        ask->escalate_ms >= 0 && !escalated ? requested_at + ask->escalate_ms : -1;
    return earlier_due(expires_at, earlier_due(remind_at, escalate_at));
}

int64_t approval_reminders_by(const struct approval_ask *ask, int64_t requested_at, int64_t now_ms)
{
    if (ask->remind_ms <= 0 || now_ms < requested_at)
        return 0;
    return MIN((now_ms - requested_at) / ask->remind_ms, (int64_t)REMINDERS_MAX);
}
