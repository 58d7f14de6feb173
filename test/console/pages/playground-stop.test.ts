import { expect, test } from 'vitest';
import { openBrowser, type Visitor } from '../../support/browser.ts';
import { ofFile, spineOfFile } from '../../support/of-file.ts';
import { modelBlock, UNHURRIED, type Generation } from '../../support/spine.ts';
import { STREAMED_WIRES } from '../../spine/stop/streamed-wires.ts';
import { microUsdIn } from './playground-world.ts';
import { REPORTED, startVendor, WORDS_MAX } from '../../spine/stop/vendor-that-is-left.ts';

/* The playground says what Stop does before it is pressed, and the charge is what it says. */

const [CHAT] = STREAMED_WIRES;
/** Slow enough for a person. */
const vendor = ofFile(
  () => startVendor(50),
  (one) => one.stop(),
);
const browser = ofFile(openBrowser, (one) => one.close());
const spine = spineOfFile(() => {
  const block = (name: string, lines = '') =>
    modelBlock({ name: `acme/${name}`, provider: `Acme ${name}`, url: vendor.url, lines });
  return { toml: UNHURRIED + block('stops') + block('deaf', 'stops = false') };
});

test.each([
  {
    model: 'acme/stops',
    before: 'Stop ends it within a second: what has come by then is charged',
    after: 'You stopped it. What had come by then is charged.',
  },
  {
    model: 'acme/deaf',
    before: 'Stop does not stop this provider: it goes on for a while, and what it makes is charged',
    after: 'You stopped it, but its provider goes on for a while. What it makes is charged.',
  },
])('$model', async ({ model, before, after }) => {
  const isReadOn = model === 'acme/deaf';
  const begun = vendor.next(CHAT!, 'stops');
  const visitor = await browser.visit({ origin: spine.origin });
  const { page } = visitor;
  await signIn(visitor, spine.key, model);
  await page.getByRole('textbox').fill('Count to 900');
  await page.keyboard.press('Enter');
  const asked = await begun;
  await page.getByText(/abc abc abc/).waitFor();
  expect(await page.getByText(before).isVisible()).toBe(true);
  await page.getByRole('button', { name: 'Stop', exact: true }).click();
  await page.getByText(after).waitFor();
  const shown = (await page.getByText(/abc abc abc/).textContent())!.split('abc').length - 1;
  asked.left(isReadOn);
  await asked.closed;
  const charged = page.getByRole('button', { name: /charged/ });
  await charged.waitFor({ timeout: 60_000 });
  const [record] = ((await (await spine.get('/generations?limit=1')).json()) as { data: [Generation] }).data;
  const { tokens_prompt: prompt, tokens_completion: said, cost_micro_usdc: cost } = record;
  expect(microUsdIn(await charged.textContent())).toBe(cost);
  expect(cost).toBe(prompt + 2 * said);
  if (isReadOn) expect([prompt, said]).toEqual([REPORTED.prompt, WORDS_MAX]);
  else {
    expect(said).toBeGreaterThanOrEqual(shown);
    expect(said).toBeLessThanOrEqual(asked.written);
    expect(asked.written).toBeLessThan(WORDS_MAX);
  }
  expect(visitor.problems).toEqual([]);
  await visitor.close();
});

/** Signs a visitor in with a key, and opens the playground. */
async function signIn({ page }: Visitor, key: string, service: string): Promise<void> {
  await page.goto('/providers');
  await page.evaluate(
    `(async () => {
      await fetch('/api/v1/auth/session', {
        method: 'POST',
        headers: { 'x-tollgate-web': '1', 'content-type': 'application/json' },
        body: ${JSON.stringify(JSON.stringify({ api_key: key }))},
      });
      localStorage.setItem('tollgate.signed-in', '1');
    })()`,
  );
  await page.goto(`/playground?m=${service}`);
  await page.getByText('Balance').waitFor();
}
