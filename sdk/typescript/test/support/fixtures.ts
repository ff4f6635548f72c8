/** The wire fixtures that all libraries share, and a server made of their answers. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Clock, TransportOptions } from "../../src/index.js";

export type Json = null | boolean | number | string | Json[] | { [member: string]: Json };
export type Members = Record<string, Json>;

const FOLDER = fileURLToPath(new URL("../../../../fixtures", import.meta.url));

/** The cases of a file. */
export function cases<T>(file: string): Array<T & { name: string }> {
  return (JSON.parse(readFileSync(`${FOLDER}/${file}.json`, "utf8")) as { cases: Array<T & { name: string }> }).cases;
}

export interface WireRequest {
  method: string;
  path: string;
  query?: Record<string, string>;
  headers?: Record<string, string | null>;
  body?: Json;
}

export interface WireAnswer {
  status?: number;
  headers?: Record<string, string>;
  body?: Json;
  lost?: true;
  took_ms?: number;
}

/** A request as it went out. */
export interface SentRequest {
  method: string;
  url: URL;
  /** The path as it was sent, percent-encoded. */
  path: string;
  headers: Headers;
  body: Json | undefined;
}

/** Time that passes only when somebody sleeps. Draws the given random numbers. */
export class TestClock implements Clock {
  time = 0;
  readonly pauses: number[] = [];

  constructor(readonly numbers: number[] = []) {}

  now(): number {
    return this.time;
  }

  random(): number {
    return this.numbers.shift() ?? 0;
  }

  sleep(ms: number): Promise<void> {
    this.pauses.push(ms);
    this.time += ms;
    return Promise.resolve();
  }
}

/** A `fetch` that hands each request to `answer`. */
export function fakeFetch(answer: (request: SentRequest) => Response | Promise<Response>): typeof fetch {
  return async (input, init = {}) => {
    const text = input instanceof Request ? input.url : input.toString();
    const url = new URL(text);
    const path = text.slice(url.origin.length).split("?")[0] ?? "";
    const body = typeof init.body === "string" ? (JSON.parse(init.body) as Json) : undefined;
    return answer({ method: init.method ?? "GET", url, path, headers: new Headers(init.headers), body });
  };
}

/** The response that an answer describes; an answer that is lost is what `fetch` makes of it. */
export function responseOf({ status = 200, headers = {}, body, lost }: WireAnswer): Response {
  if (lost === true) throw new TypeError("fetch failed", { cause: new Error("the connection broke") });
  const text = body === undefined ? "" : typeof body === "string" ? body : JSON.stringify(body);
  return new Response(text, { status, headers });
}

/** Options of a client whose requests go to `answer`, without a server, a clock or chance. */
export function offline(
  answer: (request: SentRequest) => Response | Promise<Response>,
  more: TransportOptions = {},
): TransportOptions {
  return { url: "http://127.0.0.1:7295", fetch: fakeFetch(answer), clock: new TestClock(), ...more };
}

/** Compares a request with what a fixture expects. */
export function assertRequest(sent: SentRequest, expected: WireRequest): void {
  assert.equal(sent.method, expected.method);
  assert.equal(sent.path, expected.path);
  assert.deepEqual(Object.fromEntries(sent.url.searchParams), expected.query ?? {});
  for (const [name, value] of Object.entries(expected.headers ?? {})) assert.equal(sent.headers.get(name), value, name);
  assert.deepEqual(sent.body, expected.body);
  if (expected.body === undefined) assert.equal(sent.headers.get("content-type"), null);
}

/** JSON with sorted members, to compare by meaning. */
export function canonical(value: unknown): string {
  return JSON.stringify(value, (_name, member: unknown) => {
    if (member === null || typeof member !== "object" || Array.isArray(member)) return member;
    return Object.fromEntries(Object.entries(member).toSorted(([a], [b]) => (a < b ? -1 : 1)));
  });
}

/** The actual value contains what the fixture lists. Arrays are compared whole. */
export function assertContains(actual: unknown, expected: Json, where = "result"): void {
  if (expected === null || typeof expected !== "object" || Array.isArray(expected)) {
    assert.deepEqual(actual, expected, where);
    return;
  }
  assert.ok(actual !== null && typeof actual === "object", where);
  for (const [name, value] of Object.entries(expected)) {
    assertContains((actual as Record<string, unknown>)[name], value, `${where}.${name}`);
  }
}
