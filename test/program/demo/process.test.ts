import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const PROGRAM = join(import.meta.dirname, '../../../src/program/demo/provider.ts');

it.each(['pipe', 'ipc'] as const)('as a program it prints its addresses and ends with its owner (%s)', async (link) => {
  const child = spawn(process.execPath, [PROGRAM], {
    stdio: link === 'pipe' ? ['pipe', 'pipe', 'inherit'] : ['ignore', 'pipe', 'inherit', 'ipc'],
  });
  const [line] = (await once(child.stdout!, 'data')) as [Buffer];
  const { url, toolsUrl, agentUrl } = JSON.parse(line.toString()) as Record<string, string> & {
    url: string;
    toolsUrl: string;
  };
  expect(await (await fetch(url.replace('/v1', '/health'))).json()).toEqual({ status: 'ok' });
  const models = (await (await fetch(`${url}/models`)).json()) as { data: { id: string }[] };
  expect(models.data.map((model) => model.id)).toEqual([
    'demo/echo',
    'demo/chat',
    'demo/embedding',
    'demo/speech',
    'demo/transcription',
  ]);
  const listed = await fetch(toolsUrl, { method: 'POST', body: '{"jsonrpc":"2.0","id":1,"method":"tools/list"}' });
  expect(await listed.json()).toMatchObject({
    result: { tools: [{ name: 'roll_dice' }, { name: 'tell_time' }, { name: 'weigh_words' }] },
  });
  expect(await (await fetch(`${agentUrl}/.well-known/agent-card.json`)).json()).toMatchObject({
    name: 'Demo: Agent',
    url: agentUrl,
  });
  const gone = once(child, 'exit');
  if (link === 'pipe') child.stdin!.end();
  else child.disconnect();
  expect(await gone).toEqual([0, null]);
});
