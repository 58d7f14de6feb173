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

/** An MCP server with everything that the official conformance suite needs. */
export interface McpFixture {
  /** `http://127.0.0.1:<port>/mcp`. */
  readonly url: string;
  /** Number of open legacy sessions. */
  readonly sessions: number;
  /** The headers of the last 1,000 requests, oldest first. */
  readonly headers: readonly Headers[];
  close(): Promise<void>;
}

export interface McpFixtureOptions {
  readonly port?: number;
  /** `modern` speaks only 2026-07-28, `legacy` all earlier revisions, `both` (the default) all of them at one URL. */
  readonly eras?: 'both' | 'modern' | 'legacy';
  /** Tools that ask their client send requests during the call. A modern client doesn't accept these. */
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

/** One SDK server with all features of the fixture. Each modern request and each legacy session gets its own one. */
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
