import { expect, onTestFinished, test } from 'vitest';
import { LEGACY_REST, MESSAGE_PRICE, REST, useCallsWorld } from '../calls/support/calls-world.ts';
import { agentBlock, startCardedAgent } from '../../support/a2a-agent/index.ts';
import { serveRaw, taskResult } from '../calls/support/raw-served.ts';
import { readRegistration, RegistrationError } from '../../../src/gateway/network/registry/document.ts';

const calls = useCallsWorld();

const answering = (id: string) => (exchange: Parameters<Parameters<typeof serveRaw>[1]>[0]) => {
  const { task } = taskResult(`${id}-${crypto.randomUUID()}`, 'COMPLETED');
  exchange.result(
    exchange.request.version === '1.0' ? { task } : { kind: 'task', ...task, status: { state: 'completed' } },
  );
};

test('an agent whose name looks like a route of another one is not sent what is for that', async () => {
  const evil = await startCardedAgent(answering('evil'), { versions: ['1.0', '0.3'], streaming: true });
  onTestFinished(() => evil.close());
  const named = { name: 'good/agent/v1', pricing: 'per_call = 1' };
  const beside = agentBlock({ ...named, endpoint: evil.url, provider: 'Good' });
  const { url } = await serveRaw(calls.world, answering('good'), { name: 'good/agent', provider: 'Good', beside });
  // Nobody else may offer such a name.
  await expect(serveRaw(calls.world, answering('evil'), { name: 'good/agent/v2' })).rejects.toThrow(
    'has the same first part',
  );
  const spent = await calls.spent(async () => {
    for (const wire of [REST, LEGACY_REST])
      expect((await calls.talk(url, wire).sent('hello')).text).toContain('"good-');
    // Clients of 0.3 do not say which version they speak.
    const body = JSON.stringify({ message: { messageId: 'm-1', role: 'ROLE_USER', content: [{ text: 'x' }] } });
    expect(
      (await calls.talk(url, LEGACY_REST).raw('POST', '/message:send', body, { 'a2a-version': null })).text,
    ).toContain('"good-');
  });
  expect(spent).toBe(3n * MESSAGE_PRICE);
});

test.each([
  ['models', 'a2a/weather'],
  ['models', 'mcp/files/read'],
  ['tools', 'a2a/weather'],
  ['tools', 'model/gpt'],
  ['agents', 'model/gpt'],
  ['agents', 'mcp/files'],
  ['agents', 'good/agent/message:send'],
  ['agents', 'good/agent/v1/message:send'],
  ['agents', 'good/agent/tasks/1'],
  ['agents', 'tasks'],
  ['models', 'image/a/paint'],
  ['models', 'video/a/film'],
  // The alias of the model gpt at /messages.
  ['models', 'anthropic/gpt'],
  ['tools', 'image/a/paint'],
  ['tools', 'video/a/film'],
  ['agents', 'image/a/paint'],
  ['agents', 'video/a/film'],
])('no provider who dials in has %s called %s', async (table, name) => {
  const document = { version: 1, [table]: [{ name, display_name: 'X', provider_name: 'X' }] };
  let problems: readonly { readonly key: string; readonly wrong: string }[] = [];
  try {
    await readRegistration(JSON.stringify(document), { servicesMax: 10 });
  } catch (error) {
    if (!(error instanceof RegistrationError)) throw error;
    ({ problems } = error);
  }
  expect(problems).toContainEqual(
    expect.objectContaining({ key: `${table}[0].name`, wrong: expect.stringContaining('other') }),
  );
});
