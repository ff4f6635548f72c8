/** A worker process with a job that takes a while, to be stopped by a signal. */

import { Client, Worker } from "../../src/index.js";

const [, , url = ""] = process.argv;
const worker = new Worker(new Client({ url }), { queues: ["slow"], lease: "10s", wait: "5s" });
worker.task("slow", async (input: { ms: number }) => {
  console.log("began");
  await new Promise((resolve) => setTimeout(resolve, input.ms));
  return "finished";
});
await worker.run();
process.exit(); // a handler that was given up may still wait for something
