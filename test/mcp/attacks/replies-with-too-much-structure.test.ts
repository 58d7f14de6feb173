import { expect, test } from 'vitest';
import { startRawMcp, type RawAnswer } from '../../support/raw-mcp.ts';
import { startSpine } from '../../support/spine.ts';
import { callTool, toolToml } from '../calls/modern-post.ts';

const N = 600_000;
const BOMBS: Readonly<Record<string, () => string>> = {
  deep: () => '['.repeat(N) + ']'.repeat(N),
  keys: () => `{${Array.from({ length: N / 10 }, (_, i) => `"k${i}":1`).join(',')}}`,
  elements: () => `[${'1,'.repeat(N)}1]`,
};

test('a reply with more structure than is read holds up nobody, and is paid where the tool gave it', async () => {
  const texts = new Map(Object.entries(BOMBS).map(([name, make]) => [name, make()]));
  const server = await startRawMcp(({ params, idText }): RawAnswer => {
    const bomb = texts.get(String(params['name']));
    const body = `{"jsonrpc":"2.0","id":${idText},"result":{"resultType":"complete","content":[],"x":${bomb ?? '1'}}}`;
    const events = (params['arguments'] as { readonly events?: boolean }).events === true;
    return (response) =>
      void response
        .writeHead(200, { 'content-type': events ? 'text/event-stream' : 'application/json' })
        .end(events ? `data: ${body}\n\n` : body);
  });
  const spine = await startSpine({
    toml: `${toolToml({ name: 'bombs', url: server.url })}\n[upstream]\ncooldown_ms = 0\n`,
  });
  for (const tool of texts.keys())
    for (const events of [false, true]) {
      const reply = await callTool(spine, 'bombs', tool, { events });
      expect([tool, reply.status]).toEqual([tool, 200]);
      expect(reply.message.result).toMatchObject({ isError: true });
      expect(JSON.stringify(reply.message.result)).toContain('more structure than is read');
    }
  // The tools ran, and gave what was asked for.
  expect((await spine.balance()).available).toBe(100_000_000n - 6n * 1_000n);
  // Long, and with little structure: as an image is.
  texts.set('image', `"${'A'.repeat(2 * N)}"`);
  expect((await callTool(spine, 'bombs', 'image')).status).toBe(200);
  expect(await spine.faults()).toEqual([]);
  await spine.stop();
  await server.close();
});
