// What surrounds every page: navigation, the tenant, the state of the connection and the theme.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { api, chooseTenant, must, tenant } from "../api/client";
import { may, me, signOut } from "../api/session";
import { link, listen } from "../live/tenant";
import { href, parts, path } from "../router";
import { say, Toast } from "./bits";
import { Dialog } from "./dialog";
import { useLoad, useThrottled } from "./hooks";
import { Icon } from "./icons";
import { hrefOf, SHORTCUTS, startKeys } from "./keys";
import { GROUPS, type PageLink } from "./pages";
import { chooseTheme, theme, THEMES, type Theme } from "./theme";

const COUNT_REFRESH_MS = 2_000;
const COUNT_MAX = 99;

/** What waits for a person, beside the names of the pages. */
function useCounts(): Record<string, string> {
  const { data, reload } = useLoad(async () => {
    const query = { limit: COUNT_MAX };
    const [approvals, letters] = await Promise.all([
      must(api.GET("/api/v1/approvals", { params: { query: { ...query, status: "pending" } } })),
      must(api.GET("/api/v1/dead-letters", { params: { query } })),
    ]);
    const worded = (page: { items: unknown[]; next_cursor: string | null }): string =>
      page.items.length === 0 ? "" : `${page.items.length}${page.next_cursor === null ? "" : "+"}`;
    return { approvals: worded(approvals), "dead-letters": worded(letters) };
  }, [tenant.value]);
  const refresh = useThrottled(reload, COUNT_REFRESH_MS);
  useEffect(() => listen(refresh), []);
  return data ?? {};
}

const isOffered = (page: PageLink): boolean => page.needs === undefined || may(page.needs);

function Navigation() {
  const here = parts.value[0] ?? "";
  const counts = useCounts();
  return (
    <nav aria-label="Pages">
      {GROUPS.map(([name, pages]) => (
        <div key={name} class="nav-group">
          <span class="nav-title">{name}</span>
          {pages.filter(isOffered).map((page) => (
            <a key={page.path} href={hrefOf(page)} aria-current={here === page.path ? "page" : undefined}>
              <Icon name={page.icon} /> {page.title}
              {counts[page.path] !== undefined && counts[page.path] !== "" && <span class="count">{counts[page.path]}</span>}
            </a>
          ))}
        </div>
      ))}
    </nav>
  );
}

/** Those that exist, as far as the caller may know; any other name can be typed. */
async function tenantNames(): Promise<string[]> {
  const page = await must(api.GET("/api/v1/tenants", { params: { query: { limit: 200 } } }));
  return page.items.map((item) => item.id);
}

function TenantSwitch() {
  const [text, setText] = useState(tenant.value);
  const { data: names } = useLoad(tenantNames, []);
  const choose = (event: Event): void => {
    event.preventDefault();
    const name = text.trim();
    if (/^[\w.:-]{1,64}$/.test(name)) chooseTenant(name);
  };
  return (
    <form class="tenant" onSubmit={choose}>
      <label>
        <span>Tenant</span>
        <input
          value={text}
          onInput={(e) => setText(e.currentTarget.value)}
          onBlur={choose}
          maxLength={64}
          spellcheck={false}
          autocomplete="off"
          list="tenants"
        />
      </label>
      <datalist id="tenants">
        {(names ?? []).map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
    </form>
  );
}

/** Only who may see all tenants has a choice. */
function TenantName() {
  if (me.value?.all_tenants === true) return <TenantSwitch />;
  return (
    <p class="tenant">
      <span class="faint">Tenant</span> <strong>{tenant.value}</strong>
    </p>
  );
}

function Person() {
  const who = me.value;
  if (who?.session_expires_at == null) return null;
  return (
    <span class="person">
      <span title={`Role ${who.role}`}>{who.actor}</span>
      <button type="button" class="small" onClick={() => void signOut().catch((e: unknown) => say((e as Error).message))}>
        Sign out
      </button>
    </span>
  );
}

const LINK_WORDS = { connecting: "Connecting…", live: "Live", waiting: "Reconnecting…", ended: "Not live" } as const;

function Link() {
  return (
    <span class={`link ${link.value}`} role="status">
      <span aria-hidden="true">●</span> {LINK_WORDS[link.value]}
    </span>
  );
}

const THEME_WORDS: Record<Theme, string> = { system: "System", light: "Light", dark: "Dark", contrast: "Contrast" };

function ThemeChoice() {
  return (
    <label class="theme">
      <span>Theme</span>
      <select value={theme.value} onChange={(e) => chooseTheme(e.currentTarget.value as Theme)}>
        {THEMES.map((name) => (
          <option key={name} value={name}>
            {THEME_WORDS[name]}
          </option>
        ))}
      </select>
    </label>
  );
}

function Help({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="Keyboard shortcuts" onClose={onClose}>
      <dl class="shortcuts">
        {SHORTCUTS.map(([keys, does]) => (
          <div key={keys}>
            <dt>
              <kbd>{keys}</kbd>
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
      <form method="dialog">
        <button>Close</button>
      </form>
    </Dialog>
  );
}

export function Frame({ children }: { children: ComponentChildren }) {
  const [helps, setHelps] = useState(false);
  const [opened, setOpened] = useState(false); // the navigation, on narrow screens
  const main = useRef<HTMLElement>(null);
  useEffect(() => startKeys(() => setHelps(true)), []);
  useEffect(() => setOpened(false), [path.value]);
  return (
    <div class={`frame ${opened ? "opened" : ""}`}>
      <button type="button" class="skip" onClick={() => main.current?.focus()}>
        Skip to the content
      </button>
      <header class="side">
        <div class="side-head">
          <a class="brand" href={href()}>
            <img src="./icon.svg" alt="" width="24" height="24" /> pawl
          </a>
          <Link />
          <button
            type="button"
            class="menu-button"
            aria-expanded={opened}
            aria-controls="side-body"
            aria-label={opened ? "Close the menu" : "Open the menu"}
            onClick={() => setOpened((old) => !old)}
          >
            <Icon name={opened ? "close" : "menu"} />
          </button>
        </div>
        <div class="side-body" id="side-body">
          <TenantName />
          <Navigation />
          <div class="tools">
            <Person />
            <ThemeChoice />
            <button type="button" class="small" aria-label="Keyboard shortcuts" onClick={() => setHelps(true)}>
              ?
            </button>
          </div>
        </div>
      </header>
      <main ref={main} tabIndex={-1}>
        {children}
      </main>
      <Toast />
      {helps && <Help onClose={() => setHelps(false)} />}
    </div>
  );
}
