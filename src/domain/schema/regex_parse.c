/* Reading a regular expression into a program. Each part is put at the program's end; what stands
 * around it, a quantifier or another alternative, then moves or copies it. */
#include "domain/schema/regex_internal.h"

#include "base/limits.h"
#include "domain/schema/regex_class.h"

#include <stdlib.h>

enum { REPEATED_WITHOUT_END = -1 };

struct parser {
    struct str text;
    size_t at;
    struct regex *r;
    size_t program_cap;
    struct class_set set; /* of the class that is being read */
    unsigned depth;       /* of groups */
    struct regex_fault fault;
    bool failed;
};

/* The first fault stays. Returns false, so that a reader can `return refuse(…)`. */
static bool refuse(struct parser *p, const char *why)
{
    if (!p->failed)
        p->fault = (struct regex_fault){why, p->at};
    p->failed = true;
    return false;
}

static bool too_large(struct parser *p)
{
    return refuse(p, "the expression is too large");
}

static bool no_memory(struct parser *p)
{
    return refuse(p, NULL);
}

static bool at_end(const struct parser *p)
{
    return p->at == p->text.len;
}

/* The byte here, 0 at the end. */
static char peek(const struct parser *p)
{
    return at_end(p) ? '\0' : p->text.ptr[p->at];
}

static bool skip(struct parser *p, char c)
{
    if (at_end(p) || p->text.ptr[p->at] != c)
        return false;
    p->at++;
    return true;
}

static bool skip_text(struct parser *p, const char *text)
{
    struct str rest = {p->text.ptr + p->at, p->text.len - p->at};
    if (!str_starts_with(rest, str_of(text)))
        return false;
    p->at += strlen(text);
    return true;
}

/* --- the program --- */

/* Room for so many more instructions. */
static bool grow(struct parser *p, size_t more)
{
    struct regex *r = p->r;
    if (more > REGEX_SIZE_MAX || regex_size(r) + more > REGEX_SIZE_MAX)
        return too_large(p);
    if (r->count + more <= p->program_cap)
        return true;
    size_t cap = MAX(2 * p->program_cap, r->count + more + 16);
    void *grown = realloc(r->program, cap * sizeof(*r->program));
    if (grown == NULL)
        return no_memory(p);
    r->program = grown;
    p->program_cap = cap;
    return true;
}

static bool emit(struct parser *p, enum regex_op op, uint32_t of)
{
    if (!grow(p, 1))
        return false;
    p->r->program[p->r->count++] = (struct regex_inst){op, {of}};
    return true;
}

static struct regex_inst jump(enum regex_op op, size_t from, size_t to)
{
    return (struct regex_inst){op, {.to = (int32_t)((ptrdiff_t)to - (ptrdiff_t)from)}};
}

static bool emit_jump(struct parser *p, enum regex_op op, size_t to)
{
    if (!grow(p, 1))
        return false;
    p->r->program[p->r->count] = jump(op, p->r->count, to);
    p->r->count++;
    return true;
}

/* Puts a split before the part that begins at `start`; it also goes to `to`, as counted after. */
static bool insert_split(struct parser *p, size_t start, size_t to)
{
    if (!grow(p, 1))
        return false;
    struct regex_inst *part = p->r->program + start;
    memmove(part + 1, part, (p->r->count - start) * sizeof(*part));
    *part = jump(REGEX_SPLIT, start, to);
    p->r->count++;
    return true;
}

static bool emit_copy(struct parser *p, size_t from, size_t len)
{
    if (!grow(p, len))
        return false;
    struct regex_inst *program = p->r->program;
    memcpy(program + p->r->count, program + from, len * sizeof(*program));
    p->r->count += len;
    return true;
}

/* --- classes --- */

