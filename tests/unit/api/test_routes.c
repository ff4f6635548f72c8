/* The table of routes is sound: what its reader takes for granted holds for every row. */
#include "api/call.h"
#include "api/routes.h"

#include "testing.h"

/* Checked, and not stored, or stored by a function of its own. */
static bool needs_no_member(const struct param *p)
{
    return p->kind == PARAM_TEXT || p->kind == PARAM_JSON || p->kind == PARAM_OBJECT ||
           p->kind == PARAM_ARRAY || p->kind == PARAM_KEY || p->take != NULL;
}

static void check_param(const struct route *r, const struct param *p, size_t input_size)
{
    size_t room = p->in_call ? sizeof(struct call) : input_size;
    bool nested = p->where != IN_BODY && (p->kind == PARAM_JSON || p->kind == PARAM_OBJECT ||
                                          p->kind == PARAM_ARRAY || p->kind == PARAM_BOOL);
    if (p->size == 0 && !needs_no_member(p))
        fail_msg("%s %s: %s has no member", r->method, r->pattern, p->name);
    if ((size_t)p->offset + p->size > room)
        fail_msg("%s %s: %s is outside the input", r->method, r->pattern, p->name);
    if (nested)
        fail_msg("%s %s: %s cannot be outside a body", r->method, r->pattern, p->name);
    if (p->required && p->where != IN_BODY)
        fail_msg("%s %s: only members of a body can be required", r->method, r->pattern);
    if ((p->kind == PARAM_ENUM || p->kind == PARAM_ENUMS) &&
        (p->word == NULL || p->word_count == 0))
        fail_msg("%s %s: %s has no words", r->method, r->pattern, p->name);
    if (p->kind == PARAM_INT && p->min > p->max)
        fail_msg("%s %s: %s has no value within its bounds", r->method, r->pattern, p->name);
    if (p->kind == PARAM_ARRAY && p->take == NULL)
        fail_msg("%s %s: nothing stores %s", r->method, r->pattern, p->name);
    if ((p->valid == NULL) != (p->must == NULL))
        fail_msg("%s %s: %s needs both `valid` and `must`", r->method, r->pattern, p->name);
}

/* The size of the member that a kind is stored in; 0: any. */
static size_t size_of_kind(const struct param *p)
{
    switch (p->kind) {
    case PARAM_INT:
    case PARAM_TIME:
    case PARAM_POSITION:
    case PARAM_VERSION:
        return sizeof(int64_t);
    case PARAM_UUID:
        return sizeof(struct uuid);
    case PARAM_BOOL:
        return sizeof(bool);
    case PARAM_ENUMS:
        return sizeof(unsigned);
    case PARAM_ENUM:
        return p->word_count == 2 ? sizeof(bool) : sizeof(enum run_status);
    case PARAM_TEXT:
    case PARAM_NAME:
    case PARAM_LABEL:
    case PARAM_CURSOR:
    case PARAM_TAGS:
    case PARAM_JSON:
    case PARAM_OBJECT:
        return sizeof(struct str);
    case PARAM_KEY:
    case PARAM_ARRAY:
        return 0;
    }
    return 0;
}

static void check_params(const struct route *r, const struct param *params, size_t count,
                         size_t input_size)
{
    for (size_t i = 0; i < count; i++) {
        const struct param *p = &params[i];
        check_param(r, p, input_size);
        if (p->size != 0 && p->size != size_of_kind(p))
            fail_msg("%s %s: %s has %u bytes", r->method, r->pattern, p->name, p->size);
        /* Members that `take` reads are in a struct of its own. */
        check_params(r, p->members, p->member_count, p->take == NULL ? input_size : SIZE_MAX);
    }
}

static void every_parameter_fits_its_member(void **state)
{
    (void)state;
    for (const struct route *r = route_next(NULL); r != NULL; r = route_next(r))
        check_params(r, r->params, r->param_count, r->input_size);
}

static void every_variable_part_of_a_path_has_a_parameter(void **state)
{
    (void)state;
    for (const struct route *r = route_next(NULL); r != NULL; r = route_next(r)) {
        size_t parts = 0;
        for (const char *at = r->pattern; (at = strstr(at, "{}")) != NULL; at += 2)
            parts++;
        size_t declared = 0;
        while (declared < r->param_count && r->params[declared].where == IN_PATH)
            declared++;
        if (parts != declared)
            fail_msg("%s %s declares %zu of %zu", r->method, r->pattern, declared, parts);
        for (size_t i = declared; i < r->param_count; i++)
            assert_int_not_equal(r->params[i].where, IN_PATH);
    }
}

static void no_parameter_is_declared_twice(void **state)
{
    (void)state;
    for (const struct route *r = route_next(NULL); r != NULL; r = route_next(r)) {
        assert_true(r->param_count <= 32); /* params_read_query() marks each with a bit */
        for (size_t i = 0; i < r->param_count; i++) {
            for (size_t k = 0; k < i; k++) {
                bool same = r->params[i].where == r->params[k].where &&
                            strcmp(r->params[i].name, r->params[k].name) == 0;
                if (same)
                    fail_msg("%s %s: %s", r->method, r->pattern, r->params[i].name);
            }
        }
    }
}

