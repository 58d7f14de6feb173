/**
 * A typical proxy built with the official SDK: a Server for each request, which calls the tool through one Client.
 * `--upstream URL`; prints `{"port":n}`.
 */
import { createServer } from 'node:http';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, Server } from '@modelcontextprotocol/server';
import { MCP_PATH, REVISION } from '../upstream/mcp-replies.ts';
import { announce, upstreamArgument } from './announce.ts';

const ABOUT = { name: 'sdk-proxy', version: '1' };
const client = new Client(ABOUT, { versionNegotiation: { mode: { pin: REVISION } } });
await client.connect(new StreamableHTTPClientTransport(new URL(MCP_PATH, upstreamArgument())));

const handler = createMcpHandler(
  () => {
    // oxlint-disable-next-line typescript/no-deprecated -- a proxy knows no tools to register: this is the advanced use
    const server = new Server(ABOUT, { capabilities: { tools: {} } });
    server.setRequestHandler('tools/list', () => client.listTools());
    server.setRequestHandler('tools/call', ({ params: { name, arguments: args } }) =>
      client.callTool({ name, ...(args ? { arguments: args } : {}) }),
    );
    return server;
  },
  { legacy: 'reject' },
);
const handle = toNodeHandler(handler);
const server = createServer((request, response) => void handle(request as Parameters<typeof handle>[0], response));
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', 4096, () => announce(server));
process.on('SIGTERM', () => process.exit(0));
