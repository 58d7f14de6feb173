import { request } from 'undici';
import { expect, onTestFinished, test } from 'vitest';
import { createSdkWorkers } from '../../../src/providers/ai-sdk/workers.ts';
import { installHostile } from './support/hostile-package.ts';

test('a package that ends gets no other budget for its lines', async () => {
  const log: string[] = [];
  const workers = createSdkWorkers({
    connectionsMax: 100,
    headTimeoutMs: 60_000,
    idleTimeoutMs: 60_000,
    wall: 'if_available',
    hidden: [],
    log: (_sdk, text) => void log.push(text),
    tell: () => {},
    times: { startMs: 60_000, pingMs: 100, stallMs: 60_000 },
  });
  onTestFinished(() => workers.close());
  const dispatcher = workers.open({
    kind: 'sdk',
    sdk: 'hostile',
    settings: {},
    secrets: {},
    directory: installHostile(),
  });
  const does = async (deed: string) => {
    const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: deed }] });
    const answer = await request('http://ai-sdk/chat/completions', { dispatcher, method: 'POST', body });
    await answer.body.dump();
    return answer.statusCode;
  };
  const said = () => log.filter((text) => text.startsWith('said ')).length;
  expect(await does('says 80')).toBe(200);
  await expect.poll(said).toBe(80);
  await does('exit').catch(() => {});
  await expect.poll(() => log).toContain('its process exited with code 7');
  expect(await does('says 80')).toBe(200);
  await expect.poll(said).toBeGreaterThanOrEqual(100);
  await does('exit').catch(() => {});
  await expect.poll(() => log.filter((text) => text.startsWith('its process')).length).toBe(2);
  // A minute gives one more.
  expect(said()).toBeLessThan(110);
});
