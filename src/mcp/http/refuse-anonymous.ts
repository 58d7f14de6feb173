import { parseMessage } from '#wire';
import { type Caller, needsCredential } from '#gateway';

/** Requests that need no credential: they look around, or carry a payment. */
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
 * Refuses messages (JSON text) of a caller without a credential, if one of them needs a credential. Throws GatewayError
 * `unauthorized`.
 */
export function refuseAnonymous({ anonymous }: Pick<Caller, 'anonymous'>, texts: readonly string[]): void {
  if (!anonymous) return;
  for (const text of texts) {
    const message = parseMessage(text);
    if (message?.kind === 'request' && !ALLOWED.has(message.method)) throw needsCredential();
  }
}
