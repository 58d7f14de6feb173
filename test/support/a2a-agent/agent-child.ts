import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import type { AgentOptions, EndState } from './agent.ts';
import { startAgent } from './start-agent.ts';

// A process with one agent. It prints its two addresses on one line. The second address accepts orders, see
// `agent-process.ts`.
const agent = await startAgent(JSON.parse(process.argv[2] ?? '{}') as AgentOptions);
const orders = createServer((request, response) => {
  const asked = new URL(request.url ?? '/', 'http://orders');
  const run = async () => {
    if (asked.pathname === '/waits') return agent.waits();
    agent.finish(asked.searchParams.get('task') ?? '', (asked.searchParams.get('state') ?? 'completed') as EndState);
    return '';
  };
  run().then(
    (text) => response.end(text),
    (error: unknown) => response.writeHead(500).end(String(error)),
  );
});
orders.listen(0, '127.0.0.1');
await once(orders, 'listening');
process.stdout.write(
  `agent at ${agent.url} orders at http://127.0.0.1:${(orders.address() as AddressInfo).port} end\n`,
);
