import { expect, test } from 'vitest';
import { adHoc } from '../support/ad-hoc.ts';
import { spineOfFile } from '../support/of-file.ts';

const spine = spineOfFile();
const COUNT = adHoc('SELECT COUNT(*) AS sums FROM carried_sums');

test('fifty budgets of an account that has spent nothing leave no sums', async () => {
  const { key } = await spine.tenant('poor', '0');
  const before = await spine.app.database.query(COUNT);
  const budgets = Array.from({ length: 50 }, (_, at) => ({ tag: `t${at}=x`, limit: 1, limit_reset: 'monthly' }));
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const body = JSON.stringify({ tag_budgets: budgets });
  const answer = await fetch(`${spine.origin}/api/v1/limits`, { method: 'PATCH', headers, body });
  expect(answer.status, await answer.text()).toBe(200);
  expect(await spine.app.database.query(COUNT)).toEqual(before);
});
