import { GatewayError } from '#wire';
import type { ClientRequests } from '../../turn/client-requests.ts';
import type { Recording } from '../../call/replays.ts';
import { NO_SESSION } from '../../turn/session.ts';
import type { SessionTalk } from '../../door/session-talk.ts';
import type { Sessions, SessionUse } from '../../sessions/sessions.ts';
import type { RequestContext } from '../../call/standalone.ts';
import type { McpTail } from '../../turn/turn.ts';
import { allWithin } from '../../turn/waiting.ts';
import { readOwnRequest, requestText } from '../../wire/own-messages.ts';
import type { AggregateSession } from './session.ts';
import type { AggregateSessions } from './sessions.ts';

/** The sessions with single services that a session of the aggregate is made of. */
export interface Parts {
  /**
   * Takes the part for a service for one request, and opens it where it is not open yet: the use is to be left. Gives
   * a refusal where it cannot be opened. Throws GatewayError where the provider cannot be reached.
   */
  use(all: AggregateSession, service: string, context: RequestContext): Promise<SessionUse | McpTail>;
  /** Takes the part for a service if it is open, else null. */
  known(all: AggregateSession, service: string): Promise<SessionUse | null>;
  /**
   * Remembers the level for parts to come and tells it to the open ones of `services`, asked then; resolves when
   * they have it, or after some seconds.
   */
  setLevel(
    all: AggregateSession,
    level: string,
    services: () => readonly string[],
    context: RequestContext,
  ): Promise<void>;
  /** Ends all parts of a session that is over. Never rejects. */
  end(all: AggregateSession): Promise<void>;
}

interface PartsDeps {
  readonly sessions: Pick<Sessions, 'enter' | 'end'>;
  readonly change: AggregateSessions['change'];
  readonly talk: Pick<SessionTalk, 'open' | 'request'>;
  readonly clientRequests: Pick<ClientRequests, 'end'>;
  /** Services of one session that have parts. */
  readonly max: number;
  /** Told of a new part; resolves when the gateway listens to its server. Never rejects. */
  readonly onOpened: (all: AggregateSession, service: string) => Promise<void>;
  readonly onError: (error: unknown) => void;
}

/** How long something is done in all parts. */
const ALL_MS = 5_000;
/** How often a part is opened that ends at once. */
const TRIES = 3;

export function createParts({ sessions, change, talk, clientRequests, max, onOpened, onError }: PartsDeps): Parts {
  /** By service: opened once for all requests that wait for it. */
  const opening = new WeakMap<AggregateSession, Map<string, Promise<McpTail | null>>>();

  async function known(all: AggregateSession, service: string): Promise<SessionUse | null> {
    const id = all.parts.get(service);
    return id === undefined ? null : sessions.enter(id, all.account, service);
  }

  function opened(all: AggregateSession, service: string, context: RequestContext): Promise<McpTail | null> {
    let of = opening.get(all);
    if (!of) opening.set(all, (of = new Map<string, Promise<McpTail | null>>()));
    let one = of.get(service);
    // Others may wait for it as well, so that it is opened even when this client leaves.
    if (!one)
      of.set(
        service,
        (one = open(all, service, { ...context, gone: new AbortController().signal }).finally(() =>
          of.delete(service),
        )),
      );
    return one;
  }

  /** null where the part may be open now, else the refusal. */
  async function open(all: AggregateSession, service: string, context: RequestContext): Promise<McpTail | null> {
    const before = all.parts.get(service);
    if (!(await change(all))) return NO_SESSION;
    // Another gateway was faster.
    if (all.parts.get(service) !== before) return null;
    const answer = await talk.open(service, readOwnRequest(all.initialize), context, true);
    if (answer === null) throw new GatewayError('provider_unavailable', `${service} did not answer initialize`);
    if (answer.session === null) return answer.tail;
    const { id } = answer.session;
    const lasts = await change(all, () => {
      all.parts.delete(service);
      // What was opened first has most likely ended long ago; if not, it does so by itself.
      for (const oldest of all.parts.keys()) if (all.parts.size >= max) all.parts.delete(oldest);
      all.parts.set(service, id);
    });
    if (!lasts) {
      await sessions.end(id, all.account, service);
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
      const asked = readOwnRequest(requestText('tollgate:level', 'logging/setLevel', { level }));
      const how = { context, events: false, answer: NOBODY, toClient: (text: string) => text };
      if (part) await talk.request(part.session, asked, how);
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
        const refusal = await opened(all, service, context);
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
        await sessions.end(id, all.account, service);
      });
      for (const { status, reason } of (await Promise.allSettled(ends)) as PromiseRejectedResult[])
        if (status === 'rejected') onError(reason);
    },
  };
}

/** Does something at each service. Resolves when it is done, or after some seconds: a service may not answer. */
export async function ofAll(
  services: readonly string[],
  run: (service: string) => Promise<unknown>,
  onError: (error: unknown) => void,
): Promise<void> {
  const all = services.map((service) =>
    run(service).catch((error: unknown) => {
      // A provider that is away now opens a new session when it is back.
      if (!(error instanceof GatewayError)) onError(error);
    }),
  );
  await allWithin(ALL_MS, all);
}

const NOBODY: Recording = {
  resumable: false,
  events: async () => {},
  end: () => {},
  body: () => null,
  close: () => {},
};
