/* What the answer to an outbound call means. */
#include "domain/call_verdict.h"

#include "base/env.h"
#include "base/limits.h"

enum call_verdict call_verdict_of(int status)
{
    static const int LOST[] = {408, 425, 429}; /* took too long, too early, too often */
    if (status >= 200 && status < 300)
        return CALL_IS_DONE;
    for (size_t i = 0; i < ARRAY_LEN(LOST); i++) {
        if (status == LOST[i])
            return CALL_IS_LOST;
    }
    return status >= 500 ? CALL_IS_LOST : CALL_IS_WRONG;
}

static bool digits_only(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] < '0' || s.ptr[i] > '9')
            return false;
    }
    return s.len > 0;
}

/* The one form that RFC 9110 lets anybody send: "Sun, 06 Nov 1994 08:49:37 GMT". Turned into what
 * time_parse() reads. */
static bool date_parse(struct str text, int64_t *ret_ms)
{
    static const char MONTHS[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    if (text.len != 29 || memcmp(text.ptr + 3, ", ", 2) != 0 || text.ptr[7] != ' ' ||
        text.ptr[11] != ' ' || text.ptr[16] != ' ' || memcmp(text.ptr + 25, " GMT", 4) != 0)
        return false;
    int month = 0;
    while (month < 12 && memcmp(MONTHS + (ptrdiff_t)month * 3, text.ptr + 8, 3) != 0)
        month++;
    char time[32];
    int len = snprintf(time, sizeof(time), "%.4s-%02d-%.2sT%.8sZ", text.ptr + 12, month + 1,
                       text.ptr + 5, text.ptr + 17);
    assert(len > 0 && (size_t)len < sizeof(time));
    return time_parse((struct str){time, (size_t)len}, ret_ms);
}

int64_t retry_after_ms(struct str value, int64_t now_ms)
{
    value = str_trim(value);
    int64_t ms = 0;
    if (digits_only(value)) {
        int64_t seconds = 0;
        bool fits = str_to_i64(value, &seconds) && seconds <= RETRY_AFTER_MS_MAX / 1000;
        ms = fits ? seconds * 1000 : RETRY_AFTER_MS_MAX;
    } else if (date_parse(value, &ms)) {
        ms -= now_ms;
    } else {
        return -1;
    }
    return MIN(MAX(ms, (int64_t)0), (int64_t)RETRY_AFTER_MS_MAX);
}
