/* The hash map: finding, growth, order, eviction, removal on a walk, no memory, and a random test
 * against a plain array. */
#include "support.h"

#include "base/hash_map.h"

#include <stdlib.h>

struct item {
    struct hash_entry entry;
    int64_t number;
    bool in_map;
};

static struct item *item_of(struct hash_entry *e)
{
    return CONTAINER_OF(e, struct item, entry);
}

static bool out_of_memory;
void *__real_calloc(size_t count, size_t size); /* NOLINT */
void *__wrap_calloc(size_t count, size_t size); /* NOLINT */

void *__wrap_calloc(size_t count, size_t size) /* NOLINT */
{
    return out_of_memory ? NULL : __real_calloc(count, size);
}

static void add(struct hash_map *m, struct item *item, int64_t number)
{
    item->number = number;
    hash_map_add(m, &item->entry, hash_number(m, number));
}

static struct item *find(const struct hash_map *m, int64_t number)
{
    struct hash_entry *e = hash_map_find(m, hash_number(m, number));
    while (e != NULL && item_of(e)->number != number)
        e = hash_map_find_next(e);
    return e != NULL ? item_of(e) : NULL;
}

static void an_empty_map_finds_nothing(void **state)
{
    (void)state;
    struct hash_map m = {0};
    assert_null(find(&m, 1));
    hash_map_clear(&m);
    hash_map_release(&m);
    assert_null(find(&m, 1));
}

enum { MANY = 10 * 1000 };

static void all_entries_are_found_while_the_map_grows(void **state)
{
    (void)state;
    struct hash_map m = {0};
    static struct item items[MANY];
    for (int64_t i = 0; i < MANY; i++) {
        add(&m, &items[i], i * 4096);
        assert_ptr_equal(find(&m, i / 2 * 4096), &items[i / 2]);
    }
    assert_int_equal(m.count, MANY);
    assert_in_range(m.bucket_count, MANY / 2, 4 * MANY);
    for (int64_t i = 0; i < MANY; i++)
        assert_ptr_equal(find(&m, i * 4096), &items[i]);
    assert_null(find(&m, 1));
    hash_map_release(&m);
}

static void entries_with_the_same_hash_are_told_apart_by_their_keys(void **state)
{
    (void)state;
    struct hash_map m = {0};
    struct item items[3] = {{.number = 1}, {.number = 2}, {.number = 3}};
    for (size_t i = 0; i < ARRAY_LEN(items); i++)
        hash_map_add(&m, &items[i].entry, 7);
    size_t seen = 0;
    for (struct hash_entry *e = hash_map_find(&m, 7); e != NULL; e = hash_map_find_next(e))
        seen |= (size_t)1 << item_of(e)->number;
    assert_int_equal(seen, 2 | 4 | 8);
    hash_map_remove(&m, &items[1].entry);
    assert_ptr_equal(hash_map_find(&m, 7), &items[2].entry);
    assert_ptr_equal(hash_map_find_next(&items[2].entry), &items[0].entry);
    assert_null(hash_map_find(&m, 8));
    hash_map_release(&m);
}

static void a_walk_goes_from_the_oldest_to_the_newest_wherever_the_map_is(void **state)
{
    (void)state;
    struct hash_map maps[3] = {{0}};
    for (size_t n = 0; n < ARRAY_LEN(maps); n++) {
        struct hash_map *m = &maps[n];
        struct item items[100];
        for (int64_t i = 0; i < 100; i++)
            add(m, &items[i], i);
        hash_map_touch(m, &items[0].entry);
        hash_map_touch(m, &items[0].entry);
        int64_t expected = 1;
        HASH_MAP_WALK (m, e) {
            assert_int_equal(item_of(e)->number, expected % 100);
            expected++;
        }
        assert_int_equal(expected, 101);
        hash_map_release(m);
    }
}

static void entries_may_be_removed_during_a_walk(void **state)
{
    (void)state;
    struct hash_map m = {0};
    struct item items[100];
    for (int64_t i = 0; i < 100; i++)
        add(&m, &items[i], i);
    HASH_MAP_WALK (&m, e) {
        if (item_of(e)->number % 3 != 0)
            hash_map_remove(&m, e);
    }
    assert_int_equal(m.count, 34);
    for (int64_t i = 0; i < 100; i++)
        assert_int_equal(find(&m, i) != NULL, i % 3 == 0);
    HASH_MAP_WALK (&m, e)
        hash_map_remove(&m, e);
    assert_int_equal(m.count, 0);
    assert_null(m.oldest);
    assert_null(m.newest);
    hash_map_release(&m);
}

static void a_full_map_evicts_what_was_not_used_for_longest(void **state)
{
    (void)state;
    enum { MAX_COUNT = 4 };
    struct hash_map m = {0};
    struct item items[MAX_COUNT];
    for (int64_t i = 0; i < MAX_COUNT; i++)
        add(&m, &items[i], i);
    hash_map_touch(&m, &items[0].entry);
    struct item *evicted = item_of(m.oldest);
    assert_int_equal(evicted->number, 1);
    hash_map_remove(&m, &evicted->entry);
    add(&m, evicted, 99);
    assert_int_equal(m.count, MAX_COUNT);
    assert_null(find(&m, 1));
    assert_non_null(find(&m, 0));
    assert_non_null(find(&m, 99));
    hash_map_release(&m);
}

