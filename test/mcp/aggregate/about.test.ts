import { DiscoverResultSchema, InitializeResultSchema } from '@modelcontextprotocol/core';
import { expect, test } from 'vitest';
import { startAggregate } from './aggregate-world.ts';

test('the aggregate says what it is and how it is used, in both eras', async () => {
  const { aggregate } = await startAggregate({});
  const discovered = JSON.parse(aggregate.discoverResult()) as { instructions: string };
  expect(DiscoverResultSchema.safeParse(discovered).error).toBeUndefined();
  expect(discovered).toMatchObject({
    resultType: 'complete',
    supportedVersions: ['2026-07-28'],
    capabilities: {
      tools: { listChanged: true },
      prompts: { listChanged: true },
      resources: { listChanged: true },
      completions: {},
    },
    _meta: { 'io.modelcontextprotocol/serverInfo': { name: 'tollgate', version: '1.2.3' } },
  });
  for (const word of ['__', 'tollgate/price', 'find_tools', 'call_tool'])
    expect(discovered.instructions).toContain(word);

  const initialized: unknown = JSON.parse(aggregate.initializeResult('2025-06-18'));
  expect(InitializeResultSchema.safeParse(initialized).error).toBeUndefined();
  expect(initialized).toMatchObject({
    protocolVersion: '2025-06-18',
    serverInfo: { name: 'tollgate', version: '1.2.3' },
  });
});
