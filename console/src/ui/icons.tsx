// Small drawings, each of strokes on 24 by 24. They only accompany words, so nothing reads them aloud.
const DRAWN = {
  overview: "M4 4h7v9H4z M13 4h7v5h-7z M13 11h7v9h-7z M4 15h7v5H4z",
  runs: "M3 12h4l3-8 4 16 3-8h4",
  approvals: "M9 12l2 2 4-5 M12 3l7 3v6c0 4.5-3 7.5-7 9-4-1.5-7-4.5-7-9V6z",
  workflows: "M4 4h6v6H4z M14 14h6v6h-6z M7 10v4a3 3 0 0 0 3 3h4",
  schedules: "M12 7v5l3 2 M12 3a9 9 0 1 0 .01 0z",
  entities: "M12 3l8 4.5v9L12 21l-8-4.5v-9z M4 7.5l8 4.5 8-4.5 M12 12v9",
  queues: "M4 6h16 M4 12h16 M4 18h10",
  admission: "M12 14l4-4 M4.5 19a9 9 0 1 1 15 0",
  dead_letters: "M3 13l3-8h12l3 8v6H3z M3 13h5l1 3h6l1-3h5 M10 8l4 3 M14 8l-4 3",
  events: "M12 12h.01 M8.5 8.5a5 5 0 0 0 0 7 M15.5 8.5a5 5 0 0 1 0 7 M5.6 5.6a9 9 0 0 0 0 12.8 M18.4 5.6a9 9 0 0 1 0 12.8",
  webhooks: "M9 15a4 4 0 0 1 0-6l2-2a4 4 0 0 1 6 6l-1 1 M15 9a4 4 0 0 1 0 6l-2 2a4 4 0 0 1-6-6l1-1",
  keys: "M4 5v14 M8 5v14 M11 5v14 M15 5v14 M17 5v14 M20 5v14",
  audit: "M6 3h9l4 4v14H6z M9 10h6 M9 14h6 M9 18h3",
  tenants: "M4 21V8l6-4v17 M10 9l10 3v9 M2 21h20 M14 15h2 M14 18h2",
  access: "M15 9a5 5 0 1 0-4.6 5L12 16h2v2h2v2h4v-3l-5.4-5.4A5 5 0 0 0 15 9z M9.5 8.5h.01",
  cluster: "M9 3h6v5H9z M3 16h6v5H3z M15 16h6v5h-6z M12 8v4 M6 16v-4h12v4",
  server: "M4 4h16v7H4z M4 13h16v7H4z M8 7.5h.01 M8 16.5h.01",
  menu: "M4 6h16 M4 12h16 M4 18h16",
  close: "M6 6l12 12 M18 6L6 18",
  copy: "M9 9h11v11H9z M5 15H4V4h11v1",
} as const;

export type IconName = keyof typeof DRAWN;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" width="18" height="18" aria-hidden="true">
      <path d={DRAWN[name]} />
    </svg>
  );
}
