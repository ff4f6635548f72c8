/* What an ID token says, and who that is here. */
#include "domain/oidc/claims.h"

#include "domain/tenant.h"

/* --- is it for us, now? --- */

static struct str text_of(const json_t *claims, const char *name)
{
    const json_t *value = json_object_get(claims, name);
    return json_is_string(value) ? json_str(value) : STR_NONE;
}

/* Among the audience, and if there are others, the one it was issued to. */
static bool is_for(const json_t *claims, struct str client_id)
{
    const json_t *audience = json_object_get(claims, "aud");
    const json_t *party = json_object_get(claims, "azp");
    bool among = json_is_string(audience) && str_eq(json_str(audience), client_id);
    for (size_t i = 0; i < json_array_size(audience); i++) {
        const json_t *one = json_array_get(audience, i);
        among |= json_is_string(one) && str_eq(json_str(one), client_id);
    }
    bool party_needed = json_array_size(audience) > 1;
    bool party_right = json_is_string(party) && str_eq(json_str(party), client_id);
    return among && (party == NULL ? !party_needed : party_right);
}

/* Seconds since 1970; -1: the claim is missing. Some providers write fractions. */
static int64_t time_of(const json_t *claims, const char *name)
{
    const json_t *value = json_object_get(claims, name);
    double seconds = json_is_number(value) ? json_number_value(value) : -1;
    return seconds >= 0 && seconds < 1e15 ? (int64_t)seconds : -1;
}

static const char *time_fault(const json_t *claims, int64_t now_s)
{
    int64_t expires = time_of(claims, "exp");
    int64_t issued = time_of(claims, "iat");
    if (expires < 0 || now_s >= expires + OIDC_CLOCK_SKEW_S)
        return "it has expired";
    if (issued < 0 || issued > now_s + OIDC_CLOCK_SKEW_S ||
        time_of(claims, "nbf") > now_s + OIDC_CLOCK_SKEW_S)
        return "it is not valid yet. Compare the clocks of this server and the provider";
    return NULL;
}

enum err oidc_claims_check(const json_t *claims, const struct oidc_expected *expected,
                           struct problem *p)
{
    const char *fault = time_fault(claims, expected->now_s);
    if (!str_eq(text_of(claims, "iss"), expected->issuer))
        fault = "it is from another issuer";
    else if (!is_for(claims, expected->client_id))
        fault = "it is for another client";
    else if (expected->nonce.len == 0 || !str_eq(text_of(claims, "nonce"), expected->nonce))
        fault = "it belongs to another sign-in";
    if (fault == NULL)
        return ERR_OK;
    return problem_set(p, ERR_UNAUTHENTICATED, "The provider's ID token is refused: %s", fault);
}

/* --- who is it? --- */

/* The claim at a path. A name with dots in it, as some providers have, counts first. */
static const json_t *find(const json_t *claims, struct str path)
{
    const json_t *whole = json_object_getn(claims, path.ptr, path.len);
    struct str name;
    struct str rest;
    if (whole != NULL || !str_cut(path, '.', &name, &rest))
        return whole;
    return find(json_object_getn(claims, name.ptr, name.len), rest);
}

/* ROLE_COUNT: none. */
static enum role role_of_group(struct str group, struct str map)
{
    if (map.ptr == NULL)
        return role_of(group);
    while (map.len > 0) {
        struct str one;
        struct str name;
        struct str role;
        (void)str_cut(map, ',', &one, &map);
        if (str_cut(one, '=', &name, &role) && str_eq(str_trim(name), group))
            return role_of(str_trim(role));
    }
    return ROLE_COUNT;
}

/* The one that may do the most; ROLE_COUNT: none. */
static enum role best_role(const json_t *value, struct str map)
{
    enum role best = ROLE_COUNT;
    size_t count = json_is_string(value) ? 1 : json_array_size(value);
    for (size_t i = 0; i < count; i++) {
        const json_t *group = json_is_string(value) ? value : json_array_get(value, i);
        enum role role = json_is_string(group) ? role_of_group(json_str(group), map) : ROLE_COUNT;
        if (role != ROLE_COUNT && (best == ROLE_COUNT || role > best))
            best = role;
    }
    return best;
}

