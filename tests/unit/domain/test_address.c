/* Which addresses are public, and which only look so. */
#include "base/support.h"

#include "domain/address.h"

#include <arpa/inet.h>

static enum address_kind kind_of(const char *text)
{
    unsigned char bytes[16];
    if (inet_pton(AF_INET, text, bytes) == 1)
        return address_kind_v4(bytes);
    if (inet_pton(AF_INET6, text, bytes) == 1)
        return address_kind_v6(bytes);
    fail_msg("%s is no address", text);
    return ADDRESS_KIND_COUNT;
}

struct example {
    const char *address;
    enum address_kind kind;
};

static void check(const struct example *examples, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        enum address_kind kind = kind_of(examples[i].address);
        if (kind != examples[i].kind)
            fail_msg("%s is %s, wanted %s", examples[i].address, address_kind_name(kind),
                     address_kind_name(examples[i].kind));
    }
}

/* The first and the last address of every block, and their neighbours outside. */
static void blocks_of_ipv4_begin_and_end_where_the_registry_says(void **state)
{
    (void)state;
    static const struct example EXAMPLES[] = {
        {"0.0.0.0", ADDRESS_UNSPECIFIED},
        {"0.255.255.255", ADDRESS_UNSPECIFIED},
        {"1.0.0.0", ADDRESS_PUBLIC},
        {"9.255.255.255", ADDRESS_PUBLIC},
        {"10.0.0.0", ADDRESS_PRIVATE},
        {"10.255.255.255", ADDRESS_PRIVATE},
        {"11.0.0.0", ADDRESS_PUBLIC},
        {"100.63.255.255", ADDRESS_PUBLIC},
        {"100.64.0.0", ADDRESS_SHARED},
        {"100.127.255.255", ADDRESS_SHARED},
        {"100.128.0.0", ADDRESS_PUBLIC},
        {"126.255.255.255", ADDRESS_PUBLIC},
        {"127.0.0.0", ADDRESS_LOOPBACK},
        {"127.0.0.1", ADDRESS_LOOPBACK},
        {"127.255.255.255", ADDRESS_LOOPBACK},
        {"128.0.0.0", ADDRESS_PUBLIC},
        {"169.253.255.255", ADDRESS_PUBLIC},
        {"169.254.0.0", ADDRESS_LINK_LOCAL},
        {"169.254.169.254", ADDRESS_LINK_LOCAL},
        {"169.254.255.255", ADDRESS_LINK_LOCAL},
        {"169.255.0.0", ADDRESS_PUBLIC},
        {"172.15.255.255", ADDRESS_PUBLIC},
        {"172.16.0.0", ADDRESS_PRIVATE},
        {"172.31.255.255", ADDRESS_PRIVATE},
        {"172.32.0.0", ADDRESS_PUBLIC},
        {"191.255.255.255", ADDRESS_PUBLIC},
        {"192.0.0.0", ADDRESS_RESERVED},
        {"192.0.0.255", ADDRESS_RESERVED},
        {"192.0.1.0", ADDRESS_PUBLIC},
        {"192.0.2.0", ADDRESS_RESERVED},
        {"192.0.2.255", ADDRESS_RESERVED},
        {"192.0.3.0", ADDRESS_PUBLIC},
        {"192.88.98.255", ADDRESS_PUBLIC},
        {"192.88.99.0", ADDRESS_RESERVED},
        {"192.88.100.0", ADDRESS_PUBLIC},
        {"192.167.255.255", ADDRESS_PUBLIC},
        {"192.168.0.0", ADDRESS_PRIVATE},
        {"192.168.255.255", ADDRESS_PRIVATE},
        {"192.169.0.0", ADDRESS_PUBLIC},
        {"198.17.255.255", ADDRESS_PUBLIC},
        {"198.18.0.0", ADDRESS_RESERVED},
        {"198.19.255.255", ADDRESS_RESERVED},
        {"198.20.0.0", ADDRESS_PUBLIC},
        {"198.51.99.255", ADDRESS_PUBLIC},
        {"198.51.100.0", ADDRESS_RESERVED},
        {"198.51.101.0", ADDRESS_PUBLIC},
        {"203.0.112.255", ADDRESS_PUBLIC},
        {"203.0.113.0", ADDRESS_RESERVED},
        {"203.0.114.0", ADDRESS_PUBLIC},
        {"223.255.255.255", ADDRESS_PUBLIC},
        {"224.0.0.0", ADDRESS_MULTICAST},
        {"239.255.255.255", ADDRESS_MULTICAST},
        {"240.0.0.0", ADDRESS_RESERVED},
        {"255.255.255.255", ADDRESS_RESERVED},
    };
    check(EXAMPLES, ARRAY_LEN(EXAMPLES));
}

