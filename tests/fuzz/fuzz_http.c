/* Any bytes as what a client sends: requests one after the other, or the body of a chunked one. The
 * parser must give the same result however they are split, and the reference's. */
#include "fuzz.h"

#include "http/compare.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    struct str bytes = fuzz_text(data + 1, size - 1);
    size_t used;
    if (data[0] % 4 == 0)
        (void)compare_chunks(bytes, data[0], &used);
    else
        (void)compare_connection(bytes, data[0]);
    return 0;
}
