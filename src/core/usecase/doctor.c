/* The doctor: recounts, reports differences, and rebuilds derived data. */
#include "core/admission/limit_lists.h"
#include "core/txn/audit_record.h"
#include "core/txn/render.h"
#include "core/txn/tx.h"
#include "core/usecase/repair.h"
#include "core/usecase/use_cases.h"

#include "base/limits.h"
#include "store/audit.h"
#include "store/doctor/check.h"
#include "store/idempotency.h"

static const char *const NAMES[] = {
#define X(symbol, name) name,
    DOCTOR_CHECKS(X)
#undef X
};

static const char *const DETAILS[] = {
    [DOCTOR_FILE] = "the data file is intact",
    [DOCTOR_OBJECTS] =
        "every stored object is readable: ids, hashes, enum values and times are valid",
    [DOCTOR_SLOTS] = "every active-run counter and every held slot is correct",
    [DOCTOR_QUEUE] = "every queued run is in exactly one queue, in the right position, and counted",
    [DOCTOR_RUNS] = "every run is consistent with its timeline and its jobs",
    [DOCTOR_JOBS] =
        "every open job belongs to an active run or an entity, and has its timer if it needs one",
    [DOCTOR_APPROVALS] =
        "every approval is decided at most once, and every pending one has its job",
    [DOCTOR_ENTITIES] =
        "every entity has its waiting signals, at most one call, its timer and its history",
    [DOCTOR_WEBHOOKS] = "every delivery has its webhook and is either finished or due",
    [DOCTOR_IDEMPOTENCY] = "every idempotency key has one record, and its run exists",
    [DOCTOR_INDEXES] = "indexes that are filled in the background are complete",
    [DOCTOR_AUDIT] = "every tenant's audit chain is unbroken",
};
static_assert(ARRAY_LEN(DETAILS) == DOCTOR_CHECK_COUNT, "one line per check");

const char *doctor_check_name(enum doctor_check check)
{
    return NAMES[check];
}

/* --- the report --- */

struct report {
    struct json_out out;
    struct doctor_findings *findings;
    bool ok;
    struct check_result results[CHECK_AREA_COUNT];
};

static void add_finding(void *ctx, const struct finding *f)
{
    struct report *r = ctx;
    struct json_out *o = &r->out;
    json_open(o, NULL, '{');
    json_add_text(o, "what", str_of(f->what));
    if (f->tenant.ptr != NULL)
        json_add_text(o, "tenant", f->tenant);
    if (f->has_run)
        json_add_uuid(o, "run_id", f->run_id);
    if (f->has_entity) {
        json_add_text(o, "entity_type", f->entity_type);
        json_add_text(o, "entity_id", f->entity_id);
    }
    if (f->has_seq)
        json_add_int(o, "seq", f->seq);
    if (f->has_kept)
        json_add_int(o, "kept", f->kept);
    if (f->has_counted)
        json_add_int(o, "counted", f->counted);
    json_add_bool(o, "repairable", f->derived);
    json_close(o, '}');
}

static void add_count(struct report *r, const char *what, int64_t count)
{
    struct finding f = {.what = what, .has_counted = true, .counted = count};
    if (count > 0)
        add_finding(r, &f);
}

/* --- checks: each returns how many differences there are, of how many things --- */

static enum err look_at_file(struct report *r, struct read_tx *tx, int64_t *ret_found)
{
    if (!db_has_integrity_check(tx->db))
        return ERR_OK; /* the engine checks its files itself */
    struct buf lines;
    buf_init(&lines, 16 * KIB);
    enum err e = db_integrity_check(tx->db, &lines);
    struct str rest = buf_str(&lines);
    while (rest.len > 0) {
        char text[512];
        struct str line;
        (void)str_cut(rest, '\n', &line, &rest);
        (void)snprintf(text, sizeof(text), "%.*s", STR_ARG(line));
        str_repair_utf8(text, strlen(text)); /* it may have been cut */
        struct finding f = {.what = text};
        add_finding(r, &f);
        ++*ret_found;
    }
    if (e == ERR_OK && !buf_ok(&lines) && *ret_found == 0)
        e = ERR_NO_MEMORY;
    buf_release(&lines);
    return e;
}

