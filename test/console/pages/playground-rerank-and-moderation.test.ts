import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Reranker, rerankBlock, startReranker } from '../../openai/rerank/reranker.ts';
import { pageHolds } from './page-holds.ts';
import { microUsdIn, startPlayground, type PlaygroundWorld } from './playground-world.ts';

let upstream: Reranker;
let world: PlaygroundWorld;
beforeAll(async () => {
  upstream = await startReranker();
  const { url } = upstream;
  world = await startPlayground(
    rerankBlock({ name: 'acme/sorter', provider: 'Acme', url, pricing: 'per_call = 0.002' }) +
      rerankBlock({ name: 'acme/judge', provider: 'Acme', url, pricing: 'per_call = 0.0005', modality: 'moderation' }),
  );
});
afterAll(async () => {
  await world?.stop();
  await upstream?.stop();
});

test('documents are sorted, for what was shown before, by the keyboard alone', async () => {
  const visitor = await world.visit('acme/sorter');
  const { page } = visitor;
  const sort = page.getByRole('button', { name: 'Sort the documents' });
  expect(await sort.isDisabled()).toBe(true);
  await page.getByLabel('Query').focus();
  await page.keyboard.type('a gate on a road');
  await page.keyboard.press('Tab');
  await page.keyboard.type('An apple.');
  await page.keyboard.press('Enter');
  await page.keyboard.type('A gate on a road where travellers pay.');
  const shown = page.getByText(/^(?:At most|Costs) \$[\d.]+/);
  await shown.waitFor();
  const most = microUsdIn(await shown.textContent());
  const before = await world.balance();
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  const first = page.getByRole('list').filter({ hasText: 'apple' }).getByRole('listitem').first();
  await first.waitFor();
  expect(await first.textContent()).toContain('A gate on a road where travellers pay.');
  const cost = microUsdIn(await page.getByRole('button', { name: /charged/ }).textContent());
  expect(cost).toBe(2_000);
  expect(cost).toBeLessThanOrEqual(most);
  expect(before - (await world.balance())).toBe(cost);
  expect((await world.recordOf(visitor)).cost_micro_usdc).toBe(cost);
  await pageHolds(visitor);
  await visitor.close();
});

test('a text is judged, and the shown code asks for the same', async () => {
  upstream.answer = ({ input }) => ({
    body: {
      id: 'modr-1',
      model: 'upstream',
      results: [
        {
          flagged: String(input).includes('harm'),
          categories: { violence: true, hate: false },
          category_scores: { hate: 0.01, violence: 0.9 },
        },
      ],
    },
  });
  const visitor = await world.visit('acme/judge');
  const { page } = visitor;
  await page.getByLabel('Text').fill('It does harm.');
  const shown = page.getByText(/^(?:At most|Costs) \$[\d.]+/);
  await shown.waitFor();
  expect(microUsdIn(await shown.textContent())).toBe(500);
  const before = await world.balance();
  await page.getByRole('button', { name: 'Judge the text' }).click();
  await page.getByText('harmful', { exact: true }).waitFor();
  const [worst] = await page
    .getByRole('listitem')
    .filter({ hasText: /\d\.\d{4}/ })
    .allTextContents();
  expect(worst).toBe('violence applies0.9000');
  expect(before - (await world.balance())).toBe(500);
  await pageHolds(visitor);
  await page.getByRole('button', { name: 'Show code' }).click();
  await expect.poll(() => page.getByRole('dialog').textContent()).toMatch(/"input":\s*"It does harm\."/);
  expect(await visitor.axe()).toEqual([]);
  expect(visitor.problems).toEqual([]);
  await visitor.close();
});
