/* Entries of the audit trail. */
#include "core/txn/audit_record.h"

#include "store/audit.h"

enum err audit_record(const struct op *op, struct tx *tx, int64_t tenant, const char *action,
                      struct str target, struct str detail)
{
    struct audit_entry entry = {
        .tenant = tenant,
        .at = tx->now_ms,
        .actor = op->caller.actor,
        .peer = op->caller.peer,
        .action = str_of(action),
        .target = target,
        .detail = detail,
    };
    return audit_append(tx->db, &entry);
}

enum err audit_record_id(const struct op *op, struct tx *tx, int64_t tenant, const char *action,
                         struct uuid target, struct str detail)
{
    struct buf id;
    buf_init(&id, UUID_TEXT_LEN + 1);
    buf_put_uuid(&id, target);
    enum err e =
        buf_ok(&id) ? audit_record(op, tx, tenant, action, buf_str(&id), detail) : ERR_NO_MEMORY;
    buf_release(&id);
    return e;
}
