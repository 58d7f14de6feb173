import { expect, test } from 'vitest';
import { openSocket } from '../support/raw-http.ts';
import { modelBlock, startSpine } from '../support/spine.ts';
test('x', async () => {
  const spine = await startSpine({ toml: modelBlock({ name: 'test/long', provider: 'Long', url: '{provider}', maxOutputTokens: 100000 }) });
  const socket = await openSocket(spine.origin);
  socket.pause();
  let n = 0;
  socket.on('data', (p: Buffer) => (n += p.length));
  socket.pause();
  const text = JSON.stringify({ model: 'test/long', stream: true, max_tokens: 60000, messages: [{ role: 'user', content: '!tokens:60000' }] });
  socket.write(`POST /api/v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${spine.key}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}\r\nconnection: close\r\n\r\n${text}`);
  for (let i = 0; i < 30; i++) {
    await new Promise((r) => setTimeout(r, 200));
    console.log(i, n, spine.provider.log[0]?.bytes, spine.provider.log[0]?.end, Math.round(process.memoryUsage().rss / 1e6));
    if (spine.provider.log[0]?.end) break;
  }
  socket.destroy();
  await spine.quiet();
  await spine.stop();
  expect(1).toBe(1);
}, 60000);
