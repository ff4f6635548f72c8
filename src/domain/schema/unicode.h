/* The general categories of Unicode, made by tools/embed.py. */
#ifndef PAWL_DOMAIN_SCHEMA_UNICODE_H
#define PAWL_DOMAIN_SCHEMA_UNICODE_H

#include <stddef.h>
#include <stdint.h>

/* Each: code points from `first` on, up to the next entry's, have this category. */
struct unicode_span {
    uint32_t first;
    char category[3]; /* such as "Lu" */
};

extern const struct unicode_span UNICODE_SPANS[];
extern const size_t UNICODE_SPAN_COUNT;

#endif
