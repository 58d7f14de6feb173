import { CliError } from '../terminal.ts';

/** A CSV file: the names of its columns, and its lines by these names. */
export interface CsvTable {
  readonly columns: readonly string[];
  readonly lines: readonly { readonly place: string; readonly cells: ReadonlyMap<string, string> }[];
}

/** Reads RFC 4180, with LF or CR LF. Throws CliError that names the line. */
export function parseCsv(text: string, file: string): CsvTable {
  const FIELD = /("(?:[^"]|"")*"|[^",\r\n]*)(,|\r?\n|$)/gy;
  FIELD.lastIndex = text.startsWith('\uFEFF') ? 1 : 0;
  const rows: { line: number; cells: string[] }[] = [{ line: 1, cells: [] }];
  let line = 1;
  while (FIELD.lastIndex < text.length) {
    const [, field, end] = FIELD.exec(text) ?? [];
    if (field === undefined) throw new CliError(`${file}, line ${line}: this is no CSV with commas between its values`);
    line += field.split('\n').length - 1;
    const row = rows.at(-1)!;
    row.cells.push(field.startsWith('"') ? field.slice(1, -1).replaceAll('""', '"') : field);
    if (end === ',' && FIELD.lastIndex === text.length) row.cells.push('');
    if (end === ',' || end === '') continue;
    line += 1;
    rows.push({ line, cells: [] });
  }
  const [head, ...body] = rows.filter(({ cells }) => cells.length > 1 || (cells[0] ?? '') !== '');
  if (head === undefined) throw new CliError(`${file} is empty`);
  const columns = head.cells.map((name) => name.trim());
  const twice = columns.find((name, index) => columns.indexOf(name) !== index);
  if (twice !== undefined) throw new CliError(`${file} has the column ${JSON.stringify(twice)} twice`);
  return {
    columns,
    lines: body.map(({ line: at, cells }) => {
      const place = `${file}, line ${at}`;
      if (cells.length !== columns.length)
        throw new CliError(`${place}: ${cells.length} values, and the first line has ${columns.length} names`);
      return { place, cells: new Map(columns.map((name, index) => [name, cells[index]!])) };
    }),
  };
}
