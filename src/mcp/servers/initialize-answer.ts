import { type RequestMessage, resultText, setMember, splice } from '#wire';
import { initializeAt } from './legacy-server.ts';
import { isLegacyRevision } from '../wire/revisions.ts';
import { withoutTasksIn } from '../tasks/extension.ts';
import type { McpTail, Place, ServerFacts } from '../request/mcp-request.ts';

/**
 * The result of `initialize` (JSON text) for a client that asks for the revision `requested`, in front of a modern
 * server.
 */
export type InitializeResult = (facts: ServerFacts, requested: string | null) => string;

interface InitializeAnswer {
  readonly tail: McpTail;
  /** null if the server refused. */
  readonly accepted: { readonly revision: string; readonly upstreamId: string | null } | null;
}

/**
 * The answer to `initialize`. A legacy server gives its own; else it is made from the server's facts. Throws
 * UpstreamFailure.
 */
export async function answerInitialize(
  { idText, text, params }: RequestMessage,
  { facts, send }: Pick<Place, 'facts' | 'send'>,
  initializeResult: InitializeResult,
): Promise<InitializeAnswer> {
  const asked = params?.['protocolVersion'];
  const requested = typeof asked === 'string' ? asked : null;
  if (facts.era === 'legacy' && !facts.bare) {
    const { response, status, accepted } = await initializeAt(send, text);
    return {
      tail: { status, text: accepted === null ? response.text : withoutTasksIn(response.text, 'result') },
      accepted,
    };
  }
  const result = facts.bare ? bareResult(facts, requested) : initializeResult(facts, requested);
  const { protocolVersion } = JSON.parse(result) as { readonly protocolVersion: string };
  return {
    tail: { status: 200, text: resultText(idText, result) },
    accepted: { revision: protocolVersion, upstreamId: null },
  };
}

/** A server without a handshake has no revision, so the client gets the one that it asked for. */
function bareResult({ text }: ServerFacts, requested: string | null): string {
  if (requested === null || !isLegacyRevision(requested)) return text;
  return splice(text, [setMember(text, 0, 'protocolVersion', JSON.stringify(requested))]);
}
