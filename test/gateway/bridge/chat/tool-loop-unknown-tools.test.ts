import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { requestOf, WIRES } from '../../../peers/wires.ts';
import { modelBlock, startSpine, UNHURRIED, type Spine } from '../../../support/spine.ts';
import { startScriptedModel, type ScriptedModel } from './support/scripted-model.ts';
import { toolToml } from './support/toml.ts';

// A service whose provider never answers exists, but nobody knows its tools. A request that names it is not run without
// them: its client would pay for another request than its own.

const silent = createServer(() => {});
let model: ScriptedModel;
let spine: Spine;
beforeAll(async () => {
  silent.listen(0, '127.0.0.1');
  await once(silent, 'listening');
  model = await startScriptedModel();
  const { port } = silent.address() as AddressInfo;
  spine = await startSpine({
    toml:
      UNHURRIED +
      modelBlock({ name: 'test/model', provider: 'Models', url: model.url }) +
      toolToml(`http://127.0.0.1:${port}/mcp`, 'silent'),
  });
});
afterAll(async () => {
  try {
    expect(await spine.faults()).toEqual([]);
  } finally {
    await spine.stop();
    await model.stop();
    silent.closeAllConnections();
    silent.close();
  }
});

/** How the wires with tools name a service whose tools the gateway calls. */
const toolsOf = (name: string, service: string) =>
  name === 'gemini'
    ? [{ mcpServers: [{ name: service, streamableHttpTransport: { url: `${spine.origin}/mcp/${service}` } }] }]
    : [{ type: 'mcp', service }];

const asks = WIRES.filter(({ fields }) => fields.split(' ').includes('tools')).flatMap((wire) =>
  [false, true].map((stream) => ({ wire, stream })),
);

test('a request that names them gets 503 on each wire, and nothing is locked or charged', async () => {
  const before = await spine.balance();
  const answers = await Promise.all(
    asks.map(async ({ wire, stream }) => {
      const asked = { model: 'test/model', ...wire.ask('Go', 50), tools: toolsOf(wire.name, 'silent') };
      const { path, body } = requestOf(wire, stream ? { ...asked, stream } : asked);
      const answer = await fetch(spine.origin + path, {
        method: 'POST',
        headers: { authorization: `Bearer ${spine.key}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
      return [wire.name, answer.status, answer.headers.get('retry-after'), await answer.text()];
    }),
  );
  expect(asks.map(({ wire }) => wire.name)).toEqual(
    expect.arrayContaining(['chat', 'messages', 'responses', 'gemini']),
  );
  expect(answers).toEqual(
    asks.map(({ wire }) => [wire.name, 503, '10', expect.stringContaining('The tools of silent are not known yet')]),
  );
  expect(model.asked).toEqual([]);
  expect(await spine.locks()).toEqual([]);
  expect(await spine.balance()).toEqual(before);
});
