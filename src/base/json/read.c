/* Strict reading of JSON in one pass.
 *
 * Memory is one block. Its end holds a copy of the text, in which texts are unescaped in place and
 * end with a NUL. From its low end grows a stack of the values whose list or object is still open;
 * from the copy downwards grow finished lists and objects. When a list closes, its elements are
 * moved from the stack to the finished ones, where they stay. The block cannot run out: for each
 * byte of text it has
 *   8 bytes for nodes: each takes 16, and needs two bytes of text ("0,", "[]"), but for the last,
 *     and for lists and objects that are still open, for which there is extra room;
 *   1 byte for the order of members: each takes 4, and needs more than four bytes of text. */
#include "base/json/read.h"

#include "base/json/number.h"
#include "base/limits.h"

#include <endian.h>

enum {
    BYTES_PER_BYTE = 9,
    BYTES_AT_LEAST = 64,
    WORD = sizeof(uint64_t), /* so many bytes are looked at together, and are NUL behind the text */
};

struct rules {
    int depth_max;
    bool nul_in_texts; /* an escaped one */
};

struct reader {
    char *at;
    char *end;         /* of the text: a NUL, as everywhere behind it */
    struct json *top;  /* of the stack: the next free place */
    char *finished;    /* the lower end of what is finished */
    struct json *open; /* the innermost open list or object, in the stack; NULL: none */
    int depth;
    const struct rules *rules;
    const char *unplain; /* behind the last piece that is not in plain form (write.h) */
    /* Why reading cannot go on; one of these. */
    const char *fault;
    const char *expected;    /* what should stand here */
    const struct json *twin; /* a name that an object has twice */
};

static bool refuse(struct reader *r, const char *why)
{
    r->fault = why;
    return false;
}

static bool expect(struct reader *r, const char *what)
{
    r->expected = what;
    return false;
}

/* --- memory --- */

static struct json *push(struct reader *r, enum json_kind kind)
{
    assert((char *)(r->top + 1) <= r->finished);
    *r->top = (struct json){.kind = (uint8_t)kind};
    return r->top++;
}

static void *finish(struct reader *r, size_t size)
{
    r->finished -= size;
    r->finished -= (uintptr_t)r->finished % _Alignof(struct json);
    assert(r->finished >= (char *)r->top);
    return r->finished;
}

/* --- texts --- */

static bool is_ascii(char c)
{
    return (unsigned char)c < 0x80;
}

/* A high bit at the first of eight bytes that needs a closer look: a control character, a quote, a
 * backslash, or no ASCII. Bits above it mean nothing; 0: none does. */
static uint64_t special_bits(uint64_t bytes)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    uint64_t quote = bytes ^ ones * '"';
    uint64_t backslash = bytes ^ ones * '\\';
    return (bytes | (bytes - ones * 0x20) | (quote - ones) | (backslash - ones)) & ones * 0x80;
}

/* The first byte from `at` on that ends the text, begins an escape, or may not be there. */
static char *skip_plain(const struct reader *r, char *at)
{
    while (true) {
        uint64_t special;
        do {
            uint64_t bytes;
            memcpy(&bytes, at, WORD);
            special = special_bits(le64toh(bytes));
            at += special != 0 ? (size_t)__builtin_ctzll(special) / 8 : WORD;
        } while (special == 0);
        if (is_ascii(*at))
            return at;
        do {
            size_t len = str_utf8_len((struct str){at, (size_t)(r->end - at)});
            if (len == 0)
                return at;
            at += len;
        } while (!is_ascii(*at));
    }
}

static bool refuse_in_text(struct reader *r)
{
    if (r->at == r->end)
        return refuse(r, "the closing quote of a text is missing");
    return refuse(r,
                  is_ascii(*r->at) ? "a control character must be escaped" : "a byte is not UTF-8");
}

/* The four digits behind \u. */
static bool read_hex(struct reader *r, uint32_t *ret)
{
    uint32_t value = 0;
    for (int i = 0; i < 4; i++) {
        char c = *r->at;
        char lower = (char)(c | 0x20);
        bool is_letter = lower >= 'a' && lower <= 'f';
        if (!is_letter && (c < '0' || c > '9'))
            return refuse(r, "four hexadecimal digits must follow \\u");
        value = value << 4 | (uint32_t)(is_letter ? lower - 'a' + 10 : c - '0');
        r->at++;
    }
    *ret = value;
    return true;
}

