import { appendFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { PassThrough } from 'node:stream';
import { fromJsonSchema, inputRequired, McpServer } from '@modelcontextprotocol/server';
import { serveStdio, StdioServerTransport } from '@modelcontextprotocol/server/stdio';

/*
 * An MCP server on stdin and stdout, of the revision without sessions, built with the SDK. argv: options as
 * `name=value`.
 *   journal=FILE    appends its pid and every received line to the file
 *   legacy=reject   speaks only that revision. By default it also speaks the older ones
 * Tools: count (how often it was called in this process), progress (twice, then the response), hold (no response until
 * it is cancelled), add (adds a tool, which changes the list), roots (asks for the client's directories).
 */
const options = Object.fromEntries(process.argv.slice(2).map((each) => each.split('=', 2) as [string, string]));
const journal = (text: string) => {
  if (options['journal']) appendFileSync(options['journal'], `${text}\n`);
};
journal(`pid ${process.pid}`);
const input = new PassThrough();
const lines = createInterface({ input: process.stdin });
lines.on('line', (line) => {
  journal(`line ${line}`);
  input.write(`${line}\n`);
});
lines.on('close', () => input.end());

const text = (value: unknown) => ({ content: [{ type: 'text' as const, text: JSON.stringify(value) }] });
const ANYTHING = fromJsonSchema({ type: 'object' });
let calls = 0;

serveStdio(
  () => {
    const server = new McpServer({ name: 'modern', version: '2' }, { capabilities: { tools: { listChanged: true } } });
    server.registerTool('count', { inputSchema: ANYTHING }, () => text(++calls));
    server.registerTool('progress', { inputSchema: ANYTHING }, async (_args, context) => {
      const progressToken = context.mcpReq._meta?.progressToken;
      for (const progress of [1, 2])
        if (progressToken !== undefined)
          await context.mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress } });
      return text('done');
    });
    server.registerTool('hold', { inputSchema: ANYTHING }, async (_args, context) => {
      journal('held');
      await new Promise((resolve) => context.mcpReq.signal.addEventListener('abort', resolve));
      journal('aborted');
      return text('too late');
    });
    server.registerTool('add', { inputSchema: ANYTHING }, () => {
      server.registerTool(`more-${++calls}`, { inputSchema: ANYTHING }, () => text(null));
      return text(calls);
    });
    server.registerTool('roots', { inputSchema: ANYTHING }, () =>
      inputRequired({ inputRequests: { roots: inputRequired.listRoots() } }),
    );
    return server;
  },
  { legacy: options['legacy'] === 'reject' ? 'reject' : 'serve', transport: new StdioServerTransport(input) },
);
