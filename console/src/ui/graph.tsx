// The steps of a run as a graph. Steps are buttons, so the keyboard reaches them in the order in which they run.
import { useMemo } from "preact/hooks";
import type { Step } from "../api/types";
import { pathOf, picture, type Direction, type Picture, type StepShape } from "../logic/graph";
import { familyOf, MARKS, worded } from "../logic/status";

export interface GraphProps {
  steps: readonly StepShape[];
  states: ReadonlyMap<string, Step>;
  direction: Direction;
  selected: string | null;
  onSelect: (name: string) => void;
}

const ARROW = 6;

function Arrow({ points }: { points: ReadonlyArray<{ x: number; y: number }> }) {
  const [from, to] = points.slice(-2);
  if (from === undefined || to === undefined) return null;
  const angle = (Math.atan2(to.y - from.y, to.x - from.x) * 180) / Math.PI;
  return <path d={`M0,0 L${-ARROW},${-ARROW * 0.6} L${-ARROW},${ARROW * 0.6} Z`} transform={`translate(${to.x},${to.y}) rotate(${angle})`} />;
}

function Lines({ drawn, states }: { drawn: Picture; states: GraphProps["states"] }) {
  return (
    <svg width={drawn.width} height={drawn.height} aria-hidden="true">
      {drawn.edges.map((edge) => {
        const passed = states.get(edge.from)?.status === "succeeded" && edge.kind === "needs";
        return (
          <g key={`${edge.from} ${edge.to} ${edge.kind}`} class={`edge ${edge.kind} ${passed ? "passed" : ""}`}>
            <path class="line" d={pathOf(edge.points)} />
            <Arrow points={edge.points} />
          </g>
        );
      })}
    </svg>
  );
}

const UNDONE = { running: "being undone", succeeded: "undone", failed: "undo failed" } as const;

/** "2 of 5" for a step that runs once for each element, or the number of its attempt if it was retried. */
function noteOf(step: Step | undefined): string {
  if (step === undefined) return "";
  if (step.items !== undefined) return `${step.items.over} of ${step.items.total}${step.items.failed > 0 ? `, ${step.items.failed} failed` : ""}`;
  if (step.compensation !== undefined) return UNDONE[step.compensation];
  return step.attempt > 1 ? `attempt ${step.attempt}` : "";
}

export function Graph({ steps, states, direction, selected, onSelect }: GraphProps) {
  const drawn = useMemo(() => picture(steps, direction), [steps, direction]);
  const types = useMemo(() => new Map(steps.map((step) => [step.name, step.type])), [steps]);
  const isDefinition = states.size === 0;
  return (
    <div class="graph" tabIndex={0} role="group" aria-label="Steps of the run">
      <div class="graph-room" style={{ width: `${drawn.width}px`, height: `${drawn.height}px` }}>
        <Lines drawn={drawn} states={states} />
        {drawn.nodes.map((node) => {
          const step = states.get(node.name);
          const status = step?.status ?? "pending";
          const begun = step?.job_id != null || (step !== undefined && status !== "pending");
          const family = begun ? familyOf(status) : "unborn";
          const note = noteOf(step);
          return (
            <button
              key={node.name}
              type="button"
              class={isDefinition ? "node" : `node ${family}`}
              data-step={node.name}
              data-status={status}
              aria-pressed={selected === node.name}
              style={{ left: `${node.x}px`, top: `${node.y}px`, width: `${node.width}px`, height: `${node.height}px` }}
              onClick={() => onSelect(node.name)}
            >
              <span class="node-name">{node.name}</span>
              <span class="node-state">
                {isDefinition ? (
                  types.get(node.name)
                ) : (
                  <>
                    <span aria-hidden="true">{family === "unborn" ? "○" : MARKS[family]}</span> {begun ? worded(status) : "not yet"}
                    {note !== "" && ` · ${note}`}
                  </>
                )}
              </span>
            </button>
          );
        })}
      </div>
    </div>
  );
}