static enum err look_at_keys(struct report *r, struct read_tx *tx, int64_t *ret_found,
                             int64_t *ret_checked)
{
    int64_t orphans = 0;
    int64_t doubles = 0;
    enum err e = idempotency_orphans(tx->db, ret_checked, &orphans);
    if (e == ERR_OK)
        e = idempotency_doubles(tx->db, &doubles);
    add_count(r, "idempotency keys refer to a run that does not exist", orphans);
    add_count(r, "idempotency keys have more than one record", doubles);
    *ret_found = orphans + doubles;
    return e;
}

struct audit_look {
    struct report *report;
    struct read_tx *tx;
    int64_t found;
    enum err err;
};

static void show_break(void *ctx, const struct audit_break *b)
{
    static const char *const WHAT[] = {
        [AUDIT_CHANGED] = "this entry or the one before it was changed",
        [AUDIT_MISSING] = "an entry was removed",
        [AUDIT_ADDED] = "an entry was not written by pawl",
    };
    struct audit_look *look = ctx;
    struct finding f = {.what = WHAT[b->fault], .has_seq = true, .seq = b->seq};
    if (look->found++ < FINDINGS_SHOWN_MAX && look->err == ERR_OK)
        look->err = finding_show(look->tx->db, f, b->tenant, 0, add_finding, look->report);
}

static enum err look_at_audit(struct report *r, struct read_tx *tx, int64_t *ret_found,
                              int64_t *ret_checked)
{
    struct audit_look look = {r, tx, 0, ERR_OK};
    enum err e = audit_verify_all(tx->db, show_break, &look, ret_checked);
    *ret_found = look.found;
    return e == ERR_OK ? look.err : e;
}

/* Of the checks that are tables of invariants. */
static enum check_area area_of(enum doctor_check check)
{
    static const enum check_area AREAS[DOCTOR_CHECK_COUNT] = {
        [DOCTOR_OBJECTS] = CHECK_OBJECTS,   [DOCTOR_SLOTS] = CHECK_SLOTS,
        [DOCTOR_QUEUE] = CHECK_QUEUE,       [DOCTOR_RUNS] = CHECK_RUNS,
        [DOCTOR_JOBS] = CHECK_JOBS,         [DOCTOR_APPROVALS] = CHECK_APPROVALS,
        [DOCTOR_ENTITIES] = CHECK_ENTITIES, [DOCTOR_WEBHOOKS] = CHECK_WEBHOOKS,
        [DOCTOR_INDEXES] = CHECK_INDEXES,
    };
    return AREAS[check];
}

/* The index of keys is no table of rows: it is read as the server reads it. */
static enum err check_key_index(struct read_tx *tx, finding_each *each, void *ctx,
                                struct check_result *result)
{
    struct finding lost = {.what = "the index of idempotency keys lacks keys", .derived = true};
    struct finding broken = {.what = "blocks of the index of idempotency keys are damaged",
                             .derived = true};
    enum err e = idem_keys_check(tx->db, &lost.counted, &broken.counted);
    lost.has_counted = broken.has_counted = true;
    if (lost.counted > 0 && each != NULL)
        each(ctx, &lost);
    if (broken.counted > 0 && each != NULL)
        each(ctx, &broken);
    result->found += lost.counted + broken.counted;
    result->derived += lost.counted + broken.counted;
    return e;
}

static enum err check_fully(struct read_tx *tx, enum check_area area, finding_each *each, void *ctx,
                            struct check_result *result)
{
    enum err e = check_area(tx->db, area, CHECK_FULL, each, ctx, result);
    if (e == ERR_OK && area == CHECK_SLOTS)
        e = limit_lists_check(tx, each, ctx, result);
    if (e == ERR_OK && area == CHECK_INDEXES)
        e = check_key_index(tx, each, ctx, result);
    return e;
}

