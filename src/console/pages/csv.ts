import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { GatewayError } from '#errors';
import type { MicroUsd } from '#billing/amounts';
import { PartyShares } from '#wire/places';

/** A cell of a table. null is an empty cell. */
export type Cell = string | number | null;

/**
 * Spreadsheets take a text that begins with such a sign for a formula, also a wide one, and behind spaces. Where
 * semicolons or tabs separate cells, quotes inside of a line mean nothing, so each part may be a text of its own.
 * Matches all before a sign that may be the end of a cell, in one piece.
 */
const BEFORE_SIGN = /(?<![;|\s\p{Cf}])[;|\s\p{Cf}]*(?=[=+\-@\uFF1D\uFF0B\uFF0D\uFF20\uFE62\uFE63\uFE66\uFE6B])/gu;
const SEPARATORS = /[;|\t\r\n]/;
/** Spreadsheets take a negative number as it is. */
const NEGATIVE = /^-\d+(?:\.\d+)?$/;
const QUOTED = /[",;\t\r\n]/;

/** Writes a line of RFC 4180. A text or a part of it that looks like a formula gets an apostrophe in front. */
export const csvLine = (cells: readonly Cell[]): string => `${cells.map(cellText).join(',')}\r\n`;

function cellText(cell: Cell): string {
  if (cell === null) return '';
  if (typeof cell === 'number') return String(cell);
  const text = NEGATIVE.test(cell) ? cell : withoutFormulas(cell);
  return QUOTED.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function withoutFormulas(text: string): string {
  const marked = text.replaceAll(BEFORE_SIGN, (before, at: number) => {
    const blanks = before.split(SEPARATORS).at(-1)!;
    if (at > 0 && blanks === before) return before;
    return `${before.slice(0, before.length - blanks.length)}'${blanks}`;
  });
  return /^[\t\r]/.test(marked) ? `'${marked}` : marked;
}

export function csvUsd(amount: MicroUsd): string {
  const digits = (amount < 0n ? -amount : amount).toString().padStart(7, '0');
  return `${amount < 0n ? '-' : ''}${digits.slice(0, -6)}.${digits.slice(-6)}`;
}

export const CSV_TYPE = 'text/csv; charset=utf-8; header=present';

/** The `content-disposition` header that makes browsers save a file under this name. */
export const savedAs = (name: string): string => `attachment; filename="${name}"`;

/** Files that are downloaded at the same time, by account and its keys. Each reads a page of calls at a time. */
const DOWNLOADS = new PartyShares(4, 64);

/**
 * Sends a file whose lines are read while the client downloads it. `party`: who requested it, see partyOf. Throws
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
