/* Any bytes to the reader and to what pawl 0.1.0 did with jansson: both take the same texts, and
 * write the same bytes of them, plain and canonical. */
#include "base/json/read.h"
#include "base/json/write.h"
#include "base/limits.h"
#include "json_reference.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum form { PLAIN, CANONICAL, WITHOUT_A };

/* The caller releases both. */
static struct buf written(const struct json *value, enum form form)
{
    struct buf text;
    buf_init(&text, JSON_WRITTEN_MAX);
    if (form == PLAIN)
        json_write_plain(&text, value);
    else
        json_write_canonical_without(&text, value, form == WITHOUT_A ? STR("a") : STR_NONE, false);
    assert(buf_ok(&text));
    return text;
}

static struct buf written_before(const json_t *value, enum form form)
{
    struct buf text;
    buf_init(&text, JSON_WRITTEN_MAX);
    ref_write(&text, value, form != PLAIN, form == WITHOUT_A ? "a" : NULL);
    assert(buf_ok(&text));
    return text;
}

static void check_forms(const struct json *value, const json_t *wanted)
{
    for (enum form form = PLAIN; form <= WITHOUT_A; form++) {
        struct buf now = written(value, form);
        struct buf before = written_before(wanted, form);
        assert(str_eq(buf_str(&now), buf_str(&before)));
        buf_release(&now);
        buf_release(&before);
    }
}

/* Every member is found by its name, and where the text has it. */
static void check_values(const struct json *value, const json_t *wanted)
{
    int64_t whole = 0;
    switch (json_typeof(wanted)) {
    case JSON_OBJECT: {
        assert(json_members(value) == json_object_size(wanted));
        size_t place = 0;
        json_t *object = (json_t *)(uintptr_t)wanted;
        const char *name;
        json_t *member;
        json_object_foreach (object, name, member) {
            const struct json *found = json_member(value, str_of(name));
            assert(found == json_value_at(value, place) && found != NULL);
            assert(str_is(json_name_at(value, place++), name));
            check_values(found, member);
        }
        return;
    }
    case JSON_ARRAY:
        assert(json_length(value) == json_array_size(wanted));
        for (size_t i = 0; i < json_array_size(wanted); i++)
            check_values(json_element(value, i), json_array_get(wanted, i));
        return;
    case JSON_STRING:
        assert(str_eq(json_text_of(value),
                      (struct str){json_string_value(wanted), json_string_length(wanted)}));
        return;
    case JSON_INTEGER:
        assert(json_is(value, JSON_KIND_INTEGER) && json_whole_of(value, &whole));
        assert(whole == json_integer_value(wanted));
        return;
    case JSON_REAL: {
        double real = json_real_value(wanted);
        assert(json_is(value, JSON_KIND_REAL) && memcmp(&value->real, &real, sizeof(real)) == 0);
        return;
    }
    case JSON_TRUE:
    case JSON_FALSE:
        assert(json_is(value, json_is_true(wanted) ? JSON_KIND_TRUE : JSON_KIND_FALSE));
        return;
    case JSON_NULL:
        assert(json_is(value, JSON_KIND_NULL));
    }
}

/* What is kept is read back as it was, by the reader for such texts too. */
static void check_kept(const struct json *value)
{
    struct buf plain = written(value, PLAIN);
    struct json *kept = NULL;
    enum err e = json_read_kept(buf_str(&plain), &kept);
    assert(e == ERR_OK && json_same(kept, value));
    json_free(kept);
    buf_release(&plain);
}

/* What stands in the text is only taken for the plain form if it is that. */
static void check_source(const struct json *value, struct str text)
{
    for (size_t i = 0; i < json_members(value); i++) {
        struct str source = json_plain_source(value, i, text);
        if (source.ptr == NULL)
            continue;
        struct buf plain = written(json_value_at(value, i), PLAIN);
        assert(str_eq(source, buf_str(&plain)));
        buf_release(&plain);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    struct problem p;
    problem_init(&p);
    struct json *value = NULL;
    enum err e = json_read(text, &p, &value);
    json_t *wanted = ref_parse(text);
    assert((e == ERR_OK) == (wanted != NULL) && (e == ERR_OK) == (value != NULL));
    if (e == ERR_OK) {
        check_values(value, wanted);
        check_forms(value, wanted);
        check_kept(value);
        check_source(value, text);
    } else {
        assert(e == ERR_JSON_INVALID && p.detail[0] != '\0' && str_is_utf8(str_of(p.detail)));
    }
    json_decref(wanted);
    json_free(value);
    problem_release(&p);
    return 0;
}
