/** The shared fixtures for requests, answers, errors, keys, retries, streams, webhooks and definitions. */

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import * as pawl from "../src/index.js";
import { ref } from "../src/expression.js";
import { apiError } from "../src/errors.js";
import { StreamParser, type StreamMessage } from "../src/stream.js";
import {
  assertContains,
  assertRequest,
  cases,
  offline,
  responseOf,
  TestClock,
  type Json,
  type Members,
  type SentRequest,
  type WireAnswer,
  type WireRequest,
} from "./support/fixtures.js";
import { perform, type Call } from "./support/operations.js";

interface ClientSettings {
  url?: string;
  api_key?: string;
  tenant?: string;
  actor?: string;
}

function settings({ api_key, ...rest }: ClientSettings): pawl.TransportOptions {
  return api_key === undefined ? rest : { ...rest, apiKey: api_key };
}

/** Classes here have the names of the table, and `Error` behind them. */
function assertClass(error: unknown, name: string): void {
  const shown = name === "ApiError" ? name : `${name}Error`;
  assert.equal((error as Error).constructor.name, shown);
  assert.equal((error as Error).name, shown);
}

const START: Call = { op: "startRun", args: { workflow_id: "w" } };

describe("requests", () => {
  for (const one of cases<{ client?: ClientSettings; new_keys?: string[]; call: Call; request: WireRequest }>(
    "requests",
  )) {
    test(one.name, async () => {
      const sent: SentRequest[] = [];
      const keys = [...(one.new_keys ?? [])];
      const answer = (request: SentRequest): Response => {
        sent.push(request);
        return responseOf({ headers: { "content-type": "application/json" }, body: { jobs: [], items: [] } });
      };
      const client = new pawl.Client(
        offline(answer, { ...settings(one.client ?? {}), newKey: () => keys.shift() ?? assert.fail("no key is due") }),
      );
      await perform(client, one.call);
      assert.equal(sent.length, 1);
      assertRequest(sent[0] ?? assert.fail(), one.request);
      assert.deepEqual(keys, []);
    });
  }
});

describe("answers", () => {
  interface Expected {
    class: string;
    code: string;
    status: number;
    retryable: boolean;
    retry_after_s?: number;
    details?: Members;
  }
  for (const one of cases<{ call: Call; answer: WireAnswer; result?: Json; error?: Expected }>("answers")) {
    test(one.name, async () => {
      const client = new pawl.Client(offline(() => responseOf(one.answer), { retry: { maxAttempts: 1 } }));
      if (one.error === undefined) {
        assertContains(await perform(client, one.call), one.result ?? null);
        return;
      }
      const error = await perform(client, one.call).catch((thrown: unknown) => thrown);
      assert.ok(error instanceof pawl.ApiError);
      assertClass(error, one.error.class);
      assert.equal(error.code, one.error.code);
      assert.equal(error.status, one.error.status);
      assert.equal(error.retryable, one.error.retryable);
      assert.equal(error.retryAfterS, one.error.retry_after_s);
      assertContains(error.problem, one.error.details ?? {});
    });
  }
});

describe("errors", () => {
  for (const { name, status, code, class: expected } of cases<{ status: number; code: string; class: string }>(
    "errors",
  )) {
    test(name, () => {
      const problem = { type: "", title: "", detail: "", retryable: false, trace_id: "", status, code };
      assertClass(apiError(problem as pawl.Problem), expected);
    });
  }

  test("a class is also the classes above it in the table", () => {
    const problem = {
      type: "",
      title: "",
      detail: "",
      retryable: false,
      trace_id: "",
      status: 409,
      code: "LEASE_LOST",
    };
    const error = apiError(problem as pawl.Problem);
    assert.ok(error instanceof pawl.ConflictError && error instanceof pawl.ApiError);
    assert.ok(pawl.ApiError.is(error, "LEASE_LOST") && !pawl.ApiError.is(error, "INTERNAL"));
  });
});

