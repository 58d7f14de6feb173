import { CliError } from '../terminal.ts';
import { CSV_FORMATS, unknownColumns, type Vendor } from './csv-formats.ts';
import { parseCsv } from './csv-text.ts';
import { dayOfResult, isObject, JSON_FORMATS, type JsonObject, resultsOf } from './json-formats.ts';
import type { VendorRow } from './vendor-row.ts';

interface VendorExport {
  /** Its format, in words. */
  readonly format: string;
  readonly rows: readonly VendorRow[];
}

/**
 * Reads an export by the names of its columns or members. Throws CliError for a format that is not known, with what was
 * found and what is known, because a sum of a file that was only guessed at would prove nothing.
 */
export function readExport(vendor: Vendor, text: string, file: string): VendorExport {
  return /^\uFEFF?\s*[[{]/.test(text) ? readJson(vendor, text, file) : readCsv(vendor, text, file);
}

function readCsv(vendor: Vendor, text: string, file: string): VendorExport {
  const table = parseCsv(text, file);
  const fitting = (one: Vendor) =>
    CSV_FORMATS.find((format) => format.vendor === one && format.columns.every((name) => table.columns.includes(name)));
  const format = fitting(vendor);
  if (format === undefined) throw unknownFormat(vendor, file, 'columns', table.columns, (one) => fitting(one) ?? null);
  const unknown = unknownColumns(format, table);
  if (unknown.length > 0)
    throw new CliError(
      `${file} has columns that this tollgate does not know: ${unknown.join(', ')}. They may be parts of the bill, so nothing was compared.\n${known(vendor)}`,
    );
  const rows = table.lines.map(({ cells, place }) => format.row(cells, place)).filter((row) => row !== null);
  return { format: `${vendor}: ${format.name}`, rows };
}

function readJson(vendor: Vendor, text: string, file: string): VendorExport {
  const pages = pagesOf(text, file);
  const results = [...resultsOf(pages, file)];
  const last = pages.at(-1);
  if (last?.['has_more'] === true)
    throw new CliError(
      `${file}: the last page has has_more: true, so days are missing. Add the pages that next_page leads to, as a JSON array of pages.`,
    );
  const [first] = results;
  if (first === undefined) return { format: `${vendor}: JSON without a result`, rows: [] };
  const fits = (one: Vendor) =>
    JSON_FORMATS.find(
      ({ vendor: its, object, members }) =>
        its === one &&
        (object === undefined || first.result['object'] === object) &&
        members.every((name) => name in first.result),
    );
  const format = fits(vendor);
  if (format === undefined)
    throw unknownFormat(vendor, file, 'members', Object.keys(first.result), (one) => fits(one) ?? null);
  const rows = results.map((each) => {
    const lacks = format.members.filter((name) => !(name in each.result));
    if (lacks.length > 0) throw new CliError(`${each.place} lacks ${lacks.join(', ')}`);
    return format.row(each.result, dayOfResult(format, each), each.place);
  });
  return { format: `${vendor}: ${format.name}`, rows };
}

/** One page, a JSON array of pages, or OpenRouter's rows without their envelope. */
function pagesOf(text: string, file: string): readonly JsonObject[] {
  let value: unknown;
  try {
    value = JSON.parse(text.replace(/^\uFEFF/, ''));
  } catch (error) {
    throw new CliError(`${file} is no JSON: ${(error as Error).message}`, { cause: error });
  }
  const pages = Array.isArray(value) ? (value as readonly unknown[]) : [value];
  if (pages.every((page) => isObject(page) && 'data' in page)) return pages as readonly JsonObject[];
  return [{ data: pages }];
}

function unknownFormat(
  vendor: Vendor,
  file: string,
  kind: 'columns' | 'members',
  names: readonly string[],
  fits: (vendor: Vendor) => { readonly name: string } | null,
): CliError {
  const other = (['openai', 'anthropic', 'openrouter', 'csv'] as const).find(
    (one) => one !== vendor && one !== 'csv' && fits(one) !== null,
  );
  const hint = other === undefined ? '' : `\nThis is an export of ${other}: tollgate reconcile ${other} ${file}`;
  return new CliError(
    `${file} has no known format of ${vendor}. Its ${kind}: ${names.slice(0, 40).join(', ') || 'none'}.${hint}\n${known(vendor)}`,
  );
}

const known = (vendor: Vendor): string =>
  [
    `Known formats of ${vendor}:`,
    ...CSV_FORMATS.filter((format) => format.vendor === vendor).map(
      ({ name, columns }) => `  ${name}, with ${columns.join(', ')}`,
    ),
    ...JSON_FORMATS.filter((format) => format.vendor === vendor).map(
      ({ name, members }) => `  ${name}, with ${members.join(', ')}`,
    ),
  ].join('\n');