/* Makes the set that was read a class, and puts an instruction that takes one of it. */
static bool emit_class(struct parser *p)
{
    struct regex *r = p->r;
    class_set_normalise(&p->set);
    if (p->set.failed)
        return no_memory(p);
    if (regex_size(r) + p->set.count > REGEX_SIZE_MAX)
        return too_large(p);
    struct regex_range *ranges =
        realloc(r->ranges, (r->range_count + p->set.count + 1) * sizeof(*ranges));
    if (ranges != NULL)
        r->ranges = ranges;
    struct regex_class *classes = realloc(r->classes, (r->class_count + 1) * sizeof(*classes));
    if (classes != NULL)
        r->classes = classes;
    if (ranges == NULL || classes == NULL)
        return no_memory(p);
    if (p->set.count > 0)
        memcpy(ranges + r->range_count, p->set.ranges, p->set.count * sizeof(*ranges));
    classes[r->class_count] = (struct regex_class){.first = r->range_count, .count = p->set.count};
    for (size_t i = 0; i < p->set.count; i++) {
        for (uint32_t c = p->set.ranges[i].low; c < 128 && c <= p->set.ranges[i].high; c++)
            classes[r->class_count].ascii[c / 64] |= UINT64_C(1) << (c % 64);
    }
    r->range_count += p->set.count;
    return emit(p, REGEX_CLASS, (uint32_t)r->class_count++);
}

/* The name between the braces of \p{…}. */
static bool read_category(struct parser *p, bool negated)
{
    struct str rest = {p->text.ptr + p->at, p->text.len - p->at};
    struct str name;
    if (!skip(p, '{') || !str_cut((struct str){rest.ptr + 1, rest.len - 1}, '}', &name, &rest))
        return refuse(p, "\\p must be followed by {, a general category such as L, and }");
    if (!class_set_add_category(&p->set, name, negated))
        return refuse(p, "\\p knows general categories only, such as L, Lu or Nd");
    p->at += name.len + 1;
    p->r->category_count++;
    return regex_size(p->r) <= REGEX_SIZE_MAX || too_large(p);
}

/* What stands for several code points: \d and the like. True when it was one; the letter and what
 * belongs to it are then behind, and its code points in the set. */
static bool read_class_escape(struct parser *p)
{
    char c = peek(p);
    if (c == 'p' || c == 'P') {
        p->at++;
        return read_category(p, c == 'P');
    }
    if (!class_set_add_escape(&p->set, c))
        return false;
    p->at++;
    return true;
}

/* --- escapes --- */

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool read_hex(struct parser *p, size_t digits, uint32_t *ret)
{
    uint32_t value = 0;
    for (size_t i = 0; i < digits; i++, p->at++) {
        int digit = hex_value(peek(p));
        if (digit < 0)
            return refuse(p, "a hexadecimal digit is missing");
        value = value << 4 | (uint32_t)digit;
    }
    *ret = value;
    return true;
}

/* Behind \u{. */
static bool read_braced_hex(struct parser *p, uint32_t *ret)
{
    uint32_t value = 0;
    size_t digits = 0;
    for (; hex_value(peek(p)) >= 0 && value <= REGEX_CODE_POINT_MAX; p->at++, digits++)
        value = value << 4 | (uint32_t)hex_value(peek(p));
    if (digits == 0 || value > REGEX_CODE_POINT_MAX || !skip(p, '}'))
        return refuse(p, "\\u{…} must name a code point up to 10FFFF");
    *ret = value;
    return true;
}

/* Behind \u. Two halves of a surrogate pair are one code point. */
static bool read_unicode(struct parser *p, uint32_t *ret)
{
    if (skip(p, '{'))
        return read_braced_hex(p, ret);
    uint32_t high = 0;
    if (!read_hex(p, 4, &high))
        return false;
    *ret = high;
    size_t back_to = p->at;
    uint32_t low = 0;
    if (high < 0xD800 || high > 0xDBFF || !skip_text(p, "\\u") || peek(p) == '{')
        p->at = back_to;
    else if (!read_hex(p, 4, &low))
        return false;
    else if (low < 0xDC00 || low > 0xDFFF)
        p->at = back_to;
    else
        *ret = 0x10000 + ((high - 0xD800) << 10 | (low - 0xDC00));
    return true;
}

