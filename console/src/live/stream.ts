// A stream of events that survives lost connections: it reconnects by itself and goes on after the last event that it
// read, so nothing is missed and nothing comes twice. EventSource cannot send the tenant's header, so this reads fetch().
import { SseParser, type Message } from "./parser";

export type LinkState = "connecting" | "live" | "waiting" | "ended";

export interface StreamOptions {
  url: string;
  headers: Record<string, string>;
  /** Continue after this event; null: as the server begins by itself. */
  after: string | null;
  onMessages(messages: Message[]): void;
  /** The stream is open. `resumed`: it continues after the last event that was read. */
  onOpen?(resumed: boolean): void;
  onState?(state: LinkState): void;
  /** The server does not know the caller, or not any more. */
  onUnauthenticated?(): void;
  /** After a stream that ended by itself: go on? A tenant's stream does, a run's does not once the run is over. */
  again?(): boolean;
  fetch?: typeof fetch;
  wait?: (ms: number, signal: AbortSignal) => Promise<void>;
  random?: () => number;
}

const DELAY_FIRST_MS = 250;
const DELAY_MAX_MS = 10_000;
const SILENCE_MAX_MS = 40_000; // the server sends a comment every 15 seconds

/** Spread over time, so that a thousand pages do not come back at once. */
export function delayMs(failures: number, random: number): number {
  const most = Math.min(DELAY_MAX_MS, DELAY_FIRST_MS * 2 ** Math.min(failures, 10));
  return Math.round(most / 2 + (most / 2) * random);
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });
}

/** Follows a stream until the function that it returns is called. */
export function follow(options: StreamOptions): () => void {
  const stop = new AbortController();
  void loop(options, stop.signal);
  return () => stop.abort();
}

async function loop(options: StreamOptions, signal: AbortSignal): Promise<void> {
  const wait = options.wait ?? pause;
  const position = { after: options.after };
  const isStopped = (): boolean => signal.aborted;
  let failures = 0;
  while (!isStopped()) {
    options.onState?.("connecting");
    const ended = await connect(options, position, signal, () => (failures = 0));
    if (isStopped()) return;
    if (ended && options.again?.() === false) break;
    options.onState?.("waiting");
    await wait(delayMs(failures++, (options.random ?? Math.random)()), signal);
  }
  if (!isStopped()) options.onState?.("ended");
}

/** One connection. True when the server ended the stream, false when it was lost or refused. */
async function connect(options: StreamOptions, position: { after: string | null }, signal: AbortSignal, onOpen: () => void): Promise<boolean> {
  const lost = new AbortController();
  const abort = (): void => lost.abort();
  signal.addEventListener("abort", abort, { once: true });
  let silence: ReturnType<typeof setTimeout> | undefined;
  const heard = (): void => {
    clearTimeout(silence);
    silence = setTimeout(abort, SILENCE_MAX_MS);
  };
  try {
    heard();
    const resumes = position.after === null ? {} : { "Last-Event-ID": position.after };
    const response = await (options.fetch ?? fetch)(options.url, {
      headers: { ...options.headers, ...resumes, Accept: "text/event-stream" },
      signal: lost.signal,
      cache: "no-store",
    });
    if (response.status === 401) options.onUnauthenticated?.();
    if (!response.ok || response.body === null) return false;
    const resumed = position.after !== null;
    position.after ??= response.headers.get("Last-Event-ID");
    onOpen();
    options.onState?.("live");
    options.onOpen?.(resumed);
    await read(response.body, position, options, heard);
    return true;
  } catch {
    return false; // the network's errors say nothing that a reader could use
  } finally {
    clearTimeout(silence);
    signal.removeEventListener("abort", abort);
  }
}

async function read(body: ReadableStream<Uint8Array>, position: { after: string | null }, options: StreamOptions, heard: () => void): Promise<void> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  const parser = new SseParser();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    heard();
    const messages = parser.push(decoder.decode(value, { stream: true }));
    if (messages.length === 0) continue;
    const id = messages.at(-1)?.id ?? "";
    if (id !== "") position.after = id;
    options.onMessages(messages);
  }
}