describe("keys", () => {
  for (const one of cases<{ key: string; header?: string; body?: true; refused?: true }>("keys")) {
    test(one.name, async () => {
      const sent: SentRequest[] = [];
      const client = new pawl.Client(
        offline((request) => {
          sent.push(request);
          return responseOf({ headers: { "content-type": "application/json" }, body: { run_id: "r" } });
        }),
      );
      const started = client.start("w", undefined, { key: one.key });
      if (one.refused === true) {
        await assert.rejects(started, RangeError);
        assert.equal(sent.length, 0);
        return;
      }
      await started;
      const [request] = sent;
      assert.equal(request?.headers.get("idempotency-key"), one.header ?? null);
      assert.deepEqual(request.body, one.body === true ? { idempotency_key: one.key } : {});
    });
  }
});

describe("retries", () => {
  interface Case {
    policy?: Record<string, number | string>;
    budget?: { tokens?: number; max?: number; per_success?: number };
    random?: number[];
    call?: Call;
    exchanges: WireAnswer[];
    pauses_ms: number[];
    outcome: { result: true } | { error: { class: string; code?: string } };
    tokens_after?: number;
  }
  for (const one of cases<Case>("retries")) {
    test(one.name, async () => {
      const clock = new TestClock([...(one.random ?? [])]);
      const { tokens = 10, max = 10, per_success = 0.1 } = one.budget ?? {};
      const budget = new pawl.RetryBudget(tokens, max, per_success);
      const exchanges = [...one.exchanges];
      const answer = (request: SentRequest): Response => {
        assert.equal(request.headers.get("idempotency-key"), "k");
        const exchange = exchanges.shift() ?? assert.fail("one request too many");
        clock.time += exchange.took_ms ?? 0;
        return responseOf(exchange);
      };
      const retry = { ...policyOf(one.policy ?? {}), budget };
      const client = new pawl.Client(offline(answer, { clock, retry, newKey: () => "k" }));
      const outcome = await perform(client, one.call ?? START).then(
        () => ({ result: true as const }),
        (error: unknown) => ({ error }),
      );
      if ("result" in one.outcome) assert.deepEqual(outcome, { result: true });
      else assertFailure("error" in outcome ? outcome.error : undefined, one.outcome.error);
      assert.deepEqual(exchanges, []);
      assertClose(clock.pauses, one.pauses_ms);
      if (one.tokens_after !== undefined) assertClose([budget.tokens], [one.tokens_after]);
    });
  }

  function policyOf(policy: Record<string, number | string>): pawl.RetryOptions {
    const names: Record<string, string> = {
      base_ms: "baseMs",
      max_ms: "maxMs",
      max_attempts: "maxAttempts",
      deadline_ms: "deadlineMs",
    };
    return Object.fromEntries(Object.entries(policy).map(([name, value]) => [names[name] ?? name, value]));
  }

  function assertFailure(error: unknown, expected: { class: string; code?: string }): void {
    assertClass(error, expected.class);
    if (expected.code !== undefined) assert.equal((error as pawl.ApiError).code, expected.code);
  }

  function assertClose(actual: number[], expected: number[]): void {
    assert.equal(actual.length, expected.length);
    actual.forEach((value, i) => {
      assert.ok(Math.abs(value - (expected[i] ?? NaN)) < 1e-9, `${value} is not ${expected[i] ?? "there"}`);
    });
  }
});

describe("server-sent events", () => {
  for (const one of cases<{ chunks: string[]; events: StreamMessage[]; last_id: string | null }>("sse")) {
    test(one.name, () => {
      const parser = new StreamParser();
      const events = one.chunks.flatMap((chunk) => parser.feed(new TextEncoder().encode(chunk)));
      assert.deepEqual(events, one.events);
      assert.equal(parser.lastId, one.last_id);
    });
  }
});

