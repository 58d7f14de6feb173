import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { localhostHostValidation, localhostOriginValidation, toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, isLegacyRequest, McpServer } from '@modelcontextprotocol/server';
import { addAskingTools, states } from './mcp-fixture/asking-tools.ts';
import { createLegacySessions } from './mcp-fixture/legacy-sessions.ts';
import { addCompletions, addPrompts, addResources } from './mcp-fixture/resources-and-prompts.ts';
import { createFixtureTasks, TASKS_EXTENSION, type FixtureTasks } from './mcp-fixture/task-tools.ts';
import { addWorkingTools, type Announcer } from './mcp-fixture/working-tools.ts';

/** An MCP server that has everything the official conformance suite asks for. */
export interface McpFixture {
  /** `http://127.0.0.1:<port>/mcp`. */
  readonly url: string;
  /** Legacy sessions that are open. */
  readonly sessions: number;
  /** The headers of every request that came, oldest first; the last 1,000. */
  readonly headers: readonly Headers[];
  close(): Promise<void>;
}

export interface McpFixtureOptions {
  readonly port?: number;
  /** `modern` speaks 2026-07-28 and no other, `legacy` everything before it, `both` (the default) both at one URL. */
  readonly eras?: 'both' | 'modern' | 'legacy';
  /** Tools that ask their client do it by requests in the middle of the call, which a modern client does not take. */
  readonly pushing?: boolean;
}

export async function startMcpFixture({
  port = 0,
  eras = 'both',
  pushing = false,
}: McpFixtureOptions = {}): Promise<McpFixture> {
  const headers: Headers[] = [];
  const announce: Announcer = {
    toolsChanged: () => eachEra((era) => era.toolsChanged()),
    promptsChanged: () => eachEra((era) => era.promptsChanged()),
    resourcesChanged: () => eachEra((era) => era.resourcesChanged()),
    resourceUpdated: (uri) => eachEra((era) => era.resourceUpdated(uri)),
  };
  const tasks = createFixtureTasks();
  const modern = createMcpHandler(() => createFixtureServer(announce, pushing, tasks), { legacy: 'reject' });
  const legacy = createLegacySessions(() => createFixtureServer(announce, pushing));
  const eachEra = (run: (era: Announcer) => void) => [modern.notify, legacy.announce].forEach(run);

  const answer = async (request: Request): Promise<Response> => {
    headers.push(request.headers);
    if (headers.length > 1_000) headers.shift();
    if (new URL(request.url).pathname !== '/mcp') return new Response(null, { status: 404 });
    return eras === 'legacy' || (eras === 'both' && (await isLegacyRequest(request)))
      ? legacy.handle(request)
      : ((await tasks.answer(request)) ?? modern.fetch(request));
  };
  const handle = toNodeHandler({ fetch: answer });
  const hostIsLocal = localhostHostValidation();
  const originIsLocal = localhostOriginValidation();
  const server = createServer((request, response) => {
    if (hostIsLocal(request, response) && originIsLocal(request, response))
      void handle(request as Parameters<typeof handle>[0], response);
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    get sessions() {
      return legacy.count;
    },
    headers,
    async close() {
      await modern.close();
      await legacy.close();
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

/** One server of the SDK with all of the fixture; modern requests get one each, legacy sessions one each. */
function createFixtureServer(announce: Announcer, pushing: boolean, tasks: FixtureTasks | null = null): McpServer {
  const server = new McpServer(
    { name: 'tollgate-mcp-fixture', version: '1.0.0' },
    {
      capabilities: {
        tools: { listChanged: true },
        resources: { subscribe: true, listChanged: true },
        prompts: { listChanged: true },
        completions: {},
        logging: {},
        ...(tasks ? { extensions: { [TASKS_EXTENSION]: {} } } : {}),
      },
      requestState: { verify: states.verify },
    },
  );
  addWorkingTools(server, announce);
  addAskingTools(server, pushing);
  tasks?.addTo(server);
  addResources(server);
  addPrompts(server);
  addCompletions(server);
  return server;
}
