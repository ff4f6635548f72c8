import random
import pawl

worker = pawl.Worker()


def charge_card(card, amount, key):  # your payment service: the same key charges once
    if random.random() < 0.5:
        raise ConnectionError("no answer")
    return {"card": card, "amount": amount, "key": key}


@worker.workflow("order")
def order(input, ctx):
    retry = {"max_attempts": 20, "backoff_ms": 50, "max_backoff_ms": 1000}
    paid = ctx.step("charge", lambda: charge_card(input["card"], input["amount"], ctx.key), retry=retry)
    try:
        ctx.approval("ok", f"Ship an order for {input['amount']}?", content=paid)
        return ctx.step("ship", lambda: {"shipped": input["to"]})
    except pawl.JobError:  # rejected, or not shipped
        ctx.step("refund", lambda: print("refund", paid["amount"], ctx.key, flush=True), retry=100)
        raise


worker.run()
