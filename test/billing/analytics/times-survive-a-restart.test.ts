import { expect, test } from 'vitest';
import { newDataDirectory } from '../../support/data-directory.ts';
import { MODEL } from '../../support/spine.ts';
import { openFigures, TODAY } from './figures-world.ts';

test('latency and throughput of an offer are known after a start', async () => {
  const dataDir = newDataDirectory();
  const first = await openFigures('sqlite', { dataDir });
  const offer = first.spine.app.catalog.offers('model')[0]!;
  const times = (firstByteMs: number) => ({
    provider: offer.provider.id,
    service: MODEL,
    firstByteMs,
    completion: 40,
    durationMs: 2_000,
  });
  await first.calls(TODAY - 1, ...Array.from({ length: 9 }, () => times(100)), times(5_000));
  await first.calls(TODAY - 2, times(90_000));
  await first.count();
  await first.stop();

  const second = await openFigures('sqlite', { dataDir });
  const standing = async () => {
    const { body } = await second.read<{
      data: { endpoints: readonly { latency: { p50: number; p95: number }; throughput: { p50: number } }[] };
    }>(`/models/${MODEL}/endpoints`);
    return body.data.endpoints[0]!;
  };
  const { latency, throughput } = await standing();
  expect(Math.abs(latency.p50 / 100 - 1)).toBeLessThan(0.1);
  expect(Math.abs(latency.p95 / 5_000 - 1)).toBeLessThan(0.1);
  expect(throughput.p50).toBe(20);
  await second.stop();
});
