/* Subjects of messages. */
#include "bus/subject.h"

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == ':';
}

static void put_char(struct buf *out, char c)
{
    if (is_plain(c))
        buf_put_char(out, c);
    else
        buf_printf(out, "%%%02X", (unsigned char)c);
}

void subject_put_word(struct buf *out, struct str name)
{
    for (size_t i = 0; i < name.len; i++)
        put_char(out, name.ptr[i]);
}

void subject_put_words(struct buf *out, struct str name)
{
    bool after_word = false;
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        bool parts = c == '.' && after_word && i + 1 < name.len;
        if (parts)
            buf_put_char(out, '.');
        else
            put_char(out, c);
        after_word = !parts;
    }
}
