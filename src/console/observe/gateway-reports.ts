import { loadStatements, type Database } from '#store';
import type { OfferOutage } from '#catalog';
import type { RaisedAlert } from './raised-alerts.ts';

/** An outage as its process saw it, with its last error. */
export interface ReportedOutage extends OfferOutage {
  readonly reason: string | null;
  /** Id of the call that had this error. */
  readonly call: string | null;
}

/** A process of a gateway reports this of itself. Times are epoch milliseconds. */
interface GatewayReport {
  readonly host: string;
  readonly pid: number;
  readonly version: string;
  readonly startedAt: number;
  readonly state: 'ready' | 'not_ready' | 'stopping';
  /** As `/health/ready` gives them: each part with `ok`, or its problem. */
  readonly checks: Readonly<Record<string, string>>;
  readonly inFlight: number;
  readonly rssBytes: number;
  readonly alerts: readonly RaisedAlert[];
  /** At most 50. Absent from a process of an older version. */
  readonly outages?: readonly ReportedOutage[];
}

/** A report of a process, and whether it is too old: the process has ended without a word, or hangs. */
export interface ReportedGateway extends GatewayReport {
  readonly id: string;
  readonly reportedAt: number;
  readonly isSilent: boolean;
  readonly isThis: boolean;
}

export interface GatewayReports {
  /** Of all processes of the database, by host and start. This process reports anew first. */
  all(): Promise<readonly ReportedGateway[]>;
  /** Removes the report of this process, because it ends. */
  close(): Promise<void>;
}

interface GatewayReportsOptions {
  readonly database: Pick<Database, 'query' | 'batch'>;
  readonly id: string;
  readonly report: () => Promise<GatewayReport>;
  /** Epoch milliseconds. */
  readonly now: () => number;
  readonly everyMs?: number;
}

const SQL = loadStatements(import.meta.url, './sql/gateway-reports.sql', [
  'putReport',
  'listReports',
  'deleteReport',
  'deleteOldReports',
]);
const EVERY_MS = 30_000;
/** A process that has not reported for so many intervals is shown as silent. */
const SILENT_AFTER = 3;
const DAY_MS = 86_400_000;

/**
 * Reports the state of this process to the database, where every gateway can show it. A report that fails is left out:
 * the next one comes soon, and the checks of health have reported that the database is away.
 */
export function createGatewayReports(options: GatewayReportsOptions): GatewayReports {
  const { database, id, report, now, everyMs = EVERY_MS } = options;
  let closed = false;
  const put = async (): Promise<void> => {
    const text = JSON.stringify(await report());
    if (closed) return;
    await database.batch([
      { statement: SQL.deleteOldReports, params: [now() - DAY_MS] },
      { statement: SQL.putReport, params: [id, now(), text] },
    ]);
  };
  let running: Promise<void> = Promise.resolve();
  const turn = () => {
    running = put().catch(() => {});
  };
  const timer = setInterval(turn, everyMs);
  timer.unref();
  turn();
  return {
    async all() {
      await put();
      const rows = await database.query(SQL.listReports);
      const at = now();
      return rows
        .map((row): ReportedGateway => {
          const reportedAt = Number(row['at']);
          return {
            ...(JSON.parse(row['report'] as string) as GatewayReport),
            id: row['id'] as string,
            reportedAt,
            isSilent: at - reportedAt > everyMs * SILENT_AFTER,
            isThis: row['id'] === id,
          };
        })
        .sort((a, b) => (a.host === b.host ? a.startedAt - b.startedAt : a.host < b.host ? -1 : 1));
    },
    async close() {
      closed = true;
      clearInterval(timer);
      await running;
      await database.batch([{ statement: SQL.deleteReport, params: [id] }]).catch(() => {});
    },
  };
}
