import { GatewayError, parseMessage, type RequestMessage } from '#wire';
import type { ClientRequests } from '../../turn/client-requests.ts';
import type { Recording } from '../../call/replays.ts';
import { NO_SESSION } from '../../turn/session.ts';
import type { SessionTalk } from '../../door/session-talk.ts';
import type { Sessions, SessionUse } from '../../sessions/sessions.ts';
import type { Knock } from '../../call/standalone.ts';
import type { McpTail } from '../../turn/turn.ts';
import type { AggregateSession } from './session.ts';
import type { AggregateSessions } from './sessions.ts';

/** The sessions with single services that a session of the aggregate is made of. */
export interface Parts {
  /**
   * Takes the part for a service, which is opened where there is none, for one request: the use is to be left. Else
   * the answer that there is no such part with. Throws GatewayError where the provider is not to be reached.
   */
  use(all: AggregateSession, service: string, knock: Knock): Promise<SessionUse | McpTail>;
  /** Takes the part for a service if one is open; null where none is. */
  known(all: AggregateSession, service: string): Promise<SessionUse | null>;
  /**
   * Remembers the level for parts to come and tells it to the open ones of `services`, asked then; resolves when
   * they have it, or after some seconds.
   */
  setLevel(all: AggregateSession, level: string, services: () => readonly string[], knock: Knock): Promise<void>;
  /** Ends all parts of a session that is over. Never rejects. */
  end(all: AggregateSession): Promise<void>;
}

export interface PartsDeps {
  readonly sessions: Pick<Sessions, 'enter' | 'end'>;
  readonly change: AggregateSessions['change'];
  readonly talk: Pick<SessionTalk, 'open' | 'request'>;
  readonly clientRequests: Pick<ClientRequests, 'end'>;
  /** Services of one session that have parts. */
  readonly max: number;
  /** Told of a new part; resolves when what its server sends outside of requests is heard. Never rejects. */
  readonly onOpened: (all: AggregateSession, service: string) => Promise<void>;
  readonly onError: (error: unknown) => void;
}

/** For all parts to do what is asked of all. */
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

  function opened(all: AggregateSession, service: string, knock: Knock): Promise<McpTail | null> {
    let of = opening.get(all);
    if (!of) opening.set(all, (of = new Map<string, Promise<McpTail | null>>()));
    let one = of.get(service);
    // Others may wait for it as well, so that it is opened even when this client leaves.
    if (!one)
      of.set(
        service,
        (one = open(all, service, { ...knock, gone: new AbortController().signal }).finally(() => of.delete(service))),
      );
    return one;
  }

  /** null where there may be one now, else the answer that there is none with. */
  async function open(all: AggregateSession, service: string, knock: Knock): Promise<McpTail | null> {
    const before = all.parts.get(service);
    if (!(await change(all))) return NO_SESSION;
    // Another gateway was faster.
    if (all.parts.get(service) !== before) return null;
    const initialize = parseMessage(all.initialize);
    if (initialize?.kind !== 'request') throw new GatewayError('internal', 'Internal error');
    const answer = await talk.open(service, initialize, knock, true);
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
      all.logLevel === null ? null : setLevelOf(all, service, all.logLevel, knock),
    ]);
    return null;
  }

  async function setLevelOf(all: AggregateSession, service: string, level: string, knock: Knock): Promise<void> {
    const part = await known(all, service);
    try {
      if (part)
        await talk.request(part.session, levelRequest(level), {
          knock,
          events: false,
          answer: NOBODY,
          toClient: (text) => text,
        });
    } finally {
      part?.leave();
    }
  }

  return {
    known,
    async use(all, service, knock) {
      for (let tries = 0; tries < TRIES; tries++) {
        const part = await known(all, service);
        if (part) return part;
        const refusal = await opened(all, service, knock);
        if (refusal) return refusal;
      }
      throw new GatewayError('provider_unavailable', `The session with ${service} ended as soon as it was opened`);
    },
    async setLevel(all, level, services, knock) {
      const lasts = await change(all, () => {
        all.logLevel = level;
      });
      if (lasts) await ofAll(services(), (service) => setLevelOf(all, service, level, knock), onError);
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

/**
 * Does something at each service. Resolves when it is done, or after some seconds: nobody waits for one that does
 * not answer.
 */
export async function ofAll(
  services: readonly string[],
  run: (service: string) => Promise<unknown>,
  onError: (error: unknown) => void,
): Promise<void> {
  const late = Promise.withResolvers<void>();
  const timer = setTimeout(late.resolve, ALL_MS);
  const all = services.map((service) =>
    run(service).catch((error: unknown) => {
      // A provider that is away now opens a new session when it is back.
      if (!(error instanceof GatewayError)) onError(error);
    }),
  );
  await Promise.race([Promise.all(all), late.promise]);
  clearTimeout(timer);
}

function levelRequest(level: string): RequestMessage {
  const message = parseMessage(
    JSON.stringify({ jsonrpc: '2.0', id: 'tollgate:level', method: 'logging/setLevel', params: { level } }),
  );
  if (message?.kind !== 'request') throw new Error('a request of the gateway is a request');
  return message;
}

const NOBODY: Recording = { resumable: false, events: async () => {}, end: () => {}, close: () => {} };
