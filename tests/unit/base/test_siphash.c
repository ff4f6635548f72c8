/* SipHash against the vectors of its authors: the text is 0, 1, 2 … and the key 0 to 15. */
#include "support.h"

#include "base/siphash.h"

static struct siphash_key reference_key(void)
{
    unsigned char bytes[SIPHASH_KEY_LEN];
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (unsigned char)i;
    return siphash_key_of(bytes);
}

static struct str counting(char *out, size_t len)
{
    for (size_t i = 0; i < len; i++)
        out[i] = (char)i;
    return (struct str){out, len};
}

static void the_vectors_of_the_reference_come_out(void **state)
{
    static const uint64_t EXPECTED[] = {
        0x726fdb47dd0e0e31u, 0x74f839c593dc67fdu, 0x0d6c8009d9a94f5au, 0x85676696d7fb7e2du,
        0xcf2794e0277187b7u, 0x18765564cd99a68du, 0xcbc9466e58fee3ceu, 0xab0200f58b01d137u,
        0x93f5f5799a932462u, 0x9e0082df0ba9e4b0u, 0x7a5dbbc594ddb9f3u, 0xf4b32f46226bada7u,
        0x751e8fbc860ee5fbu, 0x14ea5627c0843d90u, 0xf723ca908e7af2eeu, 0xa129ca6149be45e5u,
    };
    char text[ARRAY_LEN(EXPECTED)];
    (void)state;
    for (size_t len = 0; len < ARRAY_LEN(EXPECTED); len++)
        assert_true(siphash(reference_key(), counting(text, len)) == EXPECTED[len]);
}

static void a_number_counts_as_its_eight_bytes_before_the_text(void **state)
{
    char text[64];
    (void)state;
    for (size_t len = 8; len < sizeof(text); len++) {
        struct str whole = counting(text, len);
        struct str rest = {whole.ptr + 8, len - 8};
        assert_true(siphash_numbered(reference_key(), 0x0706050403020100u, rest) ==
                    siphash(reference_key(), whole));
    }
}

/* The texts of 8 to 15 bytes, of which the first eight are the number. */
static void the_fast_hash_is_siphash_1_3(void **state)
{
    static const uint64_t EXPECTED[] = {
        0x369095118d299a8eu, 0x25a48eb36c063de4u, 0x79de85ee92ff097fu, 0x70c118c1f94dc352u,
        0x78a384b157b4d9a2u, 0x306f760c1229ffa7u, 0x605aa111c0f95d34u, 0xd320d86d2a519956u,
    };
    char text[8 + ARRAY_LEN(EXPECTED)];
    (void)state;
    for (size_t len = 0; len < ARRAY_LEN(EXPECTED); len++) {
        struct str rest = {counting(text, 8 + len).ptr + 8, len};
        assert_true(siphash_fast(reference_key(), 0x0706050403020100u, rest) == EXPECTED[len]);
    }
}

static void another_key_gives_another_hash(void **state)
{
    struct siphash_key key = reference_key();
    uint64_t hash = siphash(key, STR("text"));
    (void)state;
    key.k1 ^= 1;
    assert_true(siphash(key, STR("text")) != hash);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_vectors_of_the_reference_come_out),
        cmocka_unit_test(the_fast_hash_is_siphash_1_3),
        cmocka_unit_test(a_number_counts_as_its_eight_bytes_before_the_text),
        cmocka_unit_test(another_key_gives_another_hash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
