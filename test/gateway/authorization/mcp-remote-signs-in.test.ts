import { mkdtemp, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { toolBlock } from '../../mcp/conformance/tool-block.ts';
import { startMcpFixture, type McpFixture } from '../../support/mcp-fixture.ts';
import { startSpine, type Spine } from '../../support/spine.ts';
import { installStranger } from '../../support/stranger.ts';
import { createPerson } from './support/person.ts';

/* mcp-remote as it is on npm, through which assistants that only know commands connect. It gets no key. */

let fixture: McpFixture;
let spine: Spine;
let home: string;
beforeAll(async () => {
  fixture = await startMcpFixture();
  spine = await startSpine({ mode: 'development', toml: toolBlock('acme/tools', fixture.url) });
  home = await mkdtemp(join(tmpdir(), 'tollgate-mcp-remote-'));
});
afterAll(async () => {
  await spine.stop();
  await fixture.close();
  await rm(home, { recursive: true, force: true });
});

test('it opens the page, gets its tokens, and calls a tool', { timeout: 300_000 }, async () => {
  const program = createRequire(join(installStranger('mcp-remote'), 'package.json')).resolve(
    'mcp-remote/dist/proxy.js',
  );
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [program, `${spine.origin}/mcp`],
    // Without a program that opens a browser, it only writes the address.
    env: { PATH: '', HOME: home },
    stderr: 'pipe',
  });
  const client = new Client({ name: 'test', version: '1' });
  const asked = Promise.withResolvers<string>();
  let told = '';
  transport.stderr!.on('data', (chunk: Buffer) => {
    told += chunk.toString('utf8');
    const url = /http\S+\/oauth\/authorize\?\S+(?=\s)/.exec(told)?.[0];
    if (url !== undefined) asked.resolve(url);
  });
  const connected = client.connect(transport);
  try {
    const person = createPerson(spine.origin, spine.key);
    const answer = await person.allow(await person.open(await asked.promise));
    expect((await fetch(answer)).status).toBe(200);
    await connected;
    const { tools } = await client.listTools();
    const { name } = tools.find((tool) => tool.name.endsWith('test_simple_text'))!;
    expect(await client.callTool({ name, arguments: {} })).toMatchObject({ content: [{ type: 'text' }] });
  } finally {
    await client.close();
  }
  expect(await spine.faults()).toEqual([]);
});