static bool read_control(struct parser *p, uint32_t *ret)
{
    char c = (char)(peek(p) | 0x20);
    if (c < 'a' || c > 'z')
        return refuse(p, "\\c must be followed by a letter");
    *ret = (uint32_t)peek(p) & 0x1F;
    p->at++;
    return true;
}

/* Behind the \ of an escape that stands for one code point. */
static bool read_escape(struct parser *p, uint32_t *ret)
{
    static const char LETTERS[] = "tnvfr";
    static const char MEANT[] = "\t\n\v\f\r";
    char c = peek(p);
    const char *letter = c != '\0' ? strchr(LETTERS, c) : NULL;
    if (c >= '1' && c <= '9')
        return refuse(p, "backreferences are not supported");
    if (c == 'k')
        return refuse(p, "backreferences are not supported");
    if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
        p->at++;
    if (letter != NULL) {
        *ret = (uint32_t)MEANT[letter - LETTERS];
        return true;
    }
    switch (c) {
    case '0':
        *ret = 0;
        return hex_value(peek(p)) < 0 || hex_value(peek(p)) > 9 ||
               refuse(p, "octal escapes are not supported");
    case 'c':
        return read_control(p, ret);
    case 'x':
        return read_hex(p, 2, ret);
    case 'u':
        return read_unicode(p, ret);
    default:
        break;
    }
    if (c <= ' ' || c >= 0x7F || regex_is_word((uint32_t)c)) /* bytes above 0x7F are negative */
        return refuse(p, "there is no such escape");
    p->at++;
    *ret = (uint32_t)c;
    return true;
}

/* --- [ ] --- */

/* One end of a range, or a whole escape such as \d: then *ret_is_one is false. */
static bool read_class_atom(struct parser *p, uint32_t *ret, bool *ret_is_one)
{
    *ret_is_one = true;
    if (!skip(p, '\\')) {
        *ret = regex_next(p->text, &p->at);
        return true;
    }
    if (skip(p, 'b')) {
        *ret = '\b';
        return true;
    }
    if (read_class_escape(p)) {
        *ret_is_one = false;
        return true;
    }
    return !p->failed && read_escape(p, ret);
}

static bool read_class_element(struct parser *p)
{
    uint32_t low = 0;
    uint32_t high = 0;
    bool low_is_one;
    bool high_is_one = true;
    if (!read_class_atom(p, &low, &low_is_one))
        return false;
    high = low;
    bool is_range = peek(p) == '-' && p->at + 1 < p->text.len && p->text.ptr[p->at + 1] != ']';
    if (is_range) {
        p->at++;
        if (!read_class_atom(p, &high, &high_is_one))
            return false;
        if (!low_is_one || !high_is_one)
            return refuse(p, "a range must go from one character to another");
        if (low > high)
            return refuse(p, "a range runs backwards");
    }
    if (low_is_one)
        class_set_add(&p->set, low, high);
    return true;
}

/* Behind [. */
static bool read_class(struct parser *p)
{
    class_set_clear(&p->set);
    bool negated = skip(p, '^');
    while (!skip(p, ']')) {
        if (at_end(p))
            return refuse(p, "] is missing");
        if (!read_class_element(p))
            return false;
        if (p->set.count > REGEX_SIZE_MAX)
            return too_large(p);
    }
    if (negated)
        class_set_negate(&p->set);
    return emit_class(p);
}

/* --- quantifiers --- */