static bool read_code_point(struct reader *r, uint32_t *ret)
{
    uint32_t high;
    uint32_t low;
    if (!read_hex(r, &high))
        return false;
    *ret = high;
    if (high < 0xD800 || high > 0xDFFF)
        return true;
    bool has_next = r->at[0] == '\\' && r->at[1] == 'u';
    if (high > 0xDBFF || !has_next)
        return refuse(r, "half of a surrogate pair stands alone");
    r->at += 2;
    if (!read_hex(r, &low))
        return false;
    if (low < 0xDC00 || low > 0xDFFF)
        return refuse(r, "half of a surrogate pair stands alone");
    *ret = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
    return true;
}

static char *put_utf8(char *out, uint32_t c)
{
    if (c < 0x80) {
        *out++ = (char)c;
        return out;
    }
    if (c < 0x800) {
        *out++ = (char)(0xC0 | c >> 6);
    } else if (c < 0x10000) {
        *out++ = (char)(0xE0 | c >> 12);
        *out++ = (char)(0x80 | (c >> 6 & 0x3F));
    } else {
        *out++ = (char)(0xF0 | c >> 18);
        *out++ = (char)(0x80 | (c >> 12 & 0x3F));
        *out++ = (char)(0x80 | (c >> 6 & 0x3F));
    }
    *out++ = (char)(0x80 | (c & 0x3F));
    return out;
}

/* Behind the backslash. */
static bool read_escape(struct reader *r, bool nul_allowed, uint32_t *ret)
{
    static const char FROM[] = "\"\\/bfnrt";
    static const char TO[] = "\"\\/\b\f\n\r\t";
    if (*r->at == 'u' || *r->at == '/')
        r->unplain = r->at;
    if (*r->at == 'u') {
        r->at++;
        if (!read_code_point(r, ret))
            return false;
        return *ret != 0 || nul_allowed || refuse(r, "\\u0000 is not allowed");
    }
    const char *found = memchr(FROM, *r->at, sizeof(FROM) - 1);
    if (found == NULL)
        return refuse(r, "there is no such escape");
    *ret = (unsigned char)TO[found - FROM];
    r->at++;
    return true;
}

/* The rest of a text, from its first escape on. It gets no longer by being unescaped. Returns where
 * it ends then; NULL: it is refused. */
static char *unescape(struct reader *r, bool nul_allowed, bool *ret_is_plain)
{
    char *out = r->at;
    *ret_is_plain = true;
    while (*r->at == '\\') {
        uint32_t c;
        r->at++;
        if (!read_escape(r, nul_allowed, &c))
            return NULL;
        *ret_is_plain &= c >= 0x20 && c != '"' && c != '\\';
        out = put_utf8(out, c);
        char *from = r->at;
        r->at = skip_plain(r, from);
        memmove(out, from, (size_t)(r->at - from));
        out += r->at - from;
    }
    return out;
}

/* From the opening quote. */
static bool read_text(struct reader *r, bool is_name)
{
    char *from = r->at + 1;
    char *end = r->at = skip_plain(r, from);
    struct json *node = push(r, JSON_KIND_TEXT);
    node->is_plain = true;
    if (*end == '\\')
        end = unescape(r, r->rules->nul_in_texts && !is_name, &node->is_plain);
    if (end == NULL)
        return false;
    if (*r->at != '"')
        return refuse_in_text(r);
    r->at++;
    *end = '\0';
    node->text = from;
    node->count = (uint32_t)(end - from);
    return true;
}

/* --- values --- */

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static void skip_space(struct reader *r)
{
    if (!is_space(*r->at))
        return;
    do {
        r->at++;
    } while (is_space(*r->at));
    r->unplain = r->at;
}

static bool read_number(struct reader *r)
{
    struct json *node = push(r, JSON_KIND_NULL);
    const char *fault = json_number_read(&r->at, node);
    if (!node->is_plain)
        r->unplain = r->at;
    return fault == NULL || refuse(r, fault);
}

static bool read_word(struct reader *r, struct str word, enum json_kind kind)
{
    if (strncmp(r->at, word.ptr, word.len) != 0)
        return expect(r, "a value");
    r->at += word.len;
    (void)push(r, kind);
    return true;
}

static bool open_container(struct reader *r, enum json_kind kind)
{
    if (++r->depth > r->rules->depth_max)
        return refuse(r, "nested too deeply");
    struct json *node = push(r, kind);
    /* Until it is closed: */
    node->items = r->open;
    node->count = (uint32_t)(r->end - r->at);
    r->open = node;
    r->at++;
    return true;
}

static bool has_same_names(const struct json *a, const struct json *b, uint32_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!str_eq(json_text_of(&a[2 * i]), json_text_of(&b[2 * i])))
            return false;
    }
    return true;
}

/* The object is in its place but for the order of its members. Finds that, and a name that is there
 * twice. The objects of a list are often alike: then they have the order of the one before. */
