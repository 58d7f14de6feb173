import type { Server } from 'node:http';
import { parseArgs } from 'node:util';

/** Reads `--upstream URL` from a passthrough's command line. Other arguments are allowed. */
export function upstreamArgument(): string {
  const { upstream } = parseArgs({ options: { upstream: { type: 'string' } }, strict: false }).values;
  if (typeof upstream !== 'string') throw new Error('usage: node <passthrough>.ts --upstream http://127.0.0.1:PORT');
  return upstream;
}

/** Reports that a passthrough listens. The process ends with its parent, however the parent ends. */
export function announce(server: Server): void {
  const address = server.address();
  process.stdout.write(`${JSON.stringify({ port: address && typeof address === 'object' ? address.port : 0 })}\n`);
  process.stdin.resume().once('end', () => process.exit(0));
  // An explicit exit is needed for the profiler to write its file.
  process.once('SIGTERM', () => process.exit(0));
}
