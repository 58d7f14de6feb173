import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createLog } from '../../../src/providers/proxy/log.ts';
import { providerChecks, runChecks } from '../../../src/providers/proxy/probe/checks.ts';
import { modelAt } from '../../support/provider-proxy.ts';
import { completion, eventsOf, words } from '../../openai/translated/support/transcript-upstream.ts';
import {
  geminiAnswer,
  geminiEvents,
  message,
  messageEvents,
  response,
  responseEvents,
} from '../../openai/native/support/transcripts.ts';
import {
  startWireUpstream,
  type Reached,
  type WireAnswer,
  type WireUpstream,
} from '../../openai/native/support/wire-upstream.ts';

let upstream: WireUpstream;
beforeAll(async () => {
  upstream = await startWireUpstream();
});
afterAll(() => upstream.stop());

const log = createLog({ level: 'silent', style: 'json', secrets: [], write() {}, now: Date.now });

/** What --validate says of the wires, by the name of the check. */
async function probe(): Promise<Record<string, string | undefined>> {
  const service = modelAt('m', upstream.url, 'secret', {
    upstreamModel: 'up',
    wires: ['messages', 'responses', 'gemini'],
  });
  const router = { url: upstream.url, domain: 'x', wallet: null, apiKey: 'k' };
  const config = {
    file: null,
    router,
    services: [service],
    providers: [],
    packages: { wall: 'if_available' as const },
  };
  const said: Record<string, string | undefined> = {};
  const checks = providerChecks(config, null, { env: {}, version: '1', log }, Date.now).slice(3);
  await runChecks(checks, Date.now, ({ name }, result) => void (said[name] = result.detail));
  return said;
}

const rightly = ({ path, body: { stream } }: Reached): WireAnswer => {
  if (path === '/v1/messages') return { text: stream ? messageEvents().join('') : message() };
  if (path === '/v1/responses') return { text: stream ? responseEvents().join('') : response() };
  if (path === '/v1beta/models/up:generateContent') return { text: geminiAnswer() };
  if (path.startsWith('/v1beta/models/')) return { type: 'text/event-stream', text: geminiEvents().join('') };
  return { text: stream ? eventsOf(words('Hi')) : JSON.stringify(completion({ content: 'Hi' })) };
};

describe('--validate', () => {
  test('asks each wire that a model says it speaks, whole and streamed, with its key', async () => {
    upstream.answer = rightly;
    expect(await probe()).toMatchObject({
      'm, messages': 'answers, usage 12 + 9 tokens',
      'm, messages, streamed': 'streams, usage 12 + 9 tokens',
      'm, responses': 'answers, usage 40 + 9 tokens',
      'm, responses, streamed': 'streams, usage 40 + 9 tokens',
      'm, gemini': 'answers, usage 40 + 7 tokens',
      'm, gemini, streamed': 'streams, usage 40 + 7 tokens',
    });
    const ofGoogle = upstream.reached.filter(({ path }) => path.startsWith('/v1beta/'));
    expect(ofGoogle.map(({ headers }) => headers['x-goog-api-key'])).toEqual(['secret', 'secret']);
    expect(ofGoogle[0]!.body).toMatchObject({ generationConfig: { maxOutputTokens: 16 } });
    const asked = upstream.reached.filter(({ path }) => path === '/v1/messages');
    expect(asked[0]!.headers).toMatchObject({ 'x-api-key': 'secret', 'anthropic-version': '2023-06-01' });
    expect(asked[0]!.body).toMatchObject({ model: 'up', max_tokens: 16 });
  });

  test.each([
    ['does not know it', (): WireAnswer => ({ status: 404, text: '{"error":"not found"}' }), /status 404/],
    ['says no usage', (): WireAnswer => ({ text: '{"content":[]}' }), /no usage/],
    ['says half of the usage', (): WireAnswer => ({ text: '{"usage":{"input_tokens":1}}' }), /output_tokens/],
  ])('fails for a wire where the upstream %s', async (_name, answer, right) => {
    upstream.answer = (request) => (request.path === '/v1/messages' ? answer() : rightly(request));
    const said = await probe();
    expect(said['m, messages']).toMatch(right);
    expect(said['m, responses']).toMatch(/answers/);
  });

  test('fails for a stream that ends early', async () => {
    upstream.answer = (request) =>
      request.path === '/v1/messages' && request.body['stream'] === true
        ? { text: messageEvents().slice(0, -1).join('') }
        : rightly(request);
    expect((await probe())['m, messages, streamed']).toMatch(/last event is not message_stop/);
    upstream.answer = (request) =>
      request.path.endsWith('alt=sse')
        ? { type: 'text/event-stream', text: geminiEvents().slice(0, -1).join('') }
        : rightly(request);
    expect((await probe())['m, gemini, streamed']).toMatch(/last event is not one with a finishReason/);
  });
});
