/* Labels of a run: short texts by names without a colon, which a filter has between the two. */
#include "domain/labels.h"

#include "base/limits.h"

void labels_check(struct fields *f, const json_t *labels)
{
    if (labels == NULL || f->err != ERR_OK)
        return;
    if (json_object_size(labels) > LABELS_MAX) {
        fields_fault(f, "labels", "must have at most 32 members");
        return;
    }
    json_t *o = (json_t *)(uintptr_t)labels;
    for (void *it = json_object_iter(o); it != NULL; it = json_object_iter_next(o, it)) {
        struct str name = str_of(json_object_iter_key(it));
        const json_t *value = json_object_iter_value(it);
        if (!str_is_name(name) || name.len > NAME_MAX_LEN ||
            memchr(name.ptr, ':', name.len) != NULL)
            fields_fault(f, "labels", "names must be letters, digits or _ - .");
        else if (!json_is_string(value) || json_string_length(value) > LABEL_VALUE_MAX)
            fields_fault(f, "labels", "values must be text of at most 256 bytes");
    }
}
