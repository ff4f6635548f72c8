/** The worker of the story, as a process of its own that can be killed. Writes every side effect to a file. */

import { appendFileSync } from "node:fs";
import { Client, Worker } from "../../src/index.js";
import { defineStory } from "./story.js";

const [, , url = "", effects = ""] = process.argv;
const client = new Client({ url, retry: { maxMs: 500 } });
const worker = new Worker(client, { queues: ["story"], concurrency: 4, lease: "2s", wait: "1s" });
defineStory(worker, (effect) => {
  appendFileSync(effects, `${effect}\n`);
});
await worker.run();
