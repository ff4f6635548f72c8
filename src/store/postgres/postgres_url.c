/* The parameters of a store's URL that are pawl's own. */
#include "library/library.h"
#include "store/postgres/postgres_db.h"

enum { VALUE_MAX = 64 };

/* Takes name=VALUE out of the URL: libpq would refuse it. False: it is not there, or too long. */
static bool take_parameter(char *url, const char *name, char value[static VALUE_MAX])
{
    size_t len = strlen(name);
    char *at = strchr(url, '?');
    while (at != NULL && (strncmp(at + 1, name, len) != 0 || at[1 + len] != '='))
        at = strchr(at + 1, '&');
    if (at == NULL)
        return false;
    const char *text = at + 1 + len + 1;
    size_t text_len = strcspn(text, "&");
    if (text_len >= VALUE_MAX)
        return false;
    memcpy(value, text, text_len);
    value[text_len] = '\0';
    const char *rest = text + text_len;
    if (*rest == '&')
        memmove(at + 1, rest + 1, strlen(rest)); /* with the NUL */
    else
        *at = '\0';
    return true;
}

static bool is_schema_name(struct str name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        if (!((c >= 'a' && c <= 'z') || c == '_' || (i > 0 && c >= '0' && c <= '9')))
            return false;
    }
    return name.len > 0 && name.len <= POSTGRES_SCHEMA_MAX && !str_starts_with(name, STR("pg_"));
}

static enum err read_schema(struct postgres_db *db, struct problem *p)
{
    char value[VALUE_MAX] = "pawl";
    (void)take_parameter(db->url, "schema", value);
    if (!is_schema_name(str_of(value)))
        return problem_set(p, ERR_BAD_REQUEST,
                           "The schema \"%s\" in the URL of the store must be a name of up to %d "
                           "lower-case letters, digits and underscores",
                           value, POSTGRES_SCHEMA_MAX);
    (void)snprintf(db->schema, sizeof(db->schema), "%s", value);
    return ERR_OK;
}

/* A whole number from 0 on; `absent` without one. */
static enum err read_number(struct postgres_db *db, const char *name, int64_t absent,
                            struct problem *p, int64_t *ret)
{
    char value[VALUE_MAX];
    *ret = absent;
    if (!take_parameter(db->url, name, value))
        return ERR_OK;
    if (str_to_i64(str_of(value), ret) && *ret >= 0)
        return ERR_OK;
    return problem_set(p, ERR_BAD_REQUEST, "The %s \"%s\" in the URL of the store must be a number",
                       name, value);
}

enum err postgres_read_url(struct postgres_db *db, struct str url, struct problem *p)
{
    char why[LIBRARY_WHY_MAX];
    if (!library_load(&LIBPQ, why))
        return problem_set(p, ERR_STORE_FAILED, "%s", why);
    if (url.len >= sizeof(db->url))
        return problem_set(p, ERR_BAD_REQUEST, "The URL of the store is too long");
    memcpy(db->url, url.ptr, url.len);
    int64_t shard = 0;
    int64_t epoch = 0;
    enum err e = read_schema(db, p);
    if (e == ERR_OK)
        e = read_number(db, "shard", 0, p, &shard);
    if (e == ERR_OK)
        e = read_number(db, "epoch", 0, p, &epoch);
    if (e == ERR_OK && shard >= CLUSTER_SHARDS_MAX)
        e = problem_set(p, ERR_BAD_REQUEST, "The URL of the store names a shard past %d",
                        CLUSTER_SHARDS_MAX - 1);
    db->shard = (int)shard;
    db->epoch = epoch;
    db->is_node = epoch > 0;
    return e;
}
