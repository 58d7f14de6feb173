/** The mock MCP server's replies to requests of the modern revision. They are prepared, except the request's id. */
export const TOOLS = {
  /** One JSON result with a paragraph of text. */
  small: 'bench-tool',
  /** One JSON result with 16 KiB of text, like a downloaded page. */
  large: 'bench-tool-large',
} as const;

export const MCP_PATH = '/mcp';
export const REVISION = '2026-07-28';

const LINE = 'A tool acts once, so its call is sent once; what it cost is told beside its result, "to the cent".\n';
const LARGE_BYTES = 16 * 1024;

const contentOf = (text: string) => ({ resultType: 'complete', content: [{ type: 'text', text }], isError: false });

const TOOL_RESULTS = new Map<string, string>([
  [TOOLS.small, JSON.stringify(contentOf(LINE.repeat(3)))],
  [TOOLS.large, JSON.stringify(contentOf(LINE.repeat(Math.ceil(LARGE_BYTES / LINE.length)).slice(0, LARGE_BYTES)))],
]);

const DISCOVERED = JSON.stringify({
  resultType: 'complete',
  supportedVersions: [REVISION],
  capabilities: { tools: {} },
  serverInfo: { name: 'mock', version: '1' },
  ttlMs: 0,
  cacheScope: 'public',
});

const LISTED = JSON.stringify({
  resultType: 'complete',
  tools: Object.values(TOOLS).map((name) => ({
    name,
    inputSchema: { type: 'object', properties: { topic: { type: 'string' } } },
  })),
  ttlMs: 0,
  cacheScope: 'public',
});

/** Returns the whole HTTP reply to a whole HTTP request. */
export function mcpReply(request: string): string {
  const result = /"method":"server\/discover"/.test(request)
    ? DISCOVERED
    : /"method":"tools\/list"/.test(request)
      ? LISTED
      : TOOL_RESULTS.get(/"name":"(bench-tool[a-z-]*)"/.exec(request)?.[1] ?? '');
  const id = /"id":("[^"]*"|\d+)/.exec(request)?.[1] ?? 'null';
  const body =
    result === undefined
      ? `{"jsonrpc":"2.0","id":${id},"error":{"code":-32601,"message":"There is no such method or tool here"}}`
      : `{"jsonrpc":"2.0","id":${id},"result":${result}}`;
  return `HTTP/1.1 ${result === undefined ? '404 Not Found' : '200 OK'}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
}
