import type { Offer } from '#catalog';

/**
 * An attempt that runs. It is a member of a list, which its call carries, so that no call makes an object for it.
 * `place`: null while no attempt runs.
 */
export interface RunningAttempt {
  place: OfferAttempts | null;
  /** The beginning of its wait, on the clock of `call.begunAt`. */
  waitsSince: number;
  isWaiting: boolean;
  older: RunningAttempt | null;
  newer: RunningAttempt | null;
}

/** The attempts that run at one offer. Those that wait are in a list, the oldest first. */
export interface OfferAttempts {
  readonly offer: Offer;
  running: number;
  waiting: number;
  oldest: RunningAttempt | null;
  newest: RunningAttempt | null;
}

/** The attempts of billed calls that run in this process, by offer. */
export interface RunningAttempts {
  begin(attempt: RunningAttempt, offer: Offer, at: number): void;
  /** Its wait is over, for now or for good. */
  stopWaiting(attempt: RunningAttempt): void;
  /** It waits again, from `at`. */
  wait(attempt: RunningAttempt, at: number): void;
  end(attempt: RunningAttempt): void;
  places(): Iterable<OfferAttempts>;
}

/** Number of offers without an attempt that are remembered, so that a call seldom makes an entry. */
const IDLE_MAX = 1_000;

export function createRunningAttempts(): RunningAttempts {
  const places = new Map<string, OfferAttempts>();
  const stopWaiting = (attempt: RunningAttempt): void => {
    const { place, older, newer } = attempt;
    if (place === null || !attempt.isWaiting) return;
    if (older === null) place.oldest = newer;
    else older.newer = newer;
    if (newer === null) place.newest = older;
    else newer.older = older;
    attempt.older = attempt.newer = null;
    attempt.isWaiting = false;
    place.waiting -= 1;
  };
  const wait = (attempt: RunningAttempt, at: number): void => {
    const { place } = attempt;
    if (place === null) return;
    stopWaiting(attempt);
    attempt.waitsSince = at;
    attempt.isWaiting = true;
    attempt.older = place.newest;
    if (place.newest === null) place.oldest = attempt;
    else place.newest.newer = attempt;
    place.newest = attempt;
    place.waiting += 1;
  };
  const end = (attempt: RunningAttempt): void => {
    const { place } = attempt;
    if (place === null) return;
    stopWaiting(attempt);
    attempt.place = null;
    place.running -= 1;
    if (place.running === 0 && places.size > IDLE_MAX) places.delete(place.offer.id);
  };
  return {
    begin(attempt, offer, at) {
      end(attempt);
      let place = places.get(offer.id);
      if (place === undefined || (place.offer !== offer && place.running === 0))
        places.set(offer.id, (place = { offer, running: 0, waiting: 0, oldest: null, newest: null }));
      attempt.place = place;
      place.running += 1;
      wait(attempt, at);
    },
    stopWaiting,
    wait,
    end,
    places: () => places.values(),
  };
}
