/* The engine's own checks of the counters, and last uses of API keys on their way to the store. */
#include "runtime/periodic.h"

#include "base/limits.h"
#include "base/log.h"
#include "core/usecase/use_cases.h"

enum {
    TOUCH_EVERY_MS = 5000,
    TOUCH_MAX = 64,
};

/* An op that is submitted again and again, one at a time. */
struct task {
    struct op op;
    bool runs;
    int64_t due_ms;
};

struct periodic {
    struct auth *auth;
    void (*submit)(void *ctx, struct op *op);
    void *ctx;

    struct task check;
    struct doctor_input check_input;
    struct doctor_findings findings;

    struct task touch;
    struct touch_keys_input touch_input;
    struct key_use touch_uses[TOUCH_MAX];
};

struct periodic *periodic_new(struct auth *auth, void (*submit)(void *ctx, struct op *op),
                              void *ctx)
{
    struct periodic *p = calloc(1, sizeof(*p));
    if (p == NULL)
        return NULL;
    p->auth = auth;
    p->submit = submit;
    p->ctx = ctx;
    return p;
}

void periodic_free(struct periodic *p)
{
    assert(p == NULL || periodic_idle(p));
    free(p);
}

bool periodic_idle(const struct periodic *p)
{
    return !p->check.runs && !p->touch.runs;
}

/* True when the task has to run now; its next time is set. */
static bool begin(struct task *task, int64_t mono_ms, int64_t every_ms)
{
    if (task->runs || mono_ms < task->due_ms)
        return false;
    task->due_ms = mono_ms + every_ms;
    return true;
}

static void submit(struct periodic *p, struct task *task, const struct use_case *use_case,
                   const void *input, void (*done)(struct op *op))
{
    op_init(&task->op, use_case);
    task->op.input = input;
    task->op.owner = p;
    task->op.done = done;
    task->runs = true;
    p->submit(p->ctx, &task->op);
}

/* --- last uses of API keys --- */

static void touched(struct op *op)
{
    struct periodic *p = op->owner;
    p->touch.runs = false;
    op_release(op);
}

static void touch_keys(struct periodic *p, int64_t mono_ms)
{
    if (!begin(&p->touch, mono_ms, TOUCH_EVERY_MS))
        return;
    size_t n = auth_take_uses(p->auth, p->touch_uses, TOUCH_MAX);
    if (n == 0)
        return;
    p->touch_input = (struct touch_keys_input){p->touch_uses, n};
    submit(p, &p->touch, &UC_TOUCH_KEYS, &p->touch_input, touched);
}

/* --- the check --- */

static void checked(struct op *op)
{
    struct periodic *p = op->owner;
    p->check.runs = false;
    if (op->err != ERR_OK)
        LOG(LOG_WARN, "the counters could not be checked in time",
            LOG_Z("why", op->problem.detail));
    for (size_t i = 0; i < DOCTOR_CHECK_COUNT && op->err == ERR_OK; i++) {
        if (p->findings.differences[i] > 0)
            LOG(LOG_ERROR, "counters differ from the runs: see pawl doctor",
                LOG_Z("check", doctor_check_name((enum doctor_check)i)),
                LOG_N("differences", p->findings.differences[i]));
    }
    op_release(op);
}

/* An operator should learn of a leaked slot before a tenant misses it. */
static void check_counters(struct periodic *p, int64_t mono_ms)
{
    if (!begin(&p->check, mono_ms, CHECK_EVERY_MS))
        return;
    p->check_input.findings = &p->findings;
    submit(p, &p->check, &UC_DOCTOR_QUICK, &p->check_input, checked);
}

void periodic_tick(struct periodic *p, int64_t mono_ms)
{
    check_counters(p, mono_ms);
    touch_keys(p, mono_ms);
}
