import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { runDemoProvider, type DemoProvider } from '../../../src/program/demo/provider.ts';

interface Asked {
  readonly url: string;
  readonly key: string | undefined;
  readonly body: Readonly<Record<string, unknown>>;
}

/** What the gateway answers: status and body. */
type Answer = (asked: Asked) => readonly [number, object];

let demo: DemoProvider;
let gateway: Server;
let asked: Asked[];
let answer: Answer;
beforeAll(async () => {
  demo = await runDemoProvider({ roll: () => 1 });
});
afterAll(() => demo.close());
beforeEach(async () => {
  asked = [];
  gateway = createServer((request, response) => {
    void (async () => {
      const body = JSON.parse(Buffer.concat((await request.toArray()) as Buffer[]).toString()) as Asked['body'];
      const one = { url: request.url!, key: request.headers.authorization, body };
      asked.push(one);
      const [status, said] = answer(one);
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(said));
    })();
  });
  gateway.listen(0, '127.0.0.1');
  await once(gateway, 'listening');
});
afterEach(() => {
  gateway.closeAllConnections();
  gateway.close();
});

const ROLLED = {
  result: {
    content: [{ type: 'text', text: '2d6: 6 + 6 = 12' }],
    structuredContent: { dice: '2d6', rolls: [6, 6], total: 12 },
  },
};
const SAID = { choices: [{ message: { role: 'assistant', content: 'Well rolled.' } }] };
const both: Answer = ({ url }) => [200, url.includes('/mcp/') ? ROLLED : SAID];
const REFUSED = { error: { code: -32011, message: 'The budget of the run is too low' } };

/** The texts of the artifact. */
async function roll(run: object, text = 'Roll 2d6'): Promise<string[]> {
  const message = { messageId: 'm', role: 'user', parts: [{ kind: 'text', text }], metadata: { 'tollgate/run': run } };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'message/send', params: { message } });
  const reply = (await (await fetch(demo.agentUrl, { method: 'POST', body })).json()) as {
    result: { status: { state: string }; artifacts: { parts: { text?: string }[] }[] };
  };
  expect(reply.result.status.state).toBe('completed');
  return reply.result.artifacts[0]!.parts.flatMap((part) => part.text ?? []);
}
const here = () => `http://127.0.0.1:${(gateway.address() as AddressInfo).port}/api/v1`;

it('has the tool roll and the model comment, with the run token as its key', async () => {
  answer = both;
  expect(await roll({ token: 'svc-run-v1-x.y', url: here(), budget_usd: '0.01' })).toEqual([
    '2d6: 6 + 6 = 12',
    'demo/chat: Well rolled.',
  ]);
  expect(asked).toMatchObject([
    {
      url: '/api/v1/mcp/demo/tools',
      key: 'Bearer svc-run-v1-x.y',
      body: { method: 'tools/call', params: { name: 'roll_dice', arguments: { dice: '2d6' } } },
    },
    { url: '/api/v1/chat/completions', key: 'Bearer svc-run-v1-x.y', body: { model: 'demo/chat', max_tokens: 64 } },
  ]);
});

it('rolls by itself where the tool is refused, and asks no more', async () => {
  answer = () => [402, REFUSED];
  expect(await roll({ token: 'svc-run-v1-x.y', url: here() })).toEqual([
    '2d6: 1 + 1 = 2',
    '2 is the least that these dice have. From here it can only get better.',
    'I rolled by myself, as demo/tools did not: The budget of the run is too low.',
  ]);
  expect(asked).toHaveLength(1);
});

it('says why no money is left for the tool', async () => {
  const required = { x402Version: 2, error: 'The budget of the run is too low', accepts: [] };
  answer = () => [
    200,
    {
      result: {
        isError: true,
        structuredContent: required,
        content: [{ type: 'text', text: JSON.stringify(required) }],
      },
    },
  ];
  expect(await roll({ token: 'svc-run-v1-x.y', url: here() })).toContain(
    'I rolled by myself, as demo/tools did not: The budget of the run is too low.',
  );
});

it('comments by itself where the model is refused', async () => {
  answer = (one) => (one.url.includes('/mcp/') ? both(one) : [402, REFUSED]);
  expect(await roll({ token: 'svc-run-v1-x.y', url: here() })).toEqual([
    '2d6: 6 + 6 = 12',
    '12 is the most that these dice have. Stop while you are ahead.',
    'The comment is my own, as demo/chat said nothing: The budget of the run is too low.',
  ]);
});

it.each([
  ['an address elsewhere', { token: 'svc-run-v1-x.y', url: 'http://192.0.2.1/api/v1' }],
  ['an address with another host before it', { token: 'svc-run-v1-x.y', url: 'http://127.0.0.1@192.0.2.1/api/v1' }],
  ['no address', { token: 'svc-run-v1-x.y' }],
  ['another token', { token: 'svc-sk-x', url: 'http://127.0.0.1:1/api/v1' }],
] as const)('asks nobody with %s', async (_what, run) => {
  answer = both;
  expect(await roll(run)).toContain('I rolled by myself, as no run token came with the message.');
  expect(asked).toEqual([]);
});
