/* Any name as the words of a subject, and any text as a list of event types. A word can be read
 * back, so two names never share a subject; no subject has an empty word or a wildcard. */
#include "bus/subject.h"
#include "domain/type_pattern.h"
#include "fuzz.h"

static int hex(char c)
{
    assert((c >= '0' && c <= '9') || (c >= 'A' && c <= 'F'));
    return c <= '9' ? c - '0' : c - 'A' + 10;
}

/* What a word, or several with dots between them, says. */
static void check_reads_back(struct str subject, struct str name)
{
    size_t n = 0;
    for (size_t i = 0; i < subject.len; i++) {
        char c = subject.ptr[i];
        assert(c > ' ' && c < 0x7F && c != '*' && c != '>');
        if (c == '%') {
            assert(i + 2 < subject.len);
            c = (char)(hex(subject.ptr[i + 1]) << 4 | hex(subject.ptr[i + 2]));
            i += 2;
        }
        assert(n < name.len && name.ptr[n] == c);
        n++;
    }
    assert(n == name.len);
}

static void check_words(struct str name)
{
    struct buf word, words;
    buf_init(&word, 4 * name.len + 1);
    buf_init(&words, 4 * name.len + 1);
    subject_put_word(&word, name);
    subject_put_words(&words, name);
    assert(buf_ok(&word) && buf_ok(&words));
    check_reads_back(buf_str(&word), name);
    check_reads_back(buf_str(&words), name);
    assert(name.len == 0 || memchr(word.ptr, '.', word.len) == NULL);
    struct str rest = buf_str(&words);
    for (bool more = rest.len > 0; more;) {
        struct str part;
        more = str_cut(rest, '.', &part, &rest);
        assert(part.len > 0);
    }
    buf_release(&words);
    buf_release(&word);
}

/* By the definition: equal, or what stands before the star begins it. */
static bool fits(struct str pattern, struct str type)
{
    if (pattern.len > 0 && pattern.ptr[pattern.len - 1] == '*')
        return type.len >= pattern.len - 1 && memcmp(type.ptr, pattern.ptr, pattern.len - 1) == 0;
    return str_eq(pattern, type);
}

static void check_types(struct str list, struct str type)
{
    bool ok = type_list_ok(list);
    bool any = false;
    bool all_ok = true;
    struct str rest = list;
    for (bool more = true; more;) {
        struct str pattern;
        more = str_cut(rest, ',', &pattern, &rest);
        all_ok &= type_pattern_ok(pattern);
        any |= list.len > 0 && fits(pattern, type);
    }
    assert(ok == all_ok);
    if (ok)
        assert(type_list_fits(list, type) == any);
    else
        (void)type_list_fits(list, type);
    (void)type_own_prefix(type);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = fuzz_text(data, size);
    check_words(text);
    struct str list, type;
    if (!str_cut(text, '\n', &list, &type))
        type = STR("run.created");
    check_types(list, type);
    return 0;
}
