/* Any bytes as the text of a time or an id, and as the numbers behind them: both ways round. */
#include "base/env.h"
#include "fuzz.h"

static struct buf text_of_time(int64_t ms)
{
    struct buf text;
    buf_init(&text, TIME_TEXT_LEN);
    buf_put_time(&text, ms);
    assert(buf_ok(&text) && text.len == TIME_TEXT_LEN);
    return text;
}

/* The C library counts days by another method. */
static void check_time(int64_t ms)
{
    struct buf text = text_of_time(ms);
    int64_t again;
    bool ok = time_parse(buf_str(&text), &again);
    assert(ok && again == ms);
    int64_t part = ((ms % 1000) + 1000) % 1000;
    time_t seconds = (time_t)((ms - part) / 1000);
    struct tm tm;
    char wanted[64];
    (void)gmtime_r(&seconds, &tm);
    (void)snprintf(wanted, sizeof(wanted), "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", tm.tm_year + 1900,
                   tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, (int)part);
    assert(str_is(buf_str(&text), wanted));
    buf_release(&text);
}

static void check_uuid(struct uuid id)
{
    struct buf text;
    buf_init(&text, UUID_TEXT_LEN);
    buf_put_uuid(&text, id);
    struct uuid again;
    bool ok = buf_ok(&text) && uuid_parse(buf_str(&text), &again);
    assert(ok && uuid_eq(id, again));
    buf_release(&text);
}

/* Ids sort as their times do, and keep their random half. */
static void check_uuid_time(struct uuid id, int64_t time)
{
    struct uuid at = id, later = id;
    uuid_set_time(&at, time);
    assert(uuid_time(at) == time && memcmp(at.bytes + 8, id.bytes + 8, 8) == 0);
    check_uuid(at);
    if (time + 1 < INT64_C(1) << 60) {
        uuid_set_time(&later, time + 1);
        assert(memcmp(at.bytes, later.bytes, sizeof(at.bytes)) < 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = fuzz_text(data, size);
    int64_t ms;
    if (time_parse(text, &ms))
        check_time(ms);
    struct uuid id = {{0}};
    if (uuid_parse(text, &id)) {
        struct buf lower;
        buf_init(&lower, UUID_TEXT_LEN);
        buf_put_uuid(&lower, id);
        assert(str_eq_nocase(buf_str(&lower), text));
        buf_release(&lower);
    }
    const int64_t first = INT64_C(-62135596800000), beyond = INT64_C(253402300800000);
    uint64_t number = 0;
    memcpy(&number, data, MIN(size, sizeof(number)));
    memcpy(id.bytes, data, MIN(size, sizeof(id.bytes)));
    check_time(first + (int64_t)(number % (uint64_t)(beyond - first)));
    check_uuid(id);
    check_uuid_time(id, (int64_t)(number >> 4));
    return 0;
}
