/* Tables of the documentation whose rows are tests. A comment such as `<!-- table: cron -->` marks
 * one; its rows follow, up to the first line that is none. */
#ifndef PAWL_TESTS_DOC_TABLE_H
#define PAWL_TESTS_DOC_TABLE_H

#include "testing.h"

#include "base/buf.h"
#include "base/limits.h"

#include <stdio.h>
#include <stdlib.h>

enum { DOC_CELLS_MAX = 8 };

struct doc_row {
    struct str cells[DOC_CELLS_MAX]; /* without the back quotes around them */
    size_t count;
};

/* The whole file; the caller frees it. */
static inline char *doc_read(const char *name)
{
    char path[4096];
    (void)snprintf(path, sizeof(path), "%s/%s", PAWL_DOCS, name);
    FILE *f = fopen(path, "re");
    if (f == NULL)
        fail_msg("cannot read %s", path);
    char *text = calloc(1, MIB);
    assert_non_null(text);
    assert_in_range(fread(text, 1, MIB - 1, f), 1, MIB - 2);
    (void)fclose(f);
    return text;
}

/* What stands behind the mark of a table. */
static inline struct str doc_marked(const char *text, const char *mark)
{
    const char *at = strstr(text, mark);
    if (at == NULL)
        fail_msg("the mark %s is missing", mark);
    return str_of(at + strlen(mark));
}

static inline struct str doc_cell(struct str text)
{
    text = str_trim(text);
    if (text.len >= 2 && text.ptr[0] == '`' && text.ptr[text.len - 1] == '`')
        return (struct str){text.ptr + 1, text.len - 2};
    return text;
}

static inline struct doc_row doc_row_of(struct str line)
{
    struct doc_row row = {.count = 0};
    struct str cell;
    line = (struct str){line.ptr + 1, line.len - 1};
    while (str_cut(line, '|', &cell, &line)) {
        assert_true(row.count < DOC_CELLS_MAX);
        row.cells[row.count++] = doc_cell(cell);
    }
    return row;
}

/* Calls `check` with each row of the first table behind the mark; returns how many there are. */
static inline size_t doc_each_row(struct str marked,
                                  void (*check)(void *ctx, const struct doc_row *row), void *ctx)
{
    size_t lines = 0; /* of the table: its head and the line below it are the first two */
    struct str line;
    while (str_cut(marked, '\n', &line, &marked)) {
        bool is_row = line.len > 1 && line.ptr[0] == '|';
        if (!is_row && lines > 0)
            break;
        lines += is_row;
        if (lines > 2) {
            struct doc_row row = doc_row_of(line);
            check(ctx, &row);
        }
    }
    return lines > 2 ? lines - 2 : 0;
}

#endif
