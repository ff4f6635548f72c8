/* Libraries that are loaded when they are first needed. */
#include "base/support.h"

#include "library/curl_functions.h"
#include "library/library.h"
#include "library/nats_functions.h"
#include "library/pq_functions.h"

#include <dlfcn.h>

static char why[LIBRARY_WHY_MAX];

static bool is_in_process(const char *file)
{
    void *handle = dlopen(file, RTLD_NOW | RTLD_NOLOAD);
    if (handle != NULL)
        (void)dlclose(handle);
    return handle != NULL;
}

static void none_is_loaded_before_it_is_needed(void **state)
{
    (void)state;
    assert_false(is_in_process(LIBCURL.file));
    assert_false(is_in_process(LIBNATS.file));
    assert_false(is_in_process(LIBPQ.file));
}

static void before_that_there_is_nothing_to_clean_up(void **state)
{
    (void)state;
    curl_slist_free_all(NULL);
    PQfinish(NULL);
    natsOptions_Destroy(NULL);
}

static void the_functions_of_each_are_there_once_it_is_loaded(void **state)
{
    (void)state;
    assert_true(library_load(&LIBCURL, why));
    struct curl_slist *list = curl_slist_append(NULL, "a: b");
    assert_string_equal(list->data, "a: b");
    curl_slist_free_all(list);

    assert_true(library_load(&LIBNATS, why));
    assert_string_equal(natsStatus_GetText(NATS_TIMEOUT), "Timeout");

    assert_true(library_load(&LIBPQ, why));
    PQconninfoOption *options = PQconninfoParse("postgres://me@there/db", NULL);
    assert_non_null(options);
    PQconninfoFree(options);

    assert_true(library_load(&LIBPQ, why)); /* again: nothing happens */
}

/* A long, an offset and a pointer. */
static void an_option_of_libcurl_arrives_as_what_it_is(void **state)
{
    (void)state;
    assert_true(library_load(&LIBCURL, why));
    long port = 0;
    char *own = NULL;
    CURL *easy = curl_easy_init();
    assert_int_equal(curl_easy_setopt(easy, CURLOPT_PORT, 70000L), CURLE_BAD_FUNCTION_ARGUMENT);
    assert_int_equal(curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)-2),
                     CURLE_BAD_FUNCTION_ARGUMENT);
    assert_int_equal(curl_easy_setopt(easy, CURLOPT_PRIVATE, "mine"), CURLE_OK);
    assert_int_equal(curl_easy_getinfo(easy, CURLINFO_PRIVATE, &own), CURLE_OK);
    assert_string_equal(own, "mine");
    assert_int_equal(curl_easy_getinfo(easy, CURLINFO_PRIMARY_PORT, &port), CURLE_OK);
    curl_easy_cleanup(easy);
    CURLM *multi = curl_multi_init();
    assert_int_equal(curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, 4L), CURLM_OK);
    assert_int_equal(curl_multi_setopt(multi, CURLMOPT_TIMERDATA, multi), CURLM_OK);
    assert_int_equal(curl_multi_cleanup(multi), CURLM_OK);
}

static void one_that_is_missing_is_named_with_its_package(void **state)
{
    (void)state;
    struct library absent = {
        .file = "libabsent.so.9", .package = "libabsent9", .lock = PTHREAD_MUTEX_INITIALIZER};
    assert_false(library_load(&absent, why));
    assert_contains(why, "Cannot load libabsent.so.9 (Debian package libabsent9): ");
    assert_contains(why, "No such file");
}

static void one_without_a_function_is_refused_and_tried_again(void **state)
{
    (void)state;
    void *slot = NULL;
    struct library_function functions[] = {{"no_such_function", &slot}};
    struct library old = {.file = LIBPQ.file,
                          .package = LIBPQ.package,
                          .functions = functions,
                          .count = ARRAY_LEN(functions),
                          .lock = PTHREAD_MUTEX_INITIALIZER};
    assert_false(library_load(&old, why));
    assert_contains(why, "no_such_function");
    functions[0].name = "PQlibVersion";
    assert_true(library_load(&old, why));
    assert_non_null(slot);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(none_is_loaded_before_it_is_needed),
        cmocka_unit_test(before_that_there_is_nothing_to_clean_up),
        cmocka_unit_test(the_functions_of_each_are_there_once_it_is_loaded),
        cmocka_unit_test(an_option_of_libcurl_arrives_as_what_it_is),
        cmocka_unit_test(one_that_is_missing_is_named_with_its_package),
        cmocka_unit_test(one_without_a_function_is_refused_and_tried_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