/* The part from `start` on, so often instead of once. */
static bool repeat(struct parser *p, size_t start, int min, int max)
{
    size_t len = p->r->count - start;
    if (max == 0)
        p->r->count = start;
    if (len == 0 || max == 0)
        return true;
    if (min == 0 && max == REPEATED_WITHOUT_END)
        return insert_split(p, start, start + len + 2) && emit_jump(p, REGEX_JUMP, start);
    bool ok = true;
    for (int i = 1; ok && i < min; i++)
        ok = emit_copy(p, start, len);
    if (max == REPEATED_WITHOUT_END)
        return ok && emit_jump(p, REGEX_SPLIT, p->r->count - len);
    /* The rest may be left out, each with all that follow it. */
    size_t optional = (size_t)(max - min);
    if (!ok || optional > REGEX_SIZE_MAX)
        return ok && too_large(p);
    size_t end = p->r->count - (min == 0 ? len : 0) + optional * (len + 1);
    if (min == 0) {
        ok = insert_split(p, start, end);
        start++;
        optional--;
    }
    for (size_t i = 0; ok && i < optional; i++)
        ok = emit_jump(p, REGEX_SPLIT, end) && emit_copy(p, start, len);
    return ok;
}

/* A number of at most six digits: no program is that long. */
static bool read_count(struct parser *p, int *ret)
{
    int value = 0;
    size_t digits = 0;
    for (; peek(p) >= '0' && peek(p) <= '9'; p->at++, digits++)
        value = MIN(value * 10 + (peek(p) - '0'), 1000 * 1000);
    *ret = value;
    return digits > 0;
}

/* Behind {. */
static bool read_counts(struct parser *p, int *ret_min, int *ret_max)
{
    bool ok = read_count(p, ret_min);
    *ret_max = *ret_min;
    if (ok && skip(p, ',') && !read_count(p, ret_max))
        *ret_max = REPEATED_WITHOUT_END;
    if (!ok || !skip(p, '}'))
        return refuse(p, "{ must begin a quantifier such as {2,3}; write \\{ for the character");
    return *ret_max == REPEATED_WITHOUT_END || *ret_min <= *ret_max ||
           refuse(p, "the numbers of a quantifier are out of order");
}

static bool read_quantifier(struct parser *p, size_t start, bool may_repeat)
{
    int min = 0;
    int max = REPEATED_WITHOUT_END;
    if (skip(p, '+'))
        min = 1;
    else if (skip(p, '?'))
        max = 1;
    else if (skip(p, '{')) {
        if (!read_counts(p, &min, &max))
            return false;
    } else if (!skip(p, '*'))
        return true;
    (void)skip(p, '?'); /* lazy: it finds the same texts */
    return may_repeat ? repeat(p, start, min, max) : refuse(p, "an anchor cannot be repeated");
}

/* --- terms --- */

static bool read_alternatives(struct parser *p);

/* Behind (?. */
static bool read_group_kind(struct parser *p)
{
    if (skip(p, ':'))
        return true;
    if (peek(p) == '=' || peek(p) == '!')
        return refuse(p, "look-ahead is not supported");
    if (skip_text(p, "<=") || skip_text(p, "<!"))
        return refuse(p, "look-behind is not supported");
    if (!skip(p, '<'))
        return refuse(p, "flags are not supported");
    size_t begin = p->at;
    while (regex_is_word((uint32_t)peek(p)))
        p->at++;
    return (p->at > begin && skip(p, '>')) || refuse(p, "a group's name must end with >");
}

/* Behind (. Recursion: REGEX_DEPTH_MAX groups at most. */
static bool read_group(struct parser *p)
{
    if (p->depth == REGEX_DEPTH_MAX)
        return refuse(p, "groups are nested too deeply");
    p->depth++;
    bool ok = (!skip(p, '?') || read_group_kind(p)) && read_alternatives(p);
    p->depth--;
    return ok && (skip(p, ')') || refuse(p, ") is missing"));
}

