/* A pattern on the first line and a text behind it: nothing overflows, and groups and alternatives
 * around a pattern do not change what it finds. Then the bytes are taken as choices: an expression
 * made by them is written as a pattern, and the search agrees with a slow matcher that keeps the
 * set of places at which each part may end. */
#include "domain/schema/regex.h"
#include "fuzz.h"

enum { PATTERN_MAX = 4096, TEXT_PLACES_MAX = 24, NODES_MAX = 24, REPEAT_MAX = 4 };

/* --- patterns as they come --- */

static bool finds(struct str pattern, struct str text, bool *ret)
{
    struct regex_fault fault;
    struct regex *r = regex_compile(pattern, &fault);
    if (r == NULL) {
        assert(fault.why != NULL && fault.at <= pattern.len);
        return false;
    }
    assert(regex_size(r) <= REGEX_SIZE_MAX);
    struct work_budget work = {SCHEMA_WORK_MAX};
    *ret = regex_search(r, text, &work);
    bool finished = work.left > 0;
    if (finished) {
        work.left = SCHEMA_WORK_MAX;
        bool again = regex_search(r, text, &work);
        assert(again == *ret);
    }
    regex_free(r);
    return finished;
}

static void check_laws(struct str pattern, struct str text)
{
    static const char *const AROUND[] = {"(?:%.*s)", "(?:%.*s){1}", "(?:%.*s)|[]", "(?:(%.*s))+"};
    bool found;
    if (!finds(pattern, text, &found))
        return;
    for (size_t i = 0; i < ARRAY_LEN(AROUND); i++) {
        char around[PATTERN_MAX + 32];
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        int len = snprintf(around, sizeof(around), AROUND[i], STR_ARG(pattern));
        bool same;
        if (finds((struct str){around, (size_t)len}, text, &same))
            assert(same == found);
    }
}

/* --- expressions that are made --- */

enum node_kind { LETTER, ANY, CLASS, OTHERS, BEGIN, END, EDGE, BOTH, EITHER, REPEAT, KINDS };

struct node {
    enum node_kind kind;
    uint32_t letter;
    size_t a;
    size_t b;
    unsigned min;
    unsigned max;
};

struct trial {
    const uint8_t *data;
    size_t left;
    struct node nodes[NODES_MAX];
    size_t count;
    uint32_t text[TEXT_PLACES_MAX];
    size_t len;
};

static unsigned choice(struct trial *t, unsigned bound)
{
    if (t->left == 0)
        return 0;
    t->left--;
    return *t->data++ % bound;
}

static uint32_t letter(struct trial *t)
{
    static const uint32_t LETTERS[] = {'a', 'b', '-', '\n', 0xE9};
    return LETTERS[choice(t, ARRAY_LEN(LETTERS))];
}

/* The place of a new node; the parts of one come after it. */
static size_t make_node(struct trial *t, unsigned depth)
{
    size_t at = t->count++;
    bool may_branch = depth < 4 && t->count + 2 < NODES_MAX;
    struct node n = {.kind = choice(t, may_branch ? KINDS : BOTH), .letter = letter(t)};
    n.min = choice(t, REPEAT_MAX);
    n.max = n.min + choice(t, REPEAT_MAX);
    if (n.kind >= BOTH)
        n.a = make_node(t, depth + 1);
    if (n.kind == BOTH || n.kind == EITHER)
        n.b = t->count < NODES_MAX ? make_node(t, depth + 1) : n.a;
    t->nodes[at] = n;
    return at;
}

static void put_letter(struct buf *out, uint32_t c)
{
    buf_put(out, c == 0xE9 ? STR("\xC3\xA9") : c == '\n' ? STR("\\n") : STR(""));
    if (c < 0x80 && c != '\n')
        buf_printf(out, "\\x%02x", (unsigned)c);
}

