import type { JsonObject } from '#wire';
import { setTimeout as pause } from 'node:timers/promises';
import type { ReplySink } from '#http';
import { GatewayError } from '#errors';
import type { KeptResponse, KeptResponses, KeptEvents, RunningEnd } from '#kept-responses';
import { ownerOf } from '#tasks';
import { CuttableCancelSource, type GiveBack } from '#billing/amounts';
import { type Caller, needsCredential } from '#accounts';
import type { InBackground } from '../../translated/chat-wire.ts';
import type { ResponsesBody } from '../schema.ts';
import { endLost, cancelledEnd, endOf, tooLargeEnd } from './background-end.ts';
import { followStream, type KeptStreams, type OwnedResponse } from './follow-stream.ts';
import { Runs, type BackgroundRun } from './runs.ts';
import { eventText } from '../../native/passthrough.ts';
import type { StartedChat } from '../../chat/reply/chat-reply.ts';
import { itemsOf } from '../kept/conversations.ts';
import { callIdOf, responseIdOf, withIds } from '../kept/kept-ids.ts';
import { namesOf } from '../kept/keep-responses.ts';
import { BackgroundSink, type EndEvent, EventLog } from './background-sink.ts';

interface BackgroundOptions {
  readonly keptResponses: KeptResponses;
  readonly giveBack: GiveBack;
  /** Gets errors of the database; the work goes on. */
  readonly onError: (error: unknown) => void;
}

export interface Background extends KeptStreams {
  answers(request: BackgroundRequest): InBackground;
  endIfLost(response: KeptResponse): Promise<void>;
  /**
   * Cancels a response, and waits until clients are shown that it is cancelled. Its call goes on until it is settled.
   * Resolves with false if it was not under way.
   */
  cancel(response: KeptResponse): Promise<boolean>;
  deleted(id: string): void;
  /** Ends at most `limit` responses whose gateway is gone, also those in the foreground; returns how many. */
  sweep(limit: number): Promise<number>;
  /** Ends all that are stored as under way. For a gateway that has its database alone, before it begins any. */
  endOrphans(): Promise<void>;
  stop(): void;
  /** Ends the responses of this gateway, and resolves when their ends are stored, or after a while. */
  close(): Promise<void>;
}

/** Longest wait of a cancellation until it is shown. */
const CANCEL_MS = 5_000;
/** How often another gateway looks whether a response has ended. */
const POLL_MS = 250;
const BATCH = 100;

export function createBackground(options: BackgroundOptions): Background {
  const { keptResponses, onError } = options;
  const { running } = keptResponses;
  const runs = new Runs(running, onError);

  async function endIfLost(response: KeptResponse): Promise<void> {
    if (running.isLost(response) && !runs.get(response.id)) await endLost(options, response);
  }

  /** Resolves when a cancelled response is stored as such, or after a while. */
  async function untilShown(response: KeptResponse): Promise<void> {
    const { id } = response;
    const run = runs.get(id);
    if (run)
      return Promise.race([run.progressShown ?? run.ended, run.ended, pause(CANCEL_MS, undefined, { ref: false })]);
    for (const until = performance.now() + CANCEL_MS; performance.now() < until;) {
      const content = (await keptResponses.read([response])).get(id);
      if (content?.run !== 'cancelling') return;
      if ((JSON.parse(content.response) as JsonObject)['status'] === 'cancelled') return;
      await pause(POLL_MS);
    }
  }

  const follow: Background['follow'] = (response, after, client, memory) =>
    followStream({ ...options, runs }, response, after, client, memory);

  return {
    answers: createAnswers({ keptResponses, runs, follow, onError }),
    endIfLost,
    async cancel(response) {
      await endIfLost(response);
      const isUnderWay = await running.cancel(response.id);
      if (isUnderWay) {
        runs.get(response.id)?.stop('cancelled');
        await untilShown(response);
      }
      return isUnderWay;
    },
    deleted: (id) => runs.get(id)?.stop('deleted'),
    isStreamed: async (id) => (await running.lastEvent(id)) !== null,
    follow,
    async sweep(limit) {
      const lost = (await running.lost(limit)).filter(({ id }) => !runs.get(id));
      for (const response of lost) await endLost(options, response);
      return lost.length;
    },
    async endOrphans() {
      for (let ended = BATCH; ended > 0;) {
        ended = 0;
        for (const response of await running.lost(BATCH, true)) if (await endLost(options, response, true)) ended += 1;
      }
    },
    stop: () => runs.stop(),
    close: () => runs.close(),
  };
}

interface BackgroundRequest {
  readonly caller: Caller;
  /** As the client sent it. */
  readonly requestBody: ResponsesBody;
  /** The response of a call before it has begun. */
  readonly first: (callId: string) => JsonObject;
}

interface AnswersDeps {
  readonly keptResponses: Pick<KeptResponses, 'running'>;
  readonly runs: Runs;
  readonly follow: (response: OwnedResponse, after: number, client: ReplySink) => Promise<void>;
  /** Gets errors of the database, and unexpected errors of calls; the work goes on. */
  readonly onError: (error: unknown) => void;
}

interface Begun {
  readonly place: OwnedResponse;
  readonly run: BackgroundRun;
  /** As its client is told that it has begun. */
  readonly response: JsonObject;
  /** null if it is not streamed. */
  readonly log: EventLog | null;
  readonly sink: BackgroundSink;
  /** The stream has its last event, because the response was cancelled before its call was settled. */
  isToldCancelled: boolean;
}

/** The first pause before the end of a response is stored again. Each one is twice as long. */
const RETRY_MS = 500;
const RETRY_MS_MAX = 30_000;

