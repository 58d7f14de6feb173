import { type RequestMessage, errorText, resultText } from '#json-rpc';
import { setMember, splice } from '#wire';
import type { Offer } from '#catalog';
import type { TaskOwner } from '#tasks';
import type { FreeRequest } from '../request/free-call.ts';
import type { StoredSession } from '../request/session-store.ts';
import { answerInitialize, type InitializeResult, leaveServer } from '../servers/legacy-server.ts';
import {
  createKeptSessions,
  type KeptSessions,
  type KeptSessionsDeps,
  type KeptUse,
  newSessionId,
} from './kept-sessions.ts';
import {
  createSessionRenewal,
  type RenewSession,
  capabilitiesOf,
  fromState,
  SESSION_KIND,
  toState,
  type SessionState,
} from './legacy-session.ts';
import type { LegacySession, ServerPlace, McpResponse } from '../request/mcp-request.ts';
import { allWithin } from '../request/waiting.ts';
import { readOwnRequest } from '../wire/own-messages.ts';
import { agreedRevision, ERROR, isLegacyRevision } from '../wire/revisions.ts';

export interface Sessions extends Pick<KeptSessions<LegacySession>, 'sweep' | 'count' | 'close'> {
  /**
   * Answers an `initialize` message, and opens the session if it is accepted. Runs inside the attempt of a free
   * call. Throws UpstreamFailure.
   */
  open(
    opening: Opening,
    place: Pick<ServerPlace, 'offer' | 'facts' | 'send'>,
  ): Promise<InitializeOutcome<LegacySession>>;
  /** Takes a session for one request or stream. Null if this owner has no such session with this service. */
  enter(id: string, owner: TaskOwner, service: string): Promise<SessionUse | null>;
  readonly renew: RenewSession;
  /** Whether a session has ended, at this gateway or another. False if the store cannot be read. */
  hasEnded(session: LegacySession): Promise<boolean>;
  /**
   * Ends a session here and at its server; at the server once its running calls are over. False if `enter` would give
   * null.
   */
  end(id: string, owner: TaskOwner, service: string): Promise<boolean>;
}

/** `error`: why the session ended abnormally; null if it ended normally. */
export interface SessionEnd {
  readonly durationMs: number;
  readonly revision: string;
  readonly error: string | null;
}

interface Opening {
  readonly message: RequestMessage;
  readonly owner: TaskOwner;
  readonly service: string;
}

export type SessionUse = KeptUse<LegacySession>;

interface SessionsDeps extends KeptSessionsDeps {
  readonly offerOf: (offerId: string) => Offer | null;
  readonly initializeResult: InitializeResult;
  readonly freeRequest: FreeRequest;
  readonly onEnded?: (end: SessionEnd) => void;
}

/** How long the end of a session waits for its streams to end. Calls may run longer; they end without it. */
const RUNNING_MS = 2_000;
/** The most time for telling servers about sessions that ended together. */
const LEAVING_MS = 30_000;
const AT_ONCE = 16;

/**
 * An `initialize` that asks for a revision that the gateway serves: the newest, if the client asks for another one.
 * Some servers agree to any, and then the client would name in its header what the gateway refuses.
 */
function inServedRevision(message: RequestMessage): RequestMessage {
  const { text, params, members } = message;
  const revision = params?.['protocolVersion'];
  if (params === undefined || isLegacyRevision(revision)) return message;
  const served = JSON.stringify(agreedRevision(revision));
  return readOwnRequest(splice(text, [setMember(text, members.get('params')!.start, 'protocolVersion', served)]));
}

