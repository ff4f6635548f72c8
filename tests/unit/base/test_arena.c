/* The arena: zeroed, aligned, bounded, and whole again after clear. */
#include "support.h"

#include "base/arena.h"
#include "base/limits.h"

enum { ALIGN = 16 };

static bool is_zero(const unsigned char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (bytes[i] != 0)
            return false;
    }
    return true;
}

static void pieces_are_zeroed_aligned_and_apart(void **state)
{
    (void)state;
    enum { COUNT = 2000 };
    struct arena a;
    arena_init(&a, 1 << 20);
    struct rng rng = {7};
    static unsigned char *pieces[COUNT];
    static size_t sizes[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        sizes[i] = 1 + rng_below(&rng, 400);
        pieces[i] = arena_alloc(&a, sizes[i]);
        assert_non_null(pieces[i]);
        assert_int_equal((uintptr_t)pieces[i] % ALIGN, 0);
        assert_true(is_zero(pieces[i], sizes[i]));
        memset(pieces[i], (int)(i % 251) + 1, sizes[i]);
    }
    for (size_t i = 0; i < COUNT; i++) {
        for (size_t k = 0; k < sizes[i]; k++)
            assert_int_equal(pieces[i][k], i % 251 + 1);
    }
    arena_release(&a);
}

static void one_piece_may_take_the_whole_limit(void **state)
{
    (void)state;
    static const size_t LIMITS[] = {ALIGN, 4096, 4096 + ALIGN, 65536};
    for (size_t i = 0; i < ARRAY_LEN(LIMITS); i++) {
        struct arena a;
        arena_init(&a, LIMITS[i]);
        unsigned char *all = arena_alloc(&a, LIMITS[i]);
        assert_non_null(all);
        memset(all, 1, LIMITS[i]);
        assert_null(arena_alloc(&a, 1));
        arena_release(&a);
    }
}

static void one_byte_past_the_limit_is_refused(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a, 4096);
    assert_null(arena_alloc(&a, 4097));
    assert_null(arena_alloc(&a, SIZE_MAX));
    assert_null(arena_alloc(&a, SIZE_MAX - ALIGN + 2));
    assert_int_equal(a.used, 0);
    assert_non_null(arena_alloc(&a, 4096));
    arena_release(&a);
}

static void small_pieces_together_stop_at_the_limit(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a, 100 * ALIGN);
    for (int i = 0; i < 100; i++)
        assert_non_null(arena_alloc(&a, ALIGN));
    assert_null(arena_alloc(&a, 1));
    assert_null(arena_alloc(&a, ALIGN));
    arena_release(&a);
}

static void a_refusal_leaves_the_rest_usable(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a, 4096);
    unsigned char *first = arena_alloc(&a, 4000);
    assert_non_null(first);
    memset(first, 7, 4000);
    assert_null(arena_alloc(&a, 200));
    unsigned char *second = arena_alloc(&a, 90);
    assert_non_null(second);
    memset(second, 8, 90);
    assert_int_equal(first[3999], 7);
    arena_release(&a);
}

static void a_limit_without_bound_does_not_wrap(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a, SIZE_MAX);
    assert_null(arena_alloc(&a, SIZE_MAX));
    assert_null(arena_alloc(&a, SIZE_MAX - 8));
    assert_non_null(arena_alloc(&a, 8));
    arena_release(&a);
}

static void clearing_gives_back_the_whole_limit(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a, 20 * 4096);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 20; i++) {
            unsigned char *piece = arena_alloc(&a, 4096);
            assert_non_null(piece);
            assert_true(is_zero(piece, 4096));
            memset(piece, 0xAB, 4096);
        }
        assert_null(arena_alloc(&a, 1));
        arena_clear(&a);
        assert_int_equal(a.used, 0);
    }
    arena_release(&a);
}

static void clearing_keeps_the_first_block_for_the_next_request(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a, 1 << 20);
    unsigned char *before = arena_alloc(&a, 100);
    assert_non_null(before);
    memset(before, 0xFF, 100);
    for (int i = 0; i < 50; i++)
        assert_non_null(arena_alloc(&a, 5000));
    arena_clear(&a);
    unsigned char *after = arena_alloc(&a, 100);
    assert_ptr_equal(after, before);
    assert_true(is_zero(after, 100));
    arena_release(&a);
}

static void clearing_and_releasing_an_unused_arena_is_harmless(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a, 64);
    arena_clear(&a);
    assert_non_null(arena_alloc(&a, 64));
    arena_release(&a);
    arena_release(&a);
    arena_clear(&a);
    assert_int_equal(a.used, 0);
    assert_null(a.blocks);
}

static void what_was_taken_behind_a_mark_can_be_given_back_alone(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a, 64 * KIB);
    char *before = arena_alloc(&a, 100);
    memset(before, 'b', 100);
    struct arena_mark outer = arena_mark(&a);
    assert_non_null(arena_alloc(&a, 50));
    struct arena_mark inner = arena_mark(&a);
    for (int round = 0; round < 1000; round++) { /* far more than the limit, all together */
        assert_non_null(arena_alloc(&a, 20 * KIB));
        assert_non_null(arena_alloc(&a, 20 * KIB));
        arena_back_to(&a, inner);
    }
    arena_back_to(&a, outer);
    const unsigned char *after = arena_alloc(&a, 50);
    assert_true(is_zero(after, 50));
    for (int i = 0; i < 100; i++)
        assert_int_equal(before[i], 'b');
    arena_release(&a);
}

