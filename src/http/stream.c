/* Answers that go on: server-sent events, exports. Pieces are fetched as the client takes them.
 * Small ones are gathered, so that a burst of events costs one system call; a large one is sent
 * from where it lies. */
#include "http/internal.h"

enum { FRAME_MAX = 24, END_MAX = 8 }; /* around a piece; after the last one */

/* Pieces so far, in the server's scratch memory. */
struct gathered {
    char *at;
    size_t len;
    size_t room;
};

static void put(struct gathered *g, struct str s)
{
    assert(g->len + s.len <= HTTP_GATHER_MAX);
    memcpy(g->at + g->len, s.ptr, s.len);
    g->len += s.len;
}

/* The size in hexadecimal digits, and the line's end. */
static struct str chunk_line(size_t size, char *out)
{
    int len = snprintf(out, FRAME_MAX, "%zx\r\n", size);
    assert(len > 0 && len < FRAME_MAX);
    return (struct str){out, (size_t)len};
}

static void gather(struct gathered *g, const struct request *r, struct str piece)
{
    char line[FRAME_MAX];
    if (r->chunked_reply)
        put(g, chunk_line(piece.len, line));
    put(g, piece);
    if (r->chunked_reply)
        put(g, STR("\r\n"));
}

static void add_part(struct request *r, struct str part)
{
    if (part.len == 0)
        return;
    assert(r->part_count < ARRAY_LEN(r->parts));
    r->parts[r->part_count++] = part;
}

/* A piece that is too large to be gathered, after what was. */
static void add_large(struct request *r, struct str piece)
{
    static_assert(sizeof(r->chunk_line) >= FRAME_MAX, "any size fits");
    if (r->chunked_reply)
        add_part(r, chunk_line(piece.len, r->chunk_line));
    add_part(r, piece);
    if (r->chunked_reply)
        add_part(r, STR("\r\n"));
}

enum http_piece stream_fill(struct request *r)
{
    struct gathered g = {.at = r->server->scratch};
    struct str large = STR_NONE;
    enum http_piece got = HTTP_PIECE;
    assert(r->part_count == 0 && !r->ended);
    free(r->gathered);
    r->gathered = NULL;
    while (got == HTTP_PIECE && large.ptr == NULL) {
        struct str piece = STR_NONE;
        got = r->source->next(r->pub.user, &piece);
        if (got != HTTP_PIECE)
            break;
        assert(piece.len > 0);
        if (piece.len + FRAME_MAX + END_MAX <= HTTP_GATHER_MAX - g.len)
            gather(&g, r, piece);
        else
            large = piece;
    }
    r->ended = got == HTTP_END;
    if (r->ended && r->chunked_reply)
        put(&g, STR("0\r\n\r\n"));
    add_part(r, (struct str){g.at, g.len});
    if (large.ptr != NULL)
        add_large(r, large);
    return r->part_count > 0 ? HTTP_PIECE : got; /* the source says it again next time */
}

bool stream_keep(struct request *r)
{
    struct str rest = r->parts[0];
    const char *scratch = r->server->scratch;
    if (rest.ptr < scratch || rest.ptr >= scratch + HTTP_GATHER_MAX)
        return true;
    assert(r->gathered == NULL);
    r->gathered = malloc(rest.len);
    if (r->gathered == NULL)
        return false;
    memcpy(r->gathered, rest.ptr, rest.len);
    r->parts[0].ptr = r->gathered;
    return true;
}