static enum err read_role(const json_t *claims, const struct oidc_rules *rules, struct problem *p,
                          struct session *ret)
{
    ret->role = best_role(find(claims, rules->role_claim), rules->role_map);
    if (ret->role != ROLE_COUNT)
        return ERR_OK;
    return problem_set(p, ERR_FORBIDDEN,
                       "The provider gives you no role here: the claim \"%.*s\" names none",
                       STR_ARG(rules->role_claim));
}

static enum err read_tenant(const json_t *claims, const struct oidc_rules *rules, struct problem *p,
                            struct session *ret)
{
    struct str tenant = rules->tenant;
    if (rules->tenant_claim.ptr != NULL) {
        const json_t *value = find(claims, rules->tenant_claim);
        if (json_array_size(value) == 1)
            value = json_array_get(value, 0);
        tenant = json_is_string(value) ? json_str(value) : STR_NONE;
    }
    bool for_all = ret->role == ROLE_VIEWER || ret->role == ROLE_WORKER || ret->role == ROLE_ADMIN;
    if (!tenant_id_ok(tenant) && !(str_is(tenant, "*") && for_all))
        return problem_set(p, ERR_FORBIDDEN,
                           "The provider gives you no tenant here: the claim \"%.*s\" must be one "
                           "name of a tenant, or * for a viewer, worker or admin",
                           STR_ARG(rules->tenant_claim));
    memcpy(ret->tenant, tenant.ptr, tenant.len);
    ret->tenant[tenant.len] = '\0';
    return ERR_OK;
}

static bool printable(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        if ((unsigned char)s.ptr[i] < 0x20 || s.ptr[i] == 0x7F)
            return false;
    }
    return s.len > 0;
}

/* "user:" in front: nobody can take the name of a key, or of root. */
static enum err read_actor(const json_t *claims, const struct oidc_rules *rules, struct problem *p,
                           struct session *ret)
{
    const struct str mark = STR("user:");
    const json_t *value = find(claims, rules->actor_claim);
    struct str name = json_is_string(value) ? json_str(value) : STR_NONE;
    if (!printable(name) || mark.len + name.len > ACTOR_MAX)
        return problem_set(p, ERR_FORBIDDEN,
                           "The provider does not say who you are: the claim \"%.*s\" must be "
                           "printable text of at most %d bytes",
                           STR_ARG(rules->actor_claim), (int)(ACTOR_MAX - mark.len));
    if (str_is(rules->actor_claim, "email") &&
        json_is_false(json_object_get(claims, "email_verified")))
        return problem_set(p, ERR_FORBIDDEN, "The provider has not verified your e-mail address");
    memcpy(ret->actor, mark.ptr, mark.len);
    memcpy(ret->actor + mark.len, name.ptr, name.len);
    ret->actor[mark.len + name.len] = '\0';
    return ERR_OK;
}

enum err oidc_claims_person(const json_t *claims, const struct oidc_rules *rules, struct problem *p,
                            struct session *ret)
{
    struct session person = {.kind = SESSION_OF_PERSON};
    enum err e = read_actor(claims, rules, p, &person);
    if (e == ERR_OK)
        e = read_role(claims, rules, p, &person);
    if (e == ERR_OK)
        e = read_tenant(claims, rules, p, &person);
    if (e == ERR_OK)
        *ret = person;
    return e;
}

/* --- the rules --- */

const char *oidc_rules_fault(const struct oidc_rules *rules)
{
    struct str map = rules->role_map;
    while (map.len > 0) {
        struct str one;
        struct str name;
        struct str role;
        (void)str_cut(map, ',', &one, &map);
        if (!str_cut(one, '=', &name, &role) || str_trim(name).len == 0 ||
            role_of(str_trim(role)) == ROLE_COUNT)
            return "--oidc-role-map must be GROUP=ROLE, separated by commas; roles are viewer, "
                   "worker, approver, operator and admin";
    }
    if (rules->tenant_claim.ptr == NULL && !tenant_id_ok(rules->tenant) &&
        !str_is(rules->tenant, "*"))
        return "--oidc-tenant must be * or letters, digits or any of _ - . :";
    return NULL;
}
