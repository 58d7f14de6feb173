import { parseMessage } from '#wire';
import { type Caller, needsCredential } from '#gateway';

/** Requests that need no credential: to look around, and to pay for a call. */
const ALLOWED: ReadonlySet<string> = new Set([
  'initialize',
  'ping',
  'server/discover',
  'tools/list',
  'tools/call',
  'prompts/list',
  'resources/list',
  'resources/templates/list',
]);

/**
 * Refuses messages (JSON text) that need a credential to a caller without one. Throws GatewayError `unauthorized`.
 */
export function refuseAnonymous({ anonymous }: Pick<Caller, 'anonymous'>, texts: readonly string[]): void {
  if (!anonymous) return;
  for (const text of texts) {
    const message = parseMessage(text);
    if (message?.kind === 'request' && !ALLOWED.has(message.method)) throw needsCredential();
  }
}
