/* Writing doubles: the shortest text that reads back, as RFC 8785 and ECMAScript have it. */
#include "support.h"

static void doubles_are_written_as_rfc_8785_appendix_b_has_them(void **state)
{
    (void)state;
    static const struct {
        uint64_t bits;
        const char *text;
    } ROWS[] = {
        {0x0000000000000000, "0"},
        {0x8000000000000000, "0"},
        {0x0000000000000001, "5e-324"},
        {0x8000000000000001, "-5e-324"},
        {0x7fefffffffffffff, "1.7976931348623157e+308"},
        {0xffefffffffffffff, "-1.7976931348623157e+308"},
        {0x4340000000000000, "9007199254740992"},
        {0xc340000000000000, "-9007199254740992"},
        {0x4430000000000000, "295147905179352830000"},
        {0x44b52d02c7e14af5, "9.999999999999997e+22"},
        {0x44b52d02c7e14af6, "1e+23"},
        {0x44b52d02c7e14af7, "1.0000000000000001e+23"},
        {0x444b1ae4d6e2ef4e, "999999999999999700000"},
        {0x444b1ae4d6e2ef4f, "999999999999999900000"},
        {0x444b1ae4d6e2ef50, "1e+21"},
        {0x3eb0c6f7a0b5ed8c, "9.999999999999997e-7"},
        {0x3eb0c6f7a0b5ed8d, "0.000001"},
        {0x41b3de4355555553, "333333333.3333332"},
        {0x41b3de4355555554, "333333333.33333325"},
        {0x41b3de4355555555, "333333333.3333333"},
        {0x41b3de4355555556, "333333333.3333334"},
        {0x41b3de4355555557, "333333333.33333343"},
        {0xbecbf647612f3696, "-0.0000033333333333333333"},
        {0x43143ff3c1cb0959, "1424953923781206.2"},
    };
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        struct buf b;
        buf_init(&b, 64);
        json_put_double(&b, double_of_bits(ROWS[i].bits));
        assert_str(buf_str(&b), ROWS[i].text);
        buf_release(&b);
    }
}

/* As every ECMAScript engine prints them; powers of two are where a naive search goes wrong. */
static void doubles_are_written_as_ecmascript_does(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *text;
    } ROWS[] = {
        {0x1p-1074, "5e-324"},
        {0x1p-1073, "1e-323"},
        {0x1p-1023, "1.1125369292536007e-308"},
        {0x1p-1022, "2.2250738585072014e-308"},
        {0x1p-1021, "4.450147717014403e-308"},
        {0x1p-1017, "7.120236347223045e-307"},
        {0x1p-1007, "7.291122019556398e-304"},
        {0x1p-957, "8.209073602596753e-289"},
        {0x1p-921, "5.641232424577593e-278"},
        {0x1p-808, "5.858190679279809e-244"},
        {0x1p-791, "7.678447687145631e-239"},
        {0x1p-788, "6.142758149716505e-238"},
        {0x1p-778, "6.290184345309701e-235"},
        {0x1p-705, "5.940911144672375e-213"},
        {0x1p-695, "6.083493012144512e-210"},
        {0x1p-662, "5.225680706521042e-200"},
        {0x1p-652, "5.351097043477547e-197"},
        {0x1p-549, "5.426657103235053e-166"},
        {0x1p-509, "5.966672584960166e-154"},
        {0x1p-496, "4.887898181599368e-150"},
        {0x1p-489, "6.256509672447191e-148"},
        {0x1p-383, "5.075883674631299e-116"},
        {0x1p-366, "6.653062250012736e-111"},
        {0x1p-296, "7.854549544476363e-90"},
        {0x1p-140, "7.174648137343064e-43"},
        {0x1p-97, "6.310887241768095e-30"},
        {0x1p-77, "6.617444900424222e-24"},
        {0x1p-44, "5.684341886080802e-14"},
        {0x1p89, "6.189700196426902e+26"},
        {0x1p122, "5.316911983139664e+36"},
        {0x1p132, "5.444517870735016e+39"},
        {0x1p172, "5.986310706507379e+51"},
        {0x1p182, "6.129982163463556e+54"},
        {0x1p275, "6.070840288205404e+82"},
        {0x1p305, "6.518515124270356e+91"},
        {0x1p345, "7.167183174968974e+103"},
        {0x1p378, "6.156563468186638e+113"},
        {0x1p398, "6.455624695217272e+119"},
        {0x1p405, "8.263199609878108e+121"},
        {0x1p481, "6.243497100631985e+144"},
        {0x1p534, "5.623642243178996e+160"},
        {0x1p544, "5.758609657015292e+163"},
        {0x1p554, "5.896816288783659e+166"},
        {0x1p574, "6.183260036827614e+172"},
        {0x1p594, "6.483618076376552e+178"},
        {0x1p710, "5.386379163185535e+213"},
        {0x1p803, "5.334411546303884e+241"},
        {0x1p863, "6.150157786156811e+259"},
        {0x1p896, "5.282945311356653e+269"},
        {0x1p976, "6.386688990511104e+293"},
        {0.1, "0.1"},
        {0.2, "0.2"},
        {0.30000000000000004, "0.30000000000000004"},
        {1.0, "1"},
        {-1.0, "-1"},
        {100.0, "100"},
        {123.456, "123.456"},
        {1e20, "100000000000000000000"},
        {1e21, "1e+21"},
        {123456789012345680000.0, "123456789012345680000"},
        {1234567890123456800000.0, "1.2345678901234568e+21"},
        {0.00001, "0.00001"},
        {0.000001, "0.000001"},
        {1e-7, "1e-7"},
        {1.5e-7, "1.5e-7"},
        {4.35, "4.35"},
        {0.5, "0.5"},
        {9007199254740991.0, "9007199254740991"},
        {2.2250738585072014e-308, "2.2250738585072014e-308"},
        {1e22, "1e+22"},
        {1e23, "1e+23"},
        {9.5e-7, "9.5e-7"},
        {1e308, "1e+308"},
        {-1.5e300, "-1.5e+300"},
    };
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        struct buf b;
        buf_init(&b, 64);
        json_put_double(&b, ROWS[i].value);
        assert_str(buf_str(&b), ROWS[i].text);
        buf_release(&b);
    }
}

