import { expect, test } from 'vitest';
import { offer, startMarket } from './market-world.ts';

test.each(['/providers', '/providers/id-A', '/tools', '/agents', '/agents/acme/agent'])(
  '%s is not sent again to who has it, until it changes',
  async (path) => {
    const { catalog, health, get } = await startMarket();
    const offers = [
      offer({ provider: 'A', service: 'acme/agent', primitive: 'agent' }),
      offer({ provider: 'A', service: 'acme/agent', primitive: 'tool' }),
    ];
    catalog.replace('config', offers);
    const etag = (await get(path)).headers.get('etag')!;
    expect(etag).toMatch(/^"[\w-]{22}"$/);
    for (const known of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
      const again = await get(path, { 'if-none-match': known });
      expect([known, again.status, await again.text()]).toEqual([known, 304, '']);
      expect(again.headers.get('etag')).toBe(etag);
    }
    expect((await get(path, { 'if-none-match': '"other"' })).status).toBe(200);
    for (const one of offers) health.unreachable(one);
    const changed = await get(path, { 'if-none-match': etag });
    expect(changed.status).toBe(200);
    expect(changed.headers.get('etag')).not.toBe(etag);
  },
);
