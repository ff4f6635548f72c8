// An order: it is paid, a person is asked, and it is shipped; if that fails, the money goes back.
import { Client, Worker } from "pawl";

interface Order {
  card: string;
  amount: number;
  to: string;
}

const client = new Client(); // PAWL_URL, PAWL_API_KEY, PAWL_TENANT
const worker = new Worker(client);

// Call your payment service here, with the key: the same key charges once.
function pay(card: string, amount: number, key: string) {
  return { card, amount, key };
}

const order = worker.durable("order", async (input: Order, ctx) => {
  await ctx.step("charge", ({ key }) => pay(input.card, input.amount, key), { retry: 5 });
  try {
    if (input.amount > 100) await ctx.approval("ok", `Ship an order for ${input.amount}?`);
    return await ctx.step("ship", () => ({ shipped: input.to }));
  } catch (error) {
    await ctx.step("refund", ({ key }) => pay(input.card, -input.amount, key));
    throw error;
  }
});

await client.apply(order);
process.once("SIGTERM", () => void worker.stop());
process.once("SIGINT", () => void worker.stop());
await worker.run();
