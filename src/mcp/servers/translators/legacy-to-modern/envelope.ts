import { isObject, type JsonObject, type Member, membersOf, RawJsonError, splice, withMembers } from '#wire';
import { META, MODERN } from '../../../wire/revisions.ts';
import type { LegacySession } from '../../../request/session.ts';
import { withoutTaskMembers, withoutTasks } from '../../../tasks/extension.ts';

/** Members of `_meta`: JSON text by key. */
export type Envelope = Readonly<Record<string, string>>;

/** The capabilities that let a server ask its client. All questions reach the client as events. */
const ASKS = { elicitation: null, sampling: null, roots: null } as const;

/**
 * The envelope of a modern request, made from the client's `initialize`. For a client without an event stream it leaves
 * out these capabilities. The server then works without input, or refuses with its own error.
 */
export function envelopeOf({ initialize, logLevel }: LegacySession, events: boolean): Envelope {
  const message = JSON.parse(initialize) as { readonly params?: unknown };
  const params = isObject(message.params) ? message.params : {};
  const members: ReadonlyMap<string, Member> = isObject(message.params)
    ? membersOf(initialize, membersOf(initialize).get('params')!.start)
    : new Map();
  const written = (key: string) => initialize.slice(members.get(key)!.start, members.get(key)!.end);
  const { capabilities, clientInfo } = params;
  return {
    [META.version]: JSON.stringify(MODERN),
    [META.capabilities]: isObject(capabilities)
      ? modernCapabilities(written('capabilities'), capabilities, events)
      : '{}',
    ...(isImplementation(clientInfo) ? { [META.clientInfo]: written('clientInfo') } : {}),
    ...(logLevel === null ? {} : { [META.logLevel]: JSON.stringify(logLevel) }),
  };
}

function modernCapabilities(text: string, capabilities: JsonObject, events: boolean): string {
  const { elicitation } = capabilities;
  // In revisions before elicitation had modes, an empty `elicitation` meant forms.
  const forms = isObject(elicitation) && Object.keys(elicitation).length === 0 ? { elicitation: '{"form":{}}' } : {};
  const change = events ? forms : ASKS;
  const changed = (written: string) =>
    splice(written, [withMembers(written, { start: 0, end: written.length }, change)]);
  try {
    return changed(withoutTasks(text));
  } catch (error) {
    // A key occurs twice. Then the parsed value counts, which the gateway itself uses too.
    if (error instanceof RawJsonError) return changed(JSON.stringify(withoutTaskMembers(capabilities)));
    throw error;
  }
}

function isImplementation(value: unknown): boolean {
  return isObject(value) && typeof value['name'] === 'string' && typeof value['version'] === 'string';
}
