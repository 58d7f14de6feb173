import { GatewayError } from '#errors';
import type { ClientRequests } from '../../request/client-requests.ts';
import type { Recording } from '../../call/replays.ts';
import { NO_SESSION, type McpResponse } from '../../request/mcp-request.ts';
import type { SessionMessages } from '../../http/session-messages.ts';
import type { Sessions, SessionUse } from '../../sessions/sessions.ts';
import type { RequestContext } from '../../call/stateless.ts';
import { allWithin } from '../../request/waiting.ts';
import { readOwnRequest, requestText } from '../../wire/own-messages.ts';
import type { AggregateSession, AggregateSessions } from './sessions.ts';

/** The parts of aggregate sessions. A part is a session with one service. */
export interface Parts {
  /**
   * Takes the part for a service for one request, and opens it if it is not open. The caller must call `leave` at the
   * end. Resolves to a refusal if the part cannot be opened. Rejects with GatewayError if the provider cannot be
   * reached.
   */
  use(all: AggregateSession, service: string, context: RequestContext): Promise<SessionUse | McpResponse>;
  /** Takes the part for a service if it is open; else null. */
  known(all: AggregateSession, service: string): Promise<SessionUse | null>;
  /**
   * Stores the level for later parts, and sends it to the open parts of `services`, which is called after storing.
   * Resolves when the parts have the level, or after some seconds.
   */
  setLevel(
    all: AggregateSession,
    level: string,
    services: () => readonly string[],
    context: RequestContext,
  ): Promise<void>;
  /** Ends all parts of a session that has ended. Never rejects. */
  end(all: AggregateSession): Promise<void>;
}

interface PartsDeps {
  readonly sessions: Pick<Sessions, 'enter' | 'end'>;
  readonly change: AggregateSessions['change'];
  readonly messages: Pick<SessionMessages, 'open' | 'request'>;
  readonly clientRequests: Pick<ClientRequests, 'end'>;
  /** Most services of one session that have parts. */
  readonly max: number;
  /** Called with a new part. Resolves when the gateway listens to its server. Never rejects. */
  readonly onOpened: (all: AggregateSession, service: string) => Promise<void>;
  readonly onError: (error: unknown) => void;
}

/**
 * Whoever uses the session with all services uses its parts, whichever caller opened them. Clients do not learn the ids
 * of parts.
 */
const ownerOfParts = ({ account }: AggregateSession) => ({ account, within: null });

const ALL_MS = 5_000;
const TRIES = 3;

export function createParts({ sessions, change, messages, clientRequests, max, onOpened, onError }: PartsDeps): Parts {
  /** The openings that run, by service. All requests that wait for a part share one opening. */
  const opening = new WeakMap<AggregateSession, Map<string, Promise<McpResponse | null>>>();

  async function known(all: AggregateSession, service: string): Promise<SessionUse | null> {
    const id = all.parts.get(service);
    return id === undefined ? null : sessions.enter(id, ownerOfParts(all), service);
  }

  function openSession(all: AggregateSession, service: string, context: RequestContext): Promise<McpResponse | null> {
    let openings = opening.get(all);
    if (!openings) opening.set(all, (openings = new Map<string, Promise<McpResponse | null>>()));
    let one = openings.get(service);
    // The opening does not depend on this client's connection, because others may wait for it too.
    if (!one)
      openings.set(
        service,
        (one = open(all, service, { ...context, gone: new AbortController().signal }).finally(() =>
          openings.delete(service),
        )),
      );
    return one;
  }

  /** Opens a part. Null if it may be open now; else the refusal. */
  async function open(all: AggregateSession, service: string, context: RequestContext): Promise<McpResponse | null> {
    const before = all.parts.get(service);
    if (!(await change(all))) return NO_SESSION;
    // Another gateway opened the part first.
    if (all.parts.get(service) !== before) return null;
    const answer = await messages.open(service, readOwnRequest(all.initialize), context, true);
    if (answer === null) throw new GatewayError('provider_unavailable', `${service} did not answer initialize`);
    if (answer.session === null) return answer.response;
    const { id } = answer.session;
    const lasts = await change(all, () => {
      all.parts.delete(service);
      // The oldest part has most likely ended long ago. If not, its session will expire.
      for (const oldest of all.parts.keys()) if (all.parts.size >= max) all.parts.delete(oldest);
      all.parts.set(service, id);
    });
    if (!lasts) {
      await sessions.end(id, ownerOfParts(all), service);
      return NO_SESSION;
    }
    await Promise.all([
      onOpened(all, service),
      all.logLevel === null ? null : setLevelOf(all, service, all.logLevel, context),
    ]);
    return null;
  }

  async function setLevelOf(
    all: AggregateSession,
    service: string,
    level: string,
    context: RequestContext,
  ): Promise<void> {
    const part = await known(all, service);
    try {
      const request = readOwnRequest(requestText('tollgate:level', 'logging/setLevel', { level }));
      const how = { context, events: false, answer: NOBODY, toClient: (text: string) => text };
      if (part) await messages.request(part.session, request, { ...how, ended: part.ended });
    } finally {
      part?.leave();
    }
  }

  return {
    known,
    async use(all, service, context) {
      for (let tries = 0; tries < TRIES; tries++) {
        const part = await known(all, service);
        if (part) return part;
        const refusal = await openSession(all, service, context);
        if (refusal) return refusal;
      }
      throw new GatewayError('provider_unavailable', `The session with ${service} ended as soon as it was opened`);
    },
    async setLevel(all, level, services, context) {
      const lasts = await change(all, () => {
        all.logLevel = level;
      });
      if (lasts) await ofAll(services(), (service) => setLevelOf(all, service, level, context), onError);
    },
    async end(all) {
      const ends = [...all.parts].map(async ([service, id]) => {
        clientRequests.end(id);
        await sessions.end(id, ownerOfParts(all), service);
      });
      for (const { status, reason } of (await Promise.allSettled(ends)) as PromiseRejectedResult[])
        if (status === 'rejected') onError(reason);
    },
  };
}

export async function ofAll(
  services: readonly string[],
  run: (service: string) => Promise<unknown>,
  onError: (error: unknown) => void,
): Promise<void> {
  const all = services.map((service) =>
    run(service).catch((error: unknown) => {
      // Not reported: a provider that is unreachable now opens a new session when it is back.
      if (!(error instanceof GatewayError)) onError(error);
    }),
  );
  await allWithin(ALL_MS, all);
}

const NOBODY: Recording = {
  isResumable: () => false,
  events: async () => {},
  end: () => {},
  body: () => null,
  close: () => {},
};
