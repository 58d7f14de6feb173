import { afterAll, beforeAll, expect, test } from 'vitest';
import { looksRight } from './page-holds.ts';
import { microUsdIn, startPlayground, type PlaygroundWorld } from './playground-world.ts';

// What is shown before a call is the most that it costs.

let world: PlaygroundWorld;
beforeAll(async () => {
  world = await startPlayground();
});
afterAll(() => world?.stop());

const CASES = [
  { service: 'demo/chat', box: 'Message to demo/chat', run: 'Send' },
  { service: 'demo/agent', box: 'Message to demo/agent', run: 'Send' },
  { service: 'demo/embedding', box: 'Text', run: 'Make the vector' },
  { service: 'demo/speech', box: 'Text', run: 'Speak' },
] as const;

test.each(CASES)('$service', async ({ service, box, run }) => {
  const visitor = await world.visit(service);
  const { page } = visitor;
  await page.getByLabel(box).fill('Roll 2d6, and say what came');
  const shown = page.getByText(/^(?:At most|Costs) \$[\d.]+/).first();
  await shown.waitFor();
  const most = microUsdIn(await shown.textContent());
  await looksRight(visitor);
  const before = await world.balance();
  await page.getByRole('button', { name: run }).click();
  await page.getByRole('button', { name: /charged/ }).waitFor();
  await expect.poll(() => world.balance()).toBeLessThan(before);
  // An agent's calls are settled after its answer began.
  await expect.poll(async () => before - (await world.balance())).toBeLessThanOrEqual(most);
  expect(visitor.problems).toEqual([]);
  await visitor.close();
});

test('with tools of the gateway only a cap bounds the whole, and says so', async () => {
  const visitor = await world.visit('demo/chat');
  const { page } = visitor;
  await page.getByRole('button', { name: 'Settings' }).click();
  await page.getByLabel('demo/tools').check();
  await page.keyboard.press('Escape');
  await page.getByLabel('Message to demo/chat').fill('Roll 2d6');
  await page.getByText(/^At most \$0\.\d+ a round, and the price of its tools$/).waitFor();
  await page.getByRole('button', { name: 'Settings' }).click();
  await page.getByLabel('Most that a message may cost').fill('0.05');
  await page.keyboard.press('Escape');
  await page.getByText('At most $0.05', { exact: true }).waitFor();
  await visitor.close();
});

test('the pages of services say what a call costs', async () => {
  const visitor = await world.visit('demo/video');
  const { page } = visitor;
  await page.getByRole('button', { name: /per second, and \$0\.001 per video/ }).waitFor();
  await page.goto('/agents/demo/agent');
  await page.getByText(/together at most \$0\.012\./).waitFor();
  await page.goto('/models/demo/embedding');
  await page.getByText(/The vector of a text of 1,000 tokens costs/).waitFor();
  await page.goto('/models/demo/speech');
  await page.getByText('Per 1M characters spoken').waitFor();
  expect(await page.getByText('Per 1M tokens in', { exact: true }).count()).toBe(0);
  await visitor.close();
});
