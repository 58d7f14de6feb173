import { afterAll, beforeAll, expect, test } from 'vitest';
import { microUsdIn, startPlayground, type PlaygroundWorld } from './playground-world.ts';

let world: PlaygroundWorld;
beforeAll(async () => {
  world = await startPlayground();
});
afterAll(() => world?.stop());

test('an answer comes in pieces with its cost so far, and then with what the ledger charged', async () => {
  const before = await world.balance();
  const visitor = await world.visit('demo/chat');
  const { page } = visitor;
  await page.getByRole('textbox', { name: 'Message to demo/chat' }).fill('Count to 200');
  await page.keyboard.press('Enter');
  const sofar = page.getByRole('button', { name: /so far/ });
  await page.getByText(/^1, 2, 3/).waitFor();
  expect(microUsdIn((await sofar.textContent())!.replace('≈', ''))).toBeGreaterThan(0);
  const charged = page.getByRole('button', { name: /charged/ });
  await charged.waitFor();
  expect(await page.getByText(/^1, 2, 3/).textContent()).toMatch(/199, 200\.$/);
  const shown = microUsdIn(await charged.textContent());
  const record = await world.recordOf(visitor);
  expect(shown).toBe(record.cost_micro_usdc);
  expect(before - (await world.balance())).toBe(shown);
  // Lock, settle and refund stand in the receipt as they are in the ledger.
  for (const { type, amount_micro_usdc: micro } of record.entries) {
    const name = { lock: 'Locked', settle: 'Charged', refund: 'Released' }[type]!;
    const line = page.locator('ol li', { has: page.getByText(name, { exact: true }) }).last();
    expect(microUsdIn(await line.textContent())).toBe(micro);
  }
  expect(visitor.problems).toEqual([]);
  await visitor.close();
});

test('the cursor is in the box, and a short answer leaves the bar above it where it is', async () => {
  const visitor = await world.visit('demo/echo');
  const { page } = visitor;
  await expect.poll(() => page.evaluate('document.activeElement.ariaLabel')).toBe('Message to demo/echo');
  await page.keyboard.type('hello');
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: /charged/ }).waitFor();
  expect(await page.evaluate('scrollY')).toBe(0);
  expect(visitor.problems).toEqual([]);
  await visitor.close();
});

test('what was said before goes along, and the conversation is there after the page is loaded again', async () => {
  const visitor = await world.visit('demo/echo');
  const { page } = visitor;
  for (const [index, text] of ['first words', 'second words'].entries()) {
    await page.getByRole('textbox').fill(text);
    await page.getByRole('button', { name: 'Send' }).click();
    await page
      .getByRole('button', { name: /charged/ })
      .nth(index)
      .waitFor();
  }
  await page.getByRole('button', { name: 'Show code' }).click();
  const code = await page.getByRole('region', { name: 'curl' }).textContent();
  expect(code).toContain('"first words"');
  expect(code).toContain('"assistant"');
  await page.keyboard.press('Escape');
  await page.reload();
  await page
    .getByRole('button', { name: /charged/ })
    .nth(1)
    .waitFor();
  await page.getByRole('button', { name: 'New' }).click();
  expect(await page.getByRole('button', { name: /charged/ }).count()).toBe(0);
  expect(visitor.problems).toEqual([]);
  await visitor.close();
});

test('Stop ends an answer, and the page says what it cost until then', async () => {
  const visitor = await world.visit('demo/chat');
  const { page } = visitor;
  await page.getByRole('textbox').fill('Count to 900');
  await page.keyboard.press('Enter');
  await page.getByText(/^1, 2, 3/).waitFor();
  await page.getByRole('button', { name: 'Stop' }).click();
  await page.getByText('You stopped it').waitFor();
  await page.getByRole('button', { name: /charged/ }).waitFor({ timeout: 60_000 });
  const shown = microUsdIn(await page.getByRole('button', { name: /charged/ }).textContent());
  expect((await world.recordOf(visitor)).cost_micro_usdc).toBe(shown);
  expect(visitor.problems).toEqual([]);
  await visitor.close();
});

