import { afterAll, beforeAll, expect, test } from 'vitest';
import { microUsdIn, startPlayground, type PlaygroundWorld } from './playground-world.ts';

let world: PlaygroundWorld;
beforeAll(async () => {
  world = await startPlayground();
});
afterAll(() => world.stop());

test.each([
  ['light', 1280],
  ['dark', 390],
] as const)(
  'a tool is run from a form with its price, and answers with its charge (%s, %i px)',
  async (theme, width) => {
    const before = await world.balance();
    const visitor = await world.visit('mcp/demo/toolbox/weigh_words', { theme, width });
    const { page } = visitor;
    const run = page.getByRole('button', { name: 'Run – $0.001' });
    await run.click();
    // Nothing is sent before it is right.
    expect(await page.getByText('This is needed.').isVisible()).toBe(true);
    expect(await world.balance()).toBe(before);
    expect(await visitor.axe()).toEqual([]);
    await page.keyboard.type('a tollgate in the morning');
    await run.click();
    const charged = page.getByRole('button', { name: /charged/ });
    await charged.waitFor();
    expect(await page.getByText('heaviest: "tollgate"').count()).toBe(1);
    expect(microUsdIn(await charged.textContent())).toBe(1_000);
    expect(before - (await world.balance())).toBe(1_000);
    expect((await world.recordOf(visitor)).service).toBe('demo/toolbox');
    expect(await visitor.axe()).toEqual([]);
    expect(await visitor.overflow()).toBe(0);
    expect(visitor.problems).toEqual([]);
    await visitor.close();
  },
);

test('arguments can be written as JSON, and a refusal of the tool is told in its words and costs nothing', async () => {
  const before = await world.balance();
  const visitor = await world.visit('demo/toolbox');
  const { page } = visitor;
  await page.getByRole('button', { name: 'JSON' }).click();
  const json = page.getByLabel('Arguments, as JSON');
  expect(JSON.parse(await json.inputValue())).toEqual({ dice: '1d6' });
  await json.fill('{"dice": "77"');
  await page.getByRole('button', { name: /^Run/ }).click();
  await page.getByText(/This is no JSON/).waitFor();
  await json.fill('{"dice": "77"}');
  await page.getByRole('button', { name: /^Run/ }).click();
  await page.getByText(/dice must be 1 to 100 dice/).waitFor();
  expect(await world.balance()).toBe(before);
  await page.getByRole('button', { name: 'tell_time' }).click();
  await page.getByLabel('zone').fill('Asia/Tokyo');
  await page.getByRole('button', { name: 'Show code' }).click();
  expect(await page.getByRole('region', { name: 'MCP by curl' }).textContent()).toContain('"tell_time"');
  expect(new URL(page.url()).searchParams.get('tool')).toBe('tell_time');
  expect(visitor.problems).toEqual([]);
  await visitor.close();
});
