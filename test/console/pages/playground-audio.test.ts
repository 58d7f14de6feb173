import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { looksRight } from './page-holds.ts';
import { microUsdIn, startPlayground, type PlaygroundWorld } from './playground-world.ts';

let world: PlaygroundWorld;
beforeAll(async () => {
  world = await startPlayground();
});
afterAll(() => world?.stop());

const PLAYS = `(async () => {
  const audio = document.querySelector('audio');
  audio.muted = true;
  await audio.play();
  await new Promise((resolve) => audio.addEventListener('timeupdate', () => audio.currentTime > 0.1 && resolve()));
  return audio.duration;
})()`;

test('a text is spoken, played and saved, and its file is transcribed, each for its price', async () => {
  const before = await world.balance();
  const speaker = await world.visit('demo/speech');
  const { page } = speaker;
  const speak = page.getByRole('button', { name: 'Speak' });
  expect(await speak.isDisabled()).toBe(true);
  await page.getByLabel('Text').fill('The gate is open. Come in.');
  await speak.click();
  await page.locator('audio').waitFor();
  expect(await page.evaluate<number>(PLAYS)).toBeGreaterThan(1);
  const charged = page.getByRole('button', { name: /charged/ });
  await charged.waitFor();
  const ofSpeech = microUsdIn(await charged.textContent());
  expect(ofSpeech).toBeGreaterThan(0);
  expect(before - (await world.balance())).toBe(ofSpeech);
  await looksRight(speaker);
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('link', { name: 'Save' }).click(),
  ]);
  expect(download.suggestedFilename()).toBe('speech.wav');
  const sound = await readFile(await download.path());
  expect(speaker.problems).toEqual([]);
  await speaker.close();

  const listener = await world.visit('demo/transcription');
  const transcribe = listener.page.getByRole('button', { name: 'Transcribe' });
  expect(await transcribe.isDisabled()).toBe(true);
  await listener.page
    .getByLabel('Sound to transcribe')
    .setInputFiles({ name: 'speech.wav', mimeType: 'audio/wav', buffer: sound });
  await listener.page.getByText('speech.wav').waitFor();
  const most = listener.page.getByText(/^At most \$[\d.]+/).first();
  await most.waitFor();
  const bound = microUsdIn(await most.textContent());
  await transcribe.click();
  await listener.page.getByText('The gate is open. Come in.').waitFor();
  const cost = microUsdIn(await listener.page.getByRole('button', { name: /charged/ }).textContent());
  expect(cost).toBeGreaterThan(0);
  expect(cost).toBeLessThanOrEqual(bound);
  expect(before - (await world.balance())).toBe(ofSpeech + cost);
  expect((await world.recordOf(listener)).cost_micro_usdc).toBe(cost);
  await looksRight(listener);
  expect(listener.problems).toEqual([]);
  await listener.close();
});

test('a refusal is shown with its reason, and the shown code asks for the same', async () => {
  const visitor = await world.visit('demo/speech', { expected: /400/ });
  const { page } = visitor;
  await page.getByLabel('Text').fill('The gate is open.');
  await page.getByLabel('Format').selectOption('mp3');
  await page.getByRole('button', { name: 'Speak' }).click();
  await page.getByText(/The demo speaks wav and pcm/).waitFor();
  expect(await page.locator('audio').count()).toBe(0);
  await page.getByRole('button', { name: 'Show code' }).click();
  await expect.poll(() => page.getByRole('dialog').textContent()).toMatch(/"response_format":\s*"mp3"/);
  expect(await visitor.axe()).toEqual([]);
  expect(visitor.problems).toEqual([]);
  await visitor.close();
});