static void put_infinity(void)
{
    struct buf b;
    buf_init(&b, 64);
    json_put_double(&b, double_of_bits(0x7ff0000000000000));
}

static void put_nan(void)
{
    struct buf b;
    buf_init(&b, 64);
    json_put_double(&b, double_of_bits(0x7fffffffffffffff));
}

static void what_is_no_number_stops_the_program(void **state)
{
    (void)state;
    assert_true(aborts(put_infinity));
    assert_true(aborts(put_nan));
}

static size_t significant_digits(const char *text)
{
    size_t count = 0;
    size_t zeros = 0;
    for (const char *c = text; *c != '\0' && *c != 'e'; c++) {
        if (*c == '0')
            zeros++;
        else if (*c >= '1' && *c <= '9') {
            count += (count > 0 ? zeros : 0) + 1;
            zeros = 0;
        }
    }
    return count;
}

/* True when no decimal with `count` digits, rounded down or up from value, reads back as it. */
static bool too_few_digits(double value, size_t count)
{
    char text[64];
    (void)snprintf(text, sizeof(text), "%.*e", (int)count - 1, value);
    if (strtod(text, NULL) == value)
        return false;
    double unit = 0;
    const char *e = strchr(text, 'e');
    assert_non_null(e);
    char step[64];
    (void)snprintf(step, sizeof(step), "1e%ld", strtol(e + 1, NULL, 10) - (long)count + 1);
    unit = strtod(step, NULL);
    /* The neighbours are made from text too, so that no rounding of the sum can hide one. */
    for (int side = -1; side <= 1; side += 2) {
        (void)snprintf(text, sizeof(text), "%.*e", (int)count - 1, value + side * unit);
        if (strtod(text, NULL) == value)
            return false;
    }
    return true;
}

static void check_double(struct buf *b, double value)
{
    buf_clear(b);
    json_put_double(b, value);
    assert_true(buf_ok(b));
    if (bits_of_double(strtod(b->ptr, NULL)) != bits_of_double(value))
        fail_msg("%a was written as %s", value, b->ptr);
    size_t digits = significant_digits(b->ptr);
    assert_in_range(digits, 1, 17);
    if (digits > 1 && !too_few_digits(value, digits - 1))
        fail_msg("%s is not the shortest", b->ptr);
}

static void random_doubles_read_back_from_their_shortest_text(void **state)
{
    (void)state;
    struct rng rng = {8785};
    struct buf b;
    buf_init(&b, 32);
    for (int i = 0; i < 200000; i++) {
        uint64_t bits = rng_next(&rng);
        if ((bits >> 52 & 0x7FF) == 0x7FF || bits << 1 == 0)
            continue;
        check_double(&b, double_of_bits(bits));
    }
    buf_release(&b);
}

static void powers_of_two_read_back_from_their_shortest_text(void **state)
{
    (void)state;
    struct buf b;
    buf_init(&b, 32);
    for (unsigned i = 0; i < 52; i++)
        check_double(&b, double_of_bits(UINT64_C(1) << i));
    for (uint64_t exponent = 1; exponent < 0x7FF; exponent++) {
        uint64_t bits = exponent << 52;
        check_double(&b, double_of_bits(bits));
        check_double(&b, double_of_bits(bits - 1));
        check_double(&b, double_of_bits(bits + 1));
        check_double(&b, -double_of_bits(bits));
    }
    buf_release(&b);
}

static void decimals_people_write_come_back_as_written(void **state)
{
    (void)state;
    struct rng rng = {15};
    struct buf b;
    buf_init(&b, 32);
    for (int i = 0; i < 20000; i++) {
        char text[32];
        long long whole = (long long)rng_below(&rng, 1000000);
        long long cents = (long long)rng_below(&rng, 100);
        (void)snprintf(text, sizeof(text), "%lld.%02lld", whole, cents);
        buf_clear(&b);
        json_put_double(&b, strtod(text, NULL));
        size_t len = strlen(text);
        while (text[len - 1] == '0')
            len--;
        if (text[len - 1] == '.')
            len--;
        text[len] = '\0';
        assert_str(buf_str(&b), text);
    }
    buf_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(doubles_are_written_as_rfc_8785_appendix_b_has_them),
        cmocka_unit_test(doubles_are_written_as_ecmascript_does),
        cmocka_unit_test(what_is_no_number_stops_the_program),
        cmocka_unit_test(random_doubles_read_back_from_their_shortest_text),
        cmocka_unit_test(powers_of_two_read_back_from_their_shortest_text),
        cmocka_unit_test(decimals_people_write_come_back_as_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