static bool order_members(struct reader *r, const struct json *object, uint32_t *order)
{
    const struct json *before = object - 1;
    uint32_t count = object->count;
    if (json_is(r->open, JSON_KIND_LIST) && before > r->open && before->kind == JSON_KIND_OBJECT &&
        before->count == count && has_same_names(before->items, object->items, count)) {
        memcpy(order, json_order(before), count * sizeof(*order));
        return true;
    }
    uint32_t *scratch = (uint32_t *)(void *)r->top;
    assert((char *)(scratch + count) <= r->finished);
    r->twin = json_order_make(object->items, count, order, scratch);
    return r->twin == NULL;
}

/* At its bracket. */
static bool close_container(struct reader *r)
{
    struct json *node = r->open;
    size_t nodes = (size_t)(r->top - node) - 1;
    bool is_object = node->kind == JSON_KIND_OBJECT;
    node->is_plain = r->unplain <= r->end - node->count;
    node->count = (uint32_t)(is_object ? nodes / 2 : nodes);
    r->open = (struct json *)(uintptr_t)node->items;
    r->top = node + 1;
    r->depth--;
    size_t order_size = is_object ? node->count * sizeof(uint32_t) : 0;
    struct json *items = finish(r, nodes * sizeof(*node) + order_size);
    /* Where little is left, the new place overlaps the old one. */
    memmove(items, node + 1, nodes * sizeof(*node));
    node->items = items;
    if (is_object && !order_members(r, node, (uint32_t *)(void *)(items + nodes)))
        return false;
    r->at++;
    return true;
}

/* A scalar, or the beginning of a list or an object. */
static bool read_value(struct reader *r)
{
    switch (*r->at) {
    case '"':
        return read_text(r, false);
    case '{':
        return open_container(r, JSON_KIND_OBJECT);
    case '[':
        return open_container(r, JSON_KIND_LIST);
    case 't':
        return read_word(r, STR("true"), JSON_KIND_TRUE);
    case 'f':
        return read_word(r, STR("false"), JSON_KIND_FALSE);
    case 'n':
        return read_word(r, STR("null"), JSON_KIND_NULL);
    default:
        break;
    }
    bool is_number = *r->at == '-' || (*r->at >= '0' && *r->at <= '9');
    return is_number ? read_number(r) : expect(r, "a value");
}

static bool read_name(struct reader *r)
{
    if (*r->at != '"')
        return expect(r, "a name in quotes");
    if (!read_text(r, true))
        return false;
    skip_space(r);
    if (*r->at != ':')
        return expect(r, "':'");
    r->at++;
    skip_space(r);
    return true;
}

/* Within the innermost list or object: up to the next value, closing what ends before it. */
static bool go_on(struct reader *r, bool just_opened)
{
    while (r->open != NULL) {
        bool is_object = r->open->kind == JSON_KIND_OBJECT;
        skip_space(r);
        char c = *r->at;
        if (c == (is_object ? '}' : ']')) {
            if (!close_container(r))
                return false;
            just_opened = false;
            continue;
        }
        if (!just_opened) {
            if (c != ',')
                return expect(r, is_object ? "',' or '}'" : "',' or ']'");
            r->at++;
            skip_space(r);
        }
        return !is_object || read_name(r);
    }
    return true;
}

static bool read_all(struct reader *r)
{
    skip_space(r);
    do {
        const struct json *open = r->open;
        if (!read_value(r) || !go_on(r, r->open != open))
            return false;
    } while (r->open != NULL);
    skip_space(r);
    return r->at == r->end || expect(r, "the end of the text");
}

/* --- whole documents --- */

static const struct rules STRICT = {.depth_max = JSON_DEPTH_MAX};
static const struct rules KEPT = {.depth_max = JSON_KEPT_DEPTH_MAX, .nul_in_texts = true};

/* What a block has before its copy of the text. */
static size_t room_for_values(const struct rules *rules, size_t len)
{
    size_t open_max = MIN(len, (size_t)rules->depth_max);
    return BYTES_PER_BYTE * len + open_max * sizeof(struct json) + BYTES_AT_LEAST;
}

/* ERR_JSON_INVALID with the reader at the fault, or ERR_NO_MEMORY. The caller frees *ret in any
 * case: a name that the reader points to may be in there. */
static enum err read_by(const struct rules *rules, struct str text, struct reader *r,
                        struct json **ret)
{
    size_t size = room_for_values(rules, text.len);
    char *memory = text.len < UINT32_MAX ? malloc(size + text.len + WORD) : NULL;
    *ret = (struct json *)(void *)memory;
    if (memory == NULL)
        return ERR_NO_MEMORY;
    char *copy = memory + size;
    if (text.len > 0)
        memcpy(copy, text.ptr, text.len);
    memset(copy + text.len, 0, WORD);
    *r = (struct reader){.at = copy,
                         .end = copy + text.len,
                         .top = *ret,
                         .finished = copy,
                         .rules = rules,
                         .unplain = copy};
    return read_all(r) ? ERR_OK : ERR_JSON_INVALID;
}

