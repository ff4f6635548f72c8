#include "sse.h"

#include <stdlib.h>
#include <string.h>

static void clear(struct buffer *buffer)
{
    buffer->size = 0;
    if (buffer->data)
        buffer->data[0] = 0;
}

static const char *text_of(const struct buffer *buffer)
{
    return buffer->data ? buffer->data : "";
}

void sse_begin(struct sse *sse, const char *last_id)
{
    *sse =
        (struct sse){.has_id = last_id != NULL, .last_id = last_id ? format("%s", last_id) : NULL};
    if (last_id)
        buffer_text(&sse->id, last_id);
}

void sse_end(struct sse *sse)
{
    buffer_free(&sse->line);
    buffer_free(&sse->event);
    buffer_free(&sse->data);
    buffer_free(&sse->id);
    free(sse->last_id);
}

static bool dispatch(struct sse *sse, sse_fn *each, void *user)
{
    if (sse->has_id) {
        free(sse->last_id);
        sse->last_id = format("%s", text_of(&sse->id));
    }
    const char *name = sse->event.size ? sse->event.data : "message";
    struct sse_event event = {.id = sse->last_id, .event = name, .data = text_of(&sse->data)};
    bool goes_on = !sse->has_data || each(&event, user);
    clear(&sse->event);
    clear(&sse->data);
    sse->has_data = false;
    return goes_on;
}

static void take_field(struct sse *sse, const char *line, size_t size)
{
    const char *colon = memchr(line, ':', size);
    size_t name = colon ? (size_t)(colon - line) : size;
    const char *value = colon ? colon + 1 : line + size;
    size_t length = size - (size_t)(value - line);
    if (length && *value == ' ') {
        value++;
        length--;
    }
    if (name == 4 && memcmp(line, "data", 4) == 0) {
        if (sse->has_data)
            buffer_text(&sse->data, "\n");
        buffer_add(&sse->data, value, length);
        sse->has_data = true;
    } else if (name == 5 && memcmp(line, "event", 5) == 0) {
        clear(&sse->event);
        buffer_add(&sse->event, value, length);
    } else if (name == 2 && memcmp(line, "id", 2) == 0 && !memchr(value, 0, length)) {
        clear(&sse->id);
        buffer_add(&sse->id, value, length);
        sse->has_id = true;
    }
}

static bool end_line(struct sse *sse, sse_fn *each, void *user)
{
    const char *line = text_of(&sse->line);
    size_t size = sse->line.size;
    if (!sse->begun && size >= 3 && memcmp(line, "\xEF\xBB\xBF", 3) == 0) {
        line += 3;
        size -= 3;
    }
    sse->begun = true;
    bool goes_on = true;
    if (size == 0)
        goes_on = dispatch(sse, each, user);
    else
        take_field(sse, line, size);
    clear(&sse->line);
    return goes_on;
}

bool sse_feed(struct sse *sse, const char *bytes, size_t size, sse_fn *each, void *user)
{
    for (size_t i = 0; i < size; i++) {
        bool second = bytes[i] == '\n' && sse->after_cr;
        sse->after_cr = bytes[i] == '\r';
        if (second)
            continue;
        if (bytes[i] != '\n' && bytes[i] != '\r')
            buffer_add(&sse->line, bytes + i, 1);
        else if (!end_line(sse, each, user))
            return false;
    }
    return true;
}
