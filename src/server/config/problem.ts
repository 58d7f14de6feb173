import { printable } from '#security';
import { isExactNumber } from '#wire';

/** One problem of the configuration. It never contains the value of a secret. */
export interface ConfigProblem {
  /** The file with the problem. null for an environment variable or a flag. */
  readonly file: string | null;
  /** The line in the file, from 1, or the nearest known line. null if it is not known. */
  readonly line: number | null;
  /** A key path, such as `server.port` or `models[0].pricing.prompt`, or the name of the variable or flag. */
  readonly key: string;
  readonly wrong: string;
  readonly right: string;
}

const PROBLEMS_SHOWN = 50;

/** The configuration is invalid. `problems` has all problems, and `message` has them as text. */
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

/** An invalid value of an option. `message` says what is wrong, and `right` what would be valid. */
export class WrongValue extends Error {
  override readonly name = 'WrongValue';
  readonly right: string;
  constructor(wrong: string, right: string) {
    super(wrong);
    this.right = right;
  }
}

/** Formats a value of a file for a message: short, printable, on one line. Not for secrets. */
export function show(value: unknown): string {
  if (typeof value === 'string') return `"${printable(value, 60)}${value.length > 60 ? '…' : ''}"`;
  if (typeof value === 'number' || typeof value === 'bigint' || typeof value === 'boolean') return String(value);
  if (Array.isArray(value)) return 'a list';
  if (value instanceof Date) return 'a date';
  if (typeof value !== 'object' || value === null) return 'null';
  if (isExactNumber(value)) return printable(value.rawJSON, 60);
  return 'a table';
}

/** The known key that is nearest to a mistyped one. null if no key is near. */
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

/** The number of insertions, deletions, replacements and swaps of neighbours that turn one word into the other. */
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
