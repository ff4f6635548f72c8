/* Entries of the audit trail. */
#include "core/txn/audited.h"

#include "store/audit.h"

enum err audited(const struct op *op, struct tx *tx, int64_t tenant, const char *action,
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

enum err audited_id(const struct op *op, struct tx *tx, int64_t tenant, const char *action,
                    struct uuid target, struct str detail)
{
    struct buf id;
    buf_init(&id, UUID_TEXT_LEN + 1);
    buf_put_uuid(&id, target);
    enum err e =
        buf_ok(&id) ? audited(op, tx, tenant, action, buf_str(&id), detail) : ERR_NO_MEMORY;
    buf_release(&id);
    return e;
}
