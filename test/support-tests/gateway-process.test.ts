import OpenAI from 'openai';
import { expect, inject, it } from 'vitest';
import { startGateway } from '../support/gateway.ts';
import { startProvider } from '../support/provider.ts';

it('a gateway keeps accounts over kill9 and term, and calls go through it', async () => {
  const provider = await startProvider();
  const toml = `
[[models]]
name = "test/model"
display_name = "Test"
provider_name = "Test"
[models.pricing]
prompt = 1
completion = 2
[models.params]
model = "test/model"
api_base = "${provider.url}"
api_key = "none"
`;
  const gateway = await startGateway({ toml });
  try {
    const { account, key } = await gateway.openAccount('acme', 5);
    const call = (): Promise<OpenAI.ChatCompletion> =>
      new OpenAI({ baseURL: `${gateway.baseUrl}/api/v1`, apiKey: key, maxRetries: 0 }).chat.completions.create({
        model: 'test/model',
        messages: [{ role: 'user', content: 'hello' }],
      });
    expect((await call()).usage).toMatchObject({ completion_tokens: 12 });
    const { pid } = gateway;
    await gateway.kill9();
    await gateway.restart();
    expect(gateway.pid).not.toBe(pid);
    await call();
    expect(await gateway.term()).toBe(0);
    await gateway.restart();
    expect(await gateway.admin('GET', `/accounts/${encodeURIComponent(account)}`)).toMatchObject({
      data: { balance_micro_usdc: 5_000_000 - 2 * (9 + 2 * 12) },
    });
    expect(provider.log).toHaveLength(2);
  } finally {
    await gateway.stop();
    await provider.stop();
  }
});

it('the development gateway answers from its demo provider', async () => {
  const gateway = await startGateway({ command: 'start', redisUrl: inject('redisUrl') });
  try {
    const client = new OpenAI({ baseURL: `${gateway.baseUrl}/api/v1`, apiKey: gateway.apiKey, maxRetries: 0 });
    const reply = await client.chat.completions.create({
      model: 'demo/chat',
      messages: [{ role: 'user', content: 'count to 3' }],
    });
    expect(reply.choices[0]?.message.content).toBe('1, 2, 3.');
  } finally {
    await gateway.stop();
  }
});

it('one that cannot start says why', async () => {
  await expect(startGateway({ toml: 'nonsense' })).rejects.toThrow('before it was ready');
});
