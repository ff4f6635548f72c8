import { Client, Worker } from "pawl";

const client = new Client(); // PAWL_URL, PAWL_API_KEY, PAWL_TENANT
const worker = new Worker(client);
const order = worker.durable("order", async (input: { id: string; amount: number }, ctx) => {
  const charge = await ctx.step("charge", ({ key }) => pay(input.amount, key), { retry: 5 });
  try {
    await ctx.approval("ok", `Ship order ${input.id} for ${input.amount}?`);
    return await ctx.step("ship", () => `order ${input.id} is on its way`);
  } catch (error) {
    await ctx.step("refund", ({ key }) => pay(-input.amount, key));
    throw error;
  }
});

async function pay(amount: number, key: string): Promise<string> {
  return `charged ${amount} once, because of the key ${key}`; // send the key to your payment API
}

await client.apply(order);
const running = worker.run();
const run = await client.start(order, { id: "791", amount: 120 }, { key: "order-791" });
await client.approvals.approve(await run.approval()); // or: pawl approval approve …
console.log(await run.result()); // order 791 is on its way
await worker.stop().then(() => running);