static void without_memory_the_map_goes_on_with_the_buckets_it_has(void **state)
{
    (void)state;
    struct hash_map m = {0};
    static struct item items[1000];
    out_of_memory = true;
    for (int64_t i = 0; i < 500; i++)
        add(&m, &items[i], i);
    assert_null(m.buckets);
    out_of_memory = false;
    for (int64_t i = 500; i < 1000; i++)
        add(&m, &items[i], i);
    assert_non_null(m.buckets);
    for (int64_t i = 0; i < 1000; i++)
        assert_ptr_equal(find(&m, i), &items[i]);
    hash_map_release(&m);
}

static void a_cleared_map_is_empty_and_keeps_its_memory(void **state)
{
    (void)state;
    struct hash_map m = {0};
    static struct item items[100];
    for (int64_t i = 0; i < 100; i++)
        add(&m, &items[i], i);
    size_t buckets = m.bucket_count;
    hash_map_clear(&m);
    assert_int_equal(m.count, 0);
    assert_null(find(&m, 7));
    assert_int_equal(m.bucket_count, buckets);
    add(&m, &items[7], 7);
    assert_ptr_equal(find(&m, 7), &items[7]);
    hash_map_release(&m);
}

/* What the map must say: which numbers are there, and in which order they were added or touched. */
struct model {
    int64_t order[200];
    size_t count;
};

static void model_drop(struct model *model, int64_t number)
{
    size_t kept = 0;
    for (size_t i = 0; i < model->count; i++) {
        if (model->order[i] != number)
            model->order[kept++] = model->order[i];
    }
    model->count = kept;
}

static void assert_same(const struct hash_map *m, const struct model *model)
{
    assert_int_equal(m->count, model->count);
    size_t i = 0;
    HASH_MAP_WALK (m, e)
        assert_int_equal(item_of(e)->number, model->order[i++]);
    assert_int_equal(i, model->count);
    const struct hash_entry *before = m->newest;
    while (i > 0 && before != NULL) {
        assert_int_equal(((const struct item *)(const void *)before)->number, model->order[--i]);
        before = before->older;
    }
    assert_int_equal(i, 0);
}

static void random_changes_agree_with_a_plain_array(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct rng rng = {seed};
        struct hash_map m = {0};
        static struct item items[200];
        struct model model = {.count = 0};
        memset(items, 0, sizeof(items));
        for (size_t step = 0; step < 3000; step++) {
            int64_t number = (int64_t)rng_below(&rng, ARRAY_LEN(items));
            struct item *item = &items[number];
            assert_ptr_equal(find(&m, number), item->in_map ? item : NULL);
            model_drop(&model, number);
            out_of_memory = rng_below(&rng, 4) == 0;
            if (!item->in_map)
                add(&m, item, number);
            else if (rng_below(&rng, 2) == 0)
                hash_map_touch(&m, &item->entry);
            else
                hash_map_remove(&m, &item->entry);
            out_of_memory = false;
            item->in_map = find(&m, number) != NULL;
            if (item->in_map)
                model.order[model.count++] = number;
            if (step % 50 == 0)
                assert_same(&m, &model);
        }
        assert_same(&m, &model);
        hash_map_release(&m);
    }
}

static void texts_that_differ_hash_apart(void **state)
{
    (void)state;
    struct hash_map m = {0};
    struct hash_map other = {0};
    char text[40];
    uint64_t seen[400];
    size_t count = 0;
    memset(text, 'x', sizeof(text));
    for (size_t len = 0; len <= sizeof(text); len++)
        seen[count++] = hash_text(&m, (struct str){text, len});
    for (size_t i = 0; i < sizeof(text); i++) {
        text[i] ^= 1;
        seen[count++] = hash_text(&m, (struct str){text, sizeof(text)});
        seen[count++] = hash_text(&other, (struct str){text, sizeof(text)});
        text[i] ^= 1;
    }
    for (size_t i = 0; i < count; i++) {
        for (size_t j = i + 1; j < count; j++)
            assert_int_not_equal(seen[i], seen[j]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_map_finds_nothing),
        cmocka_unit_test(all_entries_are_found_while_the_map_grows),
        cmocka_unit_test(entries_with_the_same_hash_are_told_apart_by_their_keys),
        cmocka_unit_test(a_walk_goes_from_the_oldest_to_the_newest_wherever_the_map_is),
        cmocka_unit_test(entries_may_be_removed_during_a_walk),
        cmocka_unit_test(a_full_map_evicts_what_was_not_used_for_longest),
        cmocka_unit_test(without_memory_the_map_goes_on_with_the_buckets_it_has),
        cmocka_unit_test(a_cleared_map_is_empty_and_keeps_its_memory),
        cmocka_unit_test(random_changes_agree_with_a_plain_array),
        cmocka_unit_test(texts_that_differ_hash_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
