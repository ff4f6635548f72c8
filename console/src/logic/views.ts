// Saved views: filters of the list of runs under a name. They are kept in the browser, for each tenant.

export interface View {
  name: string;
  query: string; // as in the address, with its question mark
}

const VIEWS_MAX = 30;
const keyOf = (tenant: string): string => `pawl.views.${tenant}`;

export type Kept = Pick<Storage, "getItem" | "setItem">;

const isView = (value: unknown): value is View =>
  typeof value === "object" && value !== null && "name" in value && "query" in value && typeof value.name === "string" && typeof value.query === "string";

/** What anything else has written there counts as nothing. */
export function readViews(kept: Kept, tenant: string): View[] {
  try {
    const found: unknown = JSON.parse(kept.getItem(keyOf(tenant)) ?? "[]");
    return Array.isArray(found) ? found.filter(isView).slice(0, VIEWS_MAX) : [];
  } catch {
    return [];
  }
}

/** A view of the same name is replaced. */
export function saveView(kept: Kept, tenant: string, view: View): View[] {
  const views = [...readViews(kept, tenant).filter((old) => old.name !== view.name), view].slice(-VIEWS_MAX);
  kept.setItem(keyOf(tenant), JSON.stringify(views));
  return views;
}

export function dropView(kept: Kept, tenant: string, name: string): View[] {
  const views = readViews(kept, tenant).filter((old) => old.name !== name);
  kept.setItem(keyOf(tenant), JSON.stringify(views));
  return views;
}
