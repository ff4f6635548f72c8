/* Any text as the URL of a webhook or an http step: libcurl takes every URL that is allowed, and
 * connects to no user's name and by no other scheme. The same bytes as addresses: an IPv4 address
 * that travels inside an IPv6 address is as far away as by itself. */
#include "domain/address.h"
#include "domain/url.h"
#include "fuzz.h"
#include "library/library.h"

#include <curl/curl.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    char why[LIBRARY_WHY_MAX];
    bool loaded = library_load(&LIBCURL, why);
    (void)argc;
    (void)argv;
    assert(loaded);
    return 0;
}

static bool part_is(CURLU *url, CURLUPart part, const char *a, const char *b)
{
    char *text = NULL;
    CURLUcode code = curl_url_get(url, part, &text, 0);
    bool is = code == CURLUE_OK && (strcmp(text, a) == 0 || strcmp(text, b) == 0);
    curl_free(text);
    return is;
}

static bool has_part(CURLU *url, CURLUPart part)
{
    char *text = NULL;
    CURLUcode code = curl_url_get(url, part, &text, 0);
    curl_free(text);
    return code == CURLUE_OK;
}

static void check_url(struct str text)
{
    const char *fault = url_fault(text);
    if (fault != NULL) {
        assert(fault[0] != '\0');
        return;
    }
    char *copy = strndup(text.ptr, text.len);
    CURLU *url = curl_url();
    assert(copy != NULL && url != NULL && strlen(copy) == text.len);
    CURLUcode code = curl_url_set(url, CURLUPART_URL, copy, 0);
    if (code != CURLUE_OK)
        (void)fprintf(stderr, "libcurl refuses %s: %d\n", copy, (int)code);
    assert(code == CURLUE_OK);
    assert(part_is(url, CURLUPART_SCHEME, "http", "https"));
    assert(has_part(url, CURLUPART_HOST) && !has_part(url, CURLUPART_USER));
    curl_url_cleanup(url);
    free(copy);
}

static void check_address(const uint8_t *data)
{
    unsigned char mapped[16] = {[10] = 0xff, [11] = 0xff};
    unsigned char nat64[16] = {0x00, 0x64, 0xff, 0x9b};
    unsigned char by_6to4[16] = {0x20, 0x02};
    memcpy(mapped + 12, data, 4);
    memcpy(nat64 + 12, data, 4);
    memcpy(by_6to4 + 2, data, 4);
    memcpy(by_6to4 + 6, data + 6, 10);
    enum address_kind kind = address_kind_v4(data);
    assert(address_kind_v6(mapped) == kind && address_kind_v6(nat64) == kind);
    assert(address_kind_v6(by_6to4) == kind);
    enum address_kind six = address_kind_v6(data);
    assert(address_kind_name(six)[0] != '\0');
    if (six == ADDRESS_PUBLIC) /* global unicast, the only block that is given out; or IPv4 */
        assert(data[0] >> 5 == 1 || data[0] == 0);
    assert(address_in_reach(six, REACH_ALL));
    assert(address_in_reach(six, REACH_PUBLIC) == (six == ADDRESS_PUBLIC));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_url(fuzz_text(data, size));
    if (size >= 16)
        check_address(data);
    return 0;
}
