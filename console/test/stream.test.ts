import { describe, expect, test } from "vitest";
import { SseParser, type Message } from "../src/live/parser";
import { delayMs, follow, type LinkState } from "../src/live/stream";

describe("parser", () => {
  const text = ': still here\n\nid: 1-2\nevent: run.created\ndata: {"a":\ndata: 1}\n\nid: 3-4\ndata: x\n\n';
  test("reads the same from pieces of any size", () => {
    const whole = new SseParser().push(text);
    expect(whole).toEqual([
      { id: "1-2", event: "run.created", data: '{"a":\n1}' },
      { id: "3-4", event: "message", data: "x" },
    ]);
    for (let size = 1; size < 12; size++) {
      const parser = new SseParser();
      const found: Message[] = [];
      for (let i = 0; i < text.length; i += size) found.push(...parser.push(text.slice(i, i + size)));
      expect(found).toEqual(whole);
    }
  });
  test("a carriage return may end a piece", () => {
    const parser = new SseParser();
    expect([...parser.push("data: x\r"), ...parser.push("\n\r"), ...parser.push("\n")]).toEqual([{ id: "", event: "message", data: "x" }]);
  });
  test("a message that is not finished is none", () => expect(new SseParser().push("data: x\n")).toEqual([]));
});

/** A server that gives these answers in turn, and notes what was asked. */
function script(...answers: Array<string | "down" | "refuse">) {
  const asked: Array<string | null> = [];
  const states: LinkState[] = [];
  const messages: Message[] = [];
  const opened: boolean[] = [];
  return { asked, states, messages, opened, run: (again: () => boolean, after: string | null = null) => run(again, after) };

  function run(again: () => boolean, after: string | null): Promise<void> {
    return new Promise((resolve) => {
      const stop = follow({
        url: "http://localhost/events",
        headers: { "X-Tenant-ID": "t" },
        after,
        onMessages: (more) => messages.push(...more),
        onOpen: (resumed) => opened.push(resumed),
        onState: (state) => {
          states.push(state);
          if (state === "ended") resolve();
        },
        again,
        wait: async () => {
          if (answers.length === 0) {
            stop();
            resolve();
          }
        },
        fetch: async (_, init) => {
          const headers = new Headers(init?.headers);
          asked.push(headers.get("Last-Event-ID"));
          const answer = answers.shift();
          if (answer === undefined || answer === "down") throw new TypeError("Failed to fetch");
          if (answer === "refuse") return new Response("", { status: 503 });
          return new Response(answer, { headers: { "Last-Event-ID": "0-9" } });
        },
      });
    });
  }
}

describe("following a stream", () => {
  test("goes on after the last event that was read, through lost connections and refusals", async () => {
    const server = script("id: 1-0\ndata: a\n\nid: 2-0\ndata: b\n\n", "down", "refuse", "id: 3-0\ndata: c\n\n");
    await server.run(() => true);
    expect(server.asked).toEqual([null, "2-0", "2-0", "2-0"]);
    expect(server.messages.map((m) => m.data)).toEqual(["a", "b", "c"]);
    expect(server.opened).toEqual([false, true]);
  });
  test("a message that was cut off is read again, not half", async () => {
    const server = script("id: 1-0\ndata: a\n\nid: 2-0\ndata: b", "id: 2-0\ndata: b\n\n");
    await server.run(() => true);
    expect(server.asked).toEqual([null, "1-0"]);
    expect(server.messages.map((m) => m.data)).toEqual(["a", "b"]);
  });
  test("before the first event it resumes where the server said that it begins", async () => {
    const server = script(": nothing yet\n\n", "id: 1-0\ndata: a\n\n");
    await server.run(() => true);
    expect(server.asked).toEqual([null, "0-9"]);
  });
  test("the stream of a run that is over ends", async () => {
    const server = script("id: 1\ndata: a\n\n", "id: 2\ndata: b\n\n");
    await server.run(() => false, "0");
    expect(server.messages.map((m) => m.data)).toEqual(["a"]);
    expect(server.states.at(-1)).toBe("ended");
  });
});

test("waits grow, have a bound, and are spread", () => {
  expect(delayMs(0, 0)).toBe(125);
  expect(delayMs(0, 1)).toBe(250);
  expect(delayMs(3, 1)).toBe(2_000);
  expect(delayMs(50, 1)).toBe(10_000);
  expect(delayMs(50, 0)).toBe(5_000);
});
