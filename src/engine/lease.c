/* Tokens of leases. */
#include "engine/lease.h"

#include "base/crypto.h"

enum { TOKEN_HEX = 32 };

void lease_token(const struct job *job, char out[static LEASE_TOKEN_MAX])
{
    unsigned char numbers[16];
    memcpy(numbers, &job->lease_epoch, 8);
    memcpy(numbers + 8, &job->started_at, 8);
    struct str parts[] = {{(const char *)job->id.bytes, sizeof(job->id.bytes)},
                          {(const char *)numbers, sizeof(numbers)},
                          job->worker};
    struct sha256 hash = sha256_of_parts(parts, ARRAY_LEN(parts));
    struct buf text;
    buf_init(&text, LEASE_TOKEN_MAX);
    buf_put_i64(&text, job->lease_epoch);
    buf_put_char(&text, '.');
    buf_put_hex(&text, hash.bytes, TOKEN_HEX / 2);
    assert(buf_ok(&text) && text.len < LEASE_TOKEN_MAX);
    memcpy(out, text.ptr, text.len + 1);
    buf_release(&text);
}

bool lease_is_current(const struct job *job, struct str token)
{
    char current[LEASE_TOKEN_MAX];
    if (job->lease_epoch == 0)
        return false;
    lease_token(job, current);
    return str_is(token, current);
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
