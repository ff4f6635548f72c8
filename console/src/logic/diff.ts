// The difference of two texts, line by line: the longest common subsequence, as `diff` finds it.

export interface Line {
  kind: "same" | "added" | "removed";
  text: string;
}

const LINES_MAX = 2_000; // the table below has the product of both numbers of lines

/** null: the texts are too long to compare here. */
export function diffOf(before: string, after: string): Line[] | null {
  const a = before.split("\n");
  const b = after.split("\n");
  if (a.length > LINES_MAX || b.length > LINES_MAX) return null;
  const width = b.length + 1;
  const common = new Uint16Array((a.length + 1) * width); // of what follows line i and line j
  const at = (i: number, j: number): number => common[i * width + j] ?? 0;
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--) common[i * width + j] = a[i] === b[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
  const lines: Line[] = [];
  for (let i = 0, j = 0; i < a.length || j < b.length;) {
    const [old, next] = [a[i], b[j]];
    if (old !== undefined && old === next) {
      lines.push({ kind: "same", text: old });
      i++;
      j++;
    } else if (old !== undefined && (next === undefined || at(i + 1, j) >= at(i, j + 1))) {
      lines.push({ kind: "removed", text: old });
      i++;
    } else {
      lines.push({ kind: "added", text: next ?? "" });
      j++;
    }
  }
  return lines;
}

const AROUND = 3;

/** Only what changed, with three lines around it; null stands for lines that are left out. */
export function shortened(lines: readonly Line[]): Array<Line | null> {
  const near = lines.map((_, i) => lines.slice(Math.max(0, i - AROUND), i + AROUND + 1).some((line) => line.kind !== "same"));
  const found: Array<Line | null> = [];
  lines.forEach((line, i) => {
    if (near[i] === true) found.push(line);
    else if (found.at(-1) !== null) found.push(null);
  });
  return found;
}
