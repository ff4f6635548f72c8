/** Server-sent events: parsing, and following a stream over as many connections as it takes. */

import { NoAnswerError } from "./errors.js";
import { isRetryable, retryAfterS, type Transport } from "./transport.js";

const SILENCE_MS = 45_000;

/** One message of a stream. */
export interface StreamMessage {
  /** The last id that the stream has named, null before the first. */
  id: string | null;
  event: string;
  data: string;
}

/** Takes a stream apart, chunk by chunk, as the HTML standard says. */
export class StreamParser {
  /** The last id that the stream has named: where to continue after a break. */
  lastId: string | null = null;
  #rest = "";
  #id: string | null = null;
  #event = "";
  #data: string[] = [];
  readonly #decoder = new TextDecoder();

  /** The messages that this chunk completes. */
  feed(chunk: Uint8Array): StreamMessage[] {
    this.#rest += this.#decoder.decode(chunk, { stream: true });
    const messages: StreamMessage[] = [];
    for (let line = this.#nextLine(); line !== undefined; line = this.#nextLine()) {
      const message = this.#take(line);
      if (message !== undefined) messages.push(message);
    }
    return messages;
  }

  #nextLine(): string | undefined {
    const end = /\r\n|\n|\r/.exec(this.#rest);
    // A carriage return at the end of a chunk may be the first half of a line end.
    if (end === null || (end[0] === "\r" && end.index === this.#rest.length - 1)) return undefined;
    const line = this.#rest.slice(0, end.index);
    this.#rest = this.#rest.slice(end.index + end[0].length);
    return line;
  }

  #take(line: string): StreamMessage | undefined {
    if (line === "") return this.#dispatch();
    const colon = line.indexOf(":");
    const field = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") this.#event = value;
    if (field === "data") this.#data.push(value);
    if (field === "id" && !value.includes("\0")) this.#id = value;
    return undefined;
  }

  #dispatch(): StreamMessage | undefined {
    this.lastId = this.#id;
    const message = {
      id: this.lastId,
      event: this.#event === "" ? "message" : this.#event,
      data: this.#data.join("\n"),
    };
    const isEmpty = this.#data.length === 0;
    this.#event = "";
    this.#data = [];
    return isEmpty ? undefined : message;
  }
}

/** What to follow. */
export interface Subscription {
  path: string;
  query?: object;
  /** Where to begin; null: where the server begins by itself. */
  lastId: string | null;
  signal?: AbortSignal | undefined;
  /** Whether a stream that the server has ended is complete. Otherwise it is opened again. */
  isComplete(): Promise<boolean>;
}

/**
 * The messages of a stream. A broken connection continues after the last message: none is missed, none comes twice. Gives
 * up when there was no connection for as long as the client retries a request.
 */
export async function* follow(transport: Transport, subscription: Subscription): AsyncGenerator<StreamMessage, void> {
  const place = { lastId: subscription.lastId };
  const { clock } = transport;
  let backoff = transport.newBackoff();
  let failingSince: number | undefined;
  for (;;) {
    let retryAfterMs = 0;
    try {
      for await (const message of connection(transport, subscription, place)) {
        backoff = transport.newBackoff();
        failingSince = undefined;
        yield message;
      }
      if (await subscription.isComplete()) return;
    } catch (error) {
      subscription.signal?.throwIfAborted();
      failingSince ??= clock.now();
      if (!isRetryable(error) || clock.now() - failingSince > transport.patienceMs) throw error;
      retryAfterMs = 1000 * (retryAfterS(error) ?? 0);
    }
    backoff.fail();
    await clock.sleep(backoff.pauseMs(retryAfterMs), subscription.signal);
  }
}

/** One connection. Moves `place` forward before it hands out a message. */
async function* connection(
  transport: Transport,
  { path, query, signal: outer }: Subscription,
  place: { lastId: string | null },
): AsyncGenerator<StreamMessage, void> {
  const abort = new AbortController();
  const signal = outer === undefined ? abort.signal : AbortSignal.any([abort.signal, outer]);
  const idle = new IdleTimer(() => {
    abort.abort();
  });
  const headers: Record<string, string> = { Accept: "text/event-stream" };
  if (place.lastId !== null) headers["Last-Event-ID"] = place.lastId;
  try {
    const response = await transport.open({ method: "GET", path, query: query ?? {}, headers, signal });
    place.lastId ??= response.headers.get("Last-Event-ID");
    for await (const message of messagesOf(response, idle)) {
      place.lastId = message.id ?? place.lastId;
      yield message;
    }
  } finally {
    idle.stop();
    abort.abort();
  }
}

/** The server says something every 15 seconds. A stream that is silent for much longer is dead. */
class IdleTimer {
  #timer: ReturnType<typeof setTimeout>;

  constructor(readonly onSilence: () => void) {
    this.#timer = setTimeout(onSilence, SILENCE_MS);
  }

  touch(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.onSilence, SILENCE_MS);
  }

  stop(): void {
    clearTimeout(this.#timer);
  }
}

async function* messagesOf(response: Response, idle: IdleTimer): AsyncGenerator<StreamMessage, void> {
  const parser = new StreamParser();
  const reader = response.body?.getReader();
  for (;;) {
    const chunk = await reader?.read().catch((cause: unknown) => {
      throw new NoAnswerError("The stream broke", { cause });
    });
    if (chunk?.value === undefined) return;
    idle.touch();
    yield* parser.feed(chunk.value);
  }
}
