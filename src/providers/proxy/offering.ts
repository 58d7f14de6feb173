import { setTimeout as pause } from 'node:timers/promises';
import type { ServiceConfig } from '#config';
import { type RaisedPrice, type RegistrationProblem, toRegistrationDocument } from '#network/tunnel';
import { type RouterConnection, tellRaised } from './connection.ts';
import type { Log } from './log.ts';
import type { PreparedUpstreams } from './upstreams.ts';

interface OfferingOptions {
  readonly services: readonly ServiceConfig[];
  /** Starts what other services need. null if nothing runs yet. */
  readonly prepare: (services: readonly ServiceConfig[]) => PreparedUpstreams | null;
  readonly log: Log;
  /** The longest wait of `replace` for the router's answer. Without a connection it does not wait. */
  readonly waitMs: number;
}

export type OfferingOutcome =
  /** They are in force. */
  | { readonly kind: 'registered'; readonly raised: readonly RaisedPrice[] }
  /** The router refused them. The services so far stay in force. */
  | { readonly kind: 'refused'; readonly message: string; readonly problems: readonly RegistrationProblem[] }
  /** There is no connection to the router, or it did not answer yet. They come into force when it has accepted them. */
  | { readonly kind: 'waiting' };

/** A proxy's offers: the services in force, and those that the router has not accepted yet. */
export interface Offering {
  services(): readonly ServiceConfig[];
  document(): string;
  /** Registers other services, and puts them in force when the router has accepted them. */
  replace(services: readonly ServiceConfig[]): Promise<OfferingOutcome>;
  /** The services in force were registered on this connection. */
  connected(connection: RouterConnection): void;
  disconnected(connection: RouterConnection): void;
}

/** Services that wait for the router. */
interface Coming {
  readonly services: readonly ServiceConfig[];
  readonly document: string;
  readonly prepared: PreparedUpstreams | null;
  readonly outcome: PromiseWithResolvers<OfferingOutcome>;
}

/**
 * A router ends a connection whose registrations come faster than ten at once and then one in ten seconds. That would
 * end running calls, so the proxy stays below it.
 */
const PACE = { burst: 8, intervalMs: 11_000 };

const documentOf = (services: readonly ServiceConfig[]): string => JSON.stringify(toRegistrationDocument(services));

export function createOffering({ services: first, prepare, log, waitMs }: OfferingOptions): Offering {
  let services = first;
  let document = documentOf(first);
  let coming: Coming | null = null;
  let live: RouterConnection | null = null;
  let registering: Promise<void> = Promise.resolve();
  let due = 0;

  function commit(next: Coming, raised: readonly RaisedPrice[] = []): void {
    coming = null;
    services = next.services;
    document = next.document;
    next.prepared?.commit();
    next.outcome.resolve({ kind: 'registered', raised });
  }

  async function registerOn(connection: RouterConnection): Promise<void> {
    const next = coming;
    if (next === null || live !== connection) return;
    const now = performance.now();
    due = Math.max(due, now) + PACE.intervalMs;
    await pause(Math.max(0, due - now - PACE.burst * PACE.intervalMs), undefined, { ref: false });
    const answer = await connection.register(next.document);
    // Without an answer the services are registered again on the next connection.
    if (answer === null) return;
    if (answer.kind === 'registered') {
      commit(next, answer.raised);
      log.info({ services: services.length }, 'the new services are registered');
      return tellRaised(log, answer.raised);
    }
    coming = null;
    next.prepared?.discard();
    for (const { key, wrong, right } of answer.problems) log.error({ key, wrong, right }, 'the router refused');
    log.error({ why: answer.message }, 'the router refused the new services: the old ones stay in use');
    next.outcome.resolve(answer);
  }

  function register(): void {
    const connection = live;
    if (connection !== null) registering = registering.then(() => registerOn(connection));
  }

  let last: Promise<unknown> = Promise.resolve();
  async function take(next: readonly ServiceConfig[]): Promise<OfferingOutcome> {
    // If the router is just now answering about earlier services, that decides what is in force.
    await registering;
    coming?.prepared?.discard();
    coming = null;
    const offering: Coming = {
      services: next,
      document: documentOf(next),
      prepared: prepare(next),
      outcome: Promise.withResolvers(),
    };
    // The router does not learn addresses and keys, so it need not be asked about them.
    if (offering.document === document) commit(offering);
    else {
      coming = offering;
      if (live === null) return { kind: 'waiting' };
      register();
    }
    return Promise.race([
      offering.outcome.promise,
      pause(waitMs, undefined, { ref: false }).then((): OfferingOutcome => ({ kind: 'waiting' })),
    ]);
  }

  return {
    services: () => services,
    document: () => document,
    replace(next) {
      const before = last;
      const done = (async () => {
        await before;
        return take(next);
      })();
      last = done.catch(() => {});
      return done;
    },
    connected(connection) {
      live = connection;
      due = performance.now() + PACE.intervalMs;
      register();
    },
    disconnected(connection) {
      if (live === connection) live = null;
    },
  };
}
