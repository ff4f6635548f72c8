/* The doctor: recounts what can be recounted and says what differs. */
#include "engine/tx.h"
#include "engine/use_cases.h"

#include "base/limits.h"
#include "store/audit.h"
#include "store/idempotency.h"

struct report {
    struct json_out out;
    bool ok;
};

static void check_begin(struct report *r, const char *name)
{
    json_open(&r->out, NULL, '{');
    json_add_text(&r->out, "name", str_of(name));
    json_open(&r->out, "found", '[');
}

static void check_end(struct report *r, bool ok, int64_t checked, const char *detail)
{
    json_close(&r->out, ']');
    json_add_bool(&r->out, "ok", ok);
    json_add_int(&r->out, "checked", checked);
    json_add_text(&r->out, "detail", str_of(detail));
    json_close(&r->out, '}');
    r->ok &= ok;
}

static enum err check_file(struct report *r, struct tx *tx)
{
    struct buf found;
    buf_init(&found, 16 * KIB);
    enum err e = db_integrity(tx->db, &found);
    check_begin(r, "file");
    struct str rest = buf_str(&found);
    struct str line;
    while (rest.len > 0) {
        (void)str_cut(rest, '\n', &line, &rest);
        json_add_text(&r->out, NULL, line);
    }
    check_end(r, e == ERR_OK && found.len == 0, 1, "the data file is intact");
    buf_release(&found);
    return e;
}

static enum err check_keys(struct report *r, struct tx *tx)
{
    int64_t checked = 0;
    int64_t orphans = 0;
    int64_t doubles = 0;
    enum err e = idempotency_orphans(tx->db, &checked, &orphans);
    if (e == ERR_OK)
        e = idempotency_doubles(tx->db, &doubles);
    check_begin(r, "idempotency");
    if (orphans > 0)
        json_add_int(&r->out, NULL, orphans);
    if (doubles > 0)
        json_add_int(&r->out, NULL, doubles);
    check_end(r, orphans == 0 && doubles == 0, checked,
              "every key has one record, and the run that it names exists");
    return e;
}

static enum err check_audit(struct report *r, struct tx *tx)
{
    int64_t checked = 0;
    int64_t broken = 0;
    enum err e = audit_verify(tx->db, &checked, &broken);
    check_begin(r, "audit");
    if (broken > 0)
        json_add_int(&r->out, NULL, broken);
    check_end(r, broken == 0, checked, "every audit entry continues its tenant's chain");
    return e;
}

static enum err doctor(struct op *op, struct tx *tx)
{
    struct report r = {json_out_to(&op->answer.body), true};
    json_open(&r.out, NULL, '{');
    json_open(&r.out, "checks", '[');
    enum err e = check_file(&r, tx);
    if (e == ERR_OK)
        e = check_keys(&r, tx);
    if (e == ERR_OK)
        e = check_audit(&r, tx);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "the checks could not be finished");
    json_close(&r.out, ']');
    json_add_bool(&r.out, "ok", r.ok);
    json_close(&r.out, '}');
    return ERR_OK;
}

/* Looks at every row; the log cannot be folded back meanwhile, so even the doctor has a limit. */
const struct use_case UC_DOCTOR = {
    .name = "doctor", .changes = false, .run = doctor, .read_ms = DOCTOR_MS_MAX};

const char *doctor_check_name(enum doctor_check check)
{
    static const char *const NAMES[] = {
#define X(symbol, name) name,
        DOCTOR_CHECKS(X)
#undef X
    };
    return NAMES[check];
}

static enum err quick(struct op *op, struct tx *tx)
{
    (void)op, (void)tx;
    return ERR_OK;
}

const struct use_case UC_DOCTOR_QUICK = {
    .name = "doctor", .changes = false, .run = quick, .checks = true};
const struct use_case UC_DOCTOR_REPAIR = {.name = "doctor", .changes = true, .run = quick};
