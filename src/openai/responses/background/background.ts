import { setTimeout as pause } from 'node:timers/promises';
import type { ReplySink } from '#wire';
import type { KeptResponse, KeptResponses } from '#tasks';
import type { InBackground } from '../../translated/translated-route.ts';
import { type BackgroundRequest, createAnswers } from './answer-in-background.ts';
import type { Json } from '../responses-schema.ts';
import { endLost } from './end-lost.ts';
import { followStream, type Memory, type Place } from './follow-stream.ts';
import { Runs } from './runs.ts';

interface BackgroundOptions {
  readonly kept: KeptResponses;
  /** Gets errors of the database; the work goes on. */
  readonly onError: (error: unknown) => void;
}

/** Responses that are made while their client does not wait. */
export interface Background {
  /** Begins one for a request. */
  answers(request: BackgroundRequest): InBackground;
  /** Ends a response whose gateway is gone. */
  endIfLost(response: KeptResponse): Promise<void>;
  /**
   * Cancels a response, and waits until clients are shown that it is cancelled. Its call goes on until it is settled.
   * Resolves with false if it was not under way.
   */
  cancel(response: KeptResponse): Promise<boolean>;
  /** Ends a response that was deleted. */
  deleted(id: string): void;
  /** Whether the events of a response are stored. */
  isStreamed(id: string): Promise<boolean>;
  /** Writes the events after number `after` to a client, until the last one. See followStream. */
  follow(response: Place, after: number, client: ReplySink, memory?: Memory): Promise<void>;
  /** Ends at most `limit` responses whose gateway is gone; returns how many. */
  sweep(limit: number): Promise<number>;
  /** Ends all that are stored as under way. For a gateway that has its database alone, before it begins any. */
  endOrphans(): Promise<void>;
  /** Ends those of this gateway, because it stops. */
  stop(): void;
  /** The same. Resolves when their ends are stored, or after a while. */
  close(): Promise<void>;
}

/** Longest wait of a cancellation until it is shown. */
const CANCEL_MS = 5_000;
/** How often another gateway looks whether a response has ended. */
const POLL_MS = 250;
const BATCH = 100;

export function createBackground({ kept, onError }: BackgroundOptions): Background {
  const { running } = kept;
  const runs = new Runs(running, onError);

  async function endIfLost(response: KeptResponse): Promise<void> {
    if (running.isLost(response) && !runs.get(response.id)) await endLost(kept, response);
  }

  /** Resolves when a cancelled response is stored as such, or after a while. */
  async function untilShown(response: KeptResponse): Promise<void> {
    const { id } = response;
    const run = runs.get(id);
    if (run) return Promise.race([run.shown ?? run.ended, run.ended, pause(CANCEL_MS, undefined, { ref: false })]);
    for (const until = performance.now() + CANCEL_MS; performance.now() < until;) {
      // oxlint-disable-next-line no-await-in-loop -- it waits for another gateway
      const content = (await kept.read([response])).get(id);
      if (content?.run !== 'cancelling') return;
      if ((JSON.parse(content.response) as Json)['status'] === 'cancelled') return;
      // oxlint-disable-next-line no-await-in-loop -- as above
      await pause(POLL_MS);
    }
  }

  const follow: Background['follow'] = (response, after, client, memory) =>
    followStream({ kept, runs, onError }, response, after, client, memory);

  return {
    answers: createAnswers({ kept, runs, follow, onError }),
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
      for (const response of lost) await endLost(kept, response);
      return lost.length;
    },
    async endOrphans() {
      for (let count = BATCH; count === BATCH;) {
        const lost = await running.lost(BATCH, true);
        for (const response of lost) await endLost(kept, response, true);
        count = lost.length;
      }
    },
    stop: () => runs.stop(),
    close: () => runs.close(),
  };
}
