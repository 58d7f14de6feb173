import { expect, test } from 'vitest';
import { offer, startMarket } from './market-world.ts';

test.each(['/providers', '/tools', '/agents'])(
  '%s is made anew when the offers change, and else at most four times a second',
  async (path) => {
    const { catalog, health, get } = await startMarket();
    const offers = [offer({ provider: 'A', primitive: 'tool' }), offer({ provider: 'A', primitive: 'agent' })];
    catalog.replace('config', offers);
    const status = async (later: number) =>
      ((await (await get(path, {}, later)).json()) as { data: { status: string }[] }).data.map((one) => one.status);
    expect(await status(0)).toEqual(['untried']);
    for (const one of offers) health.unreachable(one);
    expect(await status(249)).toEqual(['untried']);
    expect(await status(1)).toEqual(['down']);
    catalog.replace('config', []);
    expect(await status(0)).toEqual([]);
    // Also by a clock that was set back.
    catalog.replace('config', offers);
    expect(await status(0)).toEqual(['down']);
    for (const one of offers) health.succeeded(one, { firstByteMs: 0, durationMs: 0, completionTokens: 0 });
    expect(await status(-250)).toEqual(['healthy']);
  },
);
