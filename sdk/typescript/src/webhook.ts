/** Checks webhooks (Standard Webhooks, HMAC-SHA-256) with Web Crypto: in Node, in browsers and at the edge. */

import { PawlError } from "./errors.js";

/** Why a webhook is not accepted. */
export type WebhookFault =
  | "header_missing"
  | "timestamp_invalid"
  | "timestamp_out_of_range"
  | "signature_mismatch"
  | "secret_invalid"
  | "body_invalid";

/**
 * The request is not a webhook of this secret. Answer it with 401.
 *
 * @example
 * ```ts
 * await verifyWebhook("{}", {}, "whsec_c2VjcmV0").catch((error: unknown) => {
 *   if (error instanceof WebhookError) console.log(error.fault); // header_missing
 * });
 * ```
 */
export class WebhookError extends PawlError {
  override name = "WebhookError";

  constructor(
    readonly fault: WebhookFault,
    message: string,
  ) {
    super(message);
  }
}

/** The event of a webhook: a CloudEvents 1.0 object. */
export interface WebhookEvent {
  specversion: "1.0";
  /** The same in every attempt: remember it, and process each event once. */
  id: string;
  source: string;
  type: string;
  subject: string;
  time: string;
  datacontenttype: "application/json";
  data: unknown;
}

/** The headers of a request, as `fetch` or Node have them. */
export type WebhookHeaders = Headers | Record<string, string | string[] | undefined>;

/** Options of {@link verifyWebhook}. */
export interface VerifyOptions {
  /** How far the timestamp may be off, in seconds; default 300. */
  toleranceS?: number;
  /** The time, in seconds since 1970; default: now. */
  nowS?: number;
}

/**
 * Checks that a webhook was signed with one of your secrets, and returns its event. Pass the raw body: one that was
 * parsed and written again may not verify.
 *
 * @example
 * ```ts
 * async function receive(request: Request): Promise<Response> {
 *   try {
 *     const event = await verifyWebhook(await request.text(), request.headers, process.env.SECRET ?? "");
 *     console.log(event.id, event.type);
 *     return new Response(null, { status: 204 });
 *   } catch {
 *     return new Response(null, { status: 401 });
 *   }
 * }
 * console.log((await receive(new Request("http://localhost/", { method: "POST", body: "{}" }))).status); // 401
 * ```
 */
export async function verifyWebhook(
  body: string | Uint8Array,
  headers: WebhookHeaders,
  secret: string | string[],
  options: VerifyOptions = {},
): Promise<WebhookEvent> {
  const id = header(headers, "webhook-id");
  const timestamp = header(headers, "webhook-timestamp");
  const signatures = header(headers, "webhook-signature").split(" ");
  checkTimestamp(timestamp, options);
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
  const signed = concat(new TextEncoder().encode(`${id}.${timestamp}.`), bytes);
  const known = await Promise.all([secret].flat().map((one) => isSignedWith(one, signed, signatures)));
  if (!known.includes(true)) throw new WebhookError("signature_mismatch", "The webhook was signed with another secret");
  return parse(bytes);
}

function header(headers: WebhookHeaders, name: string): string {
  const value = headers instanceof Headers ? headers.get(name) : anyCase(headers, name);
  const text = Array.isArray(value) ? value[0] : value;
  if (text === undefined || text === null || text === "") {
    throw new WebhookError("header_missing", `The header ${name} is missing`);
  }
  return text;
}

function anyCase<T>(headers: Record<string, T>, name: string): T | undefined {
  return Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1];
}

function checkTimestamp(text: string, { toleranceS = 300, nowS = Date.now() / 1000 }: VerifyOptions): void {
  if (!/^\d+$/.test(text)) throw new WebhookError("timestamp_invalid", `webhook-timestamp is not a time: ${text}`);
  if (Math.abs(nowS - Number(text)) > toleranceS) {
    throw new WebhookError("timestamp_out_of_range", "The webhook is too old, or from the future");
  }
}

async function isSignedWith(secret: string, signed: Uint8Array<ArrayBuffer>, signatures: string[]): Promise<boolean> {
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("raw", keyBytes(secret), algorithm, false, ["verify"]);
  for (const signature of signatures) {
    const bytes = signature.startsWith("v1,") ? fromBase64(signature.slice(3)) : undefined;
    // Web Crypto compares in constant time.
    if (bytes !== undefined && (await crypto.subtle.verify("HMAC", key, bytes, signed))) return true;
  }
  return false;
}

function keyBytes(secret: string): Uint8Array<ArrayBuffer> {
  const bytes = fromBase64(secret.replace(/^whsec_/, ""));
  if (bytes === undefined || bytes.length === 0) {
    throw new WebhookError("secret_invalid", "The secret is not one of pawl's: whsec_ and base64");
  }
  return bytes;
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  } catch {
    return undefined;
  }
}

function concat(a: Uint8Array, b: Uint8Array): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(a.length + b.length);
  all.set(a);
  all.set(b, a.length);
  return all;
}

function parse(bytes: Uint8Array): WebhookEvent {
  try {
    return JSON.parse(new TextDecoder().decode(bytes)) as WebhookEvent;
  } catch {
    throw new WebhookError("body_invalid", "The body is not JSON");
  }
}
