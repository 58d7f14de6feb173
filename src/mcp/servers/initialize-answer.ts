import { type RequestMessage, resultText, setMember, splice } from '#wire';
import { initializeAt } from './legacy-server.ts';
import { isLegacyRevision } from '../wire/revisions.ts';
import { withoutTasksIn } from '../tasks/extension.ts';
import type { McpTail, Place, ServerFacts } from '../turn/turn.ts';

/** The result of `initialize` for a client of `requested` in front of a modern server, as JSON text. */
export type InitializeResult = (facts: ServerFacts, requested: string | null) => string;

interface InitializeAnswer {
  readonly tail: McpTail;
  /** null where the server refused. */
  readonly accepted: { readonly revision: string; readonly upstreamId: string | null } | null;
}

/** The answer to `initialize`: a legacy server's own, else one made of the server's facts. Throws UpstreamFailure. */
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

/** A server without a handshake speaks the client's revision as well as any other. */
function bareResult({ text }: ServerFacts, requested: string | null): string {
  if (requested === null || !isLegacyRevision(requested)) return text;
  return splice(text, [setMember(text, 0, 'protocolVersion', JSON.stringify(requested))]);
}
