import { afterAll, beforeAll, expect, test } from 'vitest';
import { KINDS_OF_MODELS, type ModelKind } from '#config/model-kinds';
import { serviceChecks } from '../../../src/providers/proxy/probe/checks.ts';
import { runCheck } from '../../../src/providers/proxy/probe/ask.ts';
import { createLog } from '../../../src/providers/proxy/log.ts';
import { loadProviderFile } from '../../../src/providers/proxy/provider-file.ts';
import { type AudioUpstream, json, startAudio } from '../../openai/audio/support/audio-upstream.ts';
import { audioBlock } from '../../openai/audio/support/audio-world.ts';

// `--validate` asks a model that does not chat for nothing, which costs nothing, and sees whether its route is there.

let upstream: AudioUpstream;
beforeAll(async () => {
  upstream = await startAudio();
});
afterAll(() => upstream.stop());

const log = createLog({ level: 'silent', style: 'json', secrets: [], write() {}, now: Date.now });

async function results(output: ModelKind): Promise<readonly string[]> {
  const block = audioBlock({ name: 'far/model', output, pricing: '', url: upstream.url }).replace(
    '"k"',
    '"std::env::K"',
  );
  const text = `[router]\nurl = "http://127.0.0.1:9"\napi_key = "r"\n${block}`;
  const { services } = loadProviderFile({ file: 'provider.toml', text, env: { K: 'k' } });
  const checks = serviceChecks(services[0]!, { env: {}, version: '1', log });
  const found = await Promise.all(checks.map((check) => runCheck(check, Date.now)));
  return found.map(({ ok, detail }) => `${ok ? '✓' : '✗'} ${detail}`);
}

test.each(KINDS_OF_MODELS)('%s', async (kind, { paths: [path] }) => {
  const status = kind === 'transcription' ? 415 : 400;
  upstream.answer = () => json({ error: { message: 'input is missing' } }, status);
  expect(await results(kind)).toEqual([`✓ answers at ${path}: it refuses an empty request with ${status}`]);
  expect(upstream.asked.at(-1)).toMatchObject({ path, json: { model: 'of-far/model' } });
  expect(upstream.asked.at(-1)!.headers['authorization']).toBe('Bearer k');
});

test.each([
  [404, 'Not Found'],
  [401, 'Invalid API key'],
  [500, 'boom'],
])('a service that answers with %i is not ready', async (status, message) => {
  upstream.answer = () => json({ error: { message } }, status);
  expect(await results('speech')).toEqual([
    `✗ answers an empty request at /audio/speech with status ${status}: ${message}`,
  ]);
});
