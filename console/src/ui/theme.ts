// Light, dark or high contrast: as the system says, or as chosen here.
import { signal } from "@preact/signals";

export const THEMES = ["system", "light", "dark", "contrast"] as const;
export type Theme = (typeof THEMES)[number];

const STORED = "pawl.theme";
const stored = localStorage.getItem(STORED) as Theme | null;

export const theme = signal<Theme>(stored !== null && THEMES.includes(stored) ? stored : "system");

function show(): void {
  if (theme.value === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme.value;
}

export function chooseTheme(chosen: Theme): void {
  theme.value = chosen;
  localStorage.setItem(STORED, chosen);
  show();
}

show();
