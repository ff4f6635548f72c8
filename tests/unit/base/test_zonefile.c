/* Reading the time zone database: which names are let through, and what is in its place. */
#include "base/support.h"

#include "base/limits.h"
#include "base/zonefile.h"

#include <sys/stat.h>

/* A folder of its own for each test. */
struct setup {
    char root[64];
    struct arena arena;
    struct problem problem;
    struct str tzif;
};

static void begin(struct setup *s)
{
    (void)snprintf(s->root, sizeof(s->root), "/tmp/pawl-zonefile-XXXXXX");
    assert_non_null(mkdtemp(s->root));
    arena_init(&s->arena, MIB);
    problem_init(&s->problem);
    s->tzif = STR("untouched");
}

static void end(struct setup *s)
{
    char command[96];
    (void)snprintf(command, sizeof(command), "rm -rf '%s'", s->root);
    assert_int_equal(system(command), 0); // NOLINT(cert-env33-c): a path of our own
    arena_release(&s->arena);
    problem_release(&s->problem);
}

static void path_of(const struct setup *s, const char *name, char out[128])
{
    int len = snprintf(out, 128, "%s/%s", s->root, name);
    assert_true(len > 0 && len < 128);
}

static void write_file(const struct setup *s, const char *name, const char *text, size_t size)
{
    char path[128];
    path_of(s, name, path);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    (void)fputs(text, f);
    assert_int_equal(fflush(f), 0);
    assert_int_equal(ftruncate(fileno(f), (off_t)size), 0);
    assert_int_equal(fclose(f), 0);
}

static enum err read_zone(struct setup *s, const char *name)
{
    return zonefile_read(s->root, str_of(name), &s->arena, &s->problem, &s->tzif);
}

static void must_refuse(struct setup *s, const char *name)
{
    if (read_zone(s, name) != ERR_FIELD_INVALID)
        fail_msg("taken: <%s>", name);
    assert_contains(s->problem.detail, "timezone: ");
    assert_str(s->tzif, "untouched");
}

static void names_of_zones_are_taken(void **state)
{
    (void)state;
    static const char *const GOOD[] = {
        "Europe/Berlin", "America/Argentina/ComodRivadavia", "Etc/GMT+12", "Etc/GMT-14",
        "EST5EDT",       "America/Port-au-Prince",           "a/b/c/d/e"};
    for (size_t i = 0; i < ARRAY_LEN(GOOD); i++)
        assert_true(zone_name_ok(str_of(GOOD[i])));
    char longest[ZONE_NAME_MAX + 1];
    memset(longest, 'a', sizeof(longest));
    assert_true(zone_name_ok((struct str){longest, ZONE_NAME_MAX}));
    assert_false(zone_name_ok((struct str){longest, ZONE_NAME_MAX + 1}));
}

static void names_that_lead_elsewhere_are_refused(void **state)
{
    (void)state;
    static const char *const BAD[] = {"",
                                      "/",
                                      "/etc/passwd",
                                      "..",
                                      "../passwd",
                                      "Europe/../../passwd",
                                      ".",
                                      "./UTC",
                                      "Europe/",
                                      "Europe//Berlin",
                                      "zone.tab",
                                      "Europe/Ber lin",
                                      "Europe\\Berlin",
                                      "Europe/Berlin\n",
                                      "%2e%2e",
                                      "~root",
                                      "M\xC3\xBCnchen"};
    struct setup s;
    begin(&s);
    for (size_t i = 0; i < ARRAY_LEN(BAD); i++) {
        assert_false(zone_name_ok(str_of(BAD[i])));
        must_refuse(&s, BAD[i]);
    }
    assert_false(zone_name_ok((struct str){"UTC\0x", 5}));
    end(&s);
}

static void the_bytes_of_the_file_are_read(void **state)
{
    (void)state;
    struct setup s;
    begin(&s);
    char path[128];
    path_of(&s, "Mars", path);
    assert_int_equal(mkdir(path, 0755), 0);
    write_file(&s, "Mars/Olympus_Mons", "TZif and more", 13);
    assert_int_equal(read_zone(&s, "Mars/Olympus_Mons"), ERR_OK);
    assert_str(s.tzif, "TZif and more");
    /* A link to another zone is how zones get a second name. */
    char link[128];
    path_of(&s, "Link", link);
    assert_int_equal(symlink("Mars/Olympus_Mons", link), 0);
    s.tzif = STR_NONE;
    assert_int_equal(read_zone(&s, "Link"), ERR_OK);
    assert_str(s.tzif, "TZif and more");
    end(&s);
}

static void the_system_has_zones(void **state)
{
    (void)state;
    struct setup s;
    begin(&s);
    assert_int_equal(zonefile_read(NULL, STR("Europe/Berlin"), &s.arena, &s.problem, &s.tzif),
                     ERR_OK);
    assert_true(str_starts_with(s.tzif, STR("TZif")) && s.tzif.len < ZONE_FILE_MAX);
    end(&s);
}

static void what_is_no_zone_is_refused(void **state)
{
    (void)state;
    struct setup s;
    begin(&s);
    char path[128];
    must_refuse(&s, "Nowhere");
    path_of(&s, "Folder", path);
    assert_int_equal(mkdir(path, 0755), 0);
    must_refuse(&s, "Folder");
    write_file(&s, "Text", "tzdata", 6);
    must_refuse(&s, "Text");
    must_refuse(&s, "Text/Below");
    write_file(&s, "Empty", "", 0);
    must_refuse(&s, "Empty");
    write_file(&s, "Short", "TZi", 3);
    must_refuse(&s, "Short");
    path_of(&s, "Loop", path);
    assert_int_equal(symlink("Loop", path), 0);
    must_refuse(&s, "Loop");
    path_of(&s, "Device", path);
    assert_int_equal(symlink("/dev/zero", path), 0);
    must_refuse(&s, "Device");
    path_of(&s, "Pipe", path);
    assert_int_equal(mkfifo(path, 0644), 0);
    must_refuse(&s, "Pipe"); /* and does not wait for a writer */
    end(&s);
}

static void files_are_bounded(void **state)
{
    (void)state;
    struct setup s;
    begin(&s);
    write_file(&s, "Largest", "TZif", ZONE_FILE_MAX);
    assert_int_equal(read_zone(&s, "Largest"), ERR_OK);
    assert_int_equal(s.tzif.len, ZONE_FILE_MAX);
    s.tzif = STR("untouched");
    write_file(&s, "Larger", "TZif", ZONE_FILE_MAX + 1);
    must_refuse(&s, "Larger");
    arena_release(&s.arena);
    arena_init(&s.arena, ZONE_FILE_MAX - 1);
    assert_int_equal(read_zone(&s, "Largest"), ERR_NO_MEMORY);
    end(&s);
}

static void a_root_that_is_too_long_is_no_overflow(void **state)
{
    (void)state;
    struct setup s;
    begin(&s);
    char root[5000];
    memset(root, 'r', sizeof(root) - 1);
    root[sizeof(root) - 1] = '\0';
    assert_int_equal(zonefile_read(root, STR("UTC"), &s.arena, &s.problem, &s.tzif), ERR_INTERNAL);
    end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_zones_are_taken),
        cmocka_unit_test(names_that_lead_elsewhere_are_refused),
        cmocka_unit_test(the_bytes_of_the_file_are_read),
        cmocka_unit_test(the_system_has_zones),
        cmocka_unit_test(what_is_no_zone_is_refused),
        cmocka_unit_test(files_are_bounded),
        cmocka_unit_test(a_root_that_is_too_long_is_no_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
