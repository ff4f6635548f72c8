/* A compiled regular expression: a program whose jumps are relative, so that its parts can be moved
 * and copied. */
#ifndef PAWL_DOMAIN_SCHEMA_REGEX_INTERNAL_H
#define PAWL_DOMAIN_SCHEMA_REGEX_INTERNAL_H

#include "domain/schema/regex.h"

enum regex_op {
    /* These take one code point. */
    REGEX_CHAR,  /* `of` */
    REGEX_ANY,   /* any but the ends of lines */
    REGEX_CLASS, /* one of class `of` */
    /* These take nothing. */
    REGEX_SPLIT, /* go on, and also at `to` */
    REGEX_JUMP,  /* go on at `to` */
    REGEX_BEGIN, /* at the beginning of the text only */
    REGEX_END,   /* at its end only */
    REGEX_EDGE,  /* between a word and what is none */
    REGEX_NO_EDGE,
    REGEX_FOUND,
};

struct regex_inst {
    enum regex_op op;
    union {
        uint32_t of;
        int32_t to; /* counted from this instruction */
    };
};

/* Both ends are part of it. */
struct regex_range {
    uint32_t low;
    uint32_t high;
};

/* Ranges that rise and do not touch. */
struct regex_class {
    size_t first;
    size_t count;
    uint64_t ascii[2]; /* the same for the first 128 code points, a bit each */
};

struct regex {
    struct regex_inst *program;
    size_t count;
    struct regex_class *classes;
    size_t class_count;
    struct regex_range *ranges;
    size_t range_count;
    size_t category_count; /* of \p{…}: finding what one stands for takes a while */

    /* --- room for a search: `count` of each --- */
    uint32_t *marks; /* the number of the round in which an instruction was met */
    uint32_t *stack;
    uint32_t *takers; /* instructions that wait for a code point */
    uint32_t *reached;
    uint32_t round;
};

enum {
    REGEX_CODE_POINT_MAX = 0x10FFFF,
    REGEX_CATEGORY_SIZE = 64, /* what a \p{…} weighs beside its ranges */
};

/* The code point at `at`, which advances past it. A byte that is not UTF-8 stands for itself. */
static inline uint32_t regex_next(struct str text, size_t *at)
{
    const unsigned char *p = (const unsigned char *)text.ptr + *at;
    uint32_t c = p[0];
    size_t more = c < 0xC0 ? 0 : c < 0xE0 ? 1 : c < 0xF0 ? 2 : 3;
    if (more >= text.len - *at)
        more = 0;
    *at += 1 + more;
    if (more > 0)
        c &= 0x3Fu >> more;
    for (size_t i = 1; i <= more; i++)
        c = c << 6 | (p[i] & 0x3Fu);
    return c;
}

static inline bool regex_is_word(uint32_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= 'a' && c <= 'z');
}

#endif
