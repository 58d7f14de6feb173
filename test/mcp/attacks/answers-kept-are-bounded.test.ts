import { expect, test } from 'vitest';
import { startRawMcp } from '../../support/raw-mcp.ts';
import { startSpine } from '../../support/spine.ts';
import { callTool, toolToml } from '../calls/modern-post.ts';

const ROWS = {
  name: 'test/kept-answers',
  text: 'SELECT length(body) AS chars FROM idempotency WHERE body IS NOT NULL',
};

test('the database keeps no long answer: one that was paid for is a file, of another its key keeps that it was given', async () => {
  const server = await startRawMcp(({ params }) => {
    const { chars } = params['arguments'] as { readonly chars: number };
    return `{"content":[{"type":"text","text":"${'a'.repeat(chars)}"}],"resultType":"complete"}`;
  });
  const spine = await startSpine({
    toml:
      '[media]\nfree_bytes_min = 1\n[upstream]\nimages_reply_bytes_max = 3_000_000\n' +
      toolToml({ name: 'acme', url: server.url }) +
      toolToml({ name: 'gratis', url: server.url, pricing: 'per_call = 0', provider: 'Other' }),
  });
  for (const [service, chars, replayed] of [
    ['acme', 100_000, true],
    ['acme', 2_000_000, true],
    ['acme', 4_000_000, false],
    ['gratis', 10_000, true],
    ['gratis', 100_000, false],
  ] as const) {
    const once = () =>
      callTool(spine, service, 'long', { chars }, { meta: { 'tollgate/idempotency-key': `${service} ${chars}` } });
    expect((await once()).text.length).toBeGreaterThan(chars);
    const again = await once();
    expect(again.headers.get('idempotent-replayed')).toBe('true');
    if (replayed) expect(again.text.length).toBeGreaterThan(chars);
    else expect(again.message.error?.code).toBe(-32_014);
  }
  expect(server.asked).toHaveLength(5);
  expect((await spine.balance()).available).toBe(100_000_000n - 3_000n);
  for (const row of await spine.app.database.query(ROWS)) expect(Number(row['chars'])).toBeLessThan(1_500_000);
  expect(await spine.faults()).toEqual([]);
  await spine.stop();
  await server.close();
});
