import type { Job } from './load/job.ts';
import { passthrough, tollgate, tollgateMissing, type Target, type TargetKind } from './targets.ts';
import { MCP_PATH, REVISION } from './upstream/mcp-replies.ts';
import { installTestPackages } from '../scripts/test-packages.mjs';

/**
 * A `tools/call` of the modern revision as clients send it, with the envelope in `_meta` and the headers that repeat
 * it.
 */
export function callRequest(target: Target, tool: string): string {
  const body = JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: {
      name: tool,
      arguments: {
        topic: 'what a gateway does with a call, from its arrival to the settlement of its cost',
        language: 'en',
        limit: 3,
      },
      _meta: {
        'io.modelcontextprotocol/protocolVersion': REVISION,
        'io.modelcontextprotocol/clientCapabilities': {},
        'io.modelcontextprotocol/clientInfo': { name: 'load', version: '1' },
      },
    },
  });
  const headers = {
    host: '127.0.0.1',
    'content-type': 'application/json',
    'content-length': String(body.length),
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': REVISION,
    'mcp-method': 'tools/call',
    'mcp-name': tool,
    ...target.headers,
  };
  return `POST ${target.path} HTTP/1.1\r\n${Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')}\r\n${body}`;
}

export const mcpJobFor = (target: Target, tool: string, shape: Job['shape']): Job => ({
  port: target.port,
  request: callRequest(target, tool),
  shape,
});

const SERVICE = 'bench-tools';
export const TOOL_PATH = `${MCP_PATH}/${SERVICE}`;

export const toolsText = (upstreamPort: number, perCall: string) => `
[[tools]]
name = "${SERVICE}"
display_name = "Bench"
provider_name = "bench"
endpoint = "http://127.0.0.1:${upstreamPort}${MCP_PATH}"
[tools.pricing]
per_call = ${perCall}
`;

const gateway = (perCall: string) => (port: number, nodeArgs?: readonly string[], main?: string) =>
  tollgate(port, { nodeArgs, main, path: TOOL_PATH, blocks: toolsText(port, perCall) });

const proxy =
  (script: string, args: readonly string[] = []) =>
  (port: number, nodeArgs?: readonly string[]) =>
    passthrough(script, port, { path: MCP_PATH, nodeArgs, args });

export const MCP_REFERENCE = 'mcp-fastify';

/** All targets of the MCP benchmark, in the order of the table. */
export const MCP_TARGETS: readonly TargetKind[] = [
  {
    name: 'mcp-direct',
    title: 'MCP server, called directly',
    start: (port) => Promise.resolve({ port, pid: null, path: MCP_PATH, headers: {}, stop: () => Promise.resolve() }),
  },
  { name: MCP_REFERENCE, title: 'Fastify + undici, bytes through (reference)', start: proxy('targets/mcp-fastify.ts') },
  {
    name: 'mcp-fastify-parse',
    title: 'the same, the body parsed once',
    start: proxy('targets/mcp-fastify.ts', ['--parse']),
  },
  {
    name: 'mcp-sdk',
    title: 'proxy of the official SDK, Server and Client',
    start(port, nodeArgs) {
      installTestPackages(console.error);
      return proxy('targets/mcp-sdk.ts')(port, nodeArgs);
    },
  },
  {
    name: 'mcp-tollgate',
    title: 'tollgate, billed, embedded database',
    missing: tollgateMissing,
    start: gateway('0.001'),
  },
  { name: 'mcp-tollgate-free', title: 'tollgate, the tool priced 0', missing: tollgateMissing, start: gateway('0') },
];
