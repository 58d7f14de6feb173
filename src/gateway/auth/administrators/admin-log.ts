import { randomBytes } from 'node:crypto';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { loadStatements, type Database } from '#store';
import { redact } from '#security';
import { administratorOf, isReading } from './admin-keys.ts';

export interface AdminAct {
  /** Ids sort by time, and those of one gateway by order within a millisecond too. */
  readonly id: string;
  /** Epoch milliseconds. */
  readonly at: number;
  /** The id of the key, `root` for TOLLGATE_ADMIN_KEY, or `command` for a command on the database. */
  readonly actor: string;
  /** The label of the key. null for `root` and `command`. */
  readonly label: string | null;
  readonly address: string;
  readonly method: string;
  readonly path: string;
  /** The JSON of the request body, shortened and without secrets. null without a body. */
  readonly body: string | null;
  /** The HTTP status of the response. null if the request runs, or if the gateway stopped before it ended. */
  readonly status: number | null;
}

export interface AdminLog {
  /** Resolves with the id of the act, once the act is durable. */
  note(act: Omit<AdminAct, 'id' | 'at' | 'label'>): Promise<string>;
  end(id: string, status: number): Promise<void>;
  /** Removes the labels of an account from the acts that gave them. The acts stay. */
  forgetLabels(account: string): Promise<void>;
  /** Newest first. `before`: only acts before this id. */
  list(page: { readonly before: string | null; readonly limit: number }): Promise<readonly AdminAct[]>;
}

const SQL = loadStatements(import.meta.url, './sql/admin-log.sql', [
  'noteAct',
  'endAct',
  'forgetRenames',
  'forgetCreation',
  'listActs',
]);
/** Twelve hex digits of milliseconds last until the year 10,889. */
const TIME_DIGITS = 12;
/** Acts of one millisecond are counted in four hex digits. */
const ORDER_DIGITS = 4;
/** Sorts after every id, because ids are hex. */
const AFTER_ALL = 'g';
/** Accounts are created here, and renamed below it. */
const ACCOUNTS = '/admin/v1/accounts';
/** Before the names of accounts that have no wallet. */
const LOCAL = 'tollgate:local:';

export function createAdminLog(database: Pick<Database, 'query'>, { now }: { readonly now: () => number }): AdminLog {
  let newest = 0;
  let order = 0;
  return {
    async note({ actor, address, method, path, body, status }) {
      const at = now();
      order = at === newest ? (order + 1) % 16 ** ORDER_DIGITS : 0;
      newest = at;
      const time = at.toString(16).padStart(TIME_DIGITS, '0') + order.toString(16).padStart(ORDER_DIGITS, '0');
      const id = `${time}${randomBytes(4).toString('hex')}`;
      await database.query(SQL.noteAct, [id, at, actor, address, method, path, body, status]);
      return id;
    },
    async end(id, status) {
      await database.query(SQL.endAct, [id, status]);
    },
    async forgetLabels(account) {
      const member = (name: string, value: string) => `%"${name}":${JSON.stringify(value).replace(/[\\%_]/g, '\\$&')}%`;
      const label = '[removed]';
      const paths = [account, encodeURIComponent(account)].map((id) => `${ACCOUNTS}/${id}`);
      await database.query(SQL.forgetRenames, [...paths, JSON.stringify({ label })]);
      const bodies = [member('account', account), member('name', account.replace(LOCAL, ''))];
      await database.query(SQL.forgetCreation, [ACCOUNTS, ...bodies, JSON.stringify({ account, label })]);
    },
    async list({ before, limit }) {
      const rows = await database.query(SQL.listActs, [before ?? AFTER_ALL, limit]);
      return rows.map((row) => ({
        id: row['id'] as string,
        at: Number(row['at']),
        actor: row['actor'] as string,
        label: (row['label'] as string | null) ?? null,
        address: row['address'] as string,
        method: row['method'] as string,
        path: row['path'] as string,
        body: row['body'] as string | null,
        status: row['status'] === null ? null : Number(row['status']),
      }));
    },
  };
}

const BODY_MAX = 2_000;
const PATH_MAX = 500;

/**
 * Logs each change that passes the gate on the routes of `app`. The entry is written before the change, so that no
 * change is unlogged. Its status is added after the response. If the log cannot be written, the change is refused.
 */
export function logActs(
  app: FastifyInstance,
  { log, onError }: { readonly log: AdminLog; readonly onError: (error: unknown) => void },
): void {
  const acts = new WeakMap<object, string>();
  app.addHook('preHandler', async (request) => {
    const administrator = administratorOf(request.raw);
    if (administrator === null || isReading(request)) return;
    acts.set(request, await log.note({ ...factsOf(request), actor: administrator.id, status: null }));
  });
  app.addHook('onResponse', async (request, reply) => {
    const id = acts.get(request);
    // A failure is reported only, because the act itself is already in the log.
    if (id !== undefined) await log.end(id, reply.statusCode).catch(onError);
  });
}

type Act = Pick<FastifyRequest, 'ip' | 'method' | 'url' | 'body' | 'routeOptions'>;

/**
 * The facts of a request that the log keeps. A body is not among them at a route with `logsNoBody` in its
 * configuration: a text that was written there can be deleted, and the log cannot.
 */
export function factsOf({ ip, method, url, body, routeOptions }: Act) {
  const text =
    routeOptions.config.logsNoBody === true || body === undefined || body === null
      ? null
      : JSON.stringify(redact(body));
  return { address: ip, method, path: url.slice(0, PATH_MAX), body: text?.slice(0, BODY_MAX) ?? null };
}
