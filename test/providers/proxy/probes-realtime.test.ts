import { afterAll, beforeAll, expect, test } from 'vitest';
import { serviceChecks } from '../../../src/providers/proxy/probe/checks.ts';
import { runCheck } from '../../../src/providers/proxy/probe/ask.ts';
import { createLog } from '../../../src/providers/proxy/log.ts';
import { loadProviderFile } from '../../../src/providers/proxy/provider-file.ts';
import { type RealtimeProvider, startRealtimeProvider } from '../../openai/realtime/support/realtime-provider.ts';
import { voiceBlock } from '../../openai/realtime/support/voice-gateway.ts';

// `--validate` opens a session of a realtime model, and closes it before it costs anything.

let upstream: RealtimeProvider;
beforeAll(async () => {
  upstream = await startRealtimeProvider();
});
afterAll(() => upstream.stop());

const log = createLog({ level: 'silent', style: 'json', secrets: [], write() {}, now: Date.now });

async function results(): Promise<readonly string[]> {
  const text = `[router]\nurl = "http://127.0.0.1:9"\napi_key = "r"\n${voiceBlock(upstream.url)}`;
  const { services } = loadProviderFile({ file: 'provider.toml', text, env: { TEST_UPSTREAM_KEY: 'k' } });
  const checks = serviceChecks(services[0]!, { env: {}, version: '1', log });
  const found = await Promise.all(checks.map((check) => runCheck(check, Date.now)));
  return found.map(({ ok, detail }) => `${ok ? '✓' : '✗'} ${detail}`);
}

test('a model that opens a session is ready', async () => {
  expect(await results()).toEqual(['✓ opens a session']);
  const side = await upstream.session();
  expect([side.url, side.headers.authorization]).toEqual(['/v1/realtime?model=upstream-of-Voices', 'Bearer k']);
  await side.closed;
});

test('one that refuses the handshake is not, and says why', async () => {
  upstream.refuse = { status: 401, body: '{"error":{"message":"Invalid API key"}}' };
  expect(await results()).toEqual(['✗ answers the handshake of a WebSocket with status 401: Invalid API key']);
  upstream.refuse = null;
});
