import { printable, isExactNumber } from '#wire';

/** One thing that is wrong with the configuration. Never holds the value of a secret. */
export interface ConfigProblem {
  /** The file it stands in; null for an environment variable or a flag. */
  readonly file: string | null;
  /** Line in the file, from 1, as near as it can be told. */
  readonly line: number | null;
  /** `server.port`, `models[0].pricing.prompt`; or the name of the variable or flag. */
  readonly key: string;
  readonly wrong: string;
  readonly right: string;
}

const PROBLEMS_SHOWN = 50;

/** A configuration that cannot be used: everything that is wrong with it, in `problems` and, readable, in `message`. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly problems: readonly ConfigProblem[];
  constructor(problems: readonly ConfigProblem[]) {
    super(report(problems));
    this.problems = problems;
  }
}

function report(problems: readonly ConfigProblem[]): string {
  const lines = [
    problems.length === 1 ? 'The configuration has 1 problem:' : `The configuration has ${problems.length} problems:`,
  ];
  for (const { file, line, key, wrong, right } of problems.slice(0, PROBLEMS_SHOWN)) {
    const place = file === null ? '' : `${file}${line === null ? '' : `:${line}`}  `;
    lines.push('', `  ${place}${key}`, `    ${wrong}`, `    → ${right}`);
  }
  if (problems.length > PROBLEMS_SHOWN) lines.push('', `  … and ${problems.length - PROBLEMS_SHOWN} more`);
  return lines.join('\n');
}

/** A value that an option cannot take. `message` says what is wrong, `right` what would be right. */
export class WrongValue extends Error {
  override readonly name = 'WrongValue';
  readonly right: string;
  constructor(wrong: string, right: string) {
    super(wrong);
    this.right = right;
  }
}

/** A value of a file in a message: short, on one line, printable. Not for secrets. */
export function show(value: unknown): string {
  if (typeof value === 'string') return `"${printable(value, 60)}${value.length > 60 ? '…' : ''}"`;
  if (typeof value === 'number' || typeof value === 'bigint' || typeof value === 'boolean') return String(value);
  if (Array.isArray(value)) return 'a list';
  if (value instanceof Date) return 'a date';
  if (typeof value !== 'object' || value === null) return 'null';
  if (isExactNumber(value)) return printable(value.rawJSON, 60);
  return 'a table';
}

/** The known key nearest to a mistyped one, or null when none is near. */
export function nearest(typed: string, known: readonly string[]): string | null {
  if (typed.length > 40) return null;
  let best: string | null = null;
  let least = Math.max(1, Math.floor(typed.length / 3)) + 1;
  for (const key of known) {
    const distance = editDistance(typed.toLowerCase(), key);
    if (distance < least) [best, least] = [key, distance];
  }
  return best;
}

/** Insertions, deletions, replacements and swaps of neighbours that lead from one word to the other. */
function editDistance(from: string, to: string): number {
  let before: number[] = [];
  let previous = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let row = 1; row <= from.length; row++) {
    const current = [row];
    for (let column = 1; column <= to.length; column++) {
      const same = from[row - 1] === to[column - 1];
      let cost = Math.min(previous[column]! + 1, current[column - 1]! + 1, previous[column - 1]! + (same ? 0 : 1));
      if (row > 1 && column > 1 && from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1])
        cost = Math.min(cost, before[column - 2]! + 1);
      current.push(cost);
    }
    before = previous;
    previous = current;
  }
  return previous[to.length]!;
}
