// The steps of a workflow as a graph with places on a plane.
import { Graph, layout } from "@dagrejs/dagre";

export interface StepShape {
  name: string;
  type?: string;
  needs?: string[] | undefined;
  on_error?: string | undefined;
}

export interface Edge {
  from: string;
  to: string;
  kind: "needs" | "on_error";
}

export interface Node {
  name: string;
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface Picture {
  width: number;
  height: number;
  nodes: Node[];
  edges: Array<Edge & { points: Array<{ x: number; y: number }> }>;
}

export type Direction = "LR" | "TB";

/** Who waits for whom. If no step says what it needs, they run in the order written. */
export function edgesOf(steps: readonly StepShape[]): Edge[] {
  const names = new Set(steps.map((step) => step.name));
  const inOrder = steps.every((step) => step.needs === undefined);
  const edges: Edge[] = [];
  steps.forEach((step, i) => {
    const before = steps[i - 1];
    const needs = inOrder ? (before === undefined ? [] : [before.name]) : (step.needs ?? []);
    for (const need of needs) if (names.has(need)) edges.push({ from: need, to: step.name, kind: "needs" });
    const handler = step.on_error;
    if (handler !== undefined && names.has(handler)) edges.push({ from: step.name, to: handler, kind: "on_error" });
  });
  return edges;
}

const NODE_HEIGHT = 52;
const NODE_WIDTH_MIN: Record<Direction, number> = { LR: 172, TB: 148 }; // "✓ succeeded · attempt 2"; two beside each other on a phone
const NODE_WIDTH_MAX = 240;
const CHARACTER = 8.2; // of the name, in pixels, on average

const widthOf = (name: string, direction: Direction): number => Math.min(NODE_WIDTH_MAX, Math.max(NODE_WIDTH_MIN[direction], 52 + name.length * CHARACTER));

export function picture(steps: readonly StepShape[], direction: Direction): Picture {
  const graph = new Graph({ multigraph: true });
  graph.setGraph({ rankdir: direction, nodesep: 18, ranksep: direction === "LR" ? 48 : 34, marginx: direction === "LR" ? 10 : 5, marginy: 10 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const { name } of steps) graph.setNode(name, { width: widthOf(name, direction), height: NODE_HEIGHT });
  const edges = edgesOf(steps);
  for (const { from, to, kind } of edges) graph.setEdge(from, to, {}, kind);
  layout(graph);
  const size = graph.graph() as { width?: number; height?: number };
  return {
    width: Math.ceil(size.width ?? 0),
    height: Math.ceil(size.height ?? 0),
    nodes: steps.map(({ name }) => nodeAt(name, graph.node(name) as Box)),
    edges: edges.map((edge) => ({
      ...edge,
      points: (graph.edge(edge.from, edge.to, edge.kind) as { points: Array<{ x: number; y: number }> }).points,
    })),
  };
}

interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** dagre gives the middle; a page needs the corner. */
function nodeAt(name: string, box: Box): Node {
  return { name, x: box.x - box.width / 2, y: box.y - box.height / 2, width: box.width, height: box.height };
}

/** A smooth line through the points, as SVG writes it. */
export function pathOf(points: ReadonlyArray<{ x: number; y: number }>): string {
  const [first, ...rest] = points;
  if (first === undefined) return "";
  const at = (p: { x: number; y: number }): string => `${p.x.toFixed(1)},${p.y.toFixed(1)}`;
  let text = `M${at(first)}`;
  rest.forEach((point, i) => {
    const next = rest[i + 1];
    if (next === undefined) text += ` L${at(point)}`;
    else text += ` Q${at(point)} ${at({ x: (point.x + next.x) / 2, y: (point.y + next.y) / 2 })}`;
  });
  return text;
}
