import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { createGatewayReports, type GatewayReports } from '#observe';
import { VERSION } from '../../foundation/version.ts';
import type { Phases } from './calls.ts';
import type { CheckReady } from './health.ts';

const DAY_MS = 86_400_000;

export function openGatewayReports({ foundation, observers, access }: Phases, ready: CheckReady): GatewayReports {
  const { database, raised, resources, now } = foundation;
  const startedAt = now();
  const reports = createGatewayReports({
    database,
    id: randomUUID(),
    now,
    async report() {
      const { ready: isReady, checks } = await ready();
      const state = access.drain.announced() ? 'stopping' : isReady ? 'ready' : 'not_ready';
      let inFlight = 0;
      for (const { running } of observers.running.places()) inFlight += running;
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
      };
    },
  });
  resources.defer(() => reports.close());
  return reports;
}
