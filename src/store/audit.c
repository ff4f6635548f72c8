/* The audit trail as rows. */
#include "store/audit.h"

static struct sha256 hash_entry(const struct sha256 *before, int64_t seq,
                                const struct audit_entry *e)
{
    int64_t numbers[] = {e->tenant, seq, e->at};
    struct str parts[] = {
        {(const char *)before->bytes, SHA256_LEN},
        {(const char *)numbers, sizeof(numbers)},
        e->actor,
        e->peer,
        e->action,
        e->target,
        e->detail,
    };
    return sha256_of_parts(parts, ARRAY_LEN(parts));
}

enum err audit_append(struct db *db, const struct audit_entry *e)
{
    static const char SQL_LAST[] =
        "SELECT seq, hash FROM audit WHERE tenant = $1 ORDER BY seq DESC LIMIT 1";
    static const char SQL_INSERT[] =
        "INSERT INTO audit (tenant, seq, at, actor, peer, action, target, detail, hash)"
        " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
    struct sha256 before = {{0}};
    int64_t seq = 0;
    struct db_rows *rows = DB_QUERY(db, SQL_LAST, DB_I(e->tenant));
    if (db_next(rows)) {
        seq = db_int(rows, 0);
        before = db_hash(rows, 1);
    }
    enum err err = db_rows_end(rows);
    if (err != ERR_OK)
        return err;
    seq++;
    struct sha256 hash = hash_entry(&before, seq, e);
    return DB_EXEC(db, SQL_INSERT, NULL, DB_I(e->tenant), DB_I(seq), DB_I(e->at), DB_T(e->actor),
                   DB_T(e->peer), DB_T(e->action), DB_T(e->target), DB_T(e->detail), DB_H(hash));
}

enum err audit_verify(struct db *db, int64_t *ret_checked, int64_t *ret_broken)
{
    static const char SQL[] = "SELECT tenant, seq, at, actor, peer, action, target, detail, hash"
                              " FROM audit ORDER BY tenant, seq";
    struct db_rows *rows = db_query_values(db, SQL, NULL, 0);
    struct sha256 before = {{0}};
    int64_t tenant = -1;
    int64_t expected_seq = 0;
    *ret_checked = 0;
    *ret_broken = 0;
    while (db_next(rows)) {
        if (db_int(rows, 0) != tenant) {
            tenant = db_int(rows, 0);
            before = (struct sha256){{0}};
            expected_seq = 0;
        }
        expected_seq++;
        struct audit_entry e = {tenant,          db_int(rows, 2), db_str(rows, 3), db_str(rows, 4),
                                db_str(rows, 5), db_str(rows, 6), db_str(rows, 7)};
        struct sha256 kept = db_hash(rows, 8);
        struct sha256 right = hash_entry(&before, expected_seq, &e);
        *ret_checked += 1;
        if (db_int(rows, 1) != expected_seq || !sha256_eq(&kept, &right))
            *ret_broken += 1;
        before = kept;
        expected_seq = db_int(rows, 1);
    }
    return db_rows_end(rows);
}
