// The API as the pages call it. Types are those of docs/openapi.yaml; every change carries an idempotency key.
import { signal } from "@preact/signals";
import createClient from "openapi-fetch";
import { curl, type Request } from "../logic/curl";
import type { paths } from "../../generated/schema";
import type { Problem } from "./types";

/** Where pawl is: the folder above the console, whatever prefix a proxy has put in front of it. */
export const ROOT = new URL("..", document.baseURI).href;
export const apiUrl = (path: string): string => `${ROOT}api/v1/${path}`;

const TENANT_STORED = "pawl.tenant";

export const DEFAULT_TENANT = "default";

/** The start page remembers the tenant; any other address says which one it means. */
function firstTenant(): string {
  const { pathname, search } = window.location;
  const isStart = pathname === new URL(document.baseURI).pathname;
  return new URLSearchParams(search).get("tenant") ?? (isStart ? localStorage.getItem(TENANT_STORED) : null) ?? DEFAULT_TENANT;
}

export const tenant = signal(firstTenant());

export function chooseTenant(name: string): void {
  localStorage.setItem(TENANT_STORED, name);
  tenant.value = name;
}

export const tenantHeaders = (): Record<string, string> => ({ "X-Tenant-ID": tenant.value });

export const api = createClient<paths>({ baseUrl: ROOT.replace(/\/$/, "") });
api.use({
  onRequest({ request }) {
    if (!request.headers.has("X-Tenant-ID")) request.headers.set("X-Tenant-ID", tenant.value);
    return request;
  },
});

/** What went wrong, for people and programs: the server's problem, or that there was no answer. */
export class Failure extends Error {
  constructor(readonly problem: Pick<Problem, "title" | "status" | "code"> & { detail?: string | undefined; trace_id?: string | undefined }) {
    super(problem.detail ?? problem.title);
  }
}

const UNREACHABLE = {
  title: "The server does not answer",
  status: 0,
  code: "INTERNAL",
  detail: "The server does not answer. The page tries again by itself.",
} as const;

interface Answered<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** The data of an answer, or a Failure. */
export async function must<T>(answer: Promise<Answered<T>>): Promise<T> {
  let got: Answered<T>;
  try {
    got = await answer;
  } catch {
    throw new Failure(UNREACHABLE);
  }
  if (got.data !== undefined) return got.data;
  const problem = got.error as Problem | undefined;
  throw new Failure(
    problem?.code !== undefined ? problem : { title: `The server answered ${got.response.status}`, status: got.response.status, code: "INTERNAL" },
  );
}

/** A key for one press of a button: its retries are the same request. */
export const newKey = (): string => `console-${crypto.randomUUID()}`;

/** Does the server ask for API keys? */
export const asksForKeys = signal(false);

/** The request as anyone could send it: with the tenant and without anything that only this page needs. */
export function requestOf(method: Request["method"], path: string, body?: unknown): Request {
  const headers = tenant.value === DEFAULT_TENANT ? {} : tenantHeaders();
  return { method, url: apiUrl(path), headers, withKey: asksForKeys.value, ...(body === undefined ? {} : { body }) };
}

export const curlOf = (method: Request["method"], path: string, body?: unknown): string => curl(requestOf(method, path, body));
