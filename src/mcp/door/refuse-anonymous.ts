import { parseMessage } from '#wire';
import { type Caller, needsCredential } from '#gateway';

/** Requests of those without a credential: to look around, and to pay for a call. */
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
 * Refuses what a caller without a credential may not ask. `texts`: the messages. Throws GatewayError `unauthorized`.
 */
export function refuseAnonymous({ anonymous }: Pick<Caller, 'anonymous'>, texts: readonly string[]): void {
  if (!anonymous) return;
  for (const text of texts) {
    const message = parseMessage(text);
    if (message?.kind === 'request' && !ALLOWED.has(message.method)) throw needsCredential();
  }
}
