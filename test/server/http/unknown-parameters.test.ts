import { expect, test } from 'vitest';
import { fill } from '../../support/route-table.ts';
import { readOpenApi } from '../../support/open-api.ts';
import { spineOfFile } from '../../support/of-file.ts';

// A parameter of an address that is not known is refused. With a typing error in a filter or in a day the answer would
// be that of another question, with status 200.

const spine = spineOfFile(() => ({}));

/** Routes of other vendors' APIs and of protocols. Their clients send parameters that only the vendor knows. */
const OF_VENDORS = [
  /^\/mcp$/,
  /\/v1beta\/models/,
  /\/v1\/models(\/count|\/user)?$/,
  /\/v1\/(responses|files|batches|videos|video)\b/,
  /\/v1\/(keys|generation|activity)$/,
];

interface Operation {
  readonly parameters?: readonly { readonly in: string; readonly name: string; readonly required?: boolean }[];
}

test('a parameter with a typing error is refused by every route that takes parameters', async () => {
  const { paths } = await readOpenApi<{
    readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  }>(spine.origin);
  const taken: string[] = [];
  const refused: string[] = [];
  for (const [path, operations] of Object.entries(paths))
    for (const [method, { parameters = [] }] of Object.entries(operations)) {
      if (method !== 'get' || !parameters.some((one) => one.in === 'query')) continue;
      const needed = parameters.filter((one) => one.in === 'query' && one.required === true);
      const query = new URLSearchParams([...needed.map(({ name }) => [name, '2026-11-01']), ['no_such', '1']]);
      const address = `${fill(path.replaceAll(/\{(\w+)\}/g, ':$1'), {})}?${query}`;
      const key = path.startsWith('/admin') ? spine.adminKey : spine.key;
      const answer = await fetch(spine.origin + address, { headers: { authorization: `Bearer ${key}` } });
      const text = await answer.text();
      (answer.status === 400 && text.includes('no_such is not known here') ? refused : taken).push(path);
    }
  expect(taken.filter((path) => !OF_VENDORS.some((pattern) => pattern.test(path)))).toEqual([]);
  expect(refused.filter((path) => OF_VENDORS.some((pattern) => pattern.test(path)))).toEqual([]);
  expect(refused.length).toBeGreaterThanOrEqual(30);
  const mistyped = await spine.get('/analytics/own?group_by=day&startdate=2026-11-01');
  expect([mistyped.status, await mistyped.json()]).toMatchObject([
    400,
    { error: { param: 'startdate', message: expect.stringContaining('did you mean start_date?') } },
  ]);
});
