/* Labels of a run: short texts by names without a colon, which a filter has between the two. */
#include "domain/labels.h"

#include "base/limits.h"

void labels_check(struct fields *f, const struct json *labels)
{
    if (labels == NULL || f->err != ERR_OK)
        return;
    if (json_members(labels) > LABELS_MAX) {
        fields_fault(f, "labels", "must have at most 32 members");
        return;
    }
    for (size_t i = 0; i < json_members(labels); i++) {
        struct str name = json_name_at(labels, i);
        const struct json *value = json_value_at(labels, i);
        assert(name.ptr != NULL);
        if (!str_is_name(name) || name.len > NAME_MAX_LEN ||
            memchr(name.ptr, ':', name.len) != NULL)
            fields_fault(f, "labels", "names must be letters, digits or _ - .");
        else if (!json_is(value, JSON_KIND_TEXT) || json_text_of(value).len > LABEL_VALUE_MAX)
            fields_fault(f, "labels", "values must be text of at most 256 bytes");
    }
}