static void every_route_is_found_by_its_own_path(void **state)
{
    (void)state;
    size_t count = 0;
    for (const struct route *r = route_next(NULL); r != NULL; r = route_next(r)) {
        struct str params[PARAMS_MAX];
        assert_ptr_equal(route_find(str_of(r->method), str_of(r->pattern), false, params), r);
        assert_true((r->use_case != NULL) + (r->direct != NULL) + (r->stream != NULL) > 0);
        count++;
    }
    assert_true(count > 80);
}

static bool may_be_for_all_tenants(const struct route *r)
{
    bool any = r->may == MAY_WORK || (r->flags & (ROUTE_NO_TENANT | ROUTE_ANY_TENANT)) != 0;
    return any && (r->flags & ROUTE_OPEN) == 0;
}

static void every_request_for_all_tenants_has_a_place_or_joins_the_answers_of_all(void **state)
{
    (void)state;
    for (const struct route *r = route_next(NULL); r != NULL; r = route_next(r)) {
        bool one = r->scope == OF_NAMED || r->scope == OF_FIRST || r->scope == OF_NODE;
        bool several = (may_be_for_all_tenants(r) && !one) || r->scope == OF_TENANT_AND_FIRST;
        if (several && r->join == JOIN_NONE)
            fail_msg("%s %s: what do several shards answer?", r->method, r->pattern);
        if (!several && r->join != JOIN_NONE)
            fail_msg("%s %s joins answers, but only one shard is asked", r->method, r->pattern);
        if (r->join == JOIN_FOLD && r->fold == NULL)
            fail_msg("%s %s: nothing folds its answers", r->method, r->pattern);
        if (r->join == JOIN_ORDER && (r->ordered_by == NULL || r->place == NULL))
            fail_msg("%s %s: its list has no order", r->method, r->pattern);
        if (!str_starts_with(str_of(r->pattern), STR("/api/v1/")) && r->scope != OF_NODE)
            fail_msg("%s %s concerns the process", r->method, r->pattern);
    }
}

static void a_path_below_the_console_is_one_part_however_deep(void **state)
{
    (void)state;
    struct str params[PARAMS_MAX];
    assert_non_null(route_find(STR("GET"), STR("/console/"), false, params));
    assert_true(params[0].ptr != NULL && params[0].len == 0 && params[1].ptr == NULL);
    assert_non_null(route_find(STR("HEAD"), STR("/console/runs/a%2Fb/c/"), false, params));
    assert_true(str_is(params[0], "runs/a%2Fb/c/") && params[1].ptr == NULL);
    assert_non_null(route_find(STR("GET"), STR("/console"), false, params));
    assert_true(params[0].ptr == NULL);
    assert_null(route_find(STR("GET"), STR("/consoles/"), false, params));
    assert_null(route_find(STR("GET"), STR("/console/"), true, params));
    assert_null(route_find(STR_NONE, STR("/console/"), false, params));
    assert_null(route_find(STR("POST"), STR("/console/"), false, params));
}

static void variable_parts_are_handed_out_in_order(void **state)
{
    (void)state;
    struct str params[PARAMS_MAX];
    assert_non_null(route_find(STR("GET"), STR("/api/v1/entities/a/b/updates/7"), false, params));
    assert_true(str_is(params[0], "a") && str_is(params[1], "b") && str_is(params[2], "7"));
    assert_non_null(route_find(STR("HEAD"), STR("/api/v1/entities/a"), false, params));
    assert_true(str_is(params[0], "a") && params[1].ptr == NULL && params[2].ptr == NULL);
    assert_null(route_find(STR("GET"), STR("/api/v1/entities//b"), false, params));
    assert_null(route_find(STR("GET"), STR("/api/v1/ent"), false, params));
    assert_null(route_find(STR("GET"), STR("/api/v1/entitiez/a"), false, params));
    assert_null(route_find(STR("GET"), STR(""), false, params));
    assert_null(route_find(STR("GET"), STR("/api/v1/runs"), true, params));
}

static void a_path_says_which_methods_it_has(void **state)
{
    (void)state;
    char allow[ALLOW_MAX];
    route_allow(STR("/api/v1/workflows/w"), false, allow);
    assert_string_equal(allow, "PUT, GET, HEAD, DELETE");
    route_allow(STR("/api/v1/workflows/w"), true, allow);
    assert_string_equal(allow, "");
    route_allow(STR("/nothing"), false, allow);
    assert_string_equal(allow, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_parameter_fits_its_member),
        cmocka_unit_test(every_variable_part_of_a_path_has_a_parameter),
        cmocka_unit_test(no_parameter_is_declared_twice),
        cmocka_unit_test(every_route_is_found_by_its_own_path),
        cmocka_unit_test(every_request_for_all_tenants_has_a_place_or_joins_the_answers_of_all),
        cmocka_unit_test(a_path_below_the_console_is_one_part_however_deep),
        cmocka_unit_test(variable_parts_are_handed_out_in_order),
        cmocka_unit_test(a_path_says_which_methods_it_has),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