test('the gateway calls tools for the model: steps, the tree of calls, one cap and one sum', async () => {
  const visitor = await world.visit('demo/chat', { theme: 'dark' });
  const { page } = visitor;
  await page.getByRole('button', { name: 'Settings' }).click();
  await page.getByLabel('Temperature').fill('9');
  expect(await page.getByText('It goes from 0 to 2.').isVisible()).toBe(true);
  await page.getByLabel('Temperature').fill('0.5');
  await page.getByLabel('Most that a message may cost').fill('0.05');
  await page.getByLabel('demo/tools').check();
  expect(await visitor.axe()).toEqual([]);
  await page.getByRole('button', { name: 'Done' }).click();
  await page.getByRole('textbox').fill('Please roll 2d6 dice');
  await page.keyboard.press('Enter');
  await page.getByText('roll_dice of demo/tools').waitFor();
  const charged = page.getByRole('button', { name: /charged/ });
  await charged.waitFor();
  const record = await world.recordOf(visitor);
  expect(microUsdIn(await charged.textContent())).toBe(Math.round(record.run_cost * 1e6));
  expect(record.entries.find(({ type }) => type === 'lock')?.amount_micro_usdc).toBe(50_000);
  await page.getByText('Calls under it').last().waitFor();
  expect(await page.locator('li', { hasText: 'demo/tools › roll_dice' }).count()).toBeGreaterThan(0);
  expect(await visitor.axe()).toEqual([]);
  expect(visitor.problems).toEqual([]);
  await visitor.close();
});

test('with the keyboard alone: find a model, talk to it, read the receipt', async () => {
  const visitor = await world.visit('demo/tools');
  const { page } = visitor;
  const tabTo = async (name: RegExp) => {
    for (let step = 0; step < 40; step++) {
      await page.keyboard.press('Tab');
      const said = await page.evaluate<string>(
        '(document.activeElement.getAttribute("aria-label") ?? document.activeElement.textContent)',
      );
      if (name.test(said)) return;
    }
    throw new Error(`Tab does not lead to ${name}`);
  };
  await tabTo(/Choose another service/);
  await page.keyboard.press('Enter');
  await page.getByRole('combobox', { name: 'Search services' }).waitFor();
  // Enter waits for the list of what was typed.
  await page.keyboard.type('echo');
  await page.keyboard.press('Enter');
  await page.getByRole('textbox', { name: 'Message to demo/echo' }).waitFor();
  await tabTo(/Message to/);
  await page.keyboard.type('hello');
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: /charged/ }).waitFor();
  await page.keyboard.press('Shift+Tab');
  await page.keyboard.press('Enter');
  await page.getByText('The most that the call could cost, taken before it was forwarded.').waitFor();
  expect(visitor.problems).toEqual([]);
  await visitor.close();
});

test('a picture goes along, and the model gets it', async () => {
  const visitor = await world.visit('demo/chat', { width: 390 });
  const { page } = visitor;
  const dot = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
  await page
    .locator('input[type=file]')
    .setInputFiles({ name: 'dot.png', mimeType: 'image/png', buffer: Buffer.from(dot, 'base64') });
  await page.getByAltText('Attached, 1').waitFor();
  await page.getByRole('button', { name: 'Send' }).click();
  await page.getByText(/I got 1 image/).waitFor();
  await page.getByRole('button', { name: /charged/ }).waitFor();
  expect(await visitor.overflow()).toBe(0);
  expect(visitor.problems).toEqual([]);
  await visitor.close();
});

test('the cost of a conversation is not cut off on a phone', async () => {
  const visitor = await world.visit('demo/chat', { width: 390 });
  const { page } = visitor;
  await page.getByRole('textbox', { name: 'Message to demo/chat' }).fill('Count to 9');
  await page.getByRole('button', { name: 'Send' }).click();
  await page.getByRole('button', { name: /charged/ }).waitFor();
  const told = page.getByText(/^This conversation: \$0\.\d+$/);
  await told.waitFor();
  const hidden = await told.evaluate(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth);
  expect(hidden).toBe(0);
  expect(visitor.problems).toEqual([]);
  await visitor.close();
});
