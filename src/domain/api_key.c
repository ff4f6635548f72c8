/* What an API key looks like. */
#include "domain/api_key.h"

#include <assert.h>

static const char ALPHABET[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"; /* 32 characters, none alike */

void api_key_make(const struct api_key_random *random, char *text, struct str *ret_prefix,
                  struct sha256 *ret_hash)
{
    const struct str mark = STR("pawl_");
    size_t len = mark.len;
    memcpy(text, mark.ptr, mark.len);
    for (size_t i = 0; i < sizeof(random->bytes); i++) {
        if (len == API_KEY_PREFIX_LEN)
            text[len++] = '_';
        text[len++] = ALPHABET[random->bytes[i] & 31];
    }
    static_assert(API_KEY_PREFIX_LEN + 1 + API_KEY_SECRET_LEN < API_KEY_TEXT_MAX, "a key fits");
    assert(len == API_KEY_PREFIX_LEN + 1 + API_KEY_SECRET_LEN);
    text[len] = '\0';
    *ret_prefix = (struct str){text, API_KEY_PREFIX_LEN};
    *ret_hash = sha256_of((struct str){text, len});
}

bool api_key_prefix(struct str key, struct str *ret)
{
    if (key.len <= API_KEY_PREFIX_LEN || !str_starts_with(key, STR("pawl_")))
        return false;
    *ret = (struct str){key.ptr, API_KEY_PREFIX_LEN};
    return true;
}
