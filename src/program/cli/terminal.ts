import { styleText } from 'node:util';

type Style = Parameters<typeof styleText>[0];
export type Paint = (style: Style, text: string) => string;

/** Whether a stream is a terminal that wants colours: https://no-color.org, and `TERM=dumb`. */
export function wantsColor(stream: NodeJS.WriteStream, env: NodeJS.ProcessEnv = process.env): boolean {
  return stream.isTTY && !env['NO_COLOR'] && env['TERM'] !== 'dumb';
}

/** Returns a function that paints text for a stream. It returns plain text if colours are not wanted. */
export function painter(stream: NodeJS.WriteStream = process.stdout): Paint {
  return wantsColor(stream)
    ? (style, text) => styleText(style, text, { validateStream: false })
    : (_style, text) => text;
}

/**
 * Text of others for the terminal, on one line. Consumers choose the names of keys and organisations, which must not
 * move the cursor of the operator or write lines of their own.
 */
export const onScreen = (text: string): string => text.replace(/[\p{C}\p{Zl}\p{Zp}]+/gu, ' ');

/** Rows as aligned columns under their headings. The columns in `right` are aligned to the right. */
export function table(
  headings: readonly string[],
  cells: readonly (readonly string[])[],
  paint: Paint,
  right: readonly string[] = [],
): string {
  const rows = cells.map((row) => row.map(onScreen));
  const widths = headings.map((heading, column) =>
    Math.max(heading.length, ...rows.map((row) => (row[column] ?? '').length)),
  );
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, column) =>
        right.includes(headings[column]!) ? cell.padStart(widths[column]!) : cell.padEnd(widths[column]!),
      )
      .join('  ')
      .trimEnd();
  return [paint('dim', line(headings)), ...rows.map(line)].join('\n');
}

export interface FailedCall {
  readonly provider?: string;
  readonly service: string;
  /** ISO 8601. */
  readonly at: string;
  readonly request_id: string;
  readonly status: number | null;
  readonly reason: string;
  readonly said: string | null;
}

export function failureTable(failures: readonly FailedCall[], paint: Paint): string {
  const hasProvider = failures.some(({ provider }) => provider !== undefined);
  return table(
    ['WHEN', ...(hasProvider ? ['PROVIDER'] : []), 'SERVICE', 'STATUS', 'REQUEST', 'WHY', 'ITS WORDS'],
    failures.map((each) => [
      each.at.slice(0, 19),
      ...(hasProvider ? [each.provider ?? '-'] : []),
      each.service,
      each.status === null ? '-' : String(each.status),
      each.request_id,
      each.reason,
      each.said ?? '-',
    ]),
    paint,
    ['STATUS'],
  );
}

/** Facts as aligned lines of `name  value`. */
export function facts(pairs: readonly (readonly [name: string, value: string])[], paint: Paint, indent = ''): string {
  const width = Math.max(...pairs.map(([name]) => name.length));
  return pairs.map(([name, value]) => `${indent}${paint('dim', name.padEnd(width))}  ${onScreen(value)}`).join('\n');
}

/** Tells people on standard error what a command acts on. Standard output is for the result. */
export function say(text: string): void {
  process.stderr.write(`${painter(process.stderr)('dim', text)}\n`);
}

/** A failure whose message says what to do. It is printed without a stack. */
export class CliError extends Error {
  override readonly name = 'CliError';
  readonly exitCode: number;
  constructor(message: string, options: { readonly exitCode?: number; readonly cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.exitCode = options.exitCode ?? 1;
  }
}

/** Exit code of a wrong command line. Other codes are 0 and 1. */
export const USAGE_EXIT = 2;

/** The value of `--limit` of a list. Throws CliError. */
export function limitOf(text: string): number {
  if (/^[1-9]\d{0,6}$/.test(text)) return Number(text);
  throw new CliError(`--limit is ${JSON.stringify(text)}, not a whole number from 1, such as 50`, {
    exitCode: USAGE_EXIT,
  });
}

const ANSWER_MS = 10_000;

/**
 * Asks a yes-or-no question on the terminal. Any answer but yes means no. Without an answer within `waitMs`, by default
 * ten seconds, it is no too.
 */
export async function askYesNo(question: string, waitMs = ANSWER_MS): Promise<boolean> {
  // Loaded here, because most commands ask nothing.
  const { createInterface } = await import('node:readline/promises');
  const lines = createInterface({ input: process.stdin, output: process.stdout });
  // While readline waits for an answer, it takes Ctrl-C. The signal is meant for the program, so it is passed on.
  lines.on('SIGINT', () => process.kill(process.pid, 'SIGINT'));
  try {
    const answer = await lines.question(`${question} [y/N] `, { signal: AbortSignal.timeout(waitMs) });
    return /^y(es)?$/i.test(answer.trim());
  } catch {
    process.stdout.write('no\n');
    return false;
  } finally {
    lines.close();
    process.stdin.pause();
  }
}

/**
 * Micro-USD as USD, in the one form of all commands and of the API: at most 6 decimal places, without trailing zeros.
 * The unit stands behind it, or in the heading of the column.
 */
export function usd(micro: number): string {
  return String(Number((micro / 1e6).toFixed(6)));
}

/** Whether a text is an amount in USD, with at most 6 decimal places. */
export const isUsd = (text: string): boolean => /^\d{1,10}(?:\.\d{1,6})?$/.test(text);

/** The most that one amount of the ledger can be. */
const USD_MAX = 1_000_000_000;

/** Throws CliError for a text that is no amount above 0. `name` is how the command calls it. */
export function refuseBadAmount(amount: string, name = '<usd>'): void {
  const isAmount = /^\d+(?:\.\d{1,6})?$/.test(amount) && Number(amount) > 0;
  if (isAmount && Number(amount) <= USD_MAX) return;
  if (isAmount) throw new CliError(`${name} is ${amount}, which is too much: at most ${USD_MAX}`);
  throw new CliError(
    `${name} is an amount in USD above 0 with at most 6 decimal places, such as 25 or 0.5, not ${amount}`,
  );
}
