// Keys that work on every page. Letters typed into a field, or with a modifier, are left alone.
import { go, href } from "../router";
import { PAGES, type PageLink } from "./pages";

export const SHORTCUTS: ReadonlyArray<readonly [keys: string, does: string]> = [
  ...PAGES.map((page) => [`g ${page.key}`, page.title] as const),
  ["/", "Filter this list"],
  ["j / k", "Next / previous entry of a list"],
  ["?", "Show these shortcuts"],
];

const PREFIX_MS = 1_500;

export const hrefOf = (page: PageLink): string => (page.path === "" ? href() : href(page.path));

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));

/** What a list is walked by: its marked links, or the first thing in each row that takes the focus. */
function entriesOf(): HTMLElement[] {
  const marked = [...document.querySelectorAll<HTMLElement>("[data-entry]")];
  if (marked.length > 0) return marked;
  return [...document.querySelectorAll("main tbody tr, main .events > li")].flatMap((row) => row.querySelector<HTMLElement>("a, button, summary") ?? []);
}

/** The entry after or before the one that has the focus. */
function step(by: 1 | -1): void {
  const entries = entriesOf();
  const at = entries.indexOf(document.activeElement as HTMLElement);
  entries[Math.min(entries.length - 1, Math.max(0, at + by))]?.focus();
}

export function startKeys(showHelp: () => void): () => void {
  let prefixAt = 0;
  const pressed = (event: KeyboardEvent): void => {
    if (isTyping(event.target) || event.ctrlKey || event.metaKey || event.altKey) return;
    const afterG = Date.now() - prefixAt < PREFIX_MS;
    prefixAt = event.key === "g" ? Date.now() : 0;
    const place = afterG ? PAGES.find((page) => page.key === event.key) : undefined;
    if (place !== undefined) go(hrefOf(place));
    else if (event.key === "?") showHelp();
    else if (event.key === "j") step(1);
    else if (event.key === "k") step(-1);
    else if (event.key === "/") document.querySelector<HTMLElement>("[data-filter]")?.focus();
    else return;
    event.preventDefault();
  };
  document.addEventListener("keydown", pressed);
  return () => document.removeEventListener("keydown", pressed);
}
