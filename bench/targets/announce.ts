import type { Server } from 'node:http';
import { parseArgs } from 'node:util';

/** `--upstream URL` of a passthrough's command line, beside what else it takes. */
export function upstreamArgument(): string {
  const { upstream } = parseArgs({ options: { upstream: { type: 'string' } }, strict: false }).values;
  if (typeof upstream !== 'string') throw new Error('usage: node <passthrough>.ts --upstream http://127.0.0.1:PORT');
  return upstream;
}

/** Tells the rig that a passthrough listens. It ends with whoever started it, however that one ended. */
export function announce(server: Server): void {
  const address = server.address();
  process.stdout.write(`${JSON.stringify({ port: address && typeof address === 'object' ? address.port : 0 })}\n`);
  process.stdin.resume().once('end', () => process.exit(0));
  // Without an exit of its own, a process leaves no profile.
  process.once('SIGTERM', () => process.exit(0));
}
