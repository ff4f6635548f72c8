/* Tenants of several shards, by name. */
#include "store/copy/merge_tenants.h"

#include "base/arena.h"

#include <stdlib.h>

enum { TENANTS_AT_ONCE = 256, NAMES_BYTES_MAX = TENANTS_AT_ONCE * (TENANT_ID_MAX + 64) };

/* --- one shard, by name --- */

struct listed {
    struct str id;
    int64_t num;
};

struct tenant_list {
    struct db *db;
    struct arena arenas[2]; /* one has the names below; the other gets the next */
    size_t turn;
    struct listed tenants[TENANTS_AT_ONCE];
    size_t count, at; /* count 0: over */
};

static enum err read_more(struct tenant_list *l)
{
    static const char SQL[] = "SELECT id, num FROM tenants WHERE id > $1 ORDER BY id LIMIT $2";
    struct str after = l->count > 0 ? l->tenants[l->count - 1].id : STR("");
    struct arena *arena = &l->arenas[1 - l->turn];
    struct db_rows *rows = DB_QUERY(l->db, SQL, DB_T(after), DB_I(TENANTS_AT_ONCE));
    bool kept = true;
    l->count = l->at = 0;
    while (kept && db_next(rows)) {
        struct listed *t = &l->tenants[l->count++];
        *t = (struct listed){db_str(rows, 0), db_count(rows, 1)};
        kept = arena_keep(arena, &t->id);
    }
    arena_clear(&l->arenas[l->turn]);
    l->turn = 1 - l->turn;
    enum err e = db_rows_end(rows);
    return e == ERR_OK && !kept ? ERR_NO_MEMORY : e;
}

static const struct listed *head_of(const struct tenant_list *l)
{
    return l->at < l->count ? &l->tenants[l->at] : NULL;
}

static enum err advance(struct tenant_list *l)
{
    l->at++;
    return l->at == l->count ? read_more(l) : ERR_OK;
}

/* --- aliases --- */

static enum err add_alias(struct merge_tenants *t, size_t shard, int64_t num, int64_t tenant)
{
    if (t->count == t->room) {
        size_t room = t->room == 0 ? 256 : 2 * t->room;
        struct merge_alias *list = realloc(t->list, room * sizeof(*list));
        if (list == NULL)
            return ERR_NO_MEMORY;
        t->list = list;
        t->room = room;
    }
    t->list[t->count++] = (struct merge_alias){shard, num, tenant, 0};
    return ERR_OK;
}

static int by_shard(const void *a, const void *b)
{
    const struct merge_alias *x = a;
    const struct merge_alias *y = b;
    return x->shard != y->shard ? (x->shard > y->shard) - (x->shard < y->shard)
                                : (x->num > y->num) - (x->num < y->num);
}

static int by_id(struct str a, struct str b)
{
    int order = memcmp(a.ptr, b.ptr, MIN(a.len, b.len));
    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

/* The least name that a shard has come to; ptr NULL: all are through. */
static struct str least_of(const struct tenant_list *lists, size_t count)
{
    struct str least = STR_NONE;
    for (size_t i = 0; i < count; i++) {
        const struct listed *head = head_of(&lists[i]);
        if (head != NULL && (least.ptr == NULL || by_id(head->id, least) < 0))
            least = head->id;
    }
    return least;
}

/* Its own shard, and its number there: not 0, which has rows of others, unless there is no other.
 * `*` has none, and the first does. */
static enum err find_own(const struct tenant_list *lists, size_t count, struct str id,
                         struct problem *p, size_t *ret, int64_t *ret_num)
{
    bool is_any = str_is(id, "*");
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        const struct listed *head = head_of(&lists[i]);
        if (head == NULL || !str_eq(head->id, id) || (is_any && found > 0))
            continue;
        if (found > 0 && *ret > 0)
            return problem_set(p, ERR_STORE_FAILED,
                               "The tenant %.*s is in the shards %zu and %zu. Nothing was changed.",
                               STR_ARG(id), *ret, i);
        *ret = i;
        *ret_num = head->num;
        found++;
    }
    assert(found > 0);
    return ERR_OK;
}

static enum err take_tenant(struct merge_tenants *t, struct tenant_list *lists, size_t count,
                            struct str id, struct problem *p)
{
    char name[TENANT_ID_MAX + 1]; /* the lists move on */
    size_t own = 0;
    (void)snprintf(name, sizeof(name), "%.*s", STR_ARG(id));
    id = str_of(name);
    int64_t num = 0;
    enum err e = find_own(lists, count, id, p, &own, &num);
    for (size_t i = 0; i < count && e == ERR_OK; i++) {
        const struct listed *head = head_of(&lists[i]);
        if (head == NULL || !str_eq(head->id, id))
            continue;
        if (i != own)
            e = add_alias(t, i, head->num, num);
        if (e == ERR_OK)
            e = advance(&lists[i]);
    }
    return e;
}

static enum err read_all(struct merge_tenants *t, struct tenant_list *lists, size_t count,
                         struct problem *p)
{
    enum err e = ERR_OK;
    for (size_t i = 0; i < count && e == ERR_OK; i++)
        e = read_more(&lists[i]);
    for (size_t i = 1; i < count && e == ERR_OK; i++)
        e = add_alias(t, i, 0, 0);
    while (e == ERR_OK) {
        struct str id = least_of(lists, count);
        if (id.ptr == NULL)
            break;
        e = take_tenant(t, lists, count, id, p);
    }
    return e;
}

enum err merge_tenants_read(struct db *const *shards, size_t count, struct problem *p,
                            struct merge_tenants *ret)
{
    struct tenant_list *lists = calloc(count, sizeof(*lists));
    *ret = (struct merge_tenants){0};
    if (lists == NULL)
        return problem_set(p, ERR_NO_MEMORY, "Out of memory");
    for (size_t i = 0; i < count; i++) {
        lists[i].db = shards[i];
        arena_init(&lists[i].arenas[0], NAMES_BYTES_MAX);
        arena_init(&lists[i].arenas[1], NAMES_BYTES_MAX);
    }
    enum err e = read_all(ret, lists, count, p);
    for (size_t i = 0; i < count; i++) {
        arena_release(&lists[i].arenas[0]);
        arena_release(&lists[i].arenas[1]);
    }
    free(lists);
    if (ret->count > 0)
        qsort(ret->list, ret->count, sizeof(ret->list[0]), by_shard);
    return e == ERR_OK || p->err != ERR_OK
               ? e
               : problem_set(p, e, "Cannot read the tenants of the shards: %s", err_title(e));
}

void merge_tenants_release(struct merge_tenants *t)
{
    free(t->list);
    *t = (struct merge_tenants){0};
}

int64_t merge_tenants_number_chains(struct merge_tenants *t, int64_t last)
{
    for (size_t i = 0; i < t->count; i++)
        t->list[i].chain = ++last;
    return last;
}

const struct merge_alias *merge_tenants_find(const struct merge_tenants *t, size_t shard,
                                             int64_t num)
{
    const struct merge_alias wanted = {.shard = shard, .num = num};
    return t->count > 0 ? bsearch(&wanted, t->list, t->count, sizeof(t->list[0]), by_shard) : NULL;
}
