/* What went wrong with one request: its members with texts. */
#include "base/support.h"

#include "base/json_tree.h"
#include "base/problem.h"

/* The members as an object; the caller owns it. */
static json_t *texts_of(const struct problem *p)
{
    char text[PROBLEM_TEXTS_MAX + 3];
    (void)snprintf(text, sizeof(text), "{%.*s}", (int)p->texts.len,
                   p->texts.len > 0 ? p->texts.ptr : "");
    json_t *object = json_loads(text, 0, NULL);
    assert_non_null(object);
    return object;
}

static void texts_are_members_of_their_own(void **state)
{
    (void)state;
    struct problem p;
    problem_init(&p);
    assert_int_equal(p.texts.len, 0);
    problem_add_text(&p, "by", STR("a \"b\"\n"));
    problem_add_text(&p, "what", STR(""));
    json_t *object = texts_of(&p);
    assert_int_equal(json_object_size(object), 2);
    assert_string_equal(json_string_value(json_object_get(object, "by")), "a \"b\"\n");
    assert_string_equal(json_string_value(json_object_get(object, "what")), "");
    json_decref(object);
    problem_clear(&p);
    assert_int_equal(p.texts.len, 0);
    problem_release(&p);
}

static void a_text_without_room_is_left_out_and_the_others_stay(void **state)
{
    (void)state;
    static char large[PROBLEM_TEXTS_MAX];
    memset(large, 'x', sizeof(large));
    struct problem p;
    problem_init(&p);
    problem_add_text(&p, "large", (struct str){large, sizeof(large)});
    problem_add_text(&p, "half", (struct str){large, sizeof(large) / 2});
    problem_add_text(&p, "too", (struct str){large, sizeof(large) / 2});
    problem_add_text(&p, "small", STR("s"));
    assert_true(buf_ok(&p.texts));
    json_t *object = texts_of(&p);
    assert_int_equal(json_object_size(object), 2);
    assert_non_null(json_object_get(object, "half"));
    assert_non_null(json_object_get(object, "small"));
    json_decref(object);
    problem_release(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_members_of_their_own),
        cmocka_unit_test(a_text_without_room_is_left_out_and_the_others_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
