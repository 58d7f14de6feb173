import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { dialIn, offeredModel, type DialledIn } from '../../../support/dial-in.ts';
import { startProvider, type TestProvider } from '../../../support/provider.ts';
import { events, startSpine, type Spine } from '../../../support/spine.ts';
import { evmWallet } from '../../../support/wallets.ts';

let spine: Spine;
let upstream: TestProvider;
let solana: DialledIn;
let evm: DialledIn;

beforeAll(async () => {
  upstream = await startProvider();
  spine = await startSpine();
  solana = await dialIn({ router: spine.origin, services: offeredModel({ url: upstream.url, provider: 'Sol' }) });
  evm = await dialIn({
    router: spine.origin,
    wallet: evmWallet(),
    services: offeredModel({ url: upstream.url, provider: 'Evm', name: 'evm/model' }),
  });
});
afterAll(async () => {
  await evm?.close();
  await solana?.close();
  expect(await spine?.faults()).toEqual([]);
  await spine?.stop();
  await upstream?.stop();
});

const question = (model: string, more: object = {}) => ({
  model,
  messages: [{ role: 'user', content: 'Say something.' }],
  max_tokens: 50,
  ...more,
});

describe('a model behind a proxy', () => {
  it('is of an account that its proxy logs as CAIP-10', async () => {
    for (const [proxy, account] of [
      [solana, /^solana:[1-9A-HJ-NP-Za-km-z]{32}:[1-9A-HJ-NP-Za-km-z]{32,44}$/],
      [evm, /^eip155:\d+:0x[0-9a-fA-F]{40}$/],
    ] as const)
      expect((await proxy.logged('connected to the router'))['account']).toMatch(account);
  });

  it('is called by its routed name, billed, and its provider earns', async () => {
    const response = await spine.post('/chat/completions', question('tunnel/model'));
    const reply = (await response.json()) as { usage: { prompt_tokens: number; completion_tokens: number } };
    expect(response.status, JSON.stringify(reply)).toBe(200);
    expect(response.headers.get('x-provider')).toBe('Sol');
    const { prompt_tokens: prompt, completion_tokens: completion } = reply.usage;
    const generation = await spine.generation(response.headers.get('x-generation-id'));
    expect(generation).toMatchObject({
      state: 'settled',
      provider: solana.id,
      cost_micro_usdc: prompt + 2 * completion,
    });
  });

  it('is pinned by the public key of its provider, a Solana address or an EVM one in any case', async () => {
    for (const pinned of [`${solana.id}:tunnel/model`, `${evm.id}:evm/model`, `${evm.wallet.address}:evm/model`]) {
      const response = await spine.post('/chat/completions', question(pinned));
      expect(response.status, pinned).toBe(200);
      await response.text();
    }
  });

  it('streams, with usage in the last chunk', async () => {
    const response = await spine.post('/chat/completions', question('tunnel/model', { stream: true }));
    const all = events(await response.text()) as { usage?: object }[];
    expect(all.at(-1)).toBe('[DONE]');
    expect(all.at(-2)!.usage).toMatchObject({
      prompt_tokens: expect.any(Number),
      completion_tokens: expect.any(Number),
    });
  });

  it('is used by the openai SDK like any other', async () => {
    const client = new OpenAI({ baseURL: spine.url, apiKey: spine.key });
    const listed = await client.models.list();
    expect(listed.data.map(({ id }) => id)).toContain('tunnel/model');
    const reply = await client.chat.completions.create({
      model: 'tunnel/model',
      messages: [{ role: 'user', content: 'hello' }],
      max_tokens: 50,
    });
    expect(reply.choices[0]!.message.content).toBeTruthy();
  });

  it('gets the key of its upstream from its own proxy, and the consumer’s key never', async () => {
    await (await spine.post('/chat/completions', question('tunnel/model'))).text();
    const { headers } = upstream.log.at(-1)!;
    expect(headers['authorization']).toBe('Bearer upstream-secret-canary');
    expect(JSON.stringify(headers)).not.toContain(spine.key);
  });
});
