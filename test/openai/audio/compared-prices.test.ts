import { expect, onTestFinished, test } from 'vitest';
import { audioBlock, startAudioWorld } from './support/audio-world.ts';

test('the market compares models for audio by the cost of a minute, whatever their unit is', async () => {
  const free = audioBlock({ name: 'free-tts', output: 'speech', pricing: '', url: 'http://127.0.0.1:1' }).replace(
    'completion = 0, ',
    'completion = 0',
  );
  const world = await startAudioWorld(free);
  onTestFinished(() => world.stop());
  const { data } = (await (await world.spine.get('/services')).json()) as {
    readonly data: readonly {
      readonly name: string;
      readonly typical_usd: number;
      readonly output_modalities: string[];
    }[];
  };
  const costs = Object.fromEntries(data.map(({ name, typical_usd }) => [name, typical_usd]));
  expect(costs).toMatchObject({
    // 1,000 characters at 15 per million
    'tts-1': 0.015,
    // 250 tokens at 0.60, and 1,200 of sound at 12
    'gpt-4o-mini-tts': 0.01455,
    'whisper-1': 0.006,
    'free-tts': 0,
    // Chat is 1,000 tokens at 1 and 1,000 at 2.
    'test/model': 0.003,
  });
  expect(costs['gpt-4o-transcribe']).toBeGreaterThan(0.002);
});
