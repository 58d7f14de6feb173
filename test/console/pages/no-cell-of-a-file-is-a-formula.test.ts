import { readdir, readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { csvLine } from '../../../src/console/pages/csv.ts';
import { spineOfFile } from '../../support/of-file.ts';
import { ask } from '../../support/spine.ts';

const STRANGER = '=HYPERLINK("http://x.example","y")';
const spine = spineOfFile();

/** Cells of a file that a spreadsheet would run. */
const formulas = (text: string): readonly string[] =>
  [...text.matchAll(/("(?:[^"]|"")*"|[^",\r\n]*)(?:,|\r\n)/g)]
    .map(([, cell]) => cell!.replace(/^"/, ''))
    .filter((cell) => /^[=+@\t\r]|^-(?!\d+(?:\.\d+)?$)/.test(cell));

test('a text that looks like a formula is marked, and a number is not', () => {
  const texts = ['=1+1', '+1', '@SUM(A1)', '\t=1', '\r=1', '-2+3', '-A1', '-1e3', '-'];
  for (const text of texts) expect(csvLine([text])).toMatch(/^"?'/);
  for (const text of ['\uFF1D1+1', '\uFF20SUM(A1)', ' =1+1', '\u00A0\u200B=1+1', '\uFE66A1'])
    expect(csvLine([text])).toMatch(/^"?'/);
  // Where semicolons or tabs separate cells, a comma and the quote behind it are text.
  for (const text of ['x;=1+1', 'x; +1', 'x\t=1+1', 'x|@A1', 'x\n=1+1', 'x;y;-A1'])
    expect(
      csvLine(['a', text])
        .split(/[;|\t\r\n]/)
        .filter((part) => /^\s*[=+\-@]/.test(part)),
    ).toEqual([]);
  expect(csvLine(['x;y', 'a=b', '1-2'])).toBe('"x;y",a=b,1-2\r\n');
  expect(csvLine(['-0.000123', '-5', '12.5', -3, 'a-b', null])).toBe('-0.000123,-5,12.5,-3,a-b,\r\n');
});

test('every file that the gateway gives out is safe to open, whatever its customers call things', async () => {
  const { key, account } = await spine.tenant('csv', '5', { label: STRANGER });
  const admin = { authorization: `Bearer ${spine.adminKey}` };
  for (const tag of ['team==1+1', 'team=@x', 'team=-1+1', 'team=x;=1+1'])
    expect(
      (await spine.post('/chat/completions', ask('hello'), { authorization: `Bearer ${key}`, 'x-tollgate-tags': tag }))
        .status,
    ).toBe(200);
  const document = (await (await fetch(`${spine.origin}/openapi.json`)).json()) as {
    paths: Record<string, { get?: { responses: { 200?: { content?: object } } } }>;
  };
  const offered = Object.entries(document.paths).filter(
    ([, { get }]) => get?.responses[200]?.content !== undefined && 'text/csv' in get.responses[200].content,
  );
  expect(offered.length).toBeGreaterThan(4);
  const month = new Date().toISOString().slice(0, 7);
  const marked: string[] = [];
  for (const [path] of offered) {
    const filled = path.replace('{month}', month).replace('{id}', encodeURIComponent(account));
    const query = path.endsWith('/focus') || path.includes('/focus/') ? '' : '?format=csv&group_by=key';
    const headers = path.startsWith('/admin') ? admin : { authorization: `Bearer ${key}` };
    let answer = await fetch(`${spine.origin}${filled}${query}`, { headers });
    if (answer.status === 400) answer = await fetch(`${spine.origin}${filled}?format=csv`, { headers });
    expect([path, answer.status, answer.headers.get('content-type')]).toEqual([
      path,
      200,
      expect.stringMatching(/^text\/csv/),
    ]);
    const text = await answer.text();
    expect([path, formulas(text)]).toEqual([path, []]);
    expect([path, text.split(/[;\t\r\n]/).filter((part) => /^\s*[=+@]/.test(part))]).toEqual([path, []]);
    if (text.includes(`'=`)) marked.push(path);
  }
  // Files of sums may not have the newest calls yet.
  expect(marked).toEqual(
    expect.arrayContaining(offered.map(([path]) => path).filter((path) => !/analytics|usage/.test(path))),
  );
});

test('one function writes the lines of files, so no writer forgets the mark', async () => {
  const writers: string[] = [];
  for (const root of ['src', 'web/src'])
    for (const name of await readdir(root, { recursive: true })) {
      if (!/\.tsx?$/.test(name)) continue;
      const text = await readFile(`${root}/${name}`, 'utf8');
      if (/csv/i.test(text) && /join\((['"`]),\1\)/.test(text) && /\\r\\n/.test(text)) writers.push(`${root}/${name}`);
    }
  // The page's file has dates and numbers alone.
  expect(writers.sort()).toEqual(['src/console/pages/csv.ts', 'web/src/pages/rankings/csv.ts']);
});