static enum err look_at_area(struct report *r, struct read_tx *tx, enum check_area area,
                             int64_t *ret_found, int64_t *ret_checked)
{
    struct check_result *result = &r->results[area];
    enum err e = check_extent(tx->db, area, ret_checked);
    if (e == ERR_OK)
        e = check_fully(tx, area, add_finding, r, result);
    *ret_found = result->found;
    return e;
}

static enum err look(struct report *r, struct read_tx *tx, enum doctor_check check,
                     int64_t *ret_found, int64_t *ret_checked)
{
    switch (check) {
    case DOCTOR_FILE:
        *ret_checked = 1;
        return look_at_file(r, tx, ret_found);
    case DOCTOR_IDEMPOTENCY:
        return look_at_keys(r, tx, ret_found, ret_checked);
    case DOCTOR_AUDIT:
        return look_at_audit(r, tx, ret_found, ret_checked);
    case DOCTOR_OBJECTS:
    case DOCTOR_SLOTS:
    case DOCTOR_QUEUE:
    case DOCTOR_RUNS:
    case DOCTOR_JOBS:
    case DOCTOR_APPROVALS:
    case DOCTOR_ENTITIES:
    case DOCTOR_WEBHOOKS:
    case DOCTOR_INDEXES:
        return look_at_area(r, tx, area_of(check), ret_found, ret_checked);
    case DOCTOR_CHECK_COUNT:
        break;
    }
    assert(!"unknown check");
    return ERR_INTERNAL;
}

static void note(struct doctor_findings *findings, enum doctor_check check, int64_t found)
{
    findings->ran[check] = true;
    findings->differences[check] = found;
}

/* One check as an object of the report. */
static enum err report_check(struct report *r, struct read_tx *tx, enum doctor_check check)
{
    int64_t found = 0;
    int64_t checked = 0;
    json_open(&r->out, NULL, '{');
    json_add_text(&r->out, "name", str_of(NAMES[check]));
    json_open(&r->out, "found", '[');
    enum err e = look(r, tx, check, &found, &checked);
    json_close(&r->out, ']');
    json_add_bool(&r->out, "ok", found == 0);
    json_add_int(&r->out, "checked", checked);
    json_add_text(&r->out, "detail", str_of(DETAILS[check]));
    json_close(&r->out, '}');
    note(r->findings, check, found);
    r->ok &= found == 0;
    return e;
}

static struct report report_begin(struct op *op)
{
    const struct doctor_input *in = op->input;
    *in->findings = (struct doctor_findings){0}; /* an op may run twice */
    struct report r = {json_out_to(&op->answer.body), in->findings, true, {{0}}};
    json_open(&r.out, NULL, '{');
    json_open(&r.out, "checks", '[');
    return r;
}

static enum err cannot_finish(struct op *op, enum err e)
{
    return problem_set(&op->problem, e, "The checks could not be finished");
}

/* --- all of it --- */

static enum err doctor(struct op *op, struct read_tx *tx)
{
    struct report r = report_begin(op);
    enum err e = ERR_OK;
    for (enum doctor_check c = 0; c < DOCTOR_CHECK_COUNT && e == ERR_OK; c++)
        e = report_check(&r, tx, c);
    if (e != ERR_OK)
        return cannot_finish(op, e);
    json_close(&r.out, ']');
    json_add_bool(&r.out, "ok", r.ok);
    json_close(&r.out, '}');
    return ERR_OK;
}

/* Looks at every row; the log cannot be folded back meanwhile, so even the doctor has a limit. */
const struct use_case UC_DOCTOR = {
    .name = "doctor", .read = doctor, .read_ms = DOCTOR_MS_MAX, .checks = true};

/* --- quickly --- */

static enum err quick(struct op *op, struct read_tx *tx)
{
    static const enum doctor_check COUNTED[] = {DOCTOR_SLOTS, DOCTOR_QUEUE};
    const struct doctor_input *in = op->input;
    *in->findings = (struct doctor_findings){0};
    for (size_t i = 0; i < ARRAY_LEN(COUNTED); i++) {
        struct check_result result = {0};
        enum err e = check_area(tx->db, area_of(COUNTED[i]), CHECK_QUICK, NULL, NULL, &result);
        if (e != ERR_OK)
            return cannot_finish(op, e);
        note(in->findings, COUNTED[i], result.found);
    }
    return ERR_OK;
}