/* Behind \. */
static bool read_atom_escape(struct parser *p, bool *ret_is_anchor)
{
    if (peek(p) == 'b' || peek(p) == 'B') {
        *ret_is_anchor = true;
        return emit(p, p->text.ptr[p->at++] == 'b' ? REGEX_EDGE : REGEX_NO_EDGE, 0);
    }
    class_set_clear(&p->set);
    if (read_class_escape(p))
        return emit_class(p);
    uint32_t c = 0;
    return !p->failed && read_escape(p, &c) && emit(p, REGEX_CHAR, c);
}

static bool read_atom(struct parser *p, bool *ret_is_anchor)
{
    char c = peek(p);
    *ret_is_anchor = c == '^' || c == '$';
    switch (c) {
    case '*':
    case '+':
    case '?':
        return refuse(p, "there is nothing to repeat");
    case '{':
        return refuse(p, "there is nothing to repeat; write \\{ for the character");
    default:
        break;
    }
    if (skip(p, '^'))
        return emit(p, REGEX_BEGIN, 0);
    if (skip(p, '$'))
        return emit(p, REGEX_END, 0);
    if (skip(p, '.'))
        return emit(p, REGEX_ANY, 0);
    if (skip(p, '['))
        return read_class(p);
    if (skip(p, '('))
        return read_group(p);
    if (skip(p, '\\'))
        return read_atom_escape(p, ret_is_anchor);
    return emit(p, REGEX_CHAR, regex_next(p->text, &p->at));
}

static bool read_terms(struct parser *p)
{
    while (!at_end(p) && peek(p) != '|' && peek(p) != ')') {
        size_t start = p->r->count;
        bool is_anchor = false;
        if (!read_atom(p, &is_anchor) || !read_quantifier(p, start, !is_anchor))
            return false;
    }
    return true;
}

static bool read_alternatives(struct parser *p)
{
    /* The jumps from the ends of alternatives, of which each knows the one before until all know
     * where to go. */
    size_t last_jump = SIZE_MAX;
    for (;;) {
        size_t start = p->r->count;
        if (!read_terms(p))
            return false;
        if (!skip(p, '|'))
            break;
        if (!insert_split(p, start, p->r->count + 2) || !emit(p, REGEX_JUMP, (uint32_t)last_jump))
            return false;
        last_jump = p->r->count - 1;
    }
    while (last_jump != SIZE_MAX) {
        struct regex_inst *inst = &p->r->program[last_jump];
        size_t before = inst->of == UINT32_MAX ? SIZE_MAX : inst->of;
        *inst = jump(REGEX_JUMP, last_jump, p->r->count);
        last_jump = before;
    }
    return true;
}

/* --- all of it --- */

static bool make_room(struct regex *r)
{
    r->marks = calloc(r->count, sizeof(*r->marks));
    r->stack = calloc(r->count, sizeof(*r->stack));
    r->takers = calloc(r->count, sizeof(*r->takers));
    r->reached = calloc(r->count, sizeof(*r->reached));
    return r->marks != NULL && r->stack != NULL && r->takers != NULL && r->reached != NULL;
}

struct regex *regex_compile(struct str pattern, struct regex_fault *ret_fault)
{
    *ret_fault = (struct regex_fault){NULL, 0};
    struct parser p = {.text = pattern, .r = calloc(1, sizeof(*p.r))};
    if (p.r == NULL)
        return NULL;
    bool ok = read_alternatives(&p) && (at_end(&p) || refuse(&p, "( is missing")) &&
              emit(&p, REGEX_FOUND, 0) && (make_room(p.r) || no_memory(&p));
    class_set_release(&p.set);
    if (ok)
        return p.r;
    *ret_fault = p.fault;
    regex_free(p.r);
    return NULL;
}

void regex_free(struct regex *r)
{
    if (r == NULL)
        return;
    free(r->program);
    free(r->classes);
    free(r->ranges);
    free(r->marks);
    free(r->stack);
    free(r->takers);
    free(r->reached);
    free(r);
}

size_t regex_size(const struct regex *r)
{
    return r->count + r->range_count + r->category_count * REGEX_CATEGORY_SIZE;
}
