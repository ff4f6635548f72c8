/* Column widths of characters. */
#include "cli/term/width.h"

/* The character at the start of text, and its length in bytes; 1 for a byte that is not UTF-8. */
static uint32_t first_char(struct str text, size_t *ret_len)
{
    unsigned char lead = (unsigned char)text.ptr[0];
    size_t len = lead < 0x80 ? 1 : lead < 0xC0 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    *ret_len = 1;
    if (len == 0 || len > text.len || !str_is_utf8((struct str){text.ptr, len}))
        return '?';
    *ret_len = len;
    uint32_t c = len == 1 ? lead : lead & (0x7Fu >> len);
    for (size_t i = 1; i < len; i++)
        c = c << 6 | ((unsigned char)text.ptr[i] & 0x3Fu);
    return c;
}

static size_t char_width(uint32_t c)
{
    size_t low = 0, high = WIDTH_SPAN_COUNT;
    if (c < 0x80)
        return 1;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (c > WIDTH_SPANS[middle].last)
            low = middle + 1;
        else
            high = middle;
    }
    return low < WIDTH_SPAN_COUNT && c >= WIDTH_SPANS[low].first ? WIDTH_SPANS[low].columns : 1;
}

size_t text_width(struct str text)
{
    size_t width = 0, len;
    for (size_t at = 0; at < text.len; at += len)
        width += char_width(first_char((struct str){text.ptr + at, text.len - at}, &len));
    return width;
}

size_t text_prefix(struct str text, size_t columns)
{
    size_t at = 0, len;
    for (size_t width = 0; at < text.len; at += len) {
        width += char_width(first_char((struct str){text.ptr + at, text.len - at}, &len));
        if (width > columns)
            break;
    }
    return at;
}
