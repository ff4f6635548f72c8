/* Sessions of people in browsers: made, checked and ended. */
#include "runtime/sessions.h"

#include "base/hash_map.h"

struct ended {
    struct hash_entry entry;
    struct uuid id;
    int64_t expires_at;
};

struct sessions {
    const struct env *env;
    struct secret secret;
    struct hash_map ended; /* before their time */
};

struct sessions *sessions_new(const struct env *env)
{
    struct sessions *s = calloc(1, sizeof(*s));
    if (s != NULL)
        s->env = env;
    return s;
}

static struct ended *ended_of(struct hash_entry *e)
{
    return CONTAINER_OF(e, struct ended, entry);
}

static void forget(struct sessions *s, struct ended *ended)
{
    hash_map_remove(&s->ended, &ended->entry);
    free(ended);
}

void sessions_free(struct sessions *s)
{
    if (s == NULL)
        return;
    HASH_MAP_WALK (&s->ended, e)
        forget(s, ended_of(e));
    hash_map_release(&s->ended);
    free(s);
}

void sessions_use_secret(struct sessions *s, const struct secret *secret)
{
    s->secret = *secret;
}

struct str sessions_secret(const struct sessions *s)
{
    return (struct str){(const char *)s->secret.bytes, sizeof(s->secret.bytes)};
}

void sessions_put_new(struct sessions *s, struct session *session, struct buf *out)
{
    session->id = env_new_id(s->env);
    session_put(out, session, sessions_secret(s));
}

static struct ended *find_ended(const struct sessions *s, struct uuid id)
{
    struct str key = {(const char *)id.bytes, sizeof(id.bytes)};
    struct hash_entry *e = hash_map_find(&s->ended, hash_text(&s->ended, key));
    while (e != NULL && !uuid_eq(ended_of(e)->id, id))
        e = hash_map_find_next(e);
    return e != NULL ? ended_of(e) : NULL;
}

bool sessions_read(struct sessions *s, struct str text, struct session *ret)
{
    struct session session;
    if (!session_read(text, sessions_secret(s), &session) ||
        session.expires_at <= env_now_ms(s->env) || find_ended(s, session.id) != NULL)
        return false;
    *ret = session;
    return true;
}

static void forget_expired(struct sessions *s)
{
    int64_t now = env_now_ms(s->env);
    HASH_MAP_WALK (&s->ended, e) {
        if (ended_of(e)->expires_at <= now)
            forget(s, ended_of(e));
    }
}

bool sessions_end(struct sessions *s, const struct session *session)
{
    if (find_ended(s, session->id) != NULL)
        return true;
    if (s->ended.count == SESSIONS_ENDED_MAX)
        forget_expired(s);
    struct ended *ended = s->ended.count < SESSIONS_ENDED_MAX ? calloc(1, sizeof(*ended)) : NULL;
    if (ended == NULL)
        return false;
    ended->id = session->id;
    ended->expires_at = session->expires_at;
    struct str key = {(const char *)ended->id.bytes, sizeof(ended->id.bytes)};
    hash_map_add(&s->ended, &ended->entry, hash_text(&s->ended, key));
    return true;
}
