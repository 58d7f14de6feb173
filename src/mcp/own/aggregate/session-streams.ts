import type { ClientAnswer } from '#http';
import { createEventReader } from '#wire';
import { errorText, parseMessage } from '#json-rpc';
import { GatewayError } from '#errors';
import { signalOf } from '#billing/amounts';
import type { StreamQuota } from '#limits';
import type { ToolCatalogue } from '../../catalogue/tool-catalogue.ts';
import { resumableId } from '../../servers/resumable-stream.ts';
import { eventBytes, LISTENING, NO_SESSION } from '../../request/mcp-request.ts';
import { aborted } from '../../request/waiting.ts';
import { ERROR } from '../../wire/revisions.ts';
import { STREAM_OPEN_MS, type SessionMessages } from '../../http/session-messages.ts';
import type { RequestContext } from '../../call/stateless.ts';
import type { Aggregate } from './aggregate.ts';
import { notificationText, KINDS, listChanged } from '../../wire/own-messages.ts';
import { createChangeNews, keepListening } from './listen.ts';
import { toPartClient } from './part-messages.ts';
import type { Parts } from './parts.ts';
import type { AggregateSession, AggregateSessions, AggregateUse } from './sessions.ts';

interface SessionStreams {
  /**
   * Resolves when the stream is over. `resumes`: the client asks for the rest of an answer that is not known here. Such
   * a stream does not end the one on which the client listens: clients reconnect both, and each would end the other
   * again and again.
   */
  listen(use: AggregateUse, resumes: boolean, context: RequestContext, answer: ClientAnswer): Promise<void>;
  /** Listens to a new part if its client listens. Resolves when the part's stream is open, or after some time. */
  onOpen(all: AggregateSession, service: string): Promise<void>;
}

export interface SessionStreamsDeps {
  readonly aggregate: Pick<Aggregate, 'scope' | 'toClient' | 'concerns'>;
  readonly catalogue: Pick<ToolCatalogue, 'onChanged' | 'stale'>;
  readonly parts: Pick<Parts, 'known'>;
  readonly messages: Pick<SessionMessages, 'listen'>;
  readonly change: AggregateSessions['change'];
  readonly places: StreamQuota;
  readonly bytesMax: number;
  readonly onError: (error: unknown) => void;
}

/** The status is 405, with which clients stop to ask. */
const UNKNOWN_EVENT = {
  code: ERROR.server,
  message: 'The events after this Last-Event-ID are not known here, and the session has its stream already',
};

const LIST_CHANGES: ReadonlySet<string> = new Set(KINDS.map(listChanged));

interface Stream {
  /** Ends the stream, and gives its place back at once. */
  readonly end: () => void;
  /** Listens to the server of a service's part, once. Resolves when the part's stream is open, or after some time. */
  listenTo(service: string): Promise<void>;
}

/**
 * Changes of lists come from the catalogue, because the client gets the catalogue's lists. If a part reports such a
 * change, the catalogue asks its server again. All other messages come from the parts. Each part has its own stream at
 * its server.
 */
export function createSessionStreams(deps: SessionStreamsDeps): SessionStreams {
  const { aggregate, catalogue, change, places } = deps;
  const open = new Map<AggregateSession, Stream>();

  async function listen(
    { session, ended }: AggregateUse,
    resumes: boolean,
    context: RequestContext,
    answer: ClientAnswer,
  ): Promise<void> {
    if (!(await change(session))) return answer.end(NO_SESSION.text, NO_SESSION.status);
    if (resumes && open.has(session)) return answer.end(errorText('null', UNKNOWN_EVENT), 405);
    // A client that comes back has left its last stream, so its place is free.
    open.get(session)?.end();
    const place = places.take(session);
    if (place === null) {
      if (places.draining) return answer.close();
      const { status, message } = places.refusal();
      return answer.end(errorText('null', { code: ERROR.server, message }), status);
    }
    let isGone = false;
    const leave = () => {
      if (!isGone) place.leave();
      isGone = true;
    };
    const signal = AbortSignal.any([place.over, signalOf(context.gone), ended]);
    const scope = aggregate.scope(context.caller, session.selection);
    const stream: Stream = {
      end: leave,
      listenTo: createPartListening(deps, { session, context, answer, signal }, scope.includes),
    };
    open.set(session, stream);
    const news = createChangeNews(
      (change) => aggregate.concerns(change, scope),
      (kind) => answer.events(eventBytes(notificationText(listChanged(kind)))),
    );
    const forget = catalogue.onChanged(news.changed);
    try {
      await answer.events(LISTENING);
      news.begin();
      for (const service of session.parts.keys()) void stream.listenTo(service);
      await aborted(signal);
      answer.close();
    } finally {
      forget();
      leave();
      if (open.get(session) === stream) open.delete(session);
    }
  }

  return {
    listen,
    onOpen: async (all, service) => open.get(all)?.listenTo(service),
  };
}

interface SessionListener {
  readonly session: AggregateSession;
  readonly context: RequestContext;
  readonly answer: ClientAnswer;
  readonly signal: AbortSignal;
}

function createPartListening(
  deps: SessionStreamsDeps,
  { session, context, answer, signal }: SessionListener,
  includes: (service: string) => boolean,
): Stream['listenTo'] {
  const { aggregate, catalogue, parts, messages, bytesMax, onError } = deps;
  /** By the id of the part. Each promise resolves when the part's stream is open. */
  const listening = new Map<string, Promise<void>>();

  /** Reads one stream of a part. Resolves to the id of its last event; to null if there is no stream to listen to. */
  async function once(
    id: string,
    service: string,
    lastEventId: string | null,
    onHeard: () => void,
  ): Promise<{ readonly last: string | null } | null> {
    const part = session.parts.get(service) === id ? await parts.known(session, service) : null;
    if (part === null) return null;
    const toClient = toPartClient(aggregate, service);
    const reader = createEventReader({ bytesMax });
    let last = lastEventId;
    const onEvents = async (bytes: Uint8Array) => {
      onHeard();
      for (const { data, id: eventId } of reader.push(bytes)) {
        if (eventId !== null) last = resumableId(eventId);
        const message = data === '' ? null : parseMessage(data);
        if (!message || message.kind === 'response') continue;
        if (LIST_CHANGES.has(message.method)) catalogue.stale(part.session.offer);
        else await answer.events(eventBytes(toClient(data)));
      }
    };
    try {
      const refusal = await messages.listen(
        { session: part.session, lastEventId, ended: part.ended },
        { ...context, gone: signal },
        onEvents,
      );
      return refusal?.status === 405 ? null : { last };
    } finally {
      part.leave();
    }
  }

  async function listenToPart(id: string, service: string, onHeard: () => void): Promise<void> {
    let lastEventId: string | null = null;
    await keepListening(signal, async (begun) => {
      try {
        const over = await once(id, service, lastEventId, () => {
          begun();
          onHeard();
        });
        if (over === null) return false;
        lastEventId = over.last;
      } catch (error) {
        // A provider that is unreachable may come back, so the gateway tries again.
        if (!(error instanceof GatewayError)) onError(error);
      }
      return true;
    });
  }

  return async (service) => {
    const id = session.parts.get(service);
    if (id === undefined || !includes(service) || signal.aborted) return;
    let pending = listening.get(id);
    if (!pending) {
      const { promise, resolve } = Promise.withResolvers<void>();
      listening.set(id, (pending = promise));
      const timer = setTimeout(resolve, STREAM_OPEN_MS);
      void listenToPart(id, service, resolve).finally(() => {
        clearTimeout(timer);
        resolve();
        listening.delete(id);
      });
    }
    await pending;
  };
}
