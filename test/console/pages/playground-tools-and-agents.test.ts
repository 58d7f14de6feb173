import { afterAll, beforeAll, expect, test } from 'vitest';
import { looksRight } from './page-holds.ts';
import { microUsdIn, startPlayground, type PlaygroundWorld } from './playground-world.ts';

let world: PlaygroundWorld;
beforeAll(async () => {
  world = await startPlayground();
});
afterAll(() => world?.stop());

test('a tool is run from a form with its price, and answers with its charge', async () => {
  const before = await world.balance();
  const visitor = await world.visit('mcp/demo/tools/weigh_words');
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
  expect((await world.recordOf(visitor)).service).toBe('demo/tools');
  await looksRight(visitor);
  expect(visitor.problems).toEqual([]);
  await visitor.close();
});

test('arguments can be written as JSON, and a refusal of the tool is told in its words and costs nothing', async () => {
  const before = await world.balance();
  const visitor = await world.visit('demo/tools');
  const { page } = visitor;
  await page.getByRole('button', { name: 'JSON' }).click();
  const json = page.getByLabel('Arguments, as JSON');
  expect(JSON.parse(await json.inputValue())).toEqual({ dice: '1d6' });
  await json.fill('{"dice": "77"');
  await page.getByRole('button', { name: /^Run/ }).click();
  await page.getByText(/This is not JSON/).waitFor();
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

test('an agent works, gives its parts, and shows what it called', async () => {
  const before = await world.balance();
  const visitor = await world.visit('demo/agent');
  const { page } = visitor;
  expect(await visitor.axe()).toEqual([]);
  // The agent's card has the example.
  await page.getByRole('button', { name: 'Roll 2d6' }).click();
  await page.getByText('Completed').waitFor();
  expect(await page.getByRole('list', { name: 'Steps' }).getByRole('listitem').allTextContents()).toEqual([
    'demo/tools rolls 2d6.',
    'demo/chat looks at it.',
  ]);
  expect(await page.getByText(/^2d6: \d \+ \d = \d+$/).count()).toBe(1);
  // The part with data is JSON that folds.
  expect(await page.getByText('"2d6"').count()).toBe(1);
  const tree = page.getByRole('region', { name: 'Calls it made' });
  await tree.getByRole('link', { name: 'demo/chat' }).waitFor();
  expect(await tree.getByRole('link', { name: 'demo/tools › roll_dice' }).count()).toBe(1);
  const shown = microUsdIn(await page.getByRole('button', { name: /charged/ }).textContent());
  const record = await world.recordOf(visitor);
  expect(shown).toBe(Math.round(record.run_cost * 1e6));
  expect(before - (await world.balance())).toBe(shown);
  await looksRight(visitor);
  expect(visitor.problems).toEqual([]);
  await visitor.close();
});

test('an agent that asks is answered in the same task, which is charged once', async () => {
  const before = await world.balance();
  const visitor = await world.visit('demo/agent');
  const { page } = visitor;
  await page.getByRole('textbox').fill('Roll something');
  await page.keyboard.press('Enter');
  await page.getByText('Waiting for you').waitFor();
  const headers = { authorization: `Bearer ${world.gateway.apiKey!}` };
  const listed = await fetch(`${world.gateway.baseUrl}/api/v1/generations?limit=1`, { headers });
  expect(await listed.json()).toMatchObject({ data: [{ state: 'held', waiting: true }] });
  await page.getByRole('button', { name: /Charged when the task ends/ }).waitFor();
  await page.getByRole('textbox').fill('2d6');
  await page.keyboard.press('Enter');
  await page.getByText('Completed').waitFor();
  await page.getByRole('button', { name: 'Show code' }).click();
  await page.getByRole('tab', { name: 'As sent' }).click();
  expect(await page.getByRole('region', { name: 'As sent' }).textContent()).toContain('"task_id"');
  await page.keyboard.press('Escape');
  await page
    .getByRole('button', { name: /charged/ })
    .last()
    .waitFor();
  await expect.poll(() => page.getByText('when the task ends').count()).toBe(0);
  const texts = await page.getByRole('button', { name: /charged/ }).allTextContents();
  expect(before - (await world.balance())).toBe(texts.reduce((sum, text) => sum + microUsdIn(text), 0));
  expect(visitor.problems).toEqual([]);
  await visitor.close();
});

test('a model of vectors makes one, with its charge', async () => {
  const before = await world.balance();
  const visitor = await world.visit('demo/embedding', { theme: 'dark', width: 390 });
  const { page } = visitor;
  await page.getByLabel('Text').fill('A tollgate');
  await page.getByRole('button', { name: 'Make the vector' }).click();
  const charged = page.getByRole('button', { name: /charged/ });
  await charged.waitFor();
  expect(before - (await world.balance())).toBe(microUsdIn(await charged.textContent()));
  expect(await visitor.axe()).toEqual([]);
  expect(visitor.problems).toEqual([]);
  await visitor.close();
});
