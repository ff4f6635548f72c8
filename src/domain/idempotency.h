/* Idempotency: how a key is written, what makes two requests the same, and what a known key
 * answers. Pure. */
#ifndef PAWL_DOMAIN_IDEMPOTENCY_H
#define PAWL_DOMAIN_IDEMPOTENCY_H

#include "base/arena.h"
#include "base/crypto.h"
#include "base/json.h"
#include "base/siphash.h"

/* The key that a header's value names: the bare form, or a structured-field string whose parameters
 * do not count. The text is copied to the arena. ERR_IDEM_KEY_INVALID says what is wrong. */
MUST_CHECK enum err idem_key_parse(struct str header, struct arena *arena, struct problem *p,
                                   struct str *ret);
/* The same for a key in a body, taken as it is: 1 to IDEM_KEY_MAX characters of UTF-8 text, none of
 * them a control character. */
MUST_CHECK enum err idem_key_check(struct str key, struct problem *p);

/* One request's claim to be the first with its key. */
struct idem_claim {
    struct str key;   /* empty: the request carries none */
    struct str route; /* "POST /api/v1/…", without the query: waiting longer is no other request */
    uint64_t raw_hash;         /* idem_raw_hash() of route and the bytes as sent; 0: not known */
    struct sha256 fingerprint; /* over route and canonical JSON; only when has_fingerprint */
    bool has_fingerprint;
    /* The same with members that make no difference: what pawl 0.1.0 kept. Only when there are any.
     */
    struct sha256 spelled_out;
    bool has_spelled_out;
};

/* 64 bits of a strong hash of a signal's key: nobody can make keys collide, and a chance collision
 * is detected by the key itself. Never 0, which stands for "not computed yet". */
int64_t idem_key_hash(struct str key);

/* Keyed with a secret of the store, so that nobody can make two requests look the same. Never 0. */
uint64_t idem_raw_hash(struct siphash_key secret, struct str route, struct str body);
/* `key_member` names the member that holds the key (ptr NULL: none): where the key is written makes
 * no difference. Nor do members that are marked as defaults, unless they are wanted. */
MUST_CHECK enum err idem_fingerprint(struct str route, const struct json *body,
                                     struct str key_member, bool without_defaults,
                                     struct problem *p, struct sha256 *ret);

/* The route by which nearly every run of a workflow is started, and whether this is it; ptr NULL:
 * there is no memory. */
struct str idem_start_route(struct arena *arena, struct str workflow_id);
bool idem_is_start_route(struct str route, struct str workflow_id);

enum idem_verdict {
    IDEM_REPLAY,   /* the same request: give the first answer again */
    IDEM_MISMATCH, /* another request under this key: 422, the first is unharmed */
    IDEM_UNSURE, /* the bytes differ and the claim has no fingerprint yet: compute it and ask again
                  */
};

/* What a live record says to a claim. Equal bytes make equal requests without parsing them. */
enum idem_verdict idem_compare(const struct idem_claim *claim, uint64_t raw_hash,
                               const struct sha256 *fingerprint);

/* When a record created at created_ms expires; -1: never. retention_ms < 0 means forever. */
int64_t idem_expires_ms(int64_t created_ms, int64_t retention_ms);

#endif