/* Where the reader stopped: lines and characters are counted from 1. */
static enum err describe(const struct reader *r, struct str text, struct problem *p)
{
    const char *fault = text.ptr + (text.len - (size_t)(r->end - r->at));
    int line = 1;
    int column = 1;
    for (const char *c = text.ptr; c < fault; c++) {
        line += *c == '\n';
        column = *c == '\n' ? 1 : column + ((*c & 0xC0) != 0x80);
    }
    char found[24] = "the end";
    bool is_visible = *r->at > ' ' && *r->at < 0x7F;
    if (r->at < r->end)
        (void)snprintf(found, sizeof(found), is_visible ? "'%c'" : "byte 0x%02x",
                       (unsigned char)*r->at);
    if (r->expected != NULL)
        return problem_set(p, ERR_JSON_INVALID, "line %d, column %d: expected %s, got %s", line,
                           column, r->expected, found);
    if (r->twin != NULL)
        return problem_set(p, ERR_JSON_INVALID, "line %d, column %d: duplicate name \"%.64s\"",
                           line, column, r->twin->text);
    bool says_byte = r->at < r->end && !is_visible;
    return problem_set(p, ERR_JSON_INVALID, "line %d, column %d: %s%s%s", line, column, r->fault,
                       says_byte ? ": " : "", says_byte ? found : "");
}

enum err json_read(struct str text, struct problem *p, struct json **ret)
{
    if (text.len > JSON_TEXT_MAX)
        return problem_set(p, ERR_BODY_TOO_LARGE, "JSON text may have at most %d bytes",
                           JSON_TEXT_MAX);
    if (text.len == 0)
        return problem_set(p, ERR_JSON_INVALID, "the text is empty");
    if (str_starts_with(text, STR("\xEF\xBB\xBF")))
        return problem_set(p, ERR_JSON_INVALID, "the text begins with a byte-order mark");
    struct reader r;
    struct json *value;
    enum err e = read_by(&STRICT, text, &r, &value);
    if (e == ERR_OK) {
        *ret = value;
        return ERR_OK;
    }
    if (e == ERR_NO_MEMORY)
        return problem_set(p, e, "no memory to read the body");
    if (r.depth > STRICT.depth_max)
        e = problem_set(p, e, "nested deeper than %d levels", STRICT.depth_max);
    else
        e = describe(&r, text, p);
    json_free(value);
    return e;
}

enum err json_read_kept(struct str text, struct json **ret)
{
    struct reader r;
    struct json *value;
    enum err e = read_by(&KEPT, text, &r, &value);
    if (e == ERR_OK) {
        *ret = value;
        return ERR_OK;
    }
    json_free(value);
    return e == ERR_JSON_INVALID ? ERR_DAMAGED : e;
}

static const char *bracket_before(const char *at)
{
    do {
        at--;
    } while (*at != '}' && *at != ']');
    return at;
}

struct str json_plain_source(const struct json *document, size_t place, struct str text)
{
    const struct json *name = &document->items[2 * place];
    const struct json *value = name + 1;
    const char *copy = (const char *)document + room_for_values(&STRICT, text.len);
    const char *from = text.ptr + (name->text - copy);
    bool is_list = value->kind == JSON_KIND_LIST;
    if ((!is_list && value->kind != JSON_KIND_OBJECT) || !value->is_plain)
        return STR_NONE;
    if (memcmp(from, name->text, name->count) != 0 || from[name->count] != '"')
        return STR_NONE; /* the name was escaped: where it ends is forgotten */
    const char *text_end = text.ptr + text.len;
    from += name->count;
    from = memchr(from, is_list ? '[' : '{', (size_t)(text_end - from));
    assert(from != NULL);
    bool is_last = place + 1 == json_members(document);
    const char *end =
        bracket_before(is_last ? bracket_before(text_end) : text.ptr + (name[2].text - copy));
    return (struct str){from, (size_t)(end + 1 - from)};
}

void json_free(struct json *document)
{
    free(document);
}

enum err json_same_text(struct str a, struct str b, bool *ret)
{
    *ret = str_eq(a, b);
    if (*ret)
        return ERR_OK;
    struct json *x = NULL;
    struct json *y = NULL;
    enum err e = json_read_kept(a, &x);
    if (e == ERR_OK)
        e = json_read_kept(b, &y);
    *ret = e == ERR_OK && json_same(x, y);
    json_free(x);
    json_free(y);
    return e == ERR_NO_MEMORY ? e : ERR_OK;
}
