// Types of entities, and what one type is like: its entities, and whether its dedup window is long enough.
import { useState } from "preact/hooks";
import { api, curlOf, must, requestOf } from "../api/client";
import type { EntityType, EntityTypeStats } from "../api/types";
import { duration } from "../logic/time";
import { go, href } from "../router";
import { Card, Command, CopyAs, Empty, Facts, Loading, PageHead, ProblemBox, Time } from "../ui/bits";
import { useLoad, usePages, useTitle } from "../ui/hooks";
import { PagedTable } from "../ui/list";

const EXAMPLE = { queue: "carts", handler: "cart.apply" };

export function EntityTypes() {
  useTitle("Entities");
  const list = usePages(
    (cursor) => must(api.GET("/api/v1/entity-types", { params: { query: { limit: 100, ...(cursor === undefined ? {} : { cursor }) } } })),
    [],
  );
  return (
    <>
      <PageHead title="Entities" lead="Long-lived things that take signals one after the other and keep a state.">
        <CopyAs request={requestOf("GET", "entity-types")} />
      </PageHead>
      <PagedTable
        label="Types of entities"
        list={list}
        keyOf={(t) => t.type}
        columns={[
          {
            title: "Type",
            cell: (t) => (
              <a href={href("entities", t.type)} data-entry>
                {t.type}
              </a>
            ),
          },
          { title: "Version", cell: (t) => t.version, numeric: true },
          { title: "Created", cell: (t) => <Time at={t.created_at} /> },
          { title: "Changed", cell: (t) => <Time at={t.updated_at} /> },
        ]}
        empty={
          <Empty title="No types of entities yet">
            <p>
              An entity is a cart, an account, a device: its handler gets its state and the signals that came, and gives back the next state. Define a type:
            </p>
            <Command text={curlOf("PUT", "entity-types/cart", EXAMPLE)} />
          </Empty>
        }
      />
    </>
  );
}

/** How old duplicates were when they came, beside the window in which they are recognised. */
function DedupWindow({ stats }: { stats: EntityTypeStats }) {
  const most = Math.max(1, ...stats.histogram.map((bar) => bar.duplicates + bar.late));
  return (
    <Card title="Duplicates by age" aside={<CopyAs request={requestOf("GET", `entity-types/${stats.type}/stats`)} />}>
      <p class="faint">
        A signal with a dedup key counts once for {duration(stats.window_s * 1_000)}. Duplicates that come later are not recognised: they are “late”.
      </p>
      <Facts
        of={{
          "Signals with a key": stats.signals_with_key,
          Duplicates: stats.duplicates,
          Late: <span class={stats.late_duplicates > 0 ? "fault" : ""}>{`${stats.late_duplicates} (${(100 * stats.late_share).toFixed(1)}%)`}</span>,
          "Forgotten by age": stats.evicted_by_age,
          "Forgotten by number": stats.evicted_by_count,
        }}
      />
      {stats.duplicates + stats.late_duplicates === 0 ? (
        <p class="faint">No duplicate has come yet.</p>
      ) : (
        <ul class="bars" aria-label="Duplicates by age">
          {stats.histogram.map((bar) => (
            <li key={bar.age}>
              <span class="faint">{bar.age}</span>
              <span class="bar-track">
                <span class={`bar-fill ${bar.late > 0 ? "late" : ""}`} style={{ width: `${(100 * (bar.duplicates + bar.late)) / most}%` }} />
              </span>
              <span>
                {bar.duplicates + bar.late}
                {bar.late > 0 && <span class="fault"> {bar.late} late</span>}
              </span>
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}

function Settings({ of }: { of: EntityType }) {
  return (
    <Facts
      of={{
        Version: of.version,
        Handler: (
          <>
            <code>{of.handler}</code> on <code>{of.queue}</code>
          </>
        ),
        "Dedup window": `${duration(of.dedup_window_s * 1_000)}, at most ${of.dedup_max_keys} keys`,
        Inbox: `at most ${of.max_inbox}, ${of.max_batch} at once`,
        "New generation": `after ${of.rollover_events} events`,
        Changed: <Time at={of.updated_at} />,
      }}
    />
  );
}

function OpenEntity({ type }: { type: string }) {
  const [id, setId] = useState("");
  return (
    <form
      class="filters"
      onSubmit={(e) => {
        e.preventDefault();
        if (id.trim() !== "") go(href("entities", type, id.trim()));
      }}
    >
      <label>
        Open by id
        <input data-filter value={id} spellcheck={false} onInput={(e) => setId(e.currentTarget.value)} />
      </label>
      <button>Open</button>
    </form>
  );
}

export function EntityTypePage({ type }: { type: string }) {
  useTitle(type);
  const path = { path: { type } };
  const about = useLoad(async () => {
    const [of, stats] = await Promise.all([
      must(api.GET("/api/v1/entity-types/{type}", { params: path })),
      must(api.GET("/api/v1/entity-types/{type}/stats", { params: path })),
    ]);
    return { of, stats };
  }, [type]);
  const list = usePages(
    (cursor) => must(api.GET("/api/v1/entities/{type}", { params: { ...path, query: { limit: 100, ...(cursor === undefined ? {} : { cursor }) } } })),
    [type],
  );
  if (about.data === null) return about.failure === null ? <Loading /> : <ProblemBox failure={about.failure} retry={about.reload} />;
  return (
    <>
      <PageHead title={type}>
        <CopyAs request={requestOf("GET", `entities/${type}`)} />
      </PageHead>
      <Settings of={about.data.of} />
      <OpenEntity type={type} />
      <PagedTable
        label="Entities"
        list={list}
        keyOf={(e) => e.id}
        columns={[
          {
            title: "Entity",
            cell: (e) => (
              <a href={href("entities", type, e.id)} data-entry>
                {e.id}
              </a>
            ),
          },
          { title: "Inbox", cell: (e) => e.inbox, numeric: true },
          { title: "State version", cell: (e) => e.version, numeric: true },
          { title: "Generation", cell: (e) => e.generation, numeric: true },
          { title: "Type version", cell: (e) => `${e.type_version}${e.migrating_to === null ? "" : ` → ${e.migrating_to}`}` },
          { title: "Last active", cell: (e) => <Time at={e.active_at} /> },
        ]}
        empty={
          <Empty title="No entities of this type yet">
            <p>An entity comes into being with its first signal:</p>
            <Command text={curlOf("POST", `entities/${type}/first/signals`, { name: "add", payload: { item: "book" }, dedup_key: "click-1" })} />
          </Empty>
        }
      />
      <DedupWindow stats={about.data.stats} />
    </>
  );
}
