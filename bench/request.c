/* Requests of the load generator; see request.h. */
#include "request.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define UNIQUE_DIGITS 16             /* a 64-bit number in hex */
#define VALUES_MAX ((size_t)1 << 30) /* a file that is larger was mistyped */
#define LENGTH_DIGITS 7              /* of a body up to REQUEST_MAX */

void die(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("load: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(1);
}

/* ---- rendering ---- */

static void put(struct request *request, const char *text, size_t len)
{
    if (len > REQUEST_MAX - request->len)
        die("a request is longer than %d bytes", REQUEST_MAX);
    memcpy(request->bytes + request->len, text, len);
    request->len += len;
}

static void put_slot(struct request *request, struct request_slot slot)
{
    if (request->slot_count == REQUEST_SLOTS_MAX)
        die("a request has more than %d changing places", REQUEST_SLOTS_MAX);
    slot.at = request->len;
    request->slots[request->slot_count++] = slot;
    for (size_t i = 0; i < slot.width; i++)
        put(request, "0", 1);
}

static size_t decimal_digits(uint64_t number)
{
    size_t digits = 1;
    for (; number >= 10; number /= 10)
        digits++;
    return digits;
}

/* A place with a modulus at `text`, {nM} or {cM}: its length, 0 if this is none. */
static size_t modulus_place(const char *text, char letter, uint64_t *ret_modulus)
{
    char *end = NULL;
    if (text[0] != '{' || text[1] != letter || text[2] < '1' || text[2] > '9')
        return 0;
    *ret_modulus = strtoull(text + 2, &end, 10);
    return *end == '}' ? (size_t)(end - text) + 1 : 0;
}

static void put_connection(struct request *request, uint64_t connection)
{
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%llu", (unsigned long long)connection);
    put(request, digits, (size_t)len);
}

/* Puts the place that begins at `text`; its length, 0 if none does. */
static size_t put_place(struct request *request, const char *text, size_t connection,
                        const struct request_values *values)
{
    uint64_t modulus = 0;
    size_t len = 3; /* of most places */
    if (strncmp(text, "{u}", 3) == 0) {
        put_slot(request, (struct request_slot){.kind = SLOT_UNIQUE, .width = UNIQUE_DIGITS});
    } else if (strncmp(text, "{v}", 3) == 0) {
        if (values->count == 0)
            die("{v} needs --values FILE");
        put_slot(request, (struct request_slot){.kind = SLOT_VALUE, .width = values->width});
    } else if (strncmp(text, "{c}", 3) == 0) {
        put_connection(request, connection);
    } else if ((len = modulus_place(text, 'c', &modulus)) > 0) {
        put_connection(request, connection % modulus);
    } else if ((len = modulus_place(text, 'n', &modulus)) > 0) {
        put_slot(request, (struct request_slot){.kind = SLOT_NUMBER,
                                                .width = decimal_digits(modulus - 1),
                                                .modulus = modulus});
    }
    return len;
}

static void put_template(struct request *request, const char *text, size_t connection,
                         const struct request_values *values)
{
    while (*text != '\0') {
        size_t len = *text == '{' ? put_place(request, text, connection, values) : 0;
        if (len == 0)
            put(request, text, 1);
        text += len > 0 ? len : 1;
    }
}

static bool names_type(const char *header)
{
    return strncasecmp(header, "Content-Type:", 13) == 0;
}

static void put_head(struct request *request, const struct request_spec *spec, unsigned port,
                     size_t connection, const struct request_values *values)
{
    char host[48];
    bool typed = spec->body == NULL;
    int len = snprintf(host, sizeof host, " HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n", port);
    put(request, spec->method, strlen(spec->method));
    put(request, " ", 1);
    put_template(request, spec->path, connection, values);
    put(request, host, (size_t)len);
    for (size_t i = 0; i < spec->header_count; i++) {
        put_template(request, spec->headers[i], connection, values);
        put(request, "\r\n", 2);
        typed = typed || names_type(spec->headers[i]);
    }
    if (!typed)
        put(request, "Content-Type: application/json\r\n", 32);
}

/* The length stands before the body, whose width its places decide: leave room, fill it in after.
 */
static void put_body(struct request *request, const struct request_spec *spec, size_t connection,
                     const struct request_values *values)
{
    static_assert(REQUEST_MAX <= 9999999, "the length of a body has LENGTH_DIGITS");
    char digits[LENGTH_DIGITS + 1];
    put(request, "Content-Length: ", 16);
    size_t length_at = request->len;
    put(request, "       \r\n\r\n", LENGTH_DIGITS + 4);
    size_t body_at = request->len;
    put_template(request, spec->body, connection, values);
    snprintf(digits, sizeof digits, "%7zu", request->len - body_at);
    memcpy(request->bytes + length_at, digits, LENGTH_DIGITS);
}

struct request request_render(const struct request_spec *spec, unsigned port, size_t connection,
                              const struct request_values *values)
{
    static char room[REQUEST_MAX];
    struct request request = {.bytes = room};
    put_head(&request, spec, port, connection, values);
    if (spec->body != NULL)
        put_body(&request, spec, connection, values);
    else
        put(&request, "\r\n", 2);

    request.bytes = malloc(request.len);
    if (request.bytes == NULL)
        die("out of memory");
    memcpy(request.bytes, room, request.len);
    return request;
}

/* ---- changing places ---- */

/* A bijection on 64 bits (Stafford's mix 13): numbers that differ give texts that differ. */
static void fill_unique(char *ret_digits, uint64_t number)
{
    static const char hex[] = "0123456789abcdef";
    number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9u;
    number = (number ^ (number >> 27)) * 0x94d049bb133111ebu;
    number ^= number >> 31;
    for (int i = UNIQUE_DIGITS - 1; i >= 0; i--, number >>= 4)
        ret_digits[i] = hex[number & 15];
}

static void fill_decimal(char *ret_digits, size_t width, uint64_t number)
{
    for (size_t i = width; i-- > 0; number /= 10)
        ret_digits[i] = (char)('0' + number % 10);
}

void request_number(struct request *request, uint64_t number, uint64_t seed,
                    const struct request_values *values)
{
    for (size_t i = 0; i < request->slot_count; i++) {
        const struct request_slot *slot = &request->slots[i];
        char *at = request->bytes + slot->at;
        if (slot->kind == SLOT_UNIQUE)
            fill_unique(at, seed + number);
        else if (slot->kind == SLOT_NUMBER)
            fill_decimal(at, slot->width, number % slot->modulus);
        else
            memcpy(at, values->text + number % values->count * (values->width + 1), slot->width);
    }
}

void request_free(struct request *request)
{
    free(request->bytes);
}

/* ---- values ---- */

static char *read_file(const char *path, size_t *ret_len)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0)
        die("%s: %s", path, strerror(errno));
    long len = ftell(file);
    rewind(file);
    if (len < 0 || (size_t)len > VALUES_MAX)
        die("%s is too large", path);
    char *text = malloc((size_t)len + 1);
    if (text == NULL || fread(text, 1, (size_t)len, file) != (size_t)len)
        die("%s cannot be read", path);
    fclose(file);
    *ret_len = (size_t)len;
    return text;
}

