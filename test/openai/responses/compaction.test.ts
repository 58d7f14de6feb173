import { beforeEach, describe, expect, test } from 'vitest';
import { escrowOf } from '#billing';
import { modelBlock, UNHURRIED } from '../../support/spine.ts';
import { ofFile, spineOfFile } from '../../support/of-file.ts';
import { startWireUpstream } from '../native/support/wire-upstream.ts';
import { completion, startTranscripts } from '../translated/support/transcript-upstream.ts';

// What stands for a compacted conversation is never left out in silence: providers that speak the Responses API get it,
// and elsewhere it is refused. The same holds for `/responses/compact`.

const NATIVE = 'acme/native';
const OLDER = 'acme/older';
const CHAT = 'acme/chat';
const BOTH = 'acme/both';
const native = ofFile(startWireUpstream, (one) => one.stop());
const older = ofFile(startWireUpstream, (one) => one.stop());
const chat = ofFile(startTranscripts, (one) => one.stop());
const params = 'wires = ["responses"]';
const spine = spineOfFile(() => ({
  toml:
    UNHURRIED +
    modelBlock({ name: NATIVE, provider: 'Native', url: native.url, params }) +
    modelBlock({ name: OLDER, provider: 'Older', url: older.url, params }) +
    modelBlock({ name: CHAT, provider: 'Chat', url: chat.url }) +
    modelBlock({ name: BOTH, provider: 'Chat', url: chat.url }) +
    modelBlock({ name: BOTH, provider: 'Native', url: native.url, params }),
}));

type Json = Readonly<Record<string, unknown>>;
const USAGE = { input_tokens: 50, output_tokens: 20, total_tokens: 70 };
const ITEM = { id: 'cmp_1', type: 'compaction', encrypted_content: 'SEALED' };
const SAID = [{ role: 'user', content: 'A long history' }];

beforeEach(() => {
  const compacted = { id: 'resp_up', object: 'response.compaction', created_at: 1, output: [ITEM], usage: USAGE };
  const response = { ...compacted, object: 'response', status: 'completed', model: 'x', error: null };
  native.answer = ({ path }) => ({ text: JSON.stringify(path.endsWith('/compact') ? compacted : response) });
  older.answer = () => ({ status: 404, text: '{"detail":"Not Found"}' });
  chat.answer = () => ({ body: completion({ content: 'Hello' }) });
});

const post = async (path: string, body: object, key = spine.key) => {
  const reply = await spine.post(path, body, { authorization: `Bearer ${key}` });
  return { status: reply.status, headers: reply.headers, body: (await reply.json()) as Json };
};

describe('POST /responses/compact', () => {
  test('passes to a provider that speaks the API, and is billed by its usage', async () => {
    const { account, key } = await spine.tenant('compacts', '10');
    const { status, body, headers } = await post(
      '/responses/compact',
      { model: NATIVE, input: SAID, instructions: 'Be short', store: true, stream: true, max_output_tokens: 5 },
      key,
    );
    expect(status).toBe(200);
    // 50 tokens at 1 and 20 at 2 micro-USD.
    expect(body).toMatchObject({ object: 'response.compaction', output: [ITEM], usage: { ...USAGE, cost: 0.00009 } });
    expect(headers.get('x-tollgate-dropped')).toBe('store, stream, max_output_tokens');
    const { path, body: sent } = native.reached.at(-1)!;
    expect(path).toBe('/v1/responses/compact');
    expect(sent).toEqual({ model: 'upstream-of-Native', input: SAID, instructions: 'Be short' });
    const { available } = (await spine.app.ledger.balance(escrowOf(account)))!;
    expect(available).toBe(10_000_000n - 90n);
    expect(await spine.generation(headers.get('x-generation-id'), key)).toMatchObject({ finish_reason: 'completed' });
  });

  test('continues a kept response', async () => {
    const { body: kept } = await post('/responses', { model: NATIVE, input: 'First' });
    const { status } = await post('/responses/compact', {
      model: NATIVE,
      input: SAID,
      previous_response_id: kept['id'],
    });
    expect(status).toBe(200);
    const { input, previous_response_id: previous } = native.reached.at(-1)!.body;
    expect(input).toEqual([{ type: 'message', role: 'user', content: 'First' }, ITEM, ...SAID]);
    expect(previous).toBeUndefined();
  });

  test('is refused in words where no provider speaks the API', async () => {
    const reached = chat.asked.length;
    for (const model of [CHAT, 'a2a/nobody']) {
      const { status, body } = await post('/responses/compact', { model, input: SAID });
      expect(status).toBe(400);
      expect(body['error']).toMatchObject({
        param: 'model',
        message: expect.stringContaining(`and ${model} has none: call another model`) as string,
      });
    }
    expect(chat.asked).toHaveLength(reached);
  });

  test('is not sent again to a provider that does not have the path', async () => {
    const ask = () => post('/responses/compact', { model: OLDER, input: SAID });
    expect((await ask()).status).toBe(500);
    const reached = older.reached.length;
    const { status, body } = await ask();
    expect(status).toBe(422);
    expect((body['error'] as Json)['message']).toContain('/responses/compact needs a provider that compacts');
    expect(older.reached).toHaveLength(reached);
  });
});

describe.each(['compaction', 'compaction_summary', 'compaction_trigger'])('an item of type %s', (type) => {
  const input = [...SAID, { type, encrypted_content: 'SEALED' }];

  test('is refused by its name at a model of which no provider speaks the API', async () => {
    const reached = chat.asked.length;
    const { status, body } = await post('/responses', { model: CHAT, input });
    expect(status).toBe(400);
    expect(body['error']).toMatchObject({
      param: 'input[1]',
      message: expect.stringContaining(`input[1] is of type ${type}`) as string,
    });
    expect(chat.asked).toHaveLength(reached);
  });

  test('goes to the provider that speaks it, and to no other', async () => {
    const reached = chat.asked.length;
    const { status } = await post('/responses', { model: BOTH, input });
    expect(status).toBe(200);
    expect(native.reached.at(-1)!.body['input']).toEqual(input);
    const only = { order: ['Chat'], allow_fallbacks: false };
    const refused = await post('/responses', { model: BOTH, input, provider: only });
    expect(refused.status).toBe(422);
    expect((refused.body['error'] as Json)['message']).toContain(`is of type ${type}`);
    expect(chat.asked).toHaveLength(reached);
  });

  test('may be all that a request has', async () => {
    expect((await post('/responses', { model: NATIVE, input: [input[1]] })).status).toBe(200);
  });
});
