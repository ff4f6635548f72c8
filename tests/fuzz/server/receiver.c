/* The other side of http steps and webhooks. */
#include "receiver.h"

#include "bus/http_call.h"
#include "inline_threads.h"

static struct taker *source;

static void answer(struct http_call *call)
{
    static const int STATUSES[] = {200, 201, 204, 302, 400, 404, 410, 429, 500, 503, 599};
    static const char *const HEADS[] = {"", "Content-Type: application/json\n", "Retry-After: 3\n",
                                        "Retry-After: x\n",
                                        "Content-Type: text/plain; charset=utf-8\n"};
    unsigned how = take_byte(source);
    if (how >= 224) {
        http_call_end(call, (enum call_end)(1 + how % (CALL_END_COUNT - 1)), "by the input");
        return;
    }
    call->end = CALL_ANSWERED;
    call->status = how < 128 ? 200 : STATUSES[how % ARRAY_LEN(STATUSES)];
    buf_put(&call->head, str_of(HEADS[how % ARRAY_LEN(HEADS)]));
    buf_put(&call->body, how % 4 == 0 ? take_text(source, 255) : STR("{\"ok\":true}"));
}

void receiver_decides(struct taker *from)
{
    source = from;
    inline_receiver = from != NULL ? answer : NULL;
}
