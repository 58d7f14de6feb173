import { expect, onTestFinished, test } from 'vitest';
import { startAgent, startRawAgent } from '../../support/a2a-agent/index.ts';
import { startAgentProcess } from '../../support/a2a-agent/agent-process.ts';
import { createTalk } from './client-calls.ts';

async function talkTo(version: '1.0' | '0.3') {
  const agent = await startAgent({ version });
  onTestFinished(() => agent.close());
  return { agent, talk: createTalk({ url: agent.url, headers: {} }, version, 'JSONRPC') };
}

test.each(['1.0', '0.3'] as const)('an agent of %s gives odd answers when it is told to', async (version) => {
  const { talk } = await talkTo(version);
  expect((await talk.sent('crash')).status).toBe(500);
  expect((await talk.sent('garbage')).json).toBeUndefined();
  expect((await talk.sent('neither')).result()).toEqual({ surprise: true });
  expect((await talk.sent('unknown-fields')).text).toContain('"xTask":{"a-key":null}');
  const stream = await talk.stream('cut');
  expect(await stream.next()).toMatchObject({ type: 'task', state: 'working' });
  await expect(stream.rest()).rejects.toThrow();
});

test('an agent that is silent holds the connection', async () => {
  const { agent, talk } = await talkTo('1.0');
  const gone = new AbortController();
  const body = JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'SendMessage',
    params: { message: { parts: [{ text: 'silent' }] } },
  });
  const asked = fetch(talk.place.url, { method: 'POST', body, signal: gone.signal });
  await agent.receives(({ body: came }) => came === body);
  gone.abort();
  await expect(asked).rejects.toThrow();
});

test('an agent that asks for a key gives only its card without one', async () => {
  const agent = await startAgent({ bearer: 'the-key' });
  onTestFinished(() => agent.close());
  const sent = (authorization: Record<string, string>) =>
    createTalk({ url: agent.url, headers: authorization }, '1.0', 'JSONRPC').sent('echo x');
  expect((await sent({})).status).toBe(401);
  expect((await sent({ authorization: 'Bearer the-key' })).error).toBeNull();
  const card = (await (await fetch(`${agent.url}/.well-known/agent-card.json`)).json()) as { securitySchemes: object };
  expect(card.securitySchemes).toHaveProperty('bearer');
});

test('a raw agent answers as its test says', async () => {
  const agent = await startRawAgent(({ request, result, error, events }) => {
    if (request.method === 'SendStreamingMessage')
      return events([{ message: { messageId: 'm', role: 'ROLE_AGENT', parts: [{ text: 'raw' }] } }]);
    return request.method === 'GetTask'
      ? error(-32001, 'none')
      : result({ message: { messageId: 'm', role: 'ROLE_AGENT', parts: [{ text: 'raw' }] } });
  });
  onTestFinished(() => agent.close());
  const talk = createTalk({ url: agent.url, headers: {} }, '1.0', 'JSONRPC');
  expect(await talk.send('anything')).toMatchObject({ text: 'raw' });
  expect(await (await talk.stream('anything')).rest()).toMatchObject([{ text: 'raw' }]);
  expect((await talk.call('GetTask', { id: 'x' })).error?.code).toBe(-32001);
  expect((await agent.receives(({ method }) => method === 'GetTask')).params).toEqual({ id: 'x' });
});

test('an agent in a process of its own is told when to finish, can be killed, and comes back knowing nothing', async () => {
  const agent = await startAgentProcess();
  onTestFinished(() => agent.stop());
  const talk = createTalk({ url: agent.url, headers: {} }, '1.0', 'JSONRPC');
  const asked = talk.task('wait');
  const id = await agent.waits();
  await agent.finish(id);
  expect(await asked).toMatchObject({ id, state: 'completed' });
  await agent.kill9();
  await expect(talk.get(id)).rejects.toThrow();
  await agent.restart();
  expect((await talk.call('GetTask', { id })).error?.code).toBe(-32001);
});