static void blocks_of_ipv6_begin_and_end_where_the_registry_says(void **state)
{
    (void)state;
    static const struct example EXAMPLES[] = {
        {"::", ADDRESS_UNSPECIFIED},
        {"::1", ADDRESS_LOOPBACK},
        {"::2", ADDRESS_RESERVED},
        {"::7f00:1", ADDRESS_RESERVED}, /* ::127.0.0.1, of old */
        {"::808:808", ADDRESS_RESERVED},
        {"100::1", ADDRESS_RESERVED},
        {"1fff:ffff::", ADDRESS_RESERVED},
        {"2000::", ADDRESS_PUBLIC},
        {"2001::1", ADDRESS_RESERVED},
        {"2001:1ff:ffff::", ADDRESS_RESERVED},
        {"2001:200::", ADDRESS_PUBLIC},
        {"2001:db7:ffff::", ADDRESS_PUBLIC},
        {"2001:db8::1", ADDRESS_RESERVED},
        {"2001:db9::", ADDRESS_PUBLIC},
        {"2606:4700::1111", ADDRESS_PUBLIC},
        {"2a00:1450:4001::", ADDRESS_PUBLIC},
        {"3fff::1", ADDRESS_RESERVED},
        {"3fff:fff:ffff::", ADDRESS_RESERVED},
        {"3fff:1000::", ADDRESS_PUBLIC},
        {"4000::", ADDRESS_RESERVED},
        {"5f00::1", ADDRESS_RESERVED},
        {"fbff::1", ADDRESS_RESERVED},
        {"fc00::1", ADDRESS_PRIVATE},
        {"fd12:3456::1", ADDRESS_PRIVATE},
        {"fe00::1", ADDRESS_RESERVED},
        {"fe80::1", ADDRESS_LINK_LOCAL},
        {"febf::1", ADDRESS_LINK_LOCAL},
        {"fec0::1", ADDRESS_PRIVATE},
        {"feff::1", ADDRESS_PRIVATE},
        {"ff02::1", ADDRESS_MULTICAST},
    };
    check(EXAMPLES, ARRAY_LEN(EXAMPLES));
}

static void an_address_inside_another_counts(void **state)
{
    (void)state;
    static const struct example EXAMPLES[] = {
        /* mapped */
        {"::ffff:127.0.0.1", ADDRESS_LOOPBACK},
        {"::ffff:169.254.169.254", ADDRESS_LINK_LOCAL},
        {"::ffff:10.1.2.3", ADDRESS_PRIVATE},
        {"::ffff:0.0.0.0", ADDRESS_UNSPECIFIED},
        {"::ffff:8.8.8.8", ADDRESS_PUBLIC},
        {"::fffe:8.8.8.8", ADDRESS_RESERVED},
        /* NAT64 */
        {"64:ff9b::127.0.0.1", ADDRESS_LOOPBACK},
        {"64:ff9b::192.168.1.1", ADDRESS_PRIVATE},
        {"64:ff9b::8.8.8.8", ADDRESS_PUBLIC},
        {"64:ff9b::1:8.8.8.8", ADDRESS_RESERVED},
        {"64:ff9b:1::8.8.8.8", ADDRESS_RESERVED}, /* of a local network */
        /* 6to4 */
        {"2002:7f00:1::", ADDRESS_LOOPBACK},
        {"2002:c0a8:101:1::1", ADDRESS_PRIVATE},
        {"2002:a9fe:a9fe::1", ADDRESS_LINK_LOCAL},
        {"2002:808:808::1", ADDRESS_PUBLIC},
        /* ISATAP */
        {"2606:4700::5efe:10.0.0.1", ADDRESS_PRIVATE},
        {"2606:4700::200:5efe:127.0.0.1", ADDRESS_LOOPBACK},
        {"2606:4700::5efe:8.8.8.8", ADDRESS_PUBLIC},
        {"fe80::5efe:8.8.8.8", ADDRESS_LINK_LOCAL},
        {"2606:4700::100:5efe:127.0.0.1", ADDRESS_PUBLIC},
    };
    check(EXAMPLES, ARRAY_LEN(EXAMPLES));
}

/* Whatever carries an address inside is never more public than that is. */
static void no_way_of_writing_makes_an_address_public(void **state)
{
    (void)state;
    struct rng rng = {.state = 7};
    for (int i = 0; i < 100000; i++) {
        uint32_t bits = (uint32_t)rng_next(&rng);
        unsigned char v4[4] = {(unsigned char)(bits >> 24), (unsigned char)(bits >> 16),
                               (unsigned char)(bits >> 8), (unsigned char)bits};
        unsigned char mapped[16] = {[10] = 0xff, [11] = 0xff};
        unsigned char nat64[16] = {0x00, 0x64, 0xff, 0x9b};
        unsigned char six_to_four[16] = {0x20, 0x02, [15] = 1};
        memcpy(mapped + 12, v4, 4);
        memcpy(nat64 + 12, v4, 4);
        memcpy(six_to_four + 2, v4, 4);
        enum address_kind kind = address_kind_v4(v4);
        assert_int_equal(address_kind_v6(mapped), kind);
        assert_int_equal(address_kind_v6(nat64), kind);
        assert_int_equal(address_kind_v6(six_to_four), kind);
    }
}

static void every_kind_has_a_name_of_its_own(void **state)
{
    (void)state;
    for (enum address_kind a = 0; a < ADDRESS_KIND_COUNT; a++) {
        for (enum address_kind b = 0; b < a; b++)
            assert_string_not_equal(address_kind_name(a), address_kind_name(b));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_of_ipv4_begin_and_end_where_the_registry_says),
        cmocka_unit_test(blocks_of_ipv6_begin_and_end_where_the_registry_says),
        cmocka_unit_test(an_address_inside_another_counts),
        cmocka_unit_test(no_way_of_writing_makes_an_address_public),
        cmocka_unit_test(every_kind_has_a_name_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
