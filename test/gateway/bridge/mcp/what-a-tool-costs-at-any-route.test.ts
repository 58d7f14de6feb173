import { expect, test } from 'vitest';
import { startSdkServer } from '../../../mcp/sessions/sdk-server.ts';
import { startBridgeWorld } from './bridge-world.ts';
import { result, startTools, text } from './raw-tools.ts';

const ASKS =
  '{"resultType":"input_required","inputRequests":{"who":{"method":"elicitation/create","params":{"message":"who?"}}},"requestState":"s"}';

test('a tool that is asked in parts costs what it costs a client of MCP, and leaves the same in the ledger', async () => {
  const server = await startTools({ ok: {}, fails: {}, errs: {}, asks: {}, breaks: {} }, ({ params, idText }) => {
    if (params['name'] === 'fails') return result([{ type: 'text', text: 'no such file' }], { isError: true });
    if (params['name'] === 'asks') return ASKS;
    if (params['name'] === 'ok') return text('done');
    return (response) => {
      if (params['name'] === 'breaks') return void response.destroy();
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(`{"jsonrpc":"2.0","id":${idText},"error":{"code":-32000,"message":"out of order"}}`);
    };
  });
  const world = await startBridgeWorld({ tools: { files: { url: server.url } } });
  const { say, charged } = world;

  expect(await say('files/ok', '{}')).toMatchObject({ end: { finish: 'stop' }, charged: 1_000n });
  expect(await charged()).toBe(1_000n);

  // What failed by its own words is free, and says why.
  expect(await say('files/fails', '{}')).toMatchObject({
    parts: [],
    end: { finish: 'failed', error: 'no such file' },
    charged: 0n,
  });
  expect(await say('files/errs', '{}')).toMatchObject({
    parts: [],
    end: { finish: 'failed', error: 'out of order' },
    charged: 0n,
  });
  // Nobody can answer it here: no lock waits for a round that does not come.
  expect(await say('files/asks', '{}')).toMatchObject({
    end: { finish: 'failed', error: expect.stringContaining('/mcp/files') },
    charged: 0n,
  });
  await expect(say('files/breaks', '{}')).rejects.toMatchObject({ code: 'provider_unavailable' });
  expect(await charged()).toBe(1_000n);
  expect(await world.faults()).toEqual([]);
  expect(world.endings).toEqual([
    'tool files: complete',
    'tool files: isError',
    'tool files: error -32000',
    'tool files: input_required',
    'tool files: released',
  ]);

  await expect(say('files/ok', '{}', 'nobody')).rejects.toMatchObject({ code: 'escrow_not_setup' });
  expect(server.asked.filter(({ params }) => params['name'] === 'ok')).toHaveLength(1);
});

test('a key that may not use the service may not use its tools by another door', async () => {
  const server = await startTools({ ok: {} }, () => text('done'));
  const { say } = await startBridgeWorld({
    tools: { files: { url: server.url } },
    allowed: { carol: ['other'], dave: ['files'] },
  });
  await expect(say('files/ok', '{}', 'carol')).rejects.toMatchObject({ code: 'permission_denied' });
  expect(await say('files/ok', '{}', 'dave')).toMatchObject({ charged: 1_000n });
});

test('a server of the legacy revisions is spoken to as well', async () => {
  const server = await startSdkServer();
  const { say, mcp, faults } = await startBridgeWorld({ tools: { old: { url: server.url } } });
  await mcp.toolsOf('old');
  expect(await say('old/echo', 'hello')).toMatchObject({
    parts: [{ kind: 'text', text: 'hello' }],
    end: { finish: 'stop' },
    charged: 1_000n,
  });
  expect(await say('old/fails', '{}')).toMatchObject({ end: { finish: 'failed', error: 'no' }, charged: 0n });
  expect(await faults()).toEqual([]);
});
