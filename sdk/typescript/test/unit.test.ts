/** Small parts by themselves: durations, expressions, lists. */

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Client, expr, step, toMs, Worker, workflow, type Duration, type Refs } from "../src/index.js";
import { fakeFetch, offline, responseOf, TestClock } from "./support/fixtures.js";

describe("durations", () => {
  test("are milliseconds, or a number with a unit", () => {
    const given: Duration[] = [0, 1500, "250ms", "30s", "5m", "2h", "7d", "1.5s"];
    assert.deepEqual(given.map(toMs), [0, 1500, 250, 30_000, 300_000, 7_200_000, 604_800_000, 1500]);
  });

  test("anything else is refused", () => {
    for (const given of [-1, NaN, Infinity, "5 m", "m", "", "-1s", "1w"]) {
      assert.throws(() => toMs(given as Duration), RangeError, String(given));
    }
  });
});

describe("expressions", () => {
  interface Input {
    lines: Array<{ price: number }>;
    "my-name": string;
    "two\nlines": string;
    end: string;
    source: string;
  }

  function outputOf(build: (refs: Refs<Input>) => unknown): unknown {
    const { definition } = workflow<Input>("w", (refs) => [step.transform("a", build(refs))]);
    return definition.steps[0]?.output;
  }

  test("a reference is a template, by itself and in a text", () => {
    assert.equal(
      outputOf(({ input }) => input.source),
      "${input.source}",
    );
    assert.deepEqual(
      outputOf(({ input }) => ({ text: `Hi ${input.source}!` })),
      { text: "Hi ${input.source}!" },
    );
  });

  test("indexes count from 0 here and from 1 in Lua", () => {
    assert.equal(
      outputOf(({ input }) => input.lines[0]?.price),
      "${input.lines[1].price}",
    );
  });

  test("names that Lua does not know as such are quoted", () => {
    assert.equal(
      outputOf(({ input }) => input["my-name"]),
      '${input["my-name"]}',
    );
  });

  test("quoted names are texts of Lua, not of JSON", () => {
    assert.equal(
      outputOf(({ input }) => input["two\nlines"]),
      '${input["two\\nlines"]}',
    );
    assert.equal(
      outputOf(({ input }) => input.end),
      '${input["end"]}',
      "a word of Lua",
    );
  });

  test("expr writes values as Lua literals and references as themselves", () => {
    const values = workflow<Input>("w", ({ input }) => [
      step.transform("a", expr`${input.source} == ${'say "hi"\\\n'} and ${true} or ${null} == ${1.5}`),
    ]);
    assert.equal(values.definition.steps[0]?.output, '${input.source == "say \\"hi\\"\\\\\\n" and true or nil == 1.5}');
  });

  test("when and for_each take them without ${}", () => {
    const { definition } = workflow<Input>("w", ({ input, item }) => [
      step.task("a", "h", { when: expr`#${input.lines} > 0`, for_each: input.lines, input: { price: item } }),
    ]);
    const [made] = definition.steps;
    assert.deepEqual(
      [made?.when, made?.for_each, made?.input],
      ["#input.lines > 0", "input.lines", { price: "${item}" }],
    );
  });
});

describe("lists", () => {
  test("go on with the cursor until there is none", async () => {
    const pages: Record<string, unknown> = {
      "": { items: [{ id: "a" }, { id: "b" }], next_cursor: "c 1" },
      "c 1": { items: [], next_cursor: "c2" },
      c2: { items: [{ id: "c" }], next_cursor: null },
    };
    const asked: string[] = [];
    const client = new Client(
      offline(({ url }) => {
        const cursor = url.searchParams.get("cursor") ?? "";
        asked.push(cursor);
        return responseOf({ headers: { "content-type": "application/json" }, body: pages[cursor] as never });
      }),
    );
    const all = await client.workflows.list({ limit: 2 }).all();
    assert.deepEqual(
      [all.map((item) => item.id), asked],
      [
        ["a", "b", "c"],
        ["", "c 1", "c2"],
      ],
    );
  });

  test("are not read further than they are iterated", async () => {
    let requests = 0;
    const client = new Client(
      offline(() => {
        requests += 1;
        const body = { items: [{ id: "a" }, { id: "b" }], next_cursor: "more" };
        return responseOf({ headers: { "content-type": "application/json" }, body });
      }),
    );
    const iterator = client.workflows.list()[Symbol.asyncIterator]();
    await iterator.next();
    await iterator.return?.();
    assert.equal(requests, 1);
  });
});