static void a_mark_in_an_empty_arena_leads_back_to_an_empty_one(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a, 16 * KIB);
    struct arena_mark mark = arena_mark(&a);
    assert_non_null(arena_alloc(&a, 16 * KIB));
    arena_back_to(&a, mark);
    assert_int_equal(a.used, 0);
    assert_non_null(arena_alloc(&a, 16 * KIB));
    arena_release(&a);
}

static void a_refusal_at_the_limit_is_remembered_until_there_is_room(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a, KIB);
    struct arena_mark mark = arena_mark(&a);
    assert_non_null(arena_alloc(&a, KIB));
    assert_false(a.refused);
    assert_null(arena_alloc(&a, 1));
    assert_true(a.refused);
    arena_back_to(&a, mark);
    assert_false(a.refused);
    arena_release(&a);
}

static void a_released_arena_may_be_used_again(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a, 64);
    assert_non_null(arena_alloc(&a, 64));
    arena_release(&a);
    assert_non_null(arena_alloc(&a, 64));
    assert_null(arena_alloc(&a, 1));
    arena_release(&a);
}

static void nothing_asked_still_gives_a_pointer(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a, 16);
    assert_non_null(arena_alloc(&a, 0));
    assert_non_null(arena_alloc(&a, 16));
    assert_non_null(arena_alloc(&a, 0));
    arena_release(&a);
}

static void copied_text_is_terminated_and_its_own(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a, 4096);
    char original[] = {'a', '\0', 'b', 'x'};
    struct str copy = arena_str(&a, (struct str){original, 3});
    memset(original, '?', sizeof(original));
    assert_int_equal(copy.len, 3);
    assert_memory_equal(copy.ptr, "a\0b", 4);
    arena_release(&a);
}

static void a_copy_of_nothing_is_empty_text(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a, 4096);
    struct str copy = arena_str(&a, STR_NONE);
    assert_non_null(copy.ptr);
    assert_int_equal(copy.len, 0);
    assert_int_equal(copy.ptr[0], '\0');
    arena_release(&a);
}

/* The closing NUL counts: fifteen bytes fit into sixteen, sixteen do not. */
static void a_copy_past_the_limit_has_no_pointer(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a, 16);
    assert_null(arena_str(&a, STR("0123456789abcdef")).ptr);
    assert_str(arena_str(&a, STR("0123456789abcde")), "0123456789abcde");
    assert_null(arena_str(&a, STR("")).ptr);
    arena_release(&a);
}

static void running_out_of_memory_gives_nothing_and_costs_nothing(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a, SIZE_MAX);
    void *before = arena_alloc(&a, 16);
    assert_non_null(before);
    size_t used = a.used;
    assert_null(arena_alloc(&a, PTRDIFF_MAX));
    assert_int_equal(a.used, used);
    assert_non_null(arena_alloc(&a, 16));
    arena_release(&a);
}

static void kept_text_is_a_copy(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a, 4096);
    char original[] = "abc";
    struct str text = {original, 3};
    assert_true(arena_keep(&a, &text));
    memset(original, '?', sizeof(original));
    assert_str(text, "abc");
    assert_int_equal(text.ptr[3], '\0');
    arena_release(&a);
}

static void keeping_no_text_keeps_none(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a, 0);
    struct str none = STR_NONE;
    assert_true(arena_keep(&a, &none));
    assert_null(none.ptr);
    struct str empty = STR("");
    assert_false(arena_keep(&a, &empty));
    arena_release(&a);
}

static void keeping_fails_past_the_limit(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a, 16);
    struct str text = STR("0123456789abcdef");
    assert_false(arena_keep(&a, &text));
    text = STR("0123456789abcde");
    assert_true(arena_keep(&a, &text));
    assert_str(text, "0123456789abcde");
    arena_release(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_zeroed_aligned_and_apart),
        cmocka_unit_test(one_piece_may_take_the_whole_limit),
        cmocka_unit_test(one_byte_past_the_limit_is_refused),
        cmocka_unit_test(small_pieces_together_stop_at_the_limit),
        cmocka_unit_test(a_refusal_leaves_the_rest_usable),
        cmocka_unit_test(a_limit_without_bound_does_not_wrap),
        cmocka_unit_test(clearing_gives_back_the_whole_limit),
        cmocka_unit_test(clearing_keeps_the_first_block_for_the_next_request),
        cmocka_unit_test(clearing_and_releasing_an_unused_arena_is_harmless),
        cmocka_unit_test(what_was_taken_behind_a_mark_can_be_given_back_alone),
        cmocka_unit_test(a_mark_in_an_empty_arena_leads_back_to_an_empty_one),
        cmocka_unit_test(a_refusal_at_the_limit_is_remembered_until_there_is_room),
        cmocka_unit_test(a_released_arena_may_be_used_again),
        cmocka_unit_test(nothing_asked_still_gives_a_pointer),
        cmocka_unit_test(copied_text_is_terminated_and_its_own),
        cmocka_unit_test(a_copy_of_nothing_is_empty_text),
        cmocka_unit_test(a_copy_past_the_limit_has_no_pointer),
        cmocka_unit_test(running_out_of_memory_gives_nothing_and_costs_nothing),
        cmocka_unit_test(kept_text_is_a_copy),
        cmocka_unit_test(keeping_no_text_keeps_none),
        cmocka_unit_test(keeping_fails_past_the_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
