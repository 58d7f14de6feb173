import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { createGatewayReports, type GatewayReports } from '#observe';
import { VERSION } from '../../foundation/version.ts';
import type { Phases } from './calls.ts';
import type { CheckReady } from './health.ts';

const DAY_MS = 86_400_000;

/** The outages of a report: of the operator's own offers first, so that strangers cannot crowd them out. */
const OUTAGES_MAX = 50;

export function openGatewayReports(
  { foundation, observers, access, network }: Phases,
  ready: CheckReady,
): GatewayReports {
  const { database, raised, resources, now } = foundation;
  const { ownOffers, lastFailures, running } = observers;
  const startedAt = now();
  const outages = () => {
    const [own, others] = [true, false].map((isOwn) =>
      network.routing.health.outages().filter(({ offer }) => ownOffers.has(offer) === isOwn),
    );
    return [...others!, ...own!]
      .slice(-OUTAGES_MAX)
      .map((outage) => ({ ...outage, ...lastFailures.newestOf({ id: outage.offer }) }));
  };
  const reports = createGatewayReports({
    database,
    id: randomUUID(),
    now,
    async report() {
      const { ready: isReady, checks } = await ready();
      const state = access.drain.announced() ? 'stopping' : isReady ? 'ready' : 'not_ready';
      let inFlight = 0;
      for (const place of running.places()) inFlight += place.running;
      return {
        host: hostname(),
        pid: process.pid,
        version: VERSION,
        startedAt,
        state,
        checks,
        inFlight,
        rssBytes: process.memoryUsage.rss(),
        alerts: raised.since(now() - DAY_MS),
        outages: outages(),
      };
    },
  });
  resources.defer(() => reports.close());
  return reports;
}
