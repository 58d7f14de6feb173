import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startSpine, type Spine } from '../../support/spine.ts';

// The header of extensions has another name in each version. Both sides get the name that they know.

const EXTENSION = 'https://example.com/one';
const OTHER = 'https://example.com/two';
const HEADER = { '0.3': 'x-a2a-extensions', '1.0': 'a2a-extensions' } as const;
type Version = keyof typeof HEADER;
const VERSIONS = ['0.3', '1.0'] as const;

/** An agent of one version that activates EXTENSION, and one that nobody asked for. */
async function startAgent(version: Version) {
  const heard: unknown[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/rpc`;
      const own =
        version === '0.3'
          ? { url, protocolVersion: '0.3.0', preferredTransport: 'JSONRPC' }
          : { supportedInterfaces: [{ url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }] };
      const card = {
        name: 'A',
        description: 'd',
        version: '1',
        capabilities: { streaming: true },
        defaultInputModes: ['text/plain'],
        defaultOutputModes: ['text/plain'],
        skills: [{ id: 's', name: 's', description: 's', tags: ['t'] }],
        ...own,
      };
      if (request.method !== 'POST')
        return response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(card));
      heard.push(request.headers[HEADER[version]]);
      const { id, method } = JSON.parse(Buffer.concat(chunks).toString()) as { id: unknown; method: string };
      const message =
        version === '0.3'
          ? { kind: 'message', messageId: 'r', role: 'agent', parts: [{ kind: 'text', text: 'A' }] }
          : { message: { messageId: 'r', role: 'ROLE_AGENT', parts: [{ text: 'A' }] } };
      const reply = JSON.stringify({ jsonrpc: '2.0', id, result: message });
      const streams = /stream/i.test(method);
      response.writeHead(200, {
        'content-type': streams ? 'text/event-stream' : 'application/json',
        [HEADER[version]]: `${EXTENSION}, https://example.com/unasked`,
      });
      response.end(streams ? `data: ${reply}\n\n` : reply);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { heard, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close: () => server.close() };
}

let spine: Spine;
let agents: Readonly<Record<Version, Awaited<ReturnType<typeof startAgent>>>>;
beforeAll(async () => {
  agents = { '0.3': await startAgent('0.3'), '1.0': await startAgent('1.0') };
  const block = (version: Version) =>
    `[[agents]]\nname = "acme/v${version.replace('.', '')}"\nendpoint = "${agents[version].url}"\npricing = { per_call = 0.001 }\n`;
  spine = await startSpine({ toml: VERSIONS.map(block).join('\n') });
});
afterAll(async () => {
  expect(await spine.faults()).toEqual([]);
  await spine.stop();
  for (const agent of Object.values(agents)) agent.close();
});

const METHODS = {
  '0.3': { whole: 'message/send', streamed: 'message/stream' },
  '1.0': { whole: 'SendMessage', streamed: 'SendStreamingMessage' },
} as const;

const send = (
  client: Version,
  agent: Version,
  how: 'whole' | 'streamed',
  headers: Readonly<Record<string, string>>,
) => {
  const messageId = `${client} ${agent} ${how} ${Object.keys(headers).length}`;
  const message =
    client === '0.3'
      ? { kind: 'message', messageId, role: 'user', parts: [{ kind: 'text', text: 'x' }] }
      : { messageId, role: 'ROLE_USER', parts: [{ text: 'x' }] };
  return fetch(`${spine.origin}/a2a/acme/v${agent.replace('.', '')}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${spine.key}`,
      'content-type': 'application/json',
      'a2a-version': client,
      ...headers,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: METHODS[client][how], params: { message } }),
  });
};

const CASES = VERSIONS.flatMap((client) =>
  VERSIONS.flatMap((agent) => (['whole', 'streamed'] as const).map((how) => [client, agent, how] as const)),
);

test.each(CASES)('client %s, agent %s, %s', async (client, agent, how) => {
  const asked = `${OTHER}, ${EXTENSION}`;
  const reply = await send(client, agent, how, { [HEADER[client]]: asked });
  expect([reply.status, await reply.text()]).toEqual([200, expect.stringContaining('"A"')]);
  expect(agents[agent].heard.at(-1)).toBe(asked);
  expect(reply.headers.get(HEADER[client])).toBe(EXTENSION);
  const plain = await send(client, agent, how, {});
  await plain.text();
  expect(VERSIONS.map((version) => plain.headers.get(HEADER[version]))).toEqual([null, null]);
});
