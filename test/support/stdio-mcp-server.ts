import { spawn } from 'node:child_process';
import { appendFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

/*
 * An MCP server on stdin and stdout that misbehaves on request. argv: options as `name=value`.
 *   journal=FILE   appends its pid and every received line to the file
 *   start=fail     exits at once, with code 7
 *   start=garbage  first writes lines that aren't JSON-RPC
 *   start=modern   doesn't know `initialize`
 *   start=strict   exits if its first message isn't `initialize`
 *   start=slow     answers only the proxy's own `initialize`
 *   stop=careless  exits when its stdin closes, but leaves its child process running
 *   stop=stubborn  exits neither when its stdin closes nor on SIGTERM, and neither does its child process
 * Tools by name: echo (returns its arguments), env (its environment), slow (progress twice, then like echo; with
 * hold=true no response), crash (exits), noise (writes to stderr), huge (writes a line of 5 MB, then the response),
 * large (a response of 5 MB, with its members in the order of `arguments.order`),
 * never (no answer), count (how often it was called in this process), line (writes the text of `arguments.line` as a
 * line, with 5 MB in place of `<large>`), ask (sends a request and a ping to the client, then the response), elicit
 * (sends a request to the client and returns the client's answer).
 */
const options = Object.fromEntries(process.argv.slice(2).map((each) => each.split('=', 2) as [string, string]));
const journal = (text: string) => {
  if (options['journal']) appendFileSync(options['journal'], `${text}\n`);
};
const write = (message: object) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);

journal(`pid ${process.pid}`);
if (options['start'] === 'fail') process.exit(7);
if (options['start'] === 'garbage') process.stdout.write('Listening on stdio!\n[1,2]\n{"neither":1}\n\n');
if (options['stop'] === 'stubborn') {
  process.on('SIGTERM', () => journal('SIGTERM'));
  setInterval(() => {}, 1_000);
}
if (options['stop']) {
  const child = spawn(process.execPath, ['-e', "process.on('SIGTERM', () => {}); setInterval(() => {}, 1000)"], {
    stdio: 'ignore',
  });
  journal(`child ${child.pid}`);
}

let calls = 0;
let first = true;
/** Requests that wait for the client's answer, by the id of the server's own request. */
const asked = new Map<unknown, (line: string) => void>();

const lines = createInterface({ input: process.stdin });
lines.on('line', (line) => {
  journal(`line ${line}`);
  const message = JSON.parse(line) as {
    id?: number;
    method?: string;
    params?: {
      name?: string;
      arguments?: unknown;
      _meta?: { progressToken?: unknown };
      protocolVersion?: string;
      clientInfo?: { name?: string };
    };
  };
  const { id, method, params } = message;
  if (options['start'] === 'strict' && first && method !== 'initialize') process.exit(3);
  first = false;
  if (method === undefined) asked.get(id)?.(line);
  if (id === undefined || method === undefined) return;
  const reply = (result: object) => write({ id, result });
  switch (method) {
    case 'initialize':
      if (options['start'] === 'modern')
        return void write({ id, error: { code: -32601, message: 'Method not found' } });
      if (params?.protocolVersion === 'refuse')
        return void write({ id, error: { code: -32602, message: 'Unsupported protocol version' } });
      if (options['start'] === 'slow' && params?.clientInfo?.name !== 'tollgate') return;
      return void reply({
        protocolVersion: '2025-06-18',
        capabilities: { tools: {} },
        serverInfo: { name: 'stand-in', version: '1' },
      });
    case 'tools/list':
      return void reply({ tools: ['echo', 'env', 'slow'].map((name) => ({ name, inputSchema: { type: 'object' } })) });
    case 'tools/call':
      return call(id, params ?? {}, line, reply);
    default:
      return void write({ id, error: { code: -32601, message: 'Method not found' } });
  }
});
lines.on('close', () => {
  journal('end of input');
  if (options['stop'] !== 'stubborn') process.exit(0);
});

function call(
  id: number,
  params: { name?: string; arguments?: unknown; _meta?: { progressToken?: unknown } },
  line: string,
  reply: (result: object) => void,
): void {
  const text = (value: unknown) => ({ content: [{ type: 'text', text: JSON.stringify(value) }] });
  switch (params.name) {
    case 'echo':
      return reply(text(params.arguments));
    case 'raw':
      // The text as it was in the line, with unchanged digits.
      return void process.stdout.write(
        `{"jsonrpc":"2.0","id":${id},"result":{"raw":${/"arguments":(\{[^}]*\})/.exec(line)?.[1] ?? 'null'}}}\n`,
      );
    case 'env':
      return reply(text(process.env));
    case 'slow': {
      const progressToken = params._meta?.progressToken;
      write({ method: 'notifications/message', params: { level: 'info', data: 'of no request' } });
      for (const progress of [1, 2])
        write({ method: 'notifications/progress', params: { progressToken, progress, total: 2 } });
      if ((params.arguments as { hold?: boolean } | undefined)?.hold !== true) reply(text(params.arguments));
      return;
    }
    case 'noise':
      process.stderr.write(`a complaint\n${'x'.repeat(10_000)}\n`);
      return reply(text(null));
    case 'huge':
      process.stdout.write(`${'y'.repeat(5_000_000)}\n`);
      return reply(text(null));
    case 'large': {
      const members: Record<string, string> = {
        id: `"id":${JSON.stringify(id)}`,
        result: `"result":{"text":"${'y'.repeat(5_000_000)}"}`,
        version: '"jsonrpc":"2.0"',
      };
      const { order } = params.arguments as { order: string };
      const written = order.split(' ').map((name) => members[name]);
      return void process.stdout.write(`{${written.join(',')}}\n`);
    }
    case 'ask':
      write({ id: 'server-1', method: 'sampling/createMessage', params: {} });
      write({ id: 'server-2', method: 'ping' });
      return reply(text(null));
    case 'count':
      return reply(text(++calls));
    case 'line':
      return void process.stdout.write(
        `${(params.arguments as { line: string }).line.replace('<large>', () => 'y'.repeat(5_000_000))}\n`,
      );
    case 'elicit': {
      const question = `question-${String(id)}`;
      asked.set(question, (answer) => reply(text(answer)));
      return void write({
        id: question,
        method: (params.arguments as { method?: string }).method ?? 'elicitation/create',
        params: { message: 'your name?' },
      });
    }
    case 'crash':
      process.exit(9);
    default:
  }
}