const struct use_case UC_DOCTOR_QUICK = {
    .name = "doctor_quick", .read = quick, .read_ms = CHECK_MS_MAX, .checks = true};

/* --- repair --- */

/* In which something is derived. */
static const enum doctor_check REPAIRED[] = {DOCTOR_SLOTS, DOCTOR_QUEUE, DOCTOR_JOBS,
                                             DOCTOR_ENTITIES, DOCTOR_INDEXES};

static struct check_result total_of(const struct report *r)
{
    struct check_result total = {0};
    for (size_t i = 0; i < ARRAY_LEN(REPAIRED); i++) {
        total.found += r->results[area_of(REPAIRED[i])].found;
        total.derived += r->results[area_of(REPAIRED[i])].derived;
    }
    return total;
}

/* Who had what mended, in the chain of the server itself. */
static enum err audit_repair(struct op *op, struct tx *tx, const struct doctor_findings *before,
                             int64_t repaired)
{
    struct buf detail;
    buf_init(&detail, KIB);
    struct json_out o = json_out_to(&detail);
    json_open(&o, NULL, '{');
    for (size_t i = 0; i < ARRAY_LEN(REPAIRED); i++)
        json_add_int(&o, NAMES[REPAIRED[i]], before->differences[REPAIRED[i]]);
    json_add_int(&o, "repaired", repaired);
    json_close(&o, '}');
    enum err e = buf_ok(&detail)
                     ? audit_record(op, tx, 0, "doctor.repair", STR("*"), buf_str(&detail))
                     : ERR_NO_MEMORY;
    buf_release(&detail);
    return e;
}

/* Mends what is broken, and looks there again: the results and findings are what is left. */
static enum err mend(struct op *op, struct tx *tx, struct report *r)
{
    struct doctor_findings before = *r->findings;
    int64_t derived = total_of(r).derived;
    bool broken[CHECK_AREA_COUNT];
    for (size_t i = 0; i < CHECK_AREA_COUNT; i++)
        broken[i] = r->results[i].derived > 0;
    enum err e = repair_areas(tx, broken);
    broken[CHECK_SLOTS] = broken[CHECK_QUEUE] = broken[CHECK_SLOTS] || broken[CHECK_QUEUE];
    for (size_t i = 0; i < ARRAY_LEN(REPAIRED) && e == ERR_OK; i++) {
        enum check_area area = area_of(REPAIRED[i]);
        if (!broken[area])
            continue;
        r->results[area] = (struct check_result){0};
        e = check_fully(&tx->read, area, NULL, NULL, &r->results[area]);
        note(r->findings, REPAIRED[i], r->results[area].found);
    }
    return e == ERR_OK ? audit_repair(op, tx, &before, derived - total_of(r).derived) : e;
}

static enum err repair(struct op *op, struct tx *tx)
{
    /* Counters that earlier ops of the batch have changed are not in the store yet. */
    enum err e = tx_flush(tx);
    struct report r = report_begin(op);
    for (size_t i = 0; i < ARRAY_LEN(REPAIRED) && e == ERR_OK; i++)
        e = report_check(&r, &tx->read, REPAIRED[i]);
    struct check_result before = total_of(&r);
    op->answer.changed_nothing = before.derived == 0;
    if (e == ERR_OK && before.derived > 0)
        e = mend(op, tx, &r);
    if (e != ERR_OK)
        return problem_set(&op->problem, e,
                           "The repair could not be finished. Nothing was changed.");
    struct check_result left = total_of(&r);
    json_close(&r.out, ']');
    json_add_int(&r.out, "repaired", before.derived - left.derived);
    json_add_bool(&r.out, "ok", left.found == 0);
    json_close(&r.out, '}');
    return ERR_OK;
}

const struct use_case UC_DOCTOR_REPAIR = {.name = "doctor_repair", .write = repair, .checks = true};
