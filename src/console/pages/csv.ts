import type { MicroUsd } from '#billing';

/** A cell of a table. null is an empty cell. */
export type Cell = string | number | null;

/** Spreadsheets treat a text with such a first character as a formula. */
const FORMULA = /^[=+\-@\t\r]/;
const QUOTED = /[",\r\n]/;

/** Writes a line of RFC 4180. A text that looks like a formula gets an apostrophe in front. */
export const csvLine = (cells: readonly Cell[]): string => `${cells.map(cellText).join(',')}\r\n`;

function cellText(cell: Cell): string {
  if (cell === null) return '';
  if (typeof cell === 'number') return String(cell);
  const text = FORMULA.test(cell) ? `'${cell}` : cell;
  return QUOTED.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function csvUsd(amount: MicroUsd): string {
  const digits = amount.toString().padStart(7, '0');
  return `${digits.slice(0, -6)}.${digits.slice(-6)}`;
}

export const CSV_TYPE = 'text/csv; charset=utf-8; header=present';

/** The `content-disposition` header that makes browsers save a file under this name. */
export const savedAs = (name: string): string => `attachment; filename="${name}"`;

export const formatSchema = {
  type: 'string',
  enum: ['json', 'csv'],
  default: 'json',
  description: '`csv`: one file (RFC 4180).',
} as const;

export const jsonOrCsv = (description: string, schema: object) => ({
  description,
  content: {
    'application/json': { schema },
    'text/csv': { schema: { type: 'string', description: 'RFC 4180, with a line of names.' } },
  },
});

/**
 * A line of a file for programs: a text is as it is, also if a spreadsheet takes it for a formula. null is an empty
 * cell.
 */
export const focusLine = (cells: readonly (string | null)[]): string =>
  `${cells.map((cell) => (cell !== null && QUOTED.test(cell) ? `"${cell.replaceAll('"', '""')}"` : (cell ?? ''))).join(',')}\r\n`;
