// Who uses the console, and what the server allows them. A page that the server refuses with 401 becomes the sign-in, at the
// same address: whoever signs in is where the link led.
import { signal } from "@preact/signals";
import { api, apiUrl, asksForKeys, chooseTenant, Failure, must } from "./client";
import type { Me } from "./types";

export type Allowed = Me["may"][number];

/** null: nobody has signed in; undefined: not known yet. */
export const me = signal<Me | null | undefined>(undefined);

/** Why it is not known who uses the console: the server has not answered, or not yet. */
export const trouble = signal<string | null>(null);

export const may = (action: Allowed): boolean => me.value?.may.includes(action) === true;

export function signedOut(): void {
  me.value = null;
}

api.use({
  onResponse({ response }) {
    if (response.status === 401) signedOut();
    return undefined;
  },
});

function signedIn(who: Me): void {
  if (!who.all_tenants && who.tenant !== null) chooseTenant(who.tenant);
  asksForKeys.value = !who.server.dev;
  me.value = who;
}

/** Without a tenant: which one is chosen here may be another's. */
export async function loadMe(): Promise<void> {
  const answer = fetch(apiUrl("me"), { cache: "no-store" }).then(async (response) => {
    const body = (await response.json()) as Me;
    return response.ok ? { data: body, response } : { error: body, response };
  });
  try {
    signedIn(await must(answer));
  } catch (e) {
    if (e instanceof Failure && e.problem.status === 401) signedOut();
    else throw e;
  }
}

export async function signIn(key: string): Promise<void> {
  signedIn(await must(api.POST("/api/v1/sessions", { body: { key } })));
}

export async function signOut(): Promise<void> {
  await must(api.DELETE("/api/v1/sessions"));
  signedOut();
}
