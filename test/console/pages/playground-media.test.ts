import { afterAll, beforeAll, expect, test } from 'vitest';
import { startVideoProvider, videoBlock, type VideoProvider } from '../../media/support/video-provider.ts';
import { looksRight } from './page-holds.ts';
import { microUsdIn, startPlayground, type PlaygroundWorld } from './playground-world.ts';

let world: PlaygroundWorld;
/** Its films are never ready. */
let slow: VideoProvider;
beforeAll(async () => {
  slow = await startVideoProvider();
  slow.begin(() => ({ status: 'in_progress' }));
  world = await startPlayground(videoBlock({ name: 'test/slow-film', url: slow.url }));
});
afterAll(async () => {
  await world?.stop();
  await slow.close();
});

test('the price on the button is the charge', async () => {
  const before = await world.balance();
  const visitor = await world.visit('demo/image');
  const { page } = visitor;
  await page.getByLabel('Prompt').fill('A tollgate in the morning');
  await page.getByRole('button', { name: 'Generate – $0.002' }).waitFor();
  await page.getByLabel('Size').selectOption('2K');
  await page.getByRole('group', { name: 'Images' }).getByRole('button', { name: '2' }).click();
  const button = page.getByRole('button', { name: 'Generate – $0.008' });
  await button.click();
  const charged = page.getByRole('button', { name: /charged/ });
  await charged.waitFor({ timeout: 60_000 });
  expect(await page.getByRole('img', { name: 'A tollgate in the morning' }).count()).toBe(2);
  expect(microUsdIn(await charged.textContent())).toBe(8_000);
  expect(before - (await world.balance())).toBe(8_000);
  expect((await world.recordOf(visitor)).cost_micro_usdc).toBe(8_000);
  await looksRight(visitor);
  expect(visitor.problems).toEqual([]);
  await visitor.close();
});

test('an image is saved, and edited', async () => {
  const visitor = await world.visit('demo/image');
  const { page } = visitor;
  await page.getByLabel('Prompt').fill('A gate');
  await page.getByRole('button', { name: /^Generate – / }).click();
  const save = page.getByRole('link', { name: 'Save' });
  const [download] = await Promise.all([page.waitForEvent('download'), save.click()]);
  expect(download.suggestedFilename()).toBe('a-gate.png');
  await page.getByRole('figure').getByRole('button', { name: 'Edit' }).click();
  await page.getByLabel('Prompt').fill('Lower the bar');
  await page.getByRole('button', { name: /^Edit – \$0\.002/ }).click();
  await page
    .getByRole('button', { name: /charged/ })
    .nth(1)
    .waitFor({ timeout: 60_000 });
  expect(await page.getByRole('img', { name: 'Lower the bar' }).count()).toBe(1);
  expect(visitor.problems).toEqual([]);
  await visitor.close();
});

const PLAYS = `(async () => {
  const video = document.querySelector('video');
  video.muted = true;
  await video.play();
  await new Promise((resolve) => video.addEventListener('timeupdate', () => video.currentTime > 0.2 && resolve()));
  return video.videoWidth;
})()`;

test('a video is queued for the price on the button, waited for over a reload, and plays', async () => {
  const before = await world.balance();
  const visitor = await world.visit('demo/video');
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
  await looksRight(visitor);
  expect(visitor.problems).toEqual([]);
  await visitor.close();
});

test('a video that is cancelled costs nothing', async () => {
  const before = await world.balance();
  const visitor = await world.visit('test/slow-film', { theme: 'dark' });
  const { page } = visitor;
  await page.getByLabel('Prompt').fill('A tollgate at night');
  await page.getByLabel('Length').selectOption('8s');
  await page.getByRole('button', { name: /^Generate – / }).click();
  await page.getByRole('button', { name: 'Cancel' }).click();
  await page.getByText('Canceled').or(page.getByText('Failed')).first().waitFor();
  await expect.poll(() => world.balance()).toBe(before);
  expect(await visitor.axe()).toEqual([]);
  expect(visitor.problems).toEqual([]);
  await visitor.close();
});