static void put_node(struct buf *out, const struct trial *t, size_t at)
{
    static const char *const FIXED[] = {[ANY] = ".", [BEGIN] = "^", [END] = "$", [EDGE] = "\\b"};
    const struct node *n = &t->nodes[at];
    buf_put(out, STR("(?:"));
    if (n->kind == LETTER || n->kind == CLASS || n->kind == OTHERS) {
        buf_put(out, n->kind == LETTER ? STR("") : n->kind == CLASS ? STR("[b") : STR("[^b"));
        put_letter(out, n->letter);
        buf_put(out, n->kind == LETTER ? STR("") : STR("]"));
    } else if (n->kind < BOTH) {
        buf_put(out, str_of(FIXED[n->kind]));
    } else {
        put_node(out, t, n->a);
        buf_put(out, n->kind == EITHER ? STR("|") : STR(""));
        if (n->kind != REPEAT)
            put_node(out, t, n->b);
        else if (n->max == n->min + REPEAT_MAX - 1)
            buf_printf(out, "{%u,}", n->min);
        else
            buf_printf(out, "{%u,%u}", n->min, n->max);
    }
    buf_put_char(out, ')');
}

static bool is_word(const struct trial *t, size_t at)
{
    return at < t->len && (t->text[at] == 'a' || t->text[at] == 'b');
}

static bool passes(const struct trial *t, const struct node *n, size_t place)
{
    switch (n->kind) {
    case BEGIN:
        return place == 0;
    case END:
        return place == t->len;
    default:
        return (place > 0 && is_word(t, place - 1)) != is_word(t, place);
    }
}

static bool takes(const struct node *n, uint32_t c)
{
    switch (n->kind) {
    case LETTER:
        return c == n->letter;
    case ANY:
        return c != '\n';
    default:
        return (c == n->letter || c == 'b') == (n->kind == CLASS);
    }
}

/* The places at which a part may end that begins at one of `from`; a bit each. */
static uint32_t ends(const struct trial *t, size_t at, uint32_t from)
{
    const struct node *n = &t->nodes[at];
    uint32_t to = 0;
    if (n->kind == BOTH)
        return ends(t, n->b, ends(t, n->a, from));
    if (n->kind == EITHER)
        return ends(t, n->a, from) | ends(t, n->b, from);
    if (n->kind == REPEAT) {
        bool endless = n->max == n->min + REPEAT_MAX - 1;
        unsigned most = endless ? n->min + TEXT_PLACES_MAX + 1 : n->max;
        for (unsigned i = 0; i <= most; i++, from = ends(t, n->a, from))
            to |= i >= n->min ? from : 0;
        return to;
    }
    for (size_t place = 0; place <= t->len; place++) {
        if ((from >> place & 1) == 0)
            continue;
        if (n->kind >= BEGIN)
            to |= passes(t, n, place) ? UINT32_C(1) << place : 0;
        else if (place < t->len && takes(n, t->text[place]))
            to |= UINT32_C(1) << (place + 1);
    }
    return to;
}

static void check_made(const uint8_t *data, size_t size)
{
    struct trial t = {.data = data, .left = size};
    t.len = choice(&t, TEXT_PLACES_MAX);
    struct buf text;
    buf_init(&text, PATTERN_MAX);
    for (size_t i = 0; i < t.len; i++) {
        t.text[i] = letter(&t);
        if (t.text[i] < 0x80)
            buf_put_char(&text, (char)t.text[i]);
        else
            buf_put(&text, STR("\xC3\xA9"));
    }
    size_t root = make_node(&t, 0);
    struct buf pattern;
    buf_init(&pattern, PATTERN_MAX);
    put_node(&pattern, &t, root);
    assert(buf_ok(&pattern) && buf_ok(&text));
    bool found;
    if (finds(buf_str(&pattern), text.len > 0 ? buf_str(&text) : STR(""), &found))
        assert(found == (ends(&t, root, (UINT32_C(2) << t.len) - 1) != 0));
    buf_release(&pattern);
    buf_release(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str pattern;
    struct str text;
    if (size < PATTERN_MAX && str_cut(fuzz_text(data, size), '\n', &pattern, &text) &&
        str_is_utf8(pattern) && memchr(pattern.ptr, '\0', pattern.len) == NULL)
        check_laws(pattern, text);
    check_made(data, size);
    return 0;
}
