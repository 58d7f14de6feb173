import type { MicroUsd } from '#billing';

/** A cell of a table. null is an empty one. */
export type Cell = string | number | null;

/** Spreadsheets take a text that begins so for a formula. */
const FORMULA = /^[=+\-@\t\r]/;
const QUOTED = /[",\r\n]/;

/** A line of RFC 4180. A text that a spreadsheet would take for a formula gets an apostrophe before it. */
export const csvLine = (cells: readonly Cell[]): string => `${cells.map(cellText).join(',')}\r\n`;

function cellText(cell: Cell): string {
  if (cell === null) return '';
  if (typeof cell === 'number') return String(cell);
  const text = FORMULA.test(cell) ? `'${cell}` : cell;
  return QUOTED.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** USD with 6 decimal places. */
export function csvUsd(amount: MicroUsd): string {
  const digits = amount.toString().padStart(7, '0');
  return `${digits.slice(0, -6)}.${digits.slice(-6)}`;
}

export const CSV_TYPE = 'text/csv; charset=utf-8; header=present';

/** Makes browsers save a file under this name. */
export const savedAs = (name: string): string => `attachment; filename="${name}"`;

/** The member of a query that asks for a file. */
export const formatSchema = {
  type: 'string',
  enum: ['json', 'csv'],
  default: 'json',
  description: '`csv`: one file (RFC 4180).',
} as const;
