// One connection for all pages: the events of the tenant that lists and counts depend on.
import { signal } from "@preact/signals";
import { apiUrl } from "../api/client";
import { signedOut } from "../api/session";
import { follow, type LinkState } from "./stream";

export interface TenantEvent {
  type: string;
  time: string;
  run_id: string;
  workflow_id: string;
}

/** "reset": events were missed; read everything again. */
export type Listener = (events: TenantEvent[] | "reset") => void;

const TYPES =
  "run.created,run.scheduled,run.queued,run.admitted,run.paused,run.resumed,run.retried,run.succeeded,run.failed,run.timed_out,run.denied,run.cancelled,approval.*";

export const link = signal<LinkState>("connecting");
const listeners = new Set<Listener>();
let stop: (() => void) | null = null;

export function listen(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function tell(events: TenantEvent[] | "reset"): void {
  for (const listener of listeners) listener(events);
}

function eventOf(data: string): TenantEvent[] {
  const event = JSON.parse(data) as { type: string; time: string; data?: { run_id?: string; workflow_id?: string } };
  if (event.data?.run_id === undefined) return [];
  return [{ type: event.type, time: event.time, run_id: event.data.run_id, workflow_id: event.data.workflow_id ?? "" }];
}

export function disconnectTenant(): void {
  stop?.();
  stop = null;
}

/** Again after the tenant has changed. */
export function connectTenant(name: string): void {
  disconnectTenant();
  stop = follow({
    url: apiUrl(`events?types=${TYPES}`),
    headers: { "X-Tenant-ID": name },
    after: null,
    onState: (state) => (link.value = state),
    onUnauthenticated: signedOut,
    // Pages read their lists as soon as the stream is open: what changes later is an event.
    onOpen: (resumed) => resumed || tell("reset"),
    onMessages: (messages) => {
      if (messages.some((m) => m.event === "reset")) tell("reset");
      else tell(messages.flatMap((m) => eventOf(m.data)));
    },
  });
}
