import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { collect, connect, saying, sendForTask, stateName, textOf } from '../../a2a/clients/sdk-client.ts';
import { makePlace, type Place } from '../cli/tollgate.ts';

let place: Place;
let dev: { readonly base_url: string; readonly api_key: string };
beforeAll(async () => {
  place = await makePlace();
  await place.gateway(['start']);
  dev = (await place.read('dev.json')) as unknown as typeof dev;
});
afterAll(() => place.clear());

const read = async (path: string) =>
  (await fetch(`${dev.base_url}/api/v1${path}`, { headers: { authorization: `Bearer ${dev.api_key}` } })).json();
const balance = async () => ((await read('/session/balance')) as { balance_micro_usdc: number }).balance_micro_usdc;

interface Generation {
  readonly model: string;
  readonly cost_micro_usdc: number;
  readonly run_cost: number;
  readonly children: readonly Generation[];
}

const ANSWER = /^2d6: \d \+ \d = \d+demo\/chat: \d+ is /;

describe.each(['1.0 over JSON-RPC', '1.0 over HTTP+JSON', '0.3 over JSON-RPC'] as const)(
  'a client of %s of the gateway of npm start',
  (kind) => {
    it('has the agent call a tool and a model, all of it paid from one budget', async () => {
      const client = await connect(kind, `${dev.base_url}/a2a/demo/agent`, dev.api_key);
      const before = await balance();
      const task = await sendForTask(client, 'Roll 2d6');
      expect(stateName(task)).toBe('TASK_STATE_COMPLETED');
      expect(textOf(task.artifacts[0])).toMatch(ANSWER);
      const { id } = task.metadata!['tollgate/generation'] as { id: string };
      const { data } = (await read(`/generation?id=${id}`)) as { data: Generation };
      expect([data, ...data.children].map(({ model }) => model)).toEqual(['demo/agent', 'demo/tools', 'demo/chat']);
      const [own, tool, model] = [data, ...data.children].map(({ cost_micro_usdc: cost }) => cost);
      expect([own, tool]).toEqual([2_000, 1_000]);
      expect(own! + tool! + model!).toBe(before - (await balance()));
      expect(data.run_cost).toBeCloseTo((own! + tool! + model!) / 1e6, 9);
    });

    it('hears of it as it happens', async () => {
      const client = await connect(kind, `${dev.base_url}/a2a/demo/agent`, dev.api_key);
      const events = await collect(client.sendMessageStream(saying('Roll 2d6')));
      const pieces = events.flatMap(({ payload }) =>
        payload?.$case === 'artifactUpdate' ? [textOf(payload.value.artifact)] : [],
      );
      expect(pieces).toHaveLength(2);
      expect(pieces.join('')).toMatch(ANSWER);
    });
  },
);

it('says what all of it cost, whichever door it was called by', async () => {
  const post = async (path: string, body: object) => {
    const headers = { authorization: `Bearer ${dev.api_key}`, 'content-type': 'application/json' };
    return (await (
      await fetch(`${dev.base_url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
    ).json()) as Record<string, never>;
  };
  const messages = [{ role: 'user', content: 'Roll 2d6' }];
  const chat = (await post('/api/v1/chat/completions', { model: 'a2a/demo/agent', messages })) as unknown as {
    usage: { cost: number; cost_details: { charged_usd: string } };
  };
  const params = { name: 'send_message', arguments: { message: 'Roll 2d6' } };
  const mcp = (await post('/mcp/a2a/demo/agent', {
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params,
  })) as unknown as {
    result: { _meta: { 'tollgate/generation': { cost: string; own_cost: string } } };
  };
  const told = mcp.result._meta['tollgate/generation'];
  expect([chat.usage.cost_details.charged_usd, told.own_cost]).toEqual(['0.002', '0.002']);
  // The roll itself costs a tenth of a cent, the comment on it less.
  for (const all of [chat.usage.cost, told.cost]) expect(Number(all)).toBeGreaterThan(0.003);
});

it('answers by itself where nothing is left of the budget for calls of its own', async () => {
  const body = {
    jsonrpc: '2.0',
    id: 1,
    method: 'SendMessage',
    params: { message: { messageId: 'thrifty', role: 'ROLE_USER', parts: [{ text: 'd20' }] } },
  };
  const headers = { authorization: `Bearer ${dev.api_key}`, 'content-type': 'application/json', 'x-max-cost': '0.002' };
  const response = await fetch(`${dev.base_url}/a2a/demo/agent`, {
    method: 'POST',
    headers,
    body: JSON.stringify(body),
  });
  expect(await response.text()).toContain('I rolled by myself, as no run token came with the message.');
});
