// Paths below /console/ and the pages that they name. Links are plain: they can be opened in a new tab and copied.
import { computed, signal } from "@preact/signals";

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

export function go(to: string, replace = false): void {
  window.history[replace ? "replaceState" : "pushState"](null, "", to);
  place.value = read();
  if (!replace) window.scrollTo(0, 0);
}

/** A click that the page itself can follow: not one for a new tab or a download, nor on a link that leads elsewhere. */
function isOurs(event: MouseEvent, link: HTMLAnchorElement): boolean {
  const plain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
  return plain && !event.defaultPrevented && link.target === "" && link.origin === window.location.origin && link.pathname.startsWith(BASE);
}

export function startRouter(): void {
  window.addEventListener("popstate", () => (place.value = read()));
  document.addEventListener("click", (event) => {
    const link = (event.target as Element | null)?.closest("a[href]");
    if (!(link instanceof HTMLAnchorElement) || !isOurs(event, link)) return;
    event.preventDefault();
    if (link.href !== window.location.href) go(link.href);
  });
}