struct request_values request_values_read(const char *path)
{
    size_t len = 0;
    struct request_values values = {.text = read_file(path, &len)};
    const char *first_end = memchr(values.text, '\n', len);
    if (first_end == NULL || first_end == values.text)
        die("%s has no lines", path);
    values.width = (size_t)(first_end - values.text);
    values.count = len / (values.width + 1);
    for (size_t i = 0; i < values.count; i++) {
        const char *line = values.text + i * (values.width + 1);
        if (memchr(line, '\n', values.width) != NULL || line[values.width] != '\n')
            die("line %zu of %s differs in length from the first", i + 1, path);
    }
    if (len % (values.width + 1) != 0)
        die("the last line of %s differs in length from the first", path);
    return values;
}

/* ---- several requests ---- */

/* Each gains its weight in every turn; the one with the most credit goes and pays the total. */
size_t request_order(const struct request_spec *specs, size_t count, unsigned char **ret_order)
{
    size_t total = 0;
    for (size_t i = 0; i < count; i++)
        total += specs[i].weight;
    assert(count > 0 && count <= 255 && total > 0);
    unsigned char *order = malloc(total);
    long *credit = calloc(count, sizeof *credit);
    if (order == NULL || credit == NULL)
        die("out of memory");
    for (size_t turn = 0; turn < total; turn++) {
        size_t best = 0;
        for (size_t i = 0; i < count; i++) {
            credit[i] += (long)specs[i].weight;
            if (credit[i] > credit[best])
                best = i;
        }
        credit[best] -= (long)total;
        order[turn] = (unsigned char)best;
    }
    free(credit);
    *ret_order = order;
    return total;
}