describe("watching", () => {
  interface Connection {
    request: WireRequest;
    answer: WireAnswer;
    chunks?: string[];
    ends?: "clean" | "lost";
  }
  interface Case {
    call: Call;
    take?: number;
    connections: Connection[];
    events: Json[];
    error?: { class: string; code: string };
  }
  for (const one of cases<Case>("watch")) {
    test(one.name, async () => {
      const connections = [...one.connections];
      const client = new pawl.Client(
        offline((request) => {
          const connection = connections.shift() ?? assert.fail("one connection too many");
          assertRequest(request, connection.request);
          return connection.chunks === undefined ? responseOf(connection.answer) : streamOf(connection);
        }),
      );
      const events: unknown[] = [];
      const error = await collect(watched(client, one.call), events, one.take).catch((thrown: unknown) => thrown);
      if (one.error === undefined) assert.equal(error, undefined);
      else assertClass(error, one.error.class);
      assert.deepEqual(connections, []);
      assert.equal(events.length, one.events.length);
      one.events.forEach((event, i) => {
        assertContains(events[i], event);
      });
    });
  }

  function watched(client: pawl.Client, { op, args }: Call): AsyncIterable<unknown> {
    if (op === "watchEvents") return client.events(args);
    const { run_id, ...options } = args;
    return client.run(run_id as string).watch(options);
  }

  async function collect(source: AsyncIterable<unknown>, into: unknown[], take = Infinity): Promise<void> {
    for await (const event of source) if (into.push(event) >= take) return;
  }

  function streamOf({ chunks = [], ends }: Connection): Response {
    const left = chunks.map((chunk) => new TextEncoder().encode(chunk));
    return new Response(
      new ReadableStream({
        pull(controller) {
          const chunk = left.shift();
          if (chunk !== undefined) controller.enqueue(chunk);
          else if (ends === "clean") controller.close();
          else controller.error(new TypeError("terminated"));
        },
      }),
      { headers: { "content-type": "text/event-stream" } },
    );
  }
});

describe("webhooks", () => {
  interface Case {
    secret: string;
    headers: Record<string, string>;
    body: string;
    now_s: number;
    tolerance_s?: number;
    event?: Json;
    invalid?: string;
  }
  for (const { name, secret, headers, body, now_s, tolerance_s, event, invalid } of cases<Case>("webhooks")) {
    test(name, async () => {
      const options = { nowS: now_s, ...(tolerance_s === undefined ? {} : { toleranceS: tolerance_s }) };
      const verified = pawl.verifyWebhook(body, headers, secret, options);
      if (invalid === undefined) assertContains(await verified, event ?? null);
      else await assert.rejects(verified, { name: "WebhookError", fault: invalid });
    });
  }
});

describe("definitions", () => {
  interface Case {
    workflow: { id: string } & Members;
    steps: Array<{ call: string; name: string } & Members>;
    definition: Json;
  }
  for (const one of cases<Case>("definitions")) {
    test(one.name, () => {
      const { id, ...options } = one.workflow;
      const built = pawl.workflow(id, one.steps.map(builtStep), options);
      assert.deepEqual(JSON.parse(JSON.stringify(built)), one.definition);
    });
  }

  function builtStep({ call, name, ...given }: { call: string; name: string } & Members): pawl.StepDefinition {
    const options = withRefs(given) as Record<string, never>;
    const take = (...names: string[]): Record<string, never> =>
      Object.fromEntries(Object.entries(options).filter(([member]) => !names.includes(member)));
    const { step } = pawl;
    switch (call) {
      case "task":
        return step.task(name, options.handler as never, take("handler"));
      case "http": {
        const { method, url, headers, body } = options as unknown as pawl.HttpRequest;
        const request = Object.fromEntries(
          Object.entries({ method, url, headers, body }).filter((m) => m[1] !== undefined),
        );
        return step.http(name, request as unknown as pawl.HttpRequest, take("method", "url", "headers", "body"));
      }
      case "approval":
        return step.approval(name, options.prompt as never, take("prompt"));
      case "sleep":
        return step.sleep(
          name,
          ("until" in options ? options.until : options.duration_ms) as never,
          take("until", "duration_ms"),
        );
      case "wait_signal":
        return step.waitSignal(name, options.signal as never, take("signal"));
      case "transform":
        return step.transform(name, options.output, take("output"));
      case "emit":
        return step.emit(name, options.event as never, options.payload, take("event", "payload"));
      case "workflow":
        return step.workflow(name, options.workflow_id as never, take("workflow_id"));
      default:
        return assert.fail(`no step type ${call}`);
    }
  }

  function withRefs(value: Json): unknown {
    if (value === null || typeof value !== "object") return value;
    if (Array.isArray(value)) return value.map(withRefs);
    if (typeof value.$ref === "string") return ref(value.$ref);
    if (typeof value.$compensate === "string") return value.$compensate;
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, withRefs(member)]));
  }
});
