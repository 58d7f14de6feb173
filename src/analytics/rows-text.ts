import type { SumRow } from './sums.ts';

/** Encodes rows as one parameter: a JSON object with a member for each row. json_each of both engines reads it. */
export function rowsText(rows: readonly SumRow[]): string {
  let text = '';
  for (const row of rows) text += `${text === '' ? '{' : ','}"${text.length}":${JSON.stringify(row)}`;
  return text === '' ? '{}' : `${text}}`;
}