export function createSessions(deps: SessionsDeps): Sessions {
  const { store, offerOf, freeRequest, now, onEnded, onError } = deps;

  const reportEnd = ({ revision, openedAt }: Pick<LegacySession, 'revision' | 'openedAt'>, error: string | null) =>
    onEnded?.({ durationMs: now() - openedAt, revision, error });

  /**
   * Tells servers that sessions have ended. Never rejects. Tells no further servers after LEAVING_MS, because sessions
   * expire at their servers too.
   */
  async function leaveServers(sessions: readonly (() => LegacySession | null)[]): Promise<void> {
    const until = performance.now() + LEAVING_MS;
    const waiting = sessions[Symbol.iterator]();
    const leaveNext = async () => {
      for (const read of waiting) {
        if (performance.now() > until) return;
        const session = read();
        if (session === null || session.upstreamId === null) continue;
        try {
          await freeRequest(session, 'session/end', (send) => leaveServer(send, session));
        } catch {
          // The provider is unreachable or broken.
        }
      }
    };
    await Promise.all(Array.from({ length: Math.min(AT_ONCE, sessions.length) }, leaveNext));
  }
  const leaveServersOf = (rows: readonly StoredSession[]) =>
    leaveServers(rows.map((row) => () => fromState(row, offerOf)));

  const sessions = createKeptSessions<LegacySession>({
    ...deps,
    kind: SESSION_KIND,
    toState,
    fromState: (row) => fromState(row, offerOf),
    changeable: ({ upstreamId, logLevel }) => JSON.stringify([upstreamId, logLevel]),
    onEvicted: (row) => void leaveServersOf([row]),
    async onSwept(rows) {
      for (const { state } of rows) reportEnd(JSON.parse(state) as SessionState, 'expired');
      await leaveServersOf(rows);
    },
  });
  const renew = createSessionRenewal({ store, offerOf, onGone: ({ id }) => sessions.drop(id), onError });

  /** Accepts a session with this service whose offer still exists. Takes over the offer as last registered. */
  const fits = (service: string) => (session: LegacySession) => {
    if (session.service !== service) return false;
    const offer = offerOf(session.offer.id);
    if (offer !== null) session.offer = offer;
    return offer !== null;
  };

  return {
    ...sessions,
    async open({ message: sentMessage, owner, service }, place) {
      const message = inServedRevision(sentMessage);
      const tooLong = refuseTooLong(message);
      if (tooLong) return tooLong;
      const outcome = await sessions.open<InitializeOutcome<LegacySession>>(owner, async (keep) => {
        const { accepted, response } = await answerInitialize(message, place, deps.initializeResult);
        if (accepted === null) return { session: null, response };
        const session: LegacySession = {
          id: newSessionId(),
          account: owner.account,
          within: owner.within,
          service,
          offer: place.offer,
          era: place.facts.era,
          openedAt: now(),
          revision: accepted.revision,
          initialize: message.text,
          clientCapabilities: capabilitiesOf(message.text),
          upstreamId: accepted.upstreamId,
          logLevel: null,
        };
        try {
          await keep(session);
        } catch (error) {
          await leaveServer(place.send, session).catch(() => {});
          throw error;
        }
        return { session, response };
      });
      return outcome ?? refuseTooMany(message, deps.config.sessionsMax);
    },
    enter: (id, owner, service) => sessions.enter(id, owner, fits(service)),
    renew,
    hasEnded: async ({ id: ofSession }) => (await store.get(ofSession).catch(() => undefined)) === null,
    async end(id, owner, service) {
      const ended = await sessions.end(id, owner, fits(service));
      if (ended === null) return false;
      const { session, unused } = ended;
      reportEnd(session, null);
      const leave = () => leaveServers([() => session]);
      // The server would break off the calls that still run, as if it had failed.
      await (unused === null ? leave() : allWithin(RUNNING_MS, [unused.then(leave)]));
      return true;
    },
  };
}

export interface InitializeOutcome<S = { readonly id: string }> {
  /** null if `initialize` was refused. */
  readonly session: S | null;
  readonly response: McpResponse;
}

const INITIALIZE_CHARS_MAX = 64 * 1024;

/** Refuses an `initialize` that is too long to be stored; null for others. */
export function refuseTooLong({ idText, text }: RequestMessage): InitializeOutcome<never> | null {
  if (text.length <= INITIALIZE_CHARS_MAX) return null;
  const message = `initialize is longer than ${INITIALIZE_CHARS_MAX} characters`;
  return refused(idText, 400, ERROR.invalidRequest, message);
}

/** Refuses a session because the account may not open another. */
export const refuseTooMany = ({ idText }: RequestMessage, max: number): InitializeOutcome<never> =>
  refused(
    idText,
    429,
    ERROR.server,
    `This account has ${max} sessions, and all of them are in use. End one with DELETE first`,
  );

/** A session for which the gateway itself answers, with `result` (JSON text). */
export const openedWith = <S>(session: S, { idText }: RequestMessage, result: string): InitializeOutcome<S> => ({
  session,
  response: { text: resultText(idText, result), status: 200 },
});

const refused = (idText: string, status: number, code: number, message: string): InitializeOutcome<never> => ({
  session: null,
  response: { status, text: errorText(idText, { code, message }) },
});
