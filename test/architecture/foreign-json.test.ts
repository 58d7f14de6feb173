import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { BOUNDS, type Bound } from '#wire';
import { BEHIND_ROWS } from '../fairness/support/worst/behind-rows.ts';
import { MEDIA_ROWS } from '../fairness/support/worst/media-rows.ts';
import { MODEL_ROWS } from '../fairness/support/worst/model-rows.ts';
import { TOOL_ROWS } from '../fairness/support/worst/tool-rows.ts';
import { JUDGED } from './judged-parses.ts';
import { mask, readTree, ROOT } from './source.ts';

/** Places that build a value from JSON: JSON.parse, also under another name, and the body of a response. */
const PARSES = /\bJSON\s*(?:\?\.|\.)\s*parse\b|\bJSON\s*\[|\bparse\b[^;]*\}\s*=\s*JSON\b|\.\s*json\s*\(\s*\)/g;

const parsesIn = (text: string): number => mask(text).code.match(PARSES)?.length ?? 0;

test('JSON of others is parsed by src/foundation/wire alone, and the other places are judged', () => {
  const judged = Object.assign({}, ...Object.values(JUDGED)) as Record<string, number>;
  const found = readTree(['src'], ['.ts'])
    .filter(({ path }) => !path.startsWith('src/foundation/wire/'))
    .map(({ path, text }) => [path.slice('src/'.length, -'.ts'.length), parsesIn(text)] as const)
    .filter(([, count]) => count > 0);
  // A text of others: parseForeign, foreignObject, readForeign or parseReplyObject, with its row of BOUNDS.
  expect(Object.fromEntries(found)).toEqual(judged);
});

test.each([
  'JSON.parse(text)',
  'const { parse } = JSON;',
  'JSON["parse"](text)',
  'rows.map(JSON.parse)',
  'await response.json()',
])('%s is found', (code) => expect(parsesIn(code)).toBe(1));

test.each(['// JSON.parse', 'const name = "JSON.parse";', 'JSON.stringify(value)', 'parseForeign(text, BOUNDS.card)'])(
  '%s is not found',
  (code) => expect(parsesIn(code)).toBe(0),
);

const KIB = 1024;
const size = (bytes: number): string => (bytes < KIB * KIB ? `${bytes / KIB} KiB` : `${bytes / KIB / KIB} MiB`);
const count = (value: number): string => value.toLocaleString('en-US');
const setting = (name: string): string => (/^[a-z_.]+$/.test(name) ? `\`${name}\`` : name);

test('docs/reference/bounds.md shows all bounds', () => {
  const rows = Object.values<Bound>(BOUNDS).map(
    ({ label: of, bytesMax, denseBytesMax, bytesBy = '', jsonDepthMax, jsonKeysMax, jsonElementsMax }) =>
      `| ${of} | ${bytesMax === undefined ? setting(bytesBy) : size(bytesMax)}${denseBytesMax === undefined ? '' : `, ${size(denseBytesMax)} of them dense`} | ${jsonDepthMax} | ${count(jsonKeysMax)} | ${count(jsonElementsMax)} |`,
  );
  const page = readFileSync(join(ROOT, 'docs/reference/bounds.md'), 'utf8');
  const shown = page.split('\n').filter((line) => /^\| .* \| [\d,]+ \| [\d,]+ \| [\d,]+ \|$/.test(line));
  expect(shown).toEqual(rows);
});

/** Bounds whose readers test/fairness/worst-json-alone.test.ts tries, without a gateway. */
const ALONE = ['receiver', 'providerBatch', 'fileLine', 'chain', 'batchAnswer'];
/** Bounds that no row tries with the worst that they let through, and why. */
const NOT_TRIED: Readonly<Record<string, string>> = {
  header: 'a header has 16 KiB at most',
  clientDocument: 'it has 16 KiB at most',
  routerMessage: "read by a provider's proxy, which serves nobody else",
  probed: "read by a provider's proxy before it serves anybody",
};

test('each bound is tried with the worst that it lets through', () => {
  const rows = [BEHIND_ROWS, MEDIA_ROWS, MODEL_ROWS, TOOL_ROWS].flatMap((some) =>
    Object.values(some).map(({ bound }) => bound),
  );
  const named = new Set([...rows, ...ALONE, ...Object.keys(NOT_TRIED)]);
  expect([...named].toSorted()).toEqual(Object.keys(BOUNDS).toSorted());
});
