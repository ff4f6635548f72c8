/* A data file with rows that the checks find sound, to be damaged by the tests. */
#ifndef PAWL_TESTS_STORE_CHECKED_FILE_H
#define PAWL_TESTS_STORE_CHECKED_FILE_H

#include "store/folder.h"

struct checked_file {
    struct folder *folder;
    struct path file;
};

static inline void put_rows(const char *path, const char *sql)
{
    struct raw raw = raw_open(path);
    raw_exec(&raw, sql);
    raw_close(&raw);
}

/* The statements are run one after the other. */
static inline int checked_file_setup(void **state, const char *const *rows, size_t count)
{
    struct checked_file *f = calloc(1, sizeof(*f));
    assert_non_null(f);
    void *folder = NULL;
    (void)folder_setup(&folder);
    f->folder = folder;
    f->file = path_in(f->folder, "p.db");
    db_close(open_writer(f->file.text)); /* makes the tables */
    for (size_t i = 0; i < count; i++)
        put_rows(f->file.text, rows[i]);
    *state = f;
    return 0;
}

static inline int checked_file_teardown(void **state)
{
    struct checked_file *f = *state;
    void *folder = f->folder;
    (void)folder_teardown(&folder);
    free(f);
    return 0;
}

/* With a fixture_setup() of the test's own. */
#define check_test(f) cmocka_unit_test_setup_teardown(f, fixture_setup, checked_file_teardown)

/* What is found is known by how it begins. */
static inline bool begins(const char *text, const char *beginning)
{
    return strncmp(text, beginning, strlen(beginning)) == 0;
}

#endif
