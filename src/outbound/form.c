/* Fields of a query or a form. */
#include "outbound/form.h"

void form_put_encoded(struct buf *out, struct str text)
{
    static const char HEX[] = "0123456789ABCDEF";
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        bool plain = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                     c == '-' || c == '.' || c == '_' || c == '~';
        if (plain) {
            buf_put_char(out, (char)c);
            continue;
        }
        buf_put_char(out, '%');
        buf_put_char(out, HEX[c >> 4]);
        buf_put_char(out, HEX[c & 15]);
    }
}

void form_put_field(struct buf *out, const char *name, struct str value)
{
    buf_put(out, str_of(name));
    buf_put_char(out, '=');
    form_put_encoded(out, value);
}
