import { setTimeout as sleep } from 'node:timers/promises';
import { type Answer, createEventReader, errorText, eventText, GatewayError, parseMessage } from '#wire';
import type { ListenPlaces } from '#gateway';
import type { ToolCatalogue } from '../../catalogue/tool-catalogue.ts';
import { ERROR } from '../../wire/revisions.ts';
import { NO_SESSION } from '../../turn/session.ts';
import type { SessionTalk } from '../../door/session-talk.ts';
import type { Knock } from '../../call/standalone.ts';
import type { Aggregate } from './aggregate.ts';
import { createChangeNews, listChanged } from './change-news.ts';
import { toPartClient } from './part-messages.ts';
import type { Parts } from './parts.ts';
import type { AggregateSession } from './session.ts';
import type { AggregateSessions, AggregateUse } from './sessions.ts';

/** The streams that clients of the aggregate listen on, one for a session. */
export interface SessionStreams {
  /** Resolves when the stream is over. */
  listen(use: AggregateUse, knock: Knock, answer: Answer): Promise<void>;
  /** A part was opened: resolves when its server is heard, if its client listens, or after some time. */
  opened(all: AggregateSession, service: string): Promise<void>;
}

export interface SessionStreamsDeps {
  readonly aggregate: Pick<Aggregate, 'scope' | 'toClient'>;
  readonly catalogue: Pick<ToolCatalogue, 'onChanged' | 'stale'>;
  readonly parts: Pick<Parts, 'known'>;
  readonly talk: Pick<SessionTalk, 'listen'>;
  readonly change: AggregateSessions['change'];
  readonly places: ListenPlaces;
  /** Longest event. */
  readonly bytesMax: number;
  readonly onError: (error: unknown) => void;
}

/** Sent at once, so that the client has the head of its stream before the first event. */
const OPEN = Buffer.from(': listening\n\n');
/** For the server of a new part to take its stream: what it asks before that would be lost. */
const HEARD_MS = 2_000;
/** Before a stream is asked for again that a server ended. */
const RETRY_MS = 1_000;
const RETRY_MS_MAX = 30_000;
const FAILURES_MAX = 8;
const LIST_CHANGED = /^notifications\/(tools|prompts|resources)\/list_changed$/;
const IN_A_HEADER = /^[ -~]{1,1024}$/;

interface Stream {
  readonly end: () => void;
  hear(service: string): Promise<void>;
}

/**
 * Changes of lists come from the catalogue, whose lists the client is given; a part that tells of one has its
 * server asked anew. Everything else comes from the parts, each of which has a stream of its own at its server.
 */
export function createSessionStreams(deps: SessionStreamsDeps): SessionStreams {
  const { aggregate, catalogue, change, places } = deps;
  const open = new Map<AggregateSession, Stream>();

  async function listen({ session, ended }: AggregateUse, knock: Knock, answer: Answer): Promise<void> {
    if (!(await change(session))) return answer.end(NO_SESSION.text, NO_SESSION.status);
    const place = places.take(session.account);
    if (place === null) {
      if (places.draining) return answer.close();
      const { status, message } = places.refusal();
      return answer.end(errorText('null', { code: ERROR.server, message }), status);
    }
    // A client that comes back has left its last stream.
    open.get(session)?.end();
    const signal = AbortSignal.any([place.over, knock.gone, ended]);
    const { includes } = aggregate.scope(knock.caller, session.selection);
    const stream: Stream = { end: place.end, hear: createHearing(deps, { session, knock, answer, signal }, includes) };
    open.set(session, stream);
    const news = createChangeNews(includes, (kind) => answer.events(Buffer.from(eventText(listChanged(kind)))));
    const forget = catalogue.onChanged(news.changed);
    try {
      await answer.events(OPEN);
      news.begin();
      for (const service of session.parts.keys()) void stream.hear(service);
      await aborted(signal);
      answer.close();
    } finally {
      forget();
      place.leave();
      if (open.get(session) === stream) open.delete(session);
    }
  }

  return {
    listen,
    opened: async (all, service) => open.get(all)?.hear(service),
  };
}

interface Listener {
  readonly session: AggregateSession;
  readonly knock: Knock;
  readonly answer: Answer;
  readonly signal: AbortSignal;
}

/** Hears the servers of a session's parts, each once. */
function createHearing(
  deps: SessionStreamsDeps,
  { session, knock, answer, signal }: Listener,
  includes: (service: string) => boolean,
): Stream['hear'] {
  const { aggregate, catalogue, parts, talk, bytesMax, onError } = deps;
  /** By the id of the part: resolved when it is heard. */
  const hearing = new Map<string, Promise<void>>();

  /**
   * One stream of a part, from its beginning to its end. Gives the id of its last event; null where there is
   * nothing to listen to.
   */
  async function once(
    id: string,
    service: string,
    lastEventId: string | null,
    heard: () => void,
  ): Promise<{ readonly last: string | null } | null> {
    const part = session.parts.get(service) === id ? await parts.known(session, service) : null;
    if (part === null) return null;
    const toClient = toPartClient(aggregate, service);
    const reader = createEventReader({ bytesMax });
    let last = lastEventId;
    const onEvents = async (bytes: Uint8Array) => {
      heard();
      for (const { data, id: eventId } of reader.push(bytes)) {
        if (eventId !== null) last = IN_A_HEADER.test(eventId) ? eventId : null;
        const message = data === '' ? null : parseMessage(data);
        if (!message || message.kind === 'response') continue;
        if (LIST_CHANGED.test(message.method)) catalogue.stale(part.session.offer);
        else await answer.events(Buffer.from(eventText(toClient(data))));
      }
    };
    try {
      const tail = await talk.listen(
        { session: part.session, lastEventId, ended: part.ended },
        { ...knock, gone: signal },
        onEvents,
      );
      return tail?.status === 405 ? null : { last };
    } finally {
      part.leave();
    }
  }

  async function hearPart(id: string, service: string, heard: () => void): Promise<void> {
    let lastEventId: string | null = null;
    for (let failures = 0; failures < FAILURES_MAX && !signal.aborted; failures++) {
      const begun = () => {
        failures = 0;
        heard();
      };
      try {
        const over = await once(id, service, lastEventId, begun);
        if (over === null) return;
        lastEventId = over.last;
      } catch (error) {
        // A provider that is away comes back.
        if (!(error instanceof GatewayError)) onError(error);
      }
      await sleep(Math.min(RETRY_MS * 2 ** failures, RETRY_MS_MAX), undefined, { signal }).catch(() => {});
    }
  }

  return async (service) => {
    const id = session.parts.get(service);
    if (id === undefined || !includes(service) || signal.aborted) return;
    let heard = hearing.get(id);
    if (!heard) {
      const { promise, resolve } = Promise.withResolvers<void>();
      hearing.set(id, (heard = promise));
      const timer = setTimeout(resolve, HEARD_MS);
      void hearPart(id, service, resolve).finally(() => {
        clearTimeout(timer);
        resolve();
        hearing.delete(id);
      });
    }
    await heard;
  };
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
