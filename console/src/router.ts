// Paths below /console/ and the pages that they name. Links are plain: they can be opened in a new tab and copied. Who may
// look at several tenants has the tenant in every address, unless it is the default one.
import { computed, signal } from "@preact/signals";
import { chooseTenant, DEFAULT_TENANT } from "./api/client";

const BASE = new URL(document.baseURI).pathname;

const place = signal(read());

function read(): { path: string; query: string } {
  const { pathname, search } = window.location;
  return { path: pathname.startsWith(BASE) ? pathname.slice(BASE.length) : "", query: search };
}

export const path = computed(() => place.value.path);
export const query = computed(() => new URLSearchParams(place.value.query));

/** The parts of the path, decoded: ["runs", "0190…"]. */
export const parts = computed(() => path.value.split("/").filter(Boolean).map(decodeURIComponent));

export const href = (...to: string[]): string => BASE + to.map(encodeURIComponent).join("/");

let named: string | null = null; // the tenant that addresses name

function withTenant(to: string): string {
  const url = new URL(to, window.location.href);
  if (named === null || named === DEFAULT_TENANT) url.searchParams.delete("tenant");
  else url.searchParams.set("tenant", named);
  return url.href;
}

/** From now on addresses say that they are about this tenant; null: for those who see only one. */
export function nameTenant(tenant: string | null): void {
  named = tenant;
  go(window.location.href, true);
}

export function go(to: string, replace = false): void {
  window.history[replace ? "replaceState" : "pushState"](null, "", withTenant(to));
  place.value = read();
  if (!replace) window.scrollTo(0, 0);
}

/** A click that the page itself can follow: not one for a new tab or a download, nor on a link that leads elsewhere. */
function isOurs(event: MouseEvent, link: HTMLAnchorElement): boolean {
  const plain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
  return plain && !event.defaultPrevented && link.target === "";
}

const linkAt = (event: Event): HTMLAnchorElement | null => {
  const link = (event.target as Element | null)?.closest("a[href]");
  return link instanceof HTMLAnchorElement && link.origin === window.location.origin && link.pathname.startsWith(BASE) ? link : null;
};

/** Before a link can be opened elsewhere or copied it says which tenant it means. */
function completeLink(event: Event): void {
  const link = linkAt(event);
  if (link !== null) link.href = withTenant(link.href);
}

function wentBack(): void {
  if (named !== null) chooseTenant(new URLSearchParams(window.location.search).get("tenant") ?? DEFAULT_TENANT);
  place.value = read();
}

export function startRouter(): void {
  window.addEventListener("popstate", wentBack);
  document.addEventListener("pointerdown", completeLink, true);
  document.addEventListener("focusin", completeLink, true);
  document.addEventListener("click", (event) => {
    const link = linkAt(event);
    if (link === null || !isOurs(event, link)) return;
    event.preventDefault();
    if (link.href !== window.location.href) go(link.href);
  });
}
