import { expect, test } from 'vitest';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSeals } from '../../../src/foundation/security/seals.ts';
import { startRawMcp } from '../../support/raw-mcp.ts';
import { startSpine } from '../../support/spine.ts';
import { callTool, toolToml } from './modern-post.ts';

const ASKS =
  '{"resultType":"input_required","inputRequests":{"who":{"method":"elicitation/create","params":{}}},"requestState":"s"}';
const DONE = '{"resultType":"complete","content":[]}';
const ANSWERS = { inputResponses: { who: { action: 'accept', content: {} } } };

test('a call goes on at no other price than that at which it began', async () => {
  const server = await startRawMcp(({ params }) => (params['requestState'] === undefined ? ASKS : DONE));
  const dataDir = await mkdtemp(join(tmpdir(), 'tollgate-rounds-'));
  const cheap = await startSpine({ dataDir, toml: toolToml({ name: 'asks', url: server.url }) });
  const first = await callTool(cheap, 'asks', 'ask');
  await cheap.stop();
  const dear = await startSpine({
    dataDir,
    credit: '0',
    toml: toolToml({ name: 'asks', url: server.url, pricing: 'per_call = 0.5' }),
  });
  const before = (await dear.balance()).available;
  const second = await callTool(
    dear,
    'asks',
    'ask',
    {},
    { params: { ...ANSWERS, requestState: first.message.result['requestState'] } },
  );
  expect(second.message.error).toMatchObject({
    code: -32602,
    message: expect.stringMatching(/price of this tool has changed/) as unknown,
  });
  expect((await dear.balance()).available).toBe(before);
  expect(await dear.faults()).toEqual([]);
  await dear.stop();
  await server.close();
  await rm(dataDir, { recursive: true, force: true });
});

test('a state as large as a request can be comes back', () => {
  const seals = createSeals({ secret: Buffer.from('secret'), ttlMs: 1_000, now: () => 0 });
  const state = 'x'.repeat(500_000);
  expect(seals.open('me', seals.seal('me', state))).toBe(state);
  expect(seals.open('you', seals.seal('me', state))).toBeNull();
});
