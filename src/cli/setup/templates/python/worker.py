"""An order: it is paid, a person is asked, and it is shipped; if that fails, the money goes back."""

import pawl

worker = pawl.Worker()


def charge_card(card, amount, key):
    """Call your payment service here, with the key: the same key charges once."""
    return {"card": card, "amount": amount, "key": key}


@worker.workflow("order")
def order(input, ctx):
    paid = ctx.step("charge", lambda: charge_card(input["card"], input["amount"], ctx.key), retry=5)
    try:
        if input["amount"] > 100:
            ctx.approval("ok", f"Ship an order for {input['amount']}?", content=paid)
        return ctx.step("ship", lambda: {"shipped": input["to"]})
    except pawl.JobError:  # rejected, or not shipped
        ctx.step("refund", lambda: print("refund", paid["amount"], ctx.key, flush=True), retry=100)
        raise


if __name__ == "__main__":
    worker.run()
