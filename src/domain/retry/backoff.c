/* A range for each policy, and a number drawn from it. */
#include "domain/retry/backoff.h"

static int64_t ceiling_ms(const struct backoff *b, int64_t attempt);
static int64_t tripled_ms(int64_t previous_ms, int64_t max_ms);
static uint64_t mixed(uint64_t seed, int64_t attempt);
static int64_t drawn(uint64_t bits, int64_t low, int64_t high);

static const char *const POLICY_NAMES[] = {
#define X(symbol, name) name,
    BACKOFF_POLICIES(X)
#undef X
};

static_assert(ARRAY_LEN(POLICY_NAMES) == BACKOFF_POLICY_COUNT, "one name per policy");

const char *backoff_policy_name(enum backoff_policy policy)
{
    assert(policy < BACKOFF_POLICY_COUNT);
    return POLICY_NAMES[policy];
}

enum backoff_policy backoff_policy_of(struct str name)
{
    enum backoff_policy policy = 0;
    while (policy < BACKOFF_POLICY_COUNT && !str_is(name, POLICY_NAMES[policy]))
        policy++;
    return policy;
}

int64_t backoff_delay_ms(const struct backoff *b, int64_t attempt, int64_t previous_ms,
                         uint64_t seed)
{
    assert(b->policy < BACKOFF_POLICY_COUNT && b->base_ms >= 0 && b->max_ms >= 0);
    assert(attempt >= 1 && previous_ms >= 0);
    if (b->base_ms == 0)
        return 0;
    int64_t low = 0;
    int64_t high = 0;
    switch (b->policy) {
    case BACKOFF_FIXED:
        low = high = MIN(b->base_ms, b->max_ms);
        break;
    case BACKOFF_FULL_JITTER:
        high = ceiling_ms(b, attempt);
        break;
    case BACKOFF_EQUAL_JITTER:
        high = ceiling_ms(b, attempt);
        low = high / 2;
        break;
    case BACKOFF_DECORRELATED:
        low = MIN(b->base_ms, b->max_ms);
        high = MAX(low, tripled_ms(previous_ms, b->max_ms));
        break;
    case BACKOFF_POLICY_COUNT:
        break;
    }
    int64_t delay_ms = drawn(mixed(seed, attempt), low, high);
    assert(delay_ms >= low && delay_ms <= b->max_ms);
    return delay_ms;
}

static int64_t ceiling_ms(const struct backoff *b, int64_t attempt)
{
    int64_t doublings = attempt - 1;
    /* Halving max_ms asks whether the product exceeds it without making the product. */
    if (doublings >= 63 || b->base_ms > b->max_ms >> doublings)
        return b->max_ms;
    return b->base_ms << doublings;
}

static int64_t tripled_ms(int64_t previous_ms, int64_t max_ms)
{
    return previous_ms > max_ms / 3 ? max_ms : previous_ms * 3;
}

/* The attempt's number in the splitmix64 sequence that starts at the seed. */
static uint64_t mixed(uint64_t seed, int64_t attempt)
{
    uint64_t z = seed + (uint64_t)attempt * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Random bits, read as a fraction of 2^64, of the numbers low … high. Of two numbers one is at most
 * one part in 2^64 / (high - low + 1) more likely: a remainder would favour the small ones. */
static int64_t drawn(uint64_t bits, int64_t low, int64_t high)
{
    assert(low >= 0 && low <= high);
    uint64_t count = (uint64_t)(high - low) + 1;
    return low + (int64_t)((__uint128_t)bits * count >> 64);
}
