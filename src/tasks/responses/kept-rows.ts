import { numberOrNull, rowReader, type Row } from '#store';
import type { KeptResponse } from './kept-response.ts';

const read = rowReader<Omit<KeptResponse, 'run'>>(
  {
    inputBytes: Number,
    responseBytes: Number,
    createdAt: Number,
    expiresAt: Number,
    runUntil: numberOrNull,
  },
  { part: 'within' },
);

/** Reads a row of a response without its content. */
export const toKept = (row: Row): KeptResponse => ({ ...read(row), run: row['run'] as KeptResponse['run'] });
