import { expect, test } from 'vitest';
import { UNHURRIED } from '../../support/spine.ts';
import { DONE, startTaskServer } from '../tasks/task-server.ts';
import { toolToml } from './modern-post.ts';
import { ofFile, spineOfFile } from '../../support/of-file.ts';

/** How the server writes the id of a request in its response. */
let written = (idText: string) => idText;
const server = ofFile(startTaskServer, (one) => one.close());
const spine = spineOfFile(() => {
  server.instead = ({ method, idText, params }) => {
    const { taskId, task } = (params['arguments'] ?? params) as { readonly taskId?: string; readonly task?: boolean };
    const result =
      method === 'tools/call'
        ? task === true
          ? { resultType: 'task', taskId: `task-${server.asked.length}`, status: 'working', ttlMs: 60_000 }
          : { resultType: 'complete', content: [] }
        : { resultType: 'complete', ...(method === 'tasks/get' ? { taskId, ttlMs: 60_000, ...DONE } : {}) };
    const body = `{"result":${JSON.stringify(result)},"id":${written(idText)},"jsonrpc":"2.0"}`;
    return (response) => void response.writeHead(200, { 'content-type': 'application/json' }).end(body);
  };
  return { toml: UNHURRIED + toolToml({ name: 'far', url: server.url }) };
});

/** The text of the answer to a modern request whose id is written as `idText`. */
async function post(idText: string, method: string, params: object, name: string): Promise<string> {
  const meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': { extensions: { 'io.modelcontextprotocol/tasks': {} } },
  };
  const reply = await fetch(`${spine.origin}/mcp/far`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': method,
      'mcp-name': name,
      authorization: `Bearer ${spine.key}`,
    },
    body: `{"jsonrpc":"2.0","id":${idText},"method":"${method}","params":${JSON.stringify({ ...params, _meta: meta })}}`,
  });
  return reply.text();
}

const rounded = (idText: string) => (idText.startsWith('"') ? idText : String(Number(idText)));
const asString = (idText: string) => (idText.startsWith('"') ? idText : `"${idText}"`);

test.each([
  ['9007199254740993', 'rounds it', rounded],
  ['-9223372036854775807', 'rounds it', rounded],
  ['9007199254740993', 'writes it as a string', asString],
  ['17', 'writes it as a string', asString],
  ['1.0', 'writes it shorter', rounded],
])(
  'the id %s comes back as it was sent, if the server %s: of calls, and of requests about tasks',
  async (id, _how, how) => {
    written = how;
    const own = `"id":${id},`;
    expect(await post(id, 'tools/call', { name: 'job', arguments: {} }, 'job')).toContain(own);
    const begun = await post(id, 'tools/call', { name: 'job', arguments: { task: true } }, 'job');
    expect(begun).toContain(own);
    const { taskId } = (JSON.parse(begun) as { readonly result: { readonly taskId: string } }).result;
    expect(await post(id, 'tasks/update', { taskId, inputResponses: {} }, taskId)).toContain(own);
    const got = await post(id, 'tasks/get', { taskId }, taskId);
    expect(got).toContain(own);
    expect(got).toContain('"done"');
    expect(await spine.faults()).toEqual([]);
  },
);
