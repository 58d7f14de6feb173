import { errorText, resultText, type RequestMessage } from '#wire';
import { ERROR, levelFault } from '../../../wire/revisions.ts';
import type { LegacySession } from '../../../request/session.ts';
import type { ServerFacts } from '../../../request/mcp-request.ts';
import type { Subscriptions } from './subscriptions.ts';

/** The longest time that the answer to a subscription waits until the server uses the new list. */
const SETTLE_MS = 5_000;

/** Answers a request that the modern revision does not have, as JSON text. Null if the server must be asked. */
export async function answerHere(
  { method, params, idText }: RequestMessage,
  session: LegacySession,
  facts: ServerFacts,
  subscriptions: Subscriptions,
  signal: AbortSignal,
): Promise<string | null> {
  const done = resultText(idText, '{}');
  const refuse = (code: number, message: string) => errorText(idText, { code, message });
  switch (method) {
    case 'ping':
      return done;
    case 'logging/setLevel': {
      const level = params?.['level'];
      const fault = levelFault(level);
      if (fault !== null) return refuse(ERROR.invalidParams, `level ${fault}`);
      session.logLevel = level as string;
      return done;
    }
    case 'resources/subscribe':
    case 'resources/unsubscribe': {
      const { resources } = facts.capabilities as { readonly resources?: { readonly subscribe?: unknown } | null };
      if (resources?.subscribe !== true)
        return refuse(ERROR.methodNotFound, 'The server offers no subscriptions to resources');
      const uri = params?.['uri'];
      if (typeof uri !== 'string') return refuse(ERROR.invalidParams, 'uri must be a string');
      if (method === 'resources/unsubscribe') subscriptions.remove(session, uri);
      else if (!subscriptions.add(session, uri))
        return refuse(ERROR.invalidParams, 'This session subscribes to too many resources');
      await subscriptions.settled(session, AbortSignal.any([signal, AbortSignal.timeout(SETTLE_MS)]));
      return done;
    }
    default:
      return null;
  }
}