describe("a stream", () => {
  test("gives up when there was no connection for as long as a request is retried", async () => {
    const clock = new TestClock();
    const client = new Client(
      offline(() => responseOf({ lost: true }), { clock, retry: { deadlineMs: 5000, jitter: "none" } }),
    );
    await assert.rejects(client.events().next(), { name: "NoAnswerError" });
    assert.ok(clock.time >= 5000 && clock.time < 20_000, String(clock.time));
  });

  test("waits as long as the server asks", async () => {
    const clock = new TestClock();
    const problem = { code: "OVERLOADED", status: 503, retryable: true };
    const headers = { "content-type": "application/problem+json", "retry-after": "3" };
    const busy = (): Response => responseOf({ status: 503, headers, body: problem });
    const client = new Client(offline(busy, { clock, retry: { deadlineMs: 5000, jitter: "none" } }));
    await assert.rejects(client.events().next(), { code: "OVERLOADED" });
    assert.ok(clock.pauses.every((ms) => ms >= 3000));
  });
});

describe("a worker", () => {
  test("tries a durable function 20 times unless it is told otherwise", () => {
    const worker = new Worker(new Client());
    const retryOf = (id: string, options = {}): unknown =>
      worker.durable(id, () => 1, options).definition.steps[0]?.retry;
    assert.deepEqual([retryOf("a"), retryOf("b", { retry: 3 })], [{ max_attempts: 20 }, { max_attempts: 3 }]);
  });

  test("gives up a heartbeat without an answer, and sends another", async () => {
    const job = { job_id: "j", handler: "h", attempt: 1, tenant: "t", input: 1, lease_token: "1.a" };
    let heartbeats = 0;
    let finish = (): void => undefined;
    const finished = new Promise<void>((resolve) => (finish = resolve));
    const answers: Record<string, (signal: AbortSignal) => unknown> = {
      claim: () => ({ jobs: [{ ...job, lease_expires_at: "2026-11-15T00:00:30.000Z" }] }),
      heartbeat: (signal) => {
        heartbeats += 1;
        if (heartbeats > 1) finish();
        return heartbeats > 1 ? { cancel_requested: false } : aborted(signal);
      },
      "jobs:complete": () => ({ results: [{ job_id: "j", status: "completed" }] }),
    };
    const fetch: typeof globalThis.fetch = async (url, init) => {
      const name = (url as string).split("/").at(-1) ?? "";
      return Response.json(await answers[name]?.(init?.signal ?? new AbortController().signal));
    };
    const worker = new Worker(new Client({ url: "http://127.0.0.1:1", fetch }), { lease: 30, concurrency: 1 });
    worker.task("h", async () => {
      await finished;
      void worker.stop();
    });
    const socket = setInterval(() => undefined, 1000); // keeps the process alive, as a request does
    await worker.run({ handleSignals: false });
    clearInterval(socket);
    assert.ok(heartbeats > 1);
  });

  /** Never answers, as a server that hangs. */
  function aborted(signal: AbortSignal): Promise<never> {
    return new Promise((_resolve, reject) => {
      signal.addEventListener("abort", () => {
        reject(signal.reason as Error);
      });
    });
  }
});

describe("a request", () => {
  test("ends when the caller says so, retries and all", async () => {
    const abort = new AbortController();
    let requests = 0;
    const client = new Client(
      offline(() => {
        requests += 1;
        abort.abort(new Error("enough"));
        return responseOf({ lost: true });
      }),
    );
    await assert.rejects(client.runs.get("r", { signal: abort.signal }), /enough/);
    assert.equal(requests, 1);
  });

  test("whose answer is not JSON has none from pawl, and is not repeated", async () => {
    let requests = 0;
    const client = new Client(
      offline(() => {
        requests += 1;
        return new Response("<h1>Please sign in</h1>", { headers: { "content-type": "text/html" } });
      }),
    );
    await assert.rejects(client.server.health(), { name: "NoAnswerError", message: /not from pawl: <h1>/ });
    assert.equal(requests, 1);
  });

  test("takes settings from the environment, and options before them", async () => {
    const seen: Array<string | null> = [];
    const before = { ...process.env };
    Object.assign(process.env, { PAWL_URL: "http://127.0.0.1:1234/", PAWL_API_KEY: "pawl_env", PAWL_TENANT: "env" });
    const fetch = fakeFetch(({ url, headers }) => {
      seen.push(url.href, headers.get("authorization"), headers.get("x-tenant-id"));
      return responseOf({ headers: { "content-type": "application/json" }, body: {} });
    });
    await new Client({ fetch, tenant: "own" }).server.health();
    process.env = before;
    assert.deepEqual(seen, ["http://127.0.0.1:1234/healthz", "Bearer pawl_env", "own"]);
  });
});
