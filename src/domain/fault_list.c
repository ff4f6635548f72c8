/* Collects faults as JSON elements, each with a JSON Pointer to its place. */
#include "domain/fault_list.h"

#include "base/limits.h"

#include <stdio.h>

enum {
    /* A fault is read by people: past this it is cut. Fifty of the usual size fit
       PROBLEM_FAULTS_MAX. */
    FAULT_PATH_MAX = 256,
    FAULT_MESSAGE_MAX = 384,
    /* Every byte may become \u00XX, plus the member names. */
    FAULT_ELEMENT_MAX = 6 * (FAULT_PATH_MAX + FAULT_MESSAGE_MAX) + 64,
    /* The whole pointer, of which the names are part of one JSON text; '~' and '/' double. */
    FAULT_POINTER_MAX = 2 * JSON_TEXT_MAX + JSON_DEPTH_MAX,
};

static const struct str CUT = {"…", sizeof("…") - 1};

void fault_list_init(struct fault_list *list, struct buf *out)
{
    assert(out != NULL);
    *list = (struct fault_list){.out = out};
    buf_init(&list->path, FAULT_POINTER_MAX);
}

void fault_list_release(struct fault_list *list)
{
    buf_release(&list->path);
}

size_t fault_list_enter(struct fault_list *list, struct str name)
{
    size_t back_to = list->path.len;
    buf_put_char(&list->path, '/');
    for (size_t i = 0; i < name.len; i++) {
        if (name.ptr[i] == '~')
            buf_put(&list->path, STR("~0"));
        else if (name.ptr[i] == '/')
            buf_put(&list->path, STR("~1"));
        else
            buf_put_char(&list->path, name.ptr[i]);
    }
    return back_to;
}

size_t fault_list_enter_index(struct fault_list *list, size_t index)
{
    size_t back_to = list->path.len;
    buf_put_char(&list->path, '/');
    buf_put_i64(&list->path, (int64_t)index);
    return back_to;
}

void fault_list_leave(struct fault_list *list, size_t back_to)
{
    assert(back_to <= list->path.len);
    list->path.len = back_to;
}

/* The longest part of s that fits `max` bytes and does not end inside a character. */
static struct str cut_utf8(struct str s, size_t max)
{
    if (s.len <= max)
        return s;
    while (max > 0 && ((unsigned char)s.ptr[max] & 0xC0) == 0x80)
        max--;
    return (struct str){s.ptr, max};
}

static void put_cut(struct buf *out, struct str text, size_t max)
{
    char shown[FAULT_MESSAGE_MAX];
    assert(max <= sizeof(shown));
    if (text.len > max) {
        text = cut_utf8(text, max - CUT.len);
        memcpy(shown, text.ptr, text.len);
        memcpy(shown + text.len, CUT.ptr, CUT.len);
        text = (struct str){shown, text.len + CUT.len};
    }
    json_put_text(out, text.len > 0 ? text : STR("")); /* an empty buffer's text points nowhere */
}

void fault_list_add(struct fault_list *list, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fault_list_add_va(list, fmt, args);
    va_end(args);
}

void fault_list_add_va(struct fault_list *list, const char *fmt, va_list args)
{
    if (list->count >= DEFINITION_FAULTS_MAX)
        return;
    list->count++;

    /* One byte longer than is shown, so that put_cut sees what does not fit. */
    char message[FAULT_MESSAGE_MAX + 2];
    int len = vsnprintf(message, sizeof(message), fmt, args);
    assert(len >= 0);

    struct buf element;
    buf_init(&element, FAULT_ELEMENT_MAX);
    buf_put(&element, STR("{\"path\":"));
    put_cut(&element, buf_str(&list->path), FAULT_PATH_MAX);
    buf_put(&element, STR(",\"message\":"));
    put_cut(&element, (struct str){message, MIN((size_t)len, sizeof(message) - 1)},
            FAULT_MESSAGE_MAX);
    buf_put_char(&element, '}');

    struct buf *out = list->out;
    if (!buf_ok(&element) || !buf_ok(&list->path)) {
        out->failed = true;
    } else if (buf_ok(out) && element.len + 2 <= out->max - out->len) {
        /* The two bytes: the comma, and the bracket with which the caller closes the array. A fault
         * that finds no room is counted and left out; those before it are the ones to mend first.
         */
        if (out->len > 0 && out->ptr[out->len - 1] == '}')
            buf_put_char(out, ',');
        buf_put(out, buf_str(&element));
    }
    buf_release(&element);
}
