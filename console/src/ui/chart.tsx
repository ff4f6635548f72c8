// Lines over time. The library is loaded when the first chart is shown.
import type uPlot from "uplot";
import { useEffect, useRef } from "preact/hooks";
import { theme } from "./theme";

export interface Line {
  label: string;
  color: string; // a custom property of the theme: "--good"
}

const HEIGHT = 180;

const two = (n: number): string => String(n).padStart(2, "0");

/** "18:00", and at midnight the date: "11-16". */
function clock(seconds: number): string {
  const time = new Date(seconds * 1_000);
  const text = `${two(time.getHours())}:${two(time.getMinutes())}`;
  return text === "00:00" ? `${two(time.getMonth() + 1)}-${two(time.getDate())}` : text;
}

/** At most two decimals; null: the pointer is elsewhere. */
const figure = (value: number | null): string => (value === null ? "–" : String(Math.round(value * 100) / 100));

function optionsFor(box: HTMLElement, lines: readonly Line[]): uPlot.Options {
  const style = getComputedStyle(box);
  const color = (name: string): string => style.getPropertyValue(name).trim();
  const axis = { stroke: color("--faint"), grid: { stroke: color("--line"), width: 1 }, ticks: { stroke: color("--line"), width: 1 } };
  return {
    width: box.clientWidth,
    height: HEIGHT,
    cursor: { y: false },
    axes: [
      { ...axis, values: (_plot, at) => at.map(clock) },
      { ...axis, size: 44 },
    ],
    series: [
      { label: "at", value: (_plot, at: number | null) => (at === null ? "–" : clock(at)) },
      ...lines.map((line) => ({
        label: line.label,
        stroke: color(line.color),
        width: 2,
        points: { show: false },
        value: (_plot: uPlot, value: number | null) => figure(value),
      })),
    ],
  };
}

/** `data`: seconds, then one list of values for each line. */
export function Chart({ data, lines, label }: { data: number[][]; lines: readonly Line[]; label: string }) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const latest = useRef(data);
  latest.current = data;
  useEffect(() => {
    let gone = false;
    void Promise.all([import("uplot"), import("uplot/dist/uPlot.min.css")]).then(([{ default: Plot }]) => {
      if (gone || box.current === null) return;
      plot.current = new Plot(optionsFor(box.current, lines), latest.current as uPlot.AlignedData, box.current);
    });
    const resized = new ResizeObserver(() => plot.current?.setSize({ width: box.current?.clientWidth ?? 0, height: HEIGHT }));
    if (box.current !== null) resized.observe(box.current);
    return () => {
      gone = true;
      resized.disconnect();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [lines, theme.value]);
  useEffect(() => plot.current?.setData(data as uPlot.AlignedData), [data]);
  return <div class="chart" ref={box} role="img" aria-label={label} />;
}
