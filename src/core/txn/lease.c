/* Tokens of leases. */
#include "core/txn/lease.h"

#include "base/crypto.h"

enum { TOKEN_HEX = 32 };

static void sign(const struct hmac_key *key, const struct job *job,
                 char out[static LEASE_TOKEN_MAX])
{
    unsigned char numbers[16];
    memcpy(numbers, &job->lease_epoch, 8);
    memcpy(numbers + 8, &job->started_at, 8);
    struct str parts[] = {{(const char *)job->id.bytes, sizeof(job->id.bytes)},
                          {(const char *)numbers, sizeof(numbers)},
                          job->worker};
    struct sha256 hash = hmac_key_sign(key, parts, ARRAY_LEN(parts));
    static const char DIGITS[] = "0123456789abcdef";
    int len = snprintf(out, LEASE_TOKEN_MAX, "%lld.", (long long)job->lease_epoch);
    assert(len > 0 && len + TOKEN_HEX < LEASE_TOKEN_MAX);
    char *at = out + len;
    for (size_t i = 0; i < TOKEN_HEX / 2; i++) {
        *at++ = DIGITS[hash.bytes[i] >> 4];
        *at++ = DIGITS[hash.bytes[i] & 0xF];
    }
    *at = '\0';
}

void lease_token(const struct tx *tx, const struct job *job, char out[static LEASE_TOKEN_MAX])
{
    sign(&tx->lease_key, job, out);
}

/* Takes as long whatever they have in common. */
static bool same_token(struct str given, struct str right)
{
    unsigned char differs = given.len != right.len;
    for (size_t i = 0; i < right.len; i++)
        differs |= (unsigned char)(right.ptr[i] ^ (i < given.len ? given.ptr[i] : 0));
    return differs == 0;
}

bool lease_is_current(const struct tx *tx, const struct job *job, struct str token)
{
    char current[LEASE_TOKEN_MAX];
    if (job->lease_epoch == 0)
        return false;
    lease_token(tx, job, current);
    bool same = same_token(token, str_of(current));
    for (size_t i = 0; i < tx->other_lease_key_count && !same; i++) {
        sign(&tx->other_lease_keys[i], job, current);
        same = same_token(token, str_of(current));
    }
    return same;
}

bool lease_is_news(const struct job *job, struct str token, int64_t *ret_epoch)
{
    struct str number;
    struct str rest;
    (void)str_cut(token, '.', &number, &rest);
    return str_to_i64(number, ret_epoch) && *ret_epoch > job->stale_epoch &&
           *ret_epoch <= job->lease_epoch;
}

void lease_note_handed(struct op *op, struct uuid job_id, const char *token)
{
    struct handed_job handed = {.job_id = job_id};
    (void)snprintf(handed.token, sizeof(handed.token), "%s", token);
    buf_put_bytes(&op->answer.handed, &handed, sizeof(handed));
}
