import { afterAll, beforeAll, expect, test } from 'vitest';
import { microUsdIn, startPlayground, type PlaygroundWorld } from './playground-world.ts';

let world: PlaygroundWorld;
beforeAll(async () => {
  world = await startPlayground();
});
afterAll(() => world.stop());

const PLAYS = `(async () => {
  const video = document.querySelector('video');
  video.muted = true;
  await video.play();
  await new Promise((resolve) => video.addEventListener('timeupdate', () => video.currentTime > 0.2 && resolve()));
  return video.videoWidth;
})()`;

test('a video is queued for the price on the button, waited for over a reload, and plays', async () => {
  const before = await world.balance();
  const visitor = await world.visit('demo/projector');
  const { page } = visitor;
  await page.getByLabel('Prompt').fill('A tollgate in the morning');
  await page.getByLabel('Resolution').selectOption('480p');
  await page.getByRole('button', { name: 'Generate – $0.003' }).click();
  await page.getByRole('progressbar').waitFor();
  expect(await visitor.axe()).toEqual([]);
  await page.reload();
  await page.locator('video').waitFor({ timeout: 60_000 });
  expect(await page.evaluate<number>(PLAYS)).toBeGreaterThan(0);
  const charged = page.getByRole('button', { name: /charged/ });
  await charged.waitFor();
  expect(microUsdIn(await charged.textContent())).toBe(3_000);
  expect(before - (await world.balance())).toBe(3_000);
  expect(await visitor.axe()).toEqual([]);
  await page.setViewportSize({ width: 390, height: 800 });
  expect(await visitor.overflow()).toBe(0);
  expect(visitor.problems).toEqual([]);
  await visitor.close();
}, 90_000);

test('a video that is cancelled costs nothing', async () => {
  const before = await world.balance();
  const visitor = await world.visit('demo/projector', { theme: 'dark' });
  const { page } = visitor;
  await page.getByLabel('Prompt').fill('A tollgate at night');
  await page.getByLabel('Length').selectOption('6s');
  await page.getByRole('button', { name: /^Generate – / }).click();
  await page.getByRole('button', { name: 'Cancel' }).click();
  await page.getByText('Canceled').or(page.getByText('Failed')).first().waitFor();
  await expect.poll(() => world.balance()).toBe(before);
  expect(await visitor.axe()).toEqual([]);
  expect(visitor.problems).toEqual([]);
  await visitor.close();
}, 60_000);
