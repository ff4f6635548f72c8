/* SHA-256 of text and of lists of parts. */
#include "support.h"

#include "base/crypto.h"

#include <pthread.h>

#define assert_hash(hash, wanted)                             \
    do {                                                      \
        struct sha256 hash_ = (hash);                         \
        struct buf hex_;                                      \
        buf_init(&hex_, 64);                                  \
        buf_put_hex(&hex_, hash_.bytes, sizeof(hash_.bytes)); \
        assert_str(buf_str(&hex_), (wanted));                 \
        buf_release(&hex_);                                   \
    } while (0)

/* FIPS 180-4's examples. */
static void known_texts_have_their_known_hashes(void **state)
{
    (void)state;
    assert_hash(sha256_of(STR("")),
                "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_hash(sha256_of(STR_NONE),
                "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_hash(sha256_of(STR("abc")),
                "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_hash(sha256_of(STR("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
                "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    static char million[1000000];
    memset(million, 'a', sizeof(million));
    assert_hash(sha256_of((struct str){million, sizeof(million)}),
                "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/* The lengths go in as eight bytes, lowest first. Kept hashes depend on it. */
static void parts_are_hashed_with_their_lengths(void **state)
{
    (void)state;
    const struct str parts[] = {STR("ab"), STR_NONE, STR("c")};
    static const char BYTES[] = "\2\0\0\0\0\0\0\0ab\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0c";
    struct sha256 whole = sha256_of((struct str){BYTES, sizeof(BYTES) - 1});
    struct sha256 of_parts = sha256_of_parts(parts, ARRAY_LEN(parts));
    assert_memory_equal(whole.bytes, of_parts.bytes, SHA256_LEN);
}

static void no_two_lists_of_parts_share_a_hash(void **state)
{
    (void)state;
    static const struct {
        struct str parts[3];
        size_t count;
    } LISTS[] = {
        {{{"abc", 3}}, 1},
        {{{"ab", 2}, {"c", 1}}, 2},
        {{{"a", 1}, {"bc", 2}}, 2},
        {{{"a", 1}, {"b", 1}, {"c", 1}}, 3},
        {{{"abc", 3}, {"", 0}}, 2},
        {{{"", 0}, {"abc", 3}}, 2},
        {{{"", 0}}, 1},
        {{{"", 0}, {"", 0}}, 2},
        {{{NULL, 0}}, 0},
        /* What the length of "a" looks like, spelled out as a part. */
        {{{"\1\0\0\0\0\0\0\0a", 9}}, 1},
    };
    for (size_t i = 0; i < ARRAY_LEN(LISTS); i++) {
        struct sha256 a = sha256_of_parts(LISTS[i].parts, LISTS[i].count);
        for (size_t k = 0; k < i; k++) {
            struct sha256 b = sha256_of_parts(LISTS[k].parts, LISTS[k].count);
            if (sha256_eq(&a, &b))
                fail_msg("lists %zu and %zu", i, k);
        }
    }
}

static void no_parts_hash_as_empty_text(void **state)
{
    (void)state;
    assert_hash(sha256_of_parts(NULL, 0),
                "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

static void hashes_that_differ_in_one_bit_are_not_equal(void **state)
{
    (void)state;
    struct sha256 a = sha256_of(STR("a"));
    struct sha256 same = sha256_of(STR("a"));
    assert_true(sha256_eq(&a, &same));
    for (size_t bit = 0; bit < SHA256_LEN * 8; bit++) {
        struct sha256 b = a;
        b.bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        assert_false(sha256_eq(&a, &b));
    }
}

/* RFC 4231: keys shorter and longer than a block, as one piece and in pieces. */
static void known_messages_have_their_known_codes(void **state)
{
    (void)state;
    char aa[131];
    memset(aa, '\xAA', sizeof(aa));
    const struct {
        struct str key;
        struct str message;
        const char *code;
    } known[] = {
        {STR("\x0B\x0B\x0B\x0B\x0B\x0B\x0B\x0B\x0B\x0B\x0B\x0B\x0B\x0B\x0B\x0B\x0B\x0B\x0B\x0B"),
         STR("Hi There"), "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
        {STR("Jefe"), STR("what do ya want for nothing?"),
         "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
        {{aa, sizeof(aa)},
         STR("Test Using Larger Than Block-Size Key - Hash Key First"),
         "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
    };
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        struct str message = known[i].message;
        struct str pieces[] = {{message.ptr, 3}, STR(""), {message.ptr + 3, message.len - 3}};
        assert_hash(hmac_sha256(known[i].key, &message, 1), known[i].code);
        assert_hash(hmac_sha256(known[i].key, pieces, ARRAY_LEN(pieces)), known[i].code);
    }
}

/* A message of any length beside the ends of blocks, against the definition. */
static void a_prepared_key_signs_as_the_key_does(void **state)
{
    (void)state;
    enum { BLOCK = 64, LONGEST = 3 * BLOCK };
    char message[LONGEST];
    memset(message, 'm', sizeof(message));
    char padded[BLOCK + LONGEST];
    for (size_t key_len = 0; key_len <= BLOCK; key_len += 16) {
        char key[BLOCK] = {0};
        memset(key, 'k', key_len);
        struct hmac_key prepared = hmac_key_of((struct str){key, key_len});
        for (size_t len = 0; len <= LONGEST; len++) {
            for (size_t i = 0; i < BLOCK; i++)
                padded[i] = (char)(key[i] ^ 0x36);
            memcpy(padded + BLOCK, message, len);
            struct sha256 inner = sha256_of((struct str){padded, BLOCK + len});
            for (size_t i = 0; i < BLOCK; i++)
                padded[i] = (char)(key[i] ^ 0x5C);
            memcpy(padded + BLOCK, inner.bytes, SHA256_LEN);
            struct sha256 defined = sha256_of((struct str){padded, BLOCK + SHA256_LEN});
            struct str parts[] = {{message, len / 2}, {message, len - len / 2}};
            struct sha256 signed_once = hmac_key_sign(&prepared, parts, ARRAY_LEN(parts));
            struct sha256 signed_again = hmac_key_sign(&prepared, parts, ARRAY_LEN(parts));
            assert_true(sha256_eq(&signed_once, &defined));
            assert_true(sha256_eq(&signed_again, &defined));
        }
    }
}

static void *hash_many(void *arg)
{
    bool *wrong = arg;
    const struct sha256 wanted = {{0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea, 0x41, 0x41, 0x40,
                                   0xde, 0x5d, 0xae, 0x22, 0x23, 0xb0, 0x03, 0x61, 0xa3, 0x96, 0x17,
                                   0x7a, 0x9c, 0xb4, 0x10, 0xff, 0x61, 0xf2, 0x00, 0x15, 0xad}};
    for (int i = 0; i < 5000; i++) {
        struct sha256 hash = sha256_of(STR("abc"));
        if (!sha256_eq(&hash, &wanted))
            *wrong = true;
    }
    return NULL;
}

static void threads_do_not_disturb_each_other(void **state)
{
    (void)state;
    pthread_t threads[4];
    bool wrong[4] = {false};
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, hash_many, &wrong[i]), 0);
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        assert_false(wrong[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_texts_have_their_known_hashes),
        cmocka_unit_test(parts_are_hashed_with_their_lengths),
        cmocka_unit_test(no_two_lists_of_parts_share_a_hash),
        cmocka_unit_test(no_parts_hash_as_empty_text),
        cmocka_unit_test(hashes_that_differ_in_one_bit_are_not_equal),
        cmocka_unit_test(known_messages_have_their_known_codes),
        cmocka_unit_test(a_prepared_key_signs_as_the_key_does),
        cmocka_unit_test(threads_do_not_disturb_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
