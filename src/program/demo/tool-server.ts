import {
  createMcpHandler,
  fromJsonSchema,
  isLegacyRequest,
  McpServer,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server';
import { ArgumentError, createTools, type Surroundings } from './tools.ts';

/** An MCP server over Streamable HTTP. Answers one POST. */
export type ToolServer = (request: Request) => Promise<Response>;

/** The list of tools is the same for everybody and doesn't change while the process lives. */
const CACHED = { ttlMs: 3_600_000, cacheScope: 'public' } as const;

/**
 * Creates the demo's MCP server. It speaks the newest revision and the older ones with `initialize`. It is stateless.
 */
export function createToolServer(around: Surroundings): ToolServer {
  const tools = createTools(around);

  const createServer = () => {
    const server = new McpServer(
      { name: 'demo-tools', title: 'Demo: Tools', version: '1.0.0' },
      {
        capabilities: { tools: { listChanged: false } },
        instructions: 'A few small tools to try calls with: dice, the time, and what a text weighs.',
        cacheHints: { 'server/discover': CACHED, 'tools/list': CACHED },
      },
    );
    for (const { definition, run } of tools) {
      const { name, inputSchema, outputSchema, ...facts } = definition;
      const schemas = {
        inputSchema: fromJsonSchema<Record<string, unknown>>(inputSchema),
        outputSchema: fromJsonSchema(outputSchema),
      };
      server.registerTool(name, { ...facts, ...schemas }, (args) => {
        try {
          const { text, data } = run(args);
          return { content: [{ type: 'text', text }], structuredContent: data };
        } catch (error) {
          if (!(error instanceof ArgumentError)) throw error;
          return { content: [{ type: 'text', text: error.message }], isError: true };
        }
      });
    }
    return server;
  };

  const modern = createMcpHandler(createServer, { legacy: 'reject' });
  return async (request) => {
    if (!(await isLegacyRequest(request))) return modern.fetch(request);
    // The same as the SDK's `legacy: 'stateless'`, but the answer is JSON instead of a stream with one event.
    const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true });
    await createServer().connect(transport);
    return transport.handleRequest(request);
  };
}