function createAnswers(deps: AnswersDeps): (request: BackgroundRequest) => InBackground {
  const { keptResponses, runs, follow, onError } = deps;
  return (request) => {
    const { caller, requestBody } = request;
    const gone = new CuttableCancelSource();
    let tellLocked = () => {};
    const locked = new Promise<null>((resolve) => (tellLocked = () => resolve(null)));
    return {
      gone,
      onLocked: () => tellLocked(),
      async admit() {
        if (!caller.anonymous) await keptResponses.running.admit(ownerOf(caller));
      },
      async answer(startedCall, client, make) {
        if (caller.anonymous) return refuseStranger(startedCall);
        const begun = await begin(deps, request, startedCall, gone);
        const { place, run, response, sink } = begun;
        const answering = make(sink).then(
          () => null,
          (error: unknown) => ({ error }),
        );
        const refusal = await Promise.race([locked, answering]);
        if (refusal !== null) {
          runs.end(run);
          await keptResponses.running.remove(place);
          throw refusal.error;
        }
        void answering
          .then((failure) => {
            run.isEnding = true;
            if (failure !== null && run.stopped === null && !(failure.error instanceof GatewayError))
              onError(failure.error);
            const { last, latest } = sink;
            return finish(deps, begun, endOf({ last, latest: latest ?? response, stopped: run.stopped, failure }));
          })
          .catch(onError)
          .finally(() => runs.end(run));
        if (requestBody.stream === true) return follow(place, -1, client);
        const text = JSON.stringify(response);
        client.head(200, {
          'content-type': 'application/json; charset=utf-8',
          'content-length': Buffer.byteLength(text),
          'x-generation-id': startedCall.id,
        });
        client.end(text);
      },
    };
  };
}

/** Stores the response of a call that is prepared. Rejects with GatewayError if there is no room for it. */
async function begin(
  deps: AnswersDeps,
  { caller, requestBody, first }: BackgroundRequest,
  { id: callId, call, about }: StartedChat,
  gone: CuttableCancelSource,
): Promise<Begun> {
  const { keptResponses, runs, onError } = deps;
  const { running } = keptResponses;
  const id = responseIdOf(callId);
  const place = { ...ownerOf(caller), id };
  const response = { ...first(callId), status: 'queued' };
  const input = withIds(itemsOf(requestBody.input), id);
  const events = requestBody.stream === true ? firstEvents(response) : null;
  await running.begin(
    {
      ...place,
      service: call?.service ?? about.model,
      previous: requestBody.previous_response_id ?? null,
      input: JSON.stringify(input),
      response: JSON.stringify(response),
      items: namesOf(input, id),
    },
    events,
  );
  const store = (part: KeptEvents) => running.addEvents(place, part);
  const onStored = () => run.tellChanged();
  const log = events && new EventLog({ from: events.last + 1, store, onStored, onError });
  const sink = new BackgroundSink(log, () => void running.noteBegun(id).catch(onError));
  const run: BackgroundRun = runs.begin(id, {
    gone,
    showCancelled: () => showCancelled(deps, begun),
    onDeleted: () => void log?.close(),
  });
  const begun: Begun = { place, run, response, log, sink, isToldCancelled: false };
  return begun;
}

const endRow = ({ place, log }: Begun, { type, response }: EndEvent, isTold: boolean): RunningEnd => ({
  ...place,
  response: JSON.stringify(response),
  items: namesOf((response['output'] ?? []) as readonly JsonObject[], place.id),
  events: isTold ? [] : (log?.rest(type, { response }) ?? []),
});

/** Shows clients at once that a response is cancelled, with what has come. Does not reject. */
async function showCancelled({ keptResponses: { running }, onError }: AnswersDeps, begun: Begun): Promise<void> {
  const { response, sink, log } = begun;
  const ends = [sink.output(), []].map((output) => cancelledEnd(sink.latest ?? response, output));
  try {
    await log?.close();
    for (const end of ends) {
      const stored = await running.showCancelled(endRow(begun, end, false));
      if (stored !== 'too_large') {
        begun.isToldCancelled = stored === 'kept';
        return;
      }
    }
  } catch (error) {
    onError(error);
  }
}

/** Stores the end. While the database cannot be reached, it is tried again until the gateway stops. */
async function finish({ keptResponses, runs, onError }: AnswersDeps, begun: Begun, ended: EndEvent): Promise<void> {
  const { place, run, response, log } = begun;
  await run.progressShown;
  await log?.close();
  let end = ended;
  for (let pauseMs = RETRY_MS; ; pauseMs = Math.min(2 * pauseMs, RETRY_MS_MAX)) {
    try {
      const stored = await keptResponses.running.finish(endRow(begun, end, begun.isToldCancelled));
      if (stored === 'gone') await keptResponses.running.remove(place);
      if (stored !== 'too_large') return;
      end = tooLargeEnd(response, end, callIdOf(place.id));
    } catch (error) {
      onError(error);
      if (runs.isClosed) return;
      await pause(pauseMs);
    }
  }
}

/** The first events of a stream: they tell the id, with which the stream can be taken up again. */
function firstEvents(response: JsonObject): KeptEvents {
  const types = ['response.created', 'response.queued'];
  const text = types
    .map((type, at) => eventText(type, JSON.stringify({ type, sequence_number: at, response })))
    .join('');
  return { first: 0, last: types.length - 1, text };
}

/** A stranger has nothing to pay with, and nobody could ask for the response of a call that is free. */
async function refuseStranger({ frames }: StartedChat): Promise<never> {
  const iterator = frames[Symbol.asyncIterator]();
  await iterator.next();
  await iterator.return?.();
  throw needsCredential();
}
