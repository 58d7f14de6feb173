import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { GatewayError } from '#errors';
import type { MicroUsd } from '#billing/amounts';
import { Shares } from '#wire';

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

/** Files that are downloaded at the same time, by account. Each reads a page of calls at a time. */
const DOWNLOADS = new Shares(64, 4);

/**
 * Sends a file whose lines are read while the client downloads it. `party`: the account that requested it. Throws
 * GatewayError `rate_limit_exceeded` if it downloads too many files.
 */
export function sendCsv(
  { method }: Pick<FastifyRequest, 'method'>,
  reply: Pick<FastifyReply, 'header' | 'type' | 'send'>,
  { party, name, lines }: { readonly party: string; readonly name: string; readonly lines: AsyncIterable<string> },
) {
  if (!DOWNLOADS.mayTake(party))
    throw new GatewayError('rate_limit_exceeded', 'Too many files are being downloaded at once. Retry later', {
      retryAfterS: 2,
    });
  // For HEAD the server would read the whole stream and discard it.
  const file = Readable.from(method === 'HEAD' ? [] : lines, { objectMode: false });
  DOWNLOADS.take(party);
  file.once('close', () => DOWNLOADS.leave(party));
  return reply.header('content-disposition', savedAs(name)).type(CSV_TYPE).send(file);
}

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
