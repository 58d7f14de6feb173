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

/** Facts as aligned lines of `name  value`. */
export function facts(pairs: readonly (readonly [name: string, value: string])[], paint: Paint, indent = ''): string {
  const width = Math.max(...pairs.map(([name]) => name.length));
  return pairs.map(([name, value]) => `${indent}${paint('dim', name.padEnd(width))}  ${onScreen(value)}`).join('\n');
}
