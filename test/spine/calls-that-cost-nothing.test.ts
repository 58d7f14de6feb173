import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from 'vitest';
import { callTool, toolToml } from '../mcp/calls/modern-post.ts';
import { ENGINES } from '../support/engines.ts';
import { freshDatabase } from '../support/fresh-database.ts';
import { startRawMcp, type RawMcp } from '../support/raw-mcp.ts';
import { ask, modelBlock, startSpine, type Spine } from '../support/spine.ts';

const OK = '{"resultType":"complete","content":[{"type":"text","text":"done"}]}';
const ASKS =
  '{"resultType":"input_required","inputRequests":{"who":{"method":"elicitation/create","params":{"message":"who?"}}},"requestState":"round-1"}';
const FREE = 'free/model';

describe.each(ENGINES)('on %s', (engine) => {
  let spine: Spine;
  let server: RawMcp;
  let drop = async () => {};
  /** Locks of all times, as the server saw them when it was asked. */
  let seen: readonly string[] = [];

  beforeAll(async () => {
    const database = engine === 'postgres' ? await freshDatabase(inject('postgresUrl')) : null;
    if (database) drop = () => database.drop();
    server = await startRawMcp(
      async ({ params }) => {
        seen = await spine.locks();
        if (params['name'] === 'fails') return (response) => void response.destroy();
        return params['name'] === 'asks' && params['requestState'] === undefined ? ASKS : OK;
      },
      ['{"name":"works","inputSchema":{"type":"object"}}'],
    );
    spine = await startSpine({
      ...(database ? { databaseUrl: database.url } : {}),
      credit: '0',
      toml:
        modelBlock({ name: FREE, provider: 'Free', url: '{provider}', prompt: 0, completion: 0 }) +
        toolToml({ name: 'free', url: server.url, pricing: 'per_call = 0' }) +
        toolToml({ name: 'priced', url: server.url, pricing: 'per_call = 0.001' }),
    });
  });
  afterAll(async () => {
    await spine.stop();
    await server.close();
    await drop();
  });
  afterEach(async () => {
    expect(await spine.faults()).toEqual([]);
  });

  const generationOf = async (headers: Headers) => spine.generation(headers.get('x-generation-id'));

  test.each([false, true])(
    'a model that costs nothing has one record, made at its end (stream: %s)',
    async (stream) => {
      const before = await spine.locks();
      const response = await spine.post('/chat/completions', ask('hello !tokens:7', { model: FREE, stream }));
      expect(response.status).toBe(200);
      await response.text();
      const generation = await generationOf(response.headers);
      expect(generation).toMatchObject({ state: 'settled', model: FREE, cost_micro_usdc: 0, tokens_completion: 7 });
      expect(await spine.locks()).toHaveLength(before.length + 1);
    },
  );

  test('a repeat of a model that costs nothing, while it runs, is told to retry, also with a key for it alone', async () => {
    const { key } = await spine.tenant(`narrow-${engine}`, '1', { allowedServices: [FREE] });
    const send = () =>
      spine.post('/chat/completions', ask('hello !tokens:2', { model: FREE }), {
        authorization: `Bearer ${key}`,
        'idempotency-key': 'twice',
      });
    const open = Promise.withResolvers<void>();
    const before = spine.provider.log.length;
    spine.provider.hold(open.promise);
    const first = send();
    await expect.poll(() => spine.provider.log.length).toBeGreaterThan(before);
    const early = await send();
    open.resolve();
    spine.provider.hold(null);
    expect([early.status, early.headers.get('retry-after')]).toEqual([409, '1']);
    const text = await (await first).text();
    const again = await send();
    expect([again.status, await again.text()]).toEqual([200, text]);
  });

  test('a tool that costs nothing holds no lock while it runs', async () => {
    const before = await spine.locks();
    const { message, headers } = await callTool(spine, 'free', 'works');
    expect(message.result.content).toEqual([{ type: 'text', text: 'done' }]);
    expect(seen).toHaveLength(before.length);
    expect(await generationOf(headers)).toMatchObject({ state: 'settled', cost_micro_usdc: 0 });
    expect(headers.get('x-cost-usd')).toBe('0');
  });

  test('one that fails has the record of a failed call', async () => {
    const before = await spine.locks();
    await callTool(spine, 'free', 'fails');
    const [id] = (await spine.locks()).filter((each) => !before.includes(each));
    expect(await spine.generation(id!)).toMatchObject({ state: 'released', cost_micro_usdc: 0 });
  });

  test('one that waits for its client is held, and goes on under the same rules', async () => {
    const before = await spine.locks();
    const first = await callTool(spine, 'free', 'asks');
    expect(first.message.result.resultType).toBe('input_required');
    expect(seen).toHaveLength(before.length);
    const held = (await spine.locks()).filter((each) => !before.includes(each));
    expect(held).toHaveLength(1);
    const { requestState } = first.message.result;
    const params = { inputResponses: { who: { action: 'accept', content: {} } }, requestState };
    const last = await callTool(spine, 'free', 'asks', {}, { params });
    expect(last.message.result.content).toEqual([{ type: 'text', text: 'done' }]);
    expect(await generationOf(last.headers)).toMatchObject({ state: 'settled', cost_micro_usdc: 0 });
    expect(await spine.generation(held[0]!)).toMatchObject({ state: 'released' });
  });

  test('a tool with a price is still refused without money, before it is asked', async () => {
    const asked = server.asked.length;
    const { message } = await callTool(spine, 'priced', 'works');
    expect(message.result['isError']).toBe(true);
    expect(server.asked).toHaveLength(asked);
  });
});
